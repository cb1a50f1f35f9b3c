"""Modes and saved-tensor hooks that user code switches on inside of backward: they last until its node is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import lucid
from lucid.autograd.graph import allow_mutation_on_saved_tensors, disable_saved_tensors_hooks, saved_tensors_hooks
from tests.pieces import function_of, leaf

if TYPE_CHECKING:
    from collections.abc import Callable


def packing(log: list[str], name: str = "packed") -> saved_tensors_hooks:
    """Return hooks that note each tensor that they pack."""
    return saved_tensors_hooks(lambda t: log.append(name) or t.detach(), lambda t: t)


# What user code may leave on in a node of backward, and how to see it.
LEFT_ON = {
    "saved-tensor hooks": (lambda log: packing(log).__enter__(), lambda log: log.clear() or seen_packing(log)),
    "grad mode": (lambda log: lucid.enable_grad().__enter__(), lambda log: lucid.is_grad_enabled()),
    "inference mode": (lambda log: lucid.inference_mode().__enter__(), lambda log: lucid.is_inference_mode_enabled()),
    "no hooks": (lambda log: disable_saved_tensors_hooks("no").__enter__(), lambda log: not can_pack()),
    "mutation": (lambda log: allow_mutation_on_saved_tensors().__enter__(), lambda log: not is_refused()),
}


def seen_packing(log: list[str]) -> bool:
    """Return whether a tensor that is saved now is packed."""
    with lucid.enable_grad():
        leaf(1.0).exp()
    return bool(log)


def can_pack() -> bool:
    """Return whether saved-tensor hooks can be entered."""
    try:
        with packing([]):
            return True
    except RuntimeError:
        return False


def is_refused() -> bool:
    """Return whether a saved tensor may not be changed."""
    with lucid.enable_grad():
        x = leaf(1.0)
        y = x * 1.0
        z = y * y
        y.mul_(2.0)
        try:
            lucid.autograd.grad(z, x)
        except RuntimeError:
            return True
    return False


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("where", ["tensor hook", "prehook", "posthook", "unpack hook", "backward"])
@pytest.mark.parametrize("what", LEFT_ON)
def test_until_the_node_is_done(what: str, where: str, create_graph: bool) -> None:
    """Hooks of the next node find the modes with which the pass began."""
    enter, is_on = LEFT_ON[what]
    log: list[str] = []
    seen = []

    def backward(ctx, grad):
        if where == "backward":
            enter(log)
        return grad

    Same = function_of(lambda ctx, x: x * 1.0, backward, name="Same")

    def unpack(t):
        if where == "unpack hook":
            enter(log)
        return t

    x = leaf(2.0)
    below = x * 1.0
    with saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = Same.apply(below) if where == "backward" else below.exp()
    if where == "tensor hook":
        y.register_hook(lambda grad: enter(log))
    if where == "prehook":
        y.grad_fn.register_prehook(lambda grads: enter(log))
    if where == "posthook":
        y.grad_fn.register_hook(lambda into, grads: enter(log))
    below.register_hook(lambda grad: seen.append(bool(is_on(log))))
    usual = create_graph and what == "grad mode"
    y.backward(create_graph=create_graph)
    assert seen == [usual]
    assert bool(is_on(log)) == (what == "grad mode")
    assert lucid.is_grad_enabled()
    assert x.grad is not None


def test_within_the_node() -> None:
    """All hooks of the node see what its first one has switched on."""
    log: list[str] = []
    seen = []
    y = leaf(2.0).exp()
    y.register_hook(lambda grad: packing(log).__enter__())
    y.register_hook(lambda grad: seen.append(seen_packing(log)))
    y.grad_fn.register_prehook(lambda grads: seen.append(seen_packing(log)))
    y.grad_fn.register_hook(lambda into, grads: seen.append(seen_packing(log)))
    y.backward()
    assert seen == [True] * 3
    log.clear()
    assert not seen_packing(log)


def test_what_was_on_before_comes_back() -> None:
    """A hook that leaves the hooks around backward, or its grad mode, leaves them for its node only."""
    log: list[str] = []
    x = leaf(2.0)
    outer = packing(log)
    with outer:
        y = x.exp()
        y.register_hook(lambda grad: outer.__exit__() or (lucid.set_grad_enabled(False) and None))
        x.register_hook(lambda grad: log.append(f"grad mode {lucid.is_grad_enabled()}"))
        lucid.autograd.grad(y, x, create_graph=True)
        assert log.pop() == "grad mode True"
        assert lucid.is_grad_enabled()
        log.clear()
        x.exp()
        assert log == ["packed"]


AROUND = {
    "saved-tensor hooks": (packing, seen_packing),
    "no_grad": (lambda log: lucid.no_grad(), lambda log: not (leaf(1.0) * 2).requires_grad),
    "inference mode": (lambda log: lucid.inference_mode(), lambda log: (leaf(1.0) * 2).is_inference()),
    "no hooks": (lambda log: disable_saved_tensors_hooks("no"), lambda log: not can_pack()),
    "mutation": (lambda log: allow_mutation_on_saved_tensors(), lambda log: not is_refused()),
}


@pytest.mark.parametrize("changing", [False, True], ids=["quiet", "changing"])
@pytest.mark.parametrize("what", AROUND)
def test_what_is_on_around_a_pass_stays(what: str, changing: bool) -> None:
    """Ops after the pass find what ops before it found, also where hooks of the pass have switched modes."""
    make, is_on = AROUND[what]
    log: list[str] = []
    x = leaf(2.0)
    y = x.exp()
    seen = []
    if changing:
        y.register_hook(lambda grad: lucid.set_grad_enabled(True) and None)
    x.register_hook(lambda grad: seen.append(lucid.is_inference_mode_enabled()))
    with make(log):
        lucid.ones(1) * 2
        y.backward()
        log.clear()
        assert is_on(log)
    assert seen == [what == "inference mode"]
    log.clear()
    assert not is_on(log)


@pytest.mark.parametrize("enter", [packing, lambda log: disable_saved_tensors_hooks("no")], ids=["hooks", "no hooks"])
@pytest.mark.parametrize("where", ["hook", "callback"])
def test_after_an_error(where: str, enter: Callable[[list[str]], Any]) -> None:
    """They are gone also where the pass ends with an exception."""
    log: list[str] = []

    def act(*_: object) -> None:
        enter(log).__enter__()
        lucid.set_grad_enabled(True)
        raise KeyError("planned")

    y = leaf(2.0).exp()
    y.register_hook(act if where == "hook" else lambda grad: lucid.autograd.graph.queue_callback(act))
    with lucid.no_grad(), pytest.raises(KeyError, match="planned"):
        y.backward()
    assert lucid.is_grad_enabled()
    assert not seen_packing(log)
    assert can_pack()


def test_of_a_pass_inside_of_a_hook() -> None:
    """A nested pass ends with the modes with which its hook has begun it."""
    log: list[str] = []
    x = leaf(2.0)
    y = x.exp()

    def hook(grad: lucid.Tensor) -> None:
        packing(log, "outer").__enter__()
        with lucid.enable_grad():
            inner = x * 1.0
            inner.register_hook(lambda grad: packing(log, "inner").__enter__())
            lucid.autograd.grad(inner, x)
            log.clear()
            x.exp()

    y.register_hook(hook)
    y.backward()
    assert log == ["outer"]
    log.clear()
    assert not seen_packing(log)


def test_exit_needs_an_entry() -> None:
    """Leaving takes no arguments; leaving hooks that are gone is an error, and says where they went."""
    log: list[str] = []
    hooks = packing(log)
    hooks.__enter__()
    hooks.__exit__()
    assert not seen_packing(log)
    with pytest.raises(RuntimeError, match="until that node of the graph is done"):
        hooks.__exit__()
    block = allow_mutation_on_saved_tensors()
    block.__enter__()
    block.__exit__()
    disable = disable_saved_tensors_hooks("no")
    disable.__enter__()
    disable.__exit__()
    assert can_pack()
