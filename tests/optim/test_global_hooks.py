"""Hooks of all optimisers: when they fire, what they may replace, and that they go with their handle."""

from __future__ import annotations

import pytest

import lucid
from lucid import optim
from lucid.errors import HookError, HookTypeError
from lucid.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from tests.pieces import raising


def optimizer_of(value=1.0, lr=0.5):
    x = lucid.tensor([value], requires_grad=True)
    x.grad = lucid.tensor([1.0])
    return x, optim.SGD([x], lr=lr)


def test_order_of_global_and_own_hooks():
    """Pre-hooks of all optimisers come before one's own, its own post-hooks before theirs; a handle ends it for all."""
    calls = []
    _, a = optimizer_of()
    _, b = optimizer_of()
    a.register_step_pre_hook(lambda *_: calls.append("own pre"))
    a.register_step_post_hook(lambda *_: calls.append("own post"))
    with (
        register_optimizer_step_pre_hook(lambda o, args, kwargs: calls.append(("pre", o, len(args), kwargs))),
        register_optimizer_step_post_hook(lambda o, args, kwargs: calls.append(("post", o, len(args), kwargs))),
    ):
        a.step()
        assert calls == [("pre", a, 1, {}), "own pre", "own post", ("post", a, 1, {})]
        b.step(None)
        assert calls[4:] == [("pre", b, 2, {}), ("post", b, 2, {})]
    a.step()
    assert calls[6:] == ["own pre", "own post"]


def test_a_global_hook_replaces_the_arguments():
    """What a pre-hook of all optimisers returns is what the step, and the optimiser's own hooks, are called with."""
    seen = []
    x, optimizer = optimizer_of()
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(list(kwargs)))
    with register_optimizer_step_pre_hook(lambda o, args, kwargs: (args, {"closure": lambda: 5.0})):
        assert optimizer.step() == 5.0
    assert (seen, x.tolist()) == ([["closure"]], [0.5])


def test_global_hooks_of_a_step_written_as_for_pytorch():
    """They fire once around a subclass's own `step`, also where that calls its base's."""
    calls = []

    class Noisy(optim.SGD):
        def step(self, closure=None):
            calls.append("own")
            return super().step(closure)

    optimizer = Noisy([lucid.ones(1, requires_grad=True)])
    with register_optimizer_step_pre_hook(lambda *_: calls.append("pre")):
        optimizer.step()
    assert calls == ["pre", "own"]


def test_a_bad_global_hook_prevents_the_step():
    """One that raises or returns nonsense changes nothing and is named; what cannot be called is not registered."""
    x, optimizer = optimizer_of()
    bad = raising(KeyError("broken")), lambda *_: 3, lambda *_: ((), {}, 0)
    for hook, kind in zip(bad, (KeyError, HookError, HookError), strict=True):
        with register_optimizer_step_pre_hook(hook), pytest.raises(kind) as caught:
            optimizer.step()
        assert hook.__qualname__ in "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    for register in (register_optimizer_step_pre_hook, register_optimizer_step_post_hook):
        with pytest.raises(HookTypeError, match="callable"):
            register(3)
    assert x.tolist() == [1.0]
    optimizer.step()
    assert x.tolist() == [0.5]


def test_a_hook_added_while_hooks_fire_waits():
    """A hook added by another one fires from the next step on."""
    calls, handles = [], []
    _, optimizer = optimizer_of()

    def add(*_):
        calls.append("add")
        handles.append(register_optimizer_step_pre_hook(lambda *_: calls.append("added")))

    first = register_optimizer_step_pre_hook(add)
    try:
        optimizer.step()
        assert calls == ["add"]
        first.remove()
        optimizer.step()
        assert calls == ["add", "added"]
    finally:
        for handle in (first, *handles):
            handle.remove()


def test_hooks_fire_again_after_a_step_that_raised():
    """A step that fails inside leaves the optimiser able to fire its hooks at the next."""
    x, optimizer = optimizer_of()
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
    with pytest.raises(ZeroDivisionError):
        optimizer.step(lambda: 1 / 0)
    optimizer.step()
    assert (calls, x.tolist()) == (["pre", "pre"], [0.5])


def test_tables_of_an_optimizer_are_replaced_and_come_back():
    """A dictionary in a table's place gives its entries, and the table that it replaced keeps its own."""
    calls = []
    optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)])
    optimizer.register_step_pre_hook(lambda *_: calls.append("own"))
    own = optimizer._optimizer_step_pre_hooks
    optimizer._optimizer_step_pre_hooks = {5: lambda *_: calls.append("replaced")}
    handle = optimizer.register_step_pre_hook(lambda *_: calls.append("meanwhile"))
    optimizer.step()
    handle.remove()
    optimizer._optimizer_step_pre_hooks.pop(5)
    optimizer.step()
    optimizer._optimizer_step_pre_hooks = own
    optimizer.step()
    assert calls == ["replaced", "meanwhile", "own"]
    optimizer._optimizer_state_dict_post_hooks = {1: lambda optimizer, saved: {"hooked": saved}}
    assert list(optimizer.state_dict()) == ["hooked"]
