"""Matrix products. Common rules: `lucid.ops.linalg`."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.state import intercepted, unusual
from lucid.autograd.recording.primitive import primitive
from lucid.autograd.recording.short_path import NO_SETTINGS
from lucid.base.gpu import array_type, is_gpu_array
from lucid.cuda.libraries import blas
from lucid.ops.base.promotion import promote
from lucid.ops.elementwise.arithmetic import mul
from lucid.ops.linalg import matrices
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


@primitive(view=True)
def swap_last(xp: ModuleType, x: Array) -> Array:
    """Return matrices transposed."""
    return x.swapaxes(-1, -2)


@swap_last.vjp
def _swap_last_vjp(m: Namespace, grad: Array) -> Any:
    return m.swap_last(grad)


@primitive(cpu=matrices.product_cpu, saved_as={"b": "mat2"})
def _matmul(xp: ModuleType, a: Array, b: Array) -> Array:
    return matrices.product(xp, a, b)


_matmul.cuda(blas.matmul)


@_matmul.vjp("a", planned=True)
def _matmul_a(m: Namespace, grad: Array, b: Array, a_shape: tuple[int, ...] | None) -> Any:
    shape = b.shape if a_shape is None else a_shape  # None stands for the shape of the other operand
    if len(b.shape) == 1:
        return m.mul(grad if len(shape) == 1 else m.reshape(grad, shape=(*grad.shape, 1)), b)
    if len(shape) == 1:
        return m.sum_to(
            m.squeeze(m.matmul(b, m.unsqueeze(grad, dim=len(grad.shape))), dims=(len(grad.shape),)), shape=shape
        )
    return m.sum_to(m.matmul(grad, m.swap_last(b)), shape=shape)


@_matmul.vjp("b", planned=True)
def _matmul_b(m: Namespace, grad: Array, a: Array, b_shape: tuple[int, ...] | None) -> Any:
    shape = a.shape if b_shape is None else b_shape
    if len(a.shape) == 1:
        if len(shape) == 1:
            return m.mul(grad, a)
        return m.mul(m.unsqueeze(a, dim=1), m.unsqueeze(grad, dim=len(grad.shape) - 1))
    if len(shape) > 2 or len(a.shape) == 2:
        if len(shape) == 1:
            return m.matmul(grad, a)
        return m.sum_to(m.matmul(m.swap_last(a), grad), shape=shape)
    rows = math.prod(a.shape[:-1])
    a = m.reshape(a, shape=(rows, a.shape[-1]))
    if len(shape) == 1:
        return m.matmul(m.reshape(grad, shape=(rows,)), a)
    return m.matmul(m.swap_last(a), m.reshape(grad, shape=(rows, grad.shape[-1])))


_matmul.shorten(_matmul)
_recorded = _matmul.call


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product ``input @ other``, ``out[..., i, j] = sum_k input[..., i, k] * other[..., k, j]``.

    A tensor of one dimension stands for a row on the left and a column on the right, and its dimension is left out of
    the result. The dimensions before the last two broadcast.

    >>> import lucid
    >>> a = lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> lucid.matmul(a, lucid.tensor([1.0, -1.0]))
    tensor([-1., -1.])
    """
    first = input.array if isinstance(input, TensorBase) else input
    if type(first) is array_type() and not intercepted and (planned := _matmul.on_device) is not None:
        # what has a plan has been checked when that was made
        out = planned((input, other), NO_SETTINGS)
        if out is not NotImplemented:
            return out
    if not isinstance(input, TensorBase):
        input = matrices.factor_of("matmul", input, other)
    if not isinstance(other, TensorBase):
        other = matrices.factor_of("matmul", other, input)
    x, y = input.array, other.array
    if x.dtype is not y.dtype or x.dtype.kind == "b":
        matrices.same_dtype("matmul", input, other)
    a, b = x.shape, y.shape
    if not a or not b or a[-1] != b[-2 if len(b) > 1 else 0]:
        matrices.same_inner("matmul", a, b)
    if len(a) > 2 and len(b) > 2 and a[:-2] != b[:-2]:
        matrices.broadcastable("matmul", a, b)
    return _recorded(input, other)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices, `input` of shape (n, k) and `mat2` of shape (k, m).

    >>> import lucid
    >>> lucid.mm(lucid.tensor([[1.0, 2.0]]), lucid.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    matrices.of_dimensions("mm", ("input", input, 2), ("mat2", mat2, 2))
    return matmul(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two stacks of matrices: `input` of shape (b, n, k) and `mat2` of shape (b, k, m).

    >>> import lucid
    >>> lucid.bmm(lucid.ones(5, 2, 3), lucid.ones(5, 3, 4)).shape
    lucid.Size([5, 2, 4])
    """
    matrices.stacks_of_one_length("bmm", ("input", "mat2"), input, mat2)
    return matmul(input, mat2)


def lowered_on_cuda_alone(x: Tensor) -> without_autocast | nullcontext[None]:
    """Return a context without `autocast` for an op on PyTorch's list for CUDA devices, and not on that for the CPU."""
    return without_autocast() if unusual and casting_on() and not is_gpu_array(x.array) else nullcontext()


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix `input` of shape (n, k) and a vector `vec` of shape (k,).

    >>> import lucid
    >>> lucid.mv(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), lucid.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    matrices.of_dimensions("mv", ("input", input, 2), ("vec", vec, 1))
    with lowered_on_cuda_alone(input):
        return matmul(input, vec)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the dot product of two vectors, ``sum_k input[k] * tensor[k]``, without conjugation.

    `input` and `tensor` have one dimension, of one size.

    >>> import lucid
    >>> lucid.dot(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
    tensor(11.)
    """
    matrices.of_dimensions("dot", ("input", input, 1), ("tensor", tensor, 1))
    if unusual and casting_on():
        with without_autocast():
            return dot(*promote(input, tensor))
    return matmul(input, tensor)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the products of all pairs of elements of two vectors, ``out[i, j] = input[i] * vec2[j]``.

    The dtypes of `input` and `vec2` are promoted.

    >>> import lucid
    >>> lucid.outer(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    matrices.of_dimensions("outer", ("input", input, 1), ("vec2", vec2, 1))
    return mul(reshape(input, (-1, 1)) if input.array.size else reshape(input, (0, 1)), vec2)
