"""Bad input for hooks of tensors, nodes and saved tensors; what a failed pass leaves to the graph that it ran over."""

from __future__ import annotations

import functools
import re
import threading
from functools import partial
from unittest import mock

import pytest

import lucid
from lucid import nn
from lucid.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from lucid.errors import HookError, HookTypeError
from tests.pieces import in_threads, leaf

contract = pytest.mark.contract


class Planted(Exception):
    """What a broken hook raises."""


def fails(*_):
    raise Planted("planted")


class Fails:
    """A callable object that has an attribute of the name that partials keep their function under."""

    func = None

    def __call__(self, grad):
        raise Planted("planted")


class Looped(Fails):
    """One whose attribute leads back to itself."""

    @property
    def func(self):
        return self


@contract("0.5")
@pytest.mark.parametrize(
    ("hook", "name"),
    [
        (fails, r"fails \(.*test_hook_errors.py:\d+\)"),
        (functools.partial(functools.partial(fails, 1), 2), r"fails \(.*test_hook_errors.py:\d+\)"),
        (Fails(), r"Fails \(.*test_hook_errors.py:\d+\)"),
        (Looped(), r"Looped \(.*test_hook_errors.py:\d+\)"),
        (Fails().__call__, r"Fails.__call__ \(.*test_hook_errors.py:\d+\)"),
        (mock.Mock(side_effect=Planted("planted")), r"Mock \(.*mock.py:\d+\)"),
        (mock.MagicMock(side_effect=Planted("planted")), r"MagicMock \(.*mock.py:\d+\)"),
    ],
    ids=["function", "partial", "object", "loop", "method", "Mock", "MagicMock"],
)
def test_whatever_can_be_called_is_named(hook, name):
    """Functions, partials of partials, objects, methods and mocks are named with their file and line."""
    x = leaf(1.0)
    with x.register_hook(hook), pytest.raises(Planted) as caught:
        (x * 2).backward()
    (note,) = caught.value.__notes__
    assert re.match(f"raised by hook {name}: tensor hook number 0 of the leaf tensor", note), note


@contract("0.5")
@pytest.mark.parametrize("registration", ["register_hook", "register_post_accumulate_grad_hook"])
@pytest.mark.parametrize("watched", [False, True])
def test_a_hook_that_takes_itself_off_keeps_its_number(registration, watched):
    """The note says where the hook stood when the pass came to it, though it is gone by then."""
    x = leaf(1.0)
    register = getattr(x, registration)
    register(lambda _: None)

    def planted_hook(_):
        handle.remove()
        raise Planted("planted")

    handle = register(planted_hook)
    if watched:
        lucid.autograd.graph.get_gradient_edge(x).node.register_prehook(lambda _: None)
    with pytest.raises(Planted) as caught:
        (x * 2).backward()
    assert "hook number 1 of the leaf tensor" in caught.value.__notes__[0]


@contract("0.6")
@contract("2.3")
def test_bad_tensors_for_a_hook_over_several():
    """One tensor for several, other things, one without grad, another mode: refused, and nothing is registered."""
    x, calls = leaf(1.0), []
    for tensors, settings, error in (
        (x, {}, HookTypeError),
        ([x, 3], {}, HookTypeError),
        ([x, None], {}, HookTypeError),
        ([x, x.detach()], {}, HookError),
        (3, {}, TypeError),
        ([x], {"mode": "some"}, ValueError),
    ):
        with pytest.raises(error):
            register_multi_grad_hook(tensors, calls.append, **settings)
    (x * 2).backward()
    assert not calls
    assert not x._backward_hooks


@contract("0.6")
@pytest.mark.parametrize("wrong", [3, None, "text"], ids=str)
def test_bad_pairs_for_saved_tensors(wrong):
    """A pair of which one cannot be called is refused, and no pair is active."""
    for pair in ((wrong, fails), (fails, wrong)):
        with pytest.raises(HookTypeError, match="saved_tensors_hooks"), saved_tensors_hooks(*pair):
            pytest.fail("the block was entered")
    x = leaf(2.0)
    (x * x).backward()
    assert x.grad.item() == 4.0


def failing_pass(y):
    """Run backward over `y` with a hook that raises on the way, keeping the graph."""
    with pytest.raises(Planted):
        y.backward(retain_graph=True)


