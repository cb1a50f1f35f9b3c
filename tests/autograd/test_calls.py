"""How many functions of Python an op, a node of backward and a hook call: what they cost, on any machine."""

from __future__ import annotations

import sys

import pytest

import lucid
from lucid import nn
from tests.autograd.calls import calls
from tests.device import DEVICE

# The most calls of each, on the CPU and on a device; the hook that is counted is one of them. Lower them when a change
# makes one cheaper.
BOUNDS = {
    "add, recorded": (1, 6),
    "add, no grad": (3, 7),
    "exp, recorded": (2, 7),
    "reshape": (18, 15),
    "node of add": (2, 4),
    "hook of a tensor": (2, 2),
    "hook of a leaf": (3, 2),
    "post-accumulate hook": (5, 11),
    "forward hook": (1, 1),
}  # fmt: skip
MANY = 10


def hook(*_):
    """Look at nothing."""


def on_device(*, requires_grad=False):
    """Return a small tensor."""
    return lucid.ones(3, device=DEVICE, requires_grad=requires_grad)


def backward_of(count, registered=None):
    """Return what runs backward through a chain of so many sums, each with a hook if one is given."""
    x, b, upstream = on_device(requires_grad=True), on_device(), on_device()
    for _ in range(count):
        x = x + b
        if registered is not None:
            x.register_hook(registered)
    return lambda: x.backward(upstream)


def leaves_with(register):
    """Return what runs backward to many leaves, each of them registered."""
    leaves = [on_device(requires_grad=True) for _ in range(MANY)]
    for leaf in leaves:
        register(leaf)
    upstream, total = on_device(), leaves[0]
    for leaf in leaves[1:]:
        total = total + leaf
    return lambda: total.backward(upstream)


def added(with_it, without):
    """Return how many calls each of many adds."""
    for run in (with_it, without):
        run()()
    more, less = calls(with_it()), calls(without())
    return (len(more) - len(less)) / MANY


def counted(name):
    """Return how many functions one of `BOUNDS` calls, once it has run before."""
    x, b = on_device(requires_grad=True), on_device()
    once = {
        "add, recorded": lambda: x + b,
        "add, no grad": lambda: x + b,
        "exp, recorded": lambda: x.exp(),
        "reshape": lambda: x.reshape(3, 1),
    }
    if name in once:
        with lucid.set_grad_enabled("no grad" not in name):
            for _ in range(3):
                once[name]()
            return len(calls(once[name]))
    if name == "node of add":
        return added(lambda: backward_of(2 * MANY), lambda: backward_of(MANY))
    if name == "hook of a tensor":
        return added(lambda: backward_of(MANY, hook), lambda: backward_of(MANY))
    if name == "forward hook":
        plain, hooked = nn.Identity(), nn.Identity()
        hooked.register_forward_hook(hook)
        return added(lambda: lambda: [hooked(x) for _ in range(MANY)], lambda: lambda: [plain(x) for _ in range(MANY)])
    register = {
        "hook of a leaf": lambda leaf: leaf.register_hook(hook),
        "post-accumulate hook": lambda leaf: leaf.register_post_accumulate_grad_hook(hook),
    }[name]
    return added(lambda: leaves_with(register), lambda: leaves_with(lambda leaf: None))


@pytest.mark.parametrize("name", BOUNDS)
def test_no_more_functions_are_called(name):
    """What is done for every op, node and hook does not grow unseen."""
    bound = BOUNDS[name][DEVICE == "cuda"]
    assert counted(name) <= bound


def test_the_constructor_of_users_is_not_called_by_ops(monkeypatch):
    """What ops, backward and hooks make is no tensor of the sizes, or the data, that `Tensor` takes."""
    x, b = on_device(requires_grad=True), on_device()
    module = nn.Linear(3, 3).to(DEVICE)
    module.register_full_backward_hook(hook)
    module.register_full_backward_pre_hook(hook)

    def refuse(*_):
        message = "the constructor was called"
        raise AssertionError(message)

    monkeypatch.setattr(sys.modules["lucid.tensor.tensor"], "construct", refuse)
    with pytest.raises(AssertionError, match="constructor"):
        lucid.Tensor(2)
    y = (x + b).exp() * 2.0
    y.register_hook(lambda grad: grad * 2)
    x.register_hook(hook)
    x.register_post_accumulate_grad_hook(hook)
    y.retain_grad()
    module(y).relu().sum().backward(create_graph=True)
    assert x.grad is not None
    # on which nothing else hangs
    z, w = on_device(requires_grad=True), on_device(requires_grad=True)
    for tensor in (z, v := z * w):
        tensor.register_hook(hook)
    v.sum().backward()
    x.grad.sum().backward()
    x.detach().add_(b)[1:].reshape(2, 1).T.split(1)
