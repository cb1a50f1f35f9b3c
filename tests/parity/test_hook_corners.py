"""What random programs of modules and hooks have found, each as the few lines that show it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
import torch.utils.checkpoint

import lucid

both = pytest.mark.parametrize("lib", [torch, lucid], ids=["torch", "lucid"])


def seeded(lib, *shape, seed=0, requires_grad=False):
    """Return the same normal numbers in either library."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return lib.tensor(values, dtype=lib.float64, requires_grad=requires_grad)


@both
@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "intermediate"])
def test_hooks_of_a_layers_parameters(lib, leaf):
    """The bias of a linear layer has its gradient first, then a leaf that is its input, then the weight."""
    events = []
    layer = lib.nn.Linear(3, 3, dtype=lib.float64)
    x = seeded(lib, 2, 3, requires_grad=True)
    for name, tensor in (("x", x), *layer.named_parameters()):
        tensor.register_hook(lambda grad, name=name: events.append(name))
    layer(x if leaf else x.tanh()).backward(seeded(lib, 2, 3, seed=1))
    assert events == (["bias", "x", "weight"] if leaf else ["bias", "weight", "x"])


@both
@pytest.mark.contract("5.6")
def test_a_view_at_a_boundary_that_was_changed_unseen(lib):
    """What a module has made of its argument's memory without recording cannot be used as if it were the argument."""

    class Changes(lib.nn.Module):
        def forward(self, x):
            with lib.no_grad():
                x.mul_(2)
            return x * 3

    module = Changes()
    module.register_full_backward_hook(lambda *_: None)
    x = seeded(lib, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"is a view|this view"):
        module(x * 1)


@pytest.mark.contract("5.6")
def test_such_a_view_can_still_be_looked_at():
    """A view whose place in the graph is lost is printed, needs a gradient, and can be used without one."""
    module = lucid.nn.Identity()
    module.register_full_backward_hook(lambda *_: None)
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    y = module(x * 1)
    with lucid.no_grad():
        y.mul_(2)
    assert "[2., 4.]" in repr(y)
    assert "grad_fn=<Invalid>" in repr(y)
    assert y.requires_grad
    assert y.detach().tolist() == [2.0, 4.0]
    with lucid.no_grad():
        assert (y + 1).tolist() == [3.0, 5.0]
    with pytest.raises(RuntimeError, match="cannot be taken again"):
        y.sum()


@both
@pytest.mark.contract("5.2")
def test_an_input_that_gets_no_gradient_counts_as_zeros(lib):
    """`grad_input` of a module whose forward gives its only input no gradient is zeros, and these flow on."""

    class NoGradient(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    class Wrapped(lib.nn.Module):
        def forward(self, x):
            return NoGradient.apply(x)

    seen = []
    module = Wrapped()
    module.register_full_backward_hook(lambda m, into, out: seen.append(into[0].tolist()))
    x = seeded(lib, 2, requires_grad=True)
    module(x).backward(seeded(lib, 2, seed=1))
    assert seen == [[0.0, 0.0]]
    assert x.grad.tolist() == [0.0, 0.0]


@both
@pytest.mark.contract("4.3")
def test_an_always_called_hook_after_a_pre_hook_has_raised(lib):
    """It sees the arguments as the pre-hooks before that one have left them."""
    seen = []
    module = lib.nn.Identity()
    module.register_forward_pre_hook(lambda m, args: args[0] * 2)

    def raising(m, args):
        raise KeyError("planned")

    module.register_forward_pre_hook(raising)
    module.register_forward_hook(lambda m, args, out: seen.append((args[0].tolist(), out)), always_call=True)
    with pytest.raises(KeyError, match="planned"):
        module(lib.tensor([1.0, 2.0]))
    assert seen == [([2.0, 4.0], None)]


def test_nodes_at_a_boundary_have_one_name():
    """A module's nodes are called the same whichever way its call took."""
    names = []
    for with_pre_hook in (False, True):
        module = lucid.nn.Identity()
        module.register_full_backward_hook(lambda *_: None)
        if with_pre_hook:
            module.register_full_backward_pre_hook(lambda *_: None)
        node = module(lucid.ones(2, requires_grad=True)).grad_fn
        names.append((node.name(), node.next_functions[0][0].name()))
    assert names == [("ModuleOutputBackward", "ModuleInputBackward")] * 2


@both
def test_a_reentrant_checkpoint_of_what_needs_no_gradient(lib):
    """A part whose output does not depend on its input gives zeros to the hooks around the checkpoint."""

    class Detached(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(seeded(lib, 2, seed=3))

        def forward(self, x):
            checkpoint = lib.utils.checkpoint.checkpoint
            return checkpoint(lambda x: x.detach() * self.weight, x, use_reentrant=True)

    seen = []
    module = Detached()
    module.register_full_backward_hook(lambda m, into, out: seen.append(into[0].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module(seeded(lib, 2, requires_grad=True)).backward(seeded(lib, 2, seed=1))
    assert seen == [[0.0, 0.0]]


def test_a_parameter_that_a_checkpoint_returns():
    """A leaf that is no argument stays a leaf when a Function returns it, and gets its gradient.

    In PyTorch the parameter itself becomes the checkpoint's output, whose backward then calls itself for ever.
    """
    weight = lucid.nn.Parameter(seeded(lucid, 2))
    x = seeded(lucid, 2, requires_grad=True)
    out = lucid.utils.checkpoint.checkpoint(lambda x: weight, x, use_reentrant=True)
    assert weight.is_leaf
    assert weight.requires_grad
    assert out.grad_fn.name() == "CheckpointFunctionBackward"
    grad = seeded(lucid, 2, seed=1)
    out.backward(grad)
    assert weight.grad.tolist() == grad.tolist()
    with lucid.no_grad():
        lucid.utils.checkpoint.checkpoint(lambda x: weight, x, use_reentrant=True)
    assert weight.requires_grad


@both
def test_a_forward_hook_that_forward_registers(lib):
    """A hook of a later moment of the same call fires in it, also where only backward hooks were there before."""
    events = []

    class Registers(lib.nn.Module):
        def forward(self, x):
            self.register_forward_hook(lambda *_: events.append("forward"))
            return x * 2

    module = Registers()
    module.register_full_backward_hook(lambda *_: events.append("backward"))
    module(seeded(lib, 2, requires_grad=True)).sum().backward()
    assert events == ["forward", "backward"]