@contract("0.5")
@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_kept_graph_after_a_failed_pass(mode):
    """The next pass over the same graph calls every hook once and gives what the first would have given."""
    x, calls = leaf(1.0, 2.0), []
    module = nn.Tanh()
    module.register_full_backward_hook(lambda m, gi, go: calls.append("full"))
    h = x * 3
    y = (module(h) * x).sum()
    register_multi_grad_hook([h, x], lambda grads: calls.append("multi"), mode=mode)
    with x.register_hook(fails):
        failing_pass(y)
    assert x.grad is None
    del calls[:]
    y.backward()
    assert sorted(calls) == ["full", "multi"]
    got = x.grad.tolist()
    x.grad = None
    (module(x * 3) * x).sum().backward()
    assert got == x.grad.tolist()


class Aside(nn.Module):
    """Keeps something made of its input that is no part of its output."""

    def forward(self, x, *others):
        self.aside = (x * 5).sum()
        y = x * x
        self.inside = y.register_hook(fails)
        return y * 2


@contract("0.5")
@contract("5.4")
@pytest.mark.parametrize("others", [(), (None,)], ids=["one tensor", "several arguments"])
def test_a_module_in_which_a_pass_failed(others):
    """Its full hooks do not fire, with what that pass left, in one that does not come through the module's outputs."""
    module, calls = Aside(), []
    module.register_full_backward_hook(lambda m, gi, go: calls.append([g.tolist() for g in go]))
    x = leaf(1.0, 2.0)
    y = module(x, *others).sum()
    failing_pass(y)
    module.aside.backward(retain_graph=True)
    assert not calls
    assert x.grad.tolist() == [5.0, 5.0]
    module.inside.remove()
    y.backward()
    assert calls == [[[1.0, 1.0]]]
    assert x.grad.tolist() == [5.0 + 4.0, 5.0 + 8.0]


@contract("5.5")
@contract("10")
@pytest.mark.parametrize("others", [(), (None,)], ids=["one tensor", "several arguments"])
def test_passes_over_one_graph_do_not_mix_their_module_hooks(others):
    """A pass from within a pass, and passes of several threads, each fire the full hooks with their own gradients."""

    class Inner(nn.Module):
        def forward(self, x, *others):
            y = x * 3
            y.register_hook(again)
            return y * 2

    module, calls, depth = Inner(), [], []

    def again(grad):
        # to another thread, or into a pass of the same thread, before the module's input is reached
        barrier.wait()
        if not depth and barrier.parties == 1:
            depth.append(1)
            y.backward(lucid.full_like(y, 100.0), retain_graph=True)

    module.register_full_backward_hook(lambda m, gi, go: calls.append((gi[0].item(), go[0].item())))
    y = module(leaf(1.0), *others)
    barrier = threading.Barrier(1)
    y.backward(lucid.full_like(y, 1.0), retain_graph=True)
    assert calls == [(600.0, 100.0), (6.0, 1.0)]
    del calls[:]
    barrier = threading.Barrier(4)
    seeds = [lucid.full_like(y, float(n)) for n in range(1, 5)]
    in_threads(*[partial(y.backward, seed, True) for seed in seeds])
    assert sorted(calls) == [(6.0 * n, float(n)) for n in range(1, 5)]


@contract("0.5")
def test_a_hook_that_raises_in_one_thread_of_many():
    """The other threads' passes over the same leaf lose nothing."""
    x, errors = leaf(1.0), []

    def work(broken):
        for _ in range(50):
            y = x * 2
            if broken:
                y.register_hook(fails)
            try:
                y.backward()
            except Planted as error:
                errors.append(error)

    in_threads(*[partial(work, n % 2 == 0) for n in range(6)])
    assert len(errors) == 150
    assert x.grad.item() == 300.0
    assert all("made by MulBackward0" in error.__notes__[0] for error in errors)


@pytest.mark.parametrize("watched", [False, True])
def test_the_number_of_a_function_that_is_registered_twice(watched):
    """A note gives the place of the call that raised, also where the same function stands at others."""
    x, calls = leaf(1.0), []

    def fails_the_second_time(_):
        calls.append(1)
        if len(calls) == 2:
            raise Planted("planted")

    for _ in range(3):
        x.register_hook(fails_the_second_time)
    if watched:
        lucid.autograd.graph.get_gradient_edge(x).node.register_prehook(lambda _: None)
    with pytest.raises(Planted) as caught:
        (x * 2).backward()
    assert "tensor hook number 1 of the leaf tensor" in caught.value.__notes__[0]
