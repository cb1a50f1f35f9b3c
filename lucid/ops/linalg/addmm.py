"""Matrix products that are scaled and added to something, in one op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch import blas
from lucid.errors import DtypeError
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.scalars import as_number
from lucid.ops.linalg.matrices import (
    broadcast_to_shape,
    of_dimensions,
    product,
    same_dtype,
    same_inner,
    stacks_of_one_length,
)

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive
def _addmm(xp: Any, x: Array, a: Array, b: Array, *, beta: Any, alpha: Any) -> Array:
    wide = accumulation_dtype(a.dtype)
    out = product(xp, a.astype(wide, copy=False), b.astype(wide, copy=False))
    if alpha != 1:
        out *= alpha
    if beta != 0:
        out += x.astype(wide, copy=False) * beta if beta != 1 else x.astype(wide, copy=False)
    return out.astype(a.dtype, copy=False)


@_addmm.cuda
def _addmm_cuda(x: Array, a: Array, b: Array, *, beta: Any, alpha: Any) -> Any:
    return blas.added_product(x, a, b, alpha=alpha, beta=beta)


@_addmm.vjp("x")
def _addmm_x(m: Any, grad: Any, x_shape: tuple[int, ...], beta: Any) -> Any:
    return m.mul(m.sum_to(grad, shape=x_shape), beta)


@_addmm.vjp("a")
def _addmm_a(m: Any, grad: Any, b: Any, alpha: Any) -> Any:
    return m.mul(m.matmul(grad, m.swap_last(b)), alpha)


@_addmm.vjp("b")
def _addmm_b(m: Any, grad: Any, a: Any, alpha: Any) -> Any:
    return m.mul(m.matmul(m.swap_last(a), grad), alpha)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)``.

    Parameters
    ----------
    input : Tensor, broadcastable to (n, m)
        What is added; ignored, NaN and infinity included, if `beta` is 0.
    mat1 : Tensor, shape (n, k)
        The left matrix.
    mat2 : Tensor, shape (k, m)
        The right matrix; all three are of the same dtype.
    beta, alpha : number
        The factors.

    Returns
    -------
    Tensor
        Of shape (n, m).

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    DtypeError
        If the dtypes differ or are bool, or a factor is a fraction and the operands are integers.

    Examples
    --------
    >>> import lucid
    >>> lucid.addmm(lucid.tensor([1.0]), lucid.tensor([[1.0, 2.0]]), lucid.tensor([[3.0], [4.0]]), beta=10)
    tensor([[21.]])
    """
    of_dimensions("addmm", ("mat1", mat1, 2), ("mat2", mat2, 2))
    return added_product("addmm", input, mat1, mat2, beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * (batch1 @ batch2)`` for stacks of matrices.

    Parameters
    ----------
    input : Tensor, broadcastable to (b, n, m)
        What is added; ignored, NaN and infinity included, if `beta` is 0.
    batch1 : Tensor, shape (b, n, k)
        The left matrices.
    batch2 : Tensor, shape (b, k, m)
        The right matrices; all three are of the same dtype.
    beta, alpha : number
        The factors.

    Returns
    -------
    Tensor
        Of shape (b, n, m).

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    DtypeError
        If the dtypes differ or are bool, or a factor is a fraction and the operands are integers.

    Examples
    --------
    >>> import lucid
    >>> lucid.baddbmm(lucid.ones(2, 1, 1), lucid.ones(2, 1, 3), lucid.ones(2, 3, 1), alpha=2).shape
    (2, 1, 1)
    """
    of_dimensions("baddbmm", ("batch1", batch1, 3), ("batch2", batch2, 3))
    stacks_of_one_length("baddbmm", batch1, batch2)
    return added_product("baddbmm", input, batch1, batch2, beta, alpha)


def added_product(name: str, input: Any, a: Any, b: Any, beta: float, alpha: float) -> Any:
    """Return ``beta * input + alpha * (a @ b)`` of operands that have the right number of dimensions."""
    beta, alpha = as_number(beta, "beta"), as_number(alpha, "alpha")
    same_dtype(name, input, a, b)
    if a.array.dtype.kind in "iu" and not (isinstance(beta, int) and isinstance(alpha, int)):
        raise DtypeError(f"{name}: expected beta and alpha to be integers for integer operands, got {beta} and {alpha}")
    same_inner(name, a.array.shape, b.array.shape)
    shape = (*a.array.shape[:-1], b.array.shape[-1])
    broadcast_to_shape(name, "input", input.array.shape, shape)
    return _addmm(input, a, b, beta=beta, alpha=alpha)
