"""Tensors of no dimension: NumPy computes scalars of their arrays, and none of these gets into a tensor."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.base import wrap, wrap_on_graph
from tests.device import DEVICE
from tests.gradients import flat, tensors_of
from tests.pieces import function_of
from tests.samples import all_samples

ARRAY = type(lucid.ones(2, device=DEVICE).array)

BROADCAST = [s for s in all_samples() if s.broadcasts]


def scalar(value):
    return lucid.tensor(value, dtype=lucid.float64, requires_grad=True)


def use(grad):
    """Do with a gradient what hooks do, and return it."""
    assert type(grad.array) is ARRAY
    copy = grad.clone()
    copy.mul_(2.0)
    assert copy.numpy(force=True) == (grad + grad).item()
    assert (grad + 1).item() == grad.item() + 1
    return grad


# Rounds, with the derivative of the identity.
StraightThrough = function_of(lambda ctx, x: x.round(), lambda ctx, grad: use(grad))


class Scale(nn.Module):
    """Multiplies by a parameter of no dimension, after a Function."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(scalar(3.0).detach())

    def forward(self, *inputs):
        result = StraightThrough.apply(inputs[0]) * self.factor
        for other in inputs[1:]:
            result = result * other
        return result


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("make", [wrap, lambda value: wrap_on_graph(value, None, [0])])
def test_a_scalar_becomes_an_array(make, dtype):
    """Whatever is put into a tensor is an array: of no dimension, of the scalar's dtype."""
    value = np.asarray(lucid.ones((), dtype=getattr(lucid, dtype), device="cpu").array)[()]
    assert isinstance(value, np.generic)
    tensor = make(value)
    assert type(tensor.array) is np.ndarray
    assert (tensor.array.shape, tensor.array.dtype) == ((), value.dtype)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_function_in_a_product(create_graph):
    """A Function's backward gets a tensor from a product of two numbers, and dL/dx = factor, dL/dfactor = round(x)."""
    x, factor = scalar(1.75), scalar(-3.0)
    (StraightThrough.apply(x) * factor).backward(create_graph=create_graph)
    assert (x.grad.item(), factor.grad.item()) == (-3.0, 2.0)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("settings", [{}, {"structured": True}, {"with_kwargs": True}])
@pytest.mark.parametrize("inputs", [1, 2])
def test_full_backward_hooks(inputs, settings, create_graph):
    """A full backward hook and pre-hook get tensors of no dimension that can be used and replaced."""
    net, seen = Scale(), []
    numbers = [scalar(value) for value in (1.75, 5.0)[:inputs]]

    def hook(module, grad_input, *others):
        grads = flat(grad_input) + flat(others)
        seen.extend(use(grad).item() for grad in grads)

    net.register_full_backward_hook(hook, **settings)
    net.register_full_backward_pre_hook(lambda module, grads: tuple(use(grad) * 2 for grad in grads))
    (net(*numbers) * scalar(7.0)).backward(create_graph=create_graph)
    factor = 3.0 * (5.0 if inputs == 2 else 1.0)
    assert numbers[0].grad.item() == 14.0 * factor
    assert seen == ([14.0 * factor, 14.0] if inputs == 1 else [14.0 * factor, 14.0 * 6.0, 14.0])


@pytest.mark.parametrize("create_graph", [False, True])
def test_every_hook_of_tensors_and_nodes(create_graph):
    """Tensor hooks, node hooks, retained gradients, multi-grad and post-accumulate hooks meet no scalar."""
    x, y = scalar(2.0), scalar(5.0)
    z = x * y
    fired = []
    for tensor in (x, z):
        tensor.register_hook(lambda grad: fired.append(use(grad)))
    z.retain_grad()
    z.grad_fn.register_prehook(lambda grads: fired.extend(use(grad) for grad in grads))
    z.grad_fn.register_hook(lambda given, received: fired.extend(use(grad) for grad in (*given, *received)))
    lucid.autograd.graph.register_multi_grad_hook([x, y], lambda grads: fired.extend(use(grad) for grad in grads))
    x.register_post_accumulate_grad_hook(lambda leaf: fired.append(use(leaf.grad)))
    for _ in range(2):  # the second pass adds to what the first has left
        (z * z).backward(retain_graph=True, create_graph=create_graph)
    assert len(fired) == 2 * 9
    assert type(z.grad.array) is ARRAY
    assert (x.grad.item(), y.grad.item()) == (2 * 100.0, 2 * 40.0)


def test_sums_of_several_uses():
    """What a number receives from several uses is summed into an array, also in the order of the newest first."""
    x = scalar(3.0)
    seen = []
    y = x * 1.0
    y.register_hook(lambda grad: seen.append(use(grad).item()))
    (y * y + y * 2.0 + y).backward()
    assert seen == [9.0]
    assert x.grad.item() == 9.0


@pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in BROADCAST])
def test_ops(sample, rng):
    """Outputs and gradients of every op that broadcasts are arrays, where all operands have no dimension."""
    arrays = [np.asarray(a) for a in sample.inputs(rng)]
    tensors = tensors_of([a[(0,) * a.ndim] for a in arrays], sample.constants, requires_grad=sample.differentiable)
    outputs = flat(sample.op(*tensors))
    assert {type(out.array) for out in outputs} == {ARRAY}
    roots = [out for out in outputs if out.requires_grad]
    wanted = [tensor for tensor in tensors if tensor.requires_grad]
    for graph in (False, True) if roots else ():
        ones = [lucid.ones_like(root) for root in roots]
        grads = lucid.autograd.grad(roots, wanted, ones, retain_graph=True, create_graph=graph, allow_unused=True)
        assert {type(grad.array) for grad in grads if grad is not None} <= {ARRAY}
