"""The first gradient of a leaf becomes its `.grad` without a copy, but only where nobody else can see its memory."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.function import Function

SIZE = 8192  # elements: small gradients are copied on the CPU, which is cheaper there

each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def address(tensor):
    array = tensor.array
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def made_by(make):
    """Return a function of a tensor whose gradient is what `make` returns, and the list of its addresses."""
    addresses = []

    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            made = make(grad)
            addresses.append(address(made))
            return made

    return Identity.apply, addresses


def run(device, make):
    """Run backward through it; return the leaf and the address of the gradient that it was given."""
    leaf = lucid.zeros(SIZE, device=device, requires_grad=True)
    function, addresses = made_by(make)
    function(leaf).backward(lucid.arange(SIZE, dtype=lucid.float32, device=device))
    assert leaf.grad.tolist()[:3] == [0, 2, 4]
    return leaf, addresses[0]


@each_device
def test_a_gradient_that_nobody_holds_is_taken_over(device):
    """Also one that was reshaped, whose memory belongs to an array that nobody holds either."""
    for make in (lambda grad: grad * 2, lambda grad: (grad.reshape(2, -1) * 2).reshape(-1)):
        leaf, given = run(device, make)
        assert address(leaf.grad) == given


@each_device
def test_memory_that_somebody_holds_is_copied(device):
    """A gradient that is kept, whose base is kept, of which another view is kept, or that is part of more memory."""
    kept = []

    def keep(part):
        def make(grad):
            doubled = (grad * 2).reshape(2, -1)
            kept[:] = [part(doubled)]
            return doubled.reshape(-1)

        return make

    for make in (
        keep(lambda doubled: doubled),
        keep(lambda doubled: doubled[1]),
        keep(lambda doubled: doubled.detach().reshape(-1)),
        lambda grad: lucid.cat([grad * 2, grad])[:SIZE],
    ):
        leaf, given = run(device, make)
        assert address(leaf.grad) != given
        before = [tensor.tolist() for tensor in kept]
        leaf.grad.fill_(7.0)
        assert [tensor.tolist() for tensor in kept] == before
