"""Primitives: an op declared with its derivative, in an order that cannot go wrong in silence."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.recording import primitive as module
from lucid.autograd.recording.namespace import CPU, GRAPH
from lucid.autograd.recording.short_path import binary, unary


@pytest.fixture
def declare():
    """Return a function that declares an op by its reference; all it has declared is gone after the test."""
    before = set(module.PRIMITIVES)
    yield module.primitive
    for name in set(module.PRIMITIVES) - before:
        del module.PRIMITIVES[name]
        delattr(CPU, name)
        delattr(GRAPH, name)


def thrice(m, grad):
    """Return the derivative of three times a tensor."""
    return m.mul(grad, 3.0)


@pytest.mark.parametrize("operands", [1, 2])
def test_a_rule_after_the_short_path_is_refused(declare, operands):
    """A short path reads the rules when it is made: one that comes later would never run, and is refused by name."""
    if operands == 1:
        late = declare(lambda xp, x: xp.multiply(x, 3.0))
        unary(late, late)
    else:
        late = declare(lambda xp, x, y: xp.multiply(x, 3.0))
        binary(late, late)
    with pytest.raises(TypeError, match=r"thrice.*never run.*before the op gets its caller"):
        late.vjp("x")(thrice)


def test_a_rule_after_the_first_recorded_call_is_refused(declare):
    """The first recorded call fixes what a node keeps and runs; until then rules may be added."""
    op = declare(lambda xp, x, y: xp.multiply(xp.multiply(x, 3.0), y))
    op.vjp("x")(lambda m, grad, y: m.mul(m.mul(grad, 3.0), y))
    x, y = lucid.tensor([1.0, -2.0], requires_grad=True), lucid.tensor([4.0, 5.0])
    with lucid.no_grad():
        op(x, y)
    op.vjp("y")(lambda m, grad, x: m.mul(m.mul(grad, 3.0), x))
    op(x, y.requires_grad_()).backward(lucid.tensor([1.0, 10.0]))
    np.testing.assert_array_equal(x.grad.tolist(), [12.0, 150.0])
    np.testing.assert_array_equal(y.grad.tolist(), [3.0, -60.0])
    with pytest.raises(TypeError, match="thrice"):
        op.vjp("x")(thrice)


@pytest.mark.gpu
def test_a_kernel_after_the_first_call_on_a_device_is_refused(declare):
    """An op chooses between kernel and reference at its first call on a device: a later kernel is refused."""
    op = declare(lambda xp, x: xp.multiply(x, 3.0))
    op(lucid.ones(2, device="cuda"))
    with pytest.raises(TypeError, match="a kernel comes after"):
        op.cuda(lambda x: x)


@pytest.mark.gpu
def test_a_rule_runs_its_kernel_on_a_device(declare):
    """Where a rule has a kernel, a pass on a device runs that in place of the rule."""
    ran = []

    def kernel(grad):
        ran.append(grad.shape)
        return grad * 3.0

    op = declare(lambda xp, x: xp.multiply(x, 3.0))
    op.vjp("x", cuda=kernel)(thrice)
    x = lucid.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    op(x).backward(lucid.tensor([1.0, 10.0], device="cuda"))
    assert x.grad.tolist() == [3.0, 30.0]
    assert ran == [(2,)]
