"""Matrix products that are scaled and added to something, in one op. The rest says `lucid.ops.linalg`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch.plans import planned
from lucid.cuda.libraries import blas
from lucid.errors import DtypeError
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.scalars import as_number, as_scalar
from lucid.ops.linalg import matrices

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


@primitive(saved_as={"a": "mat1", "b": "mat2"})
def _addmm(xp: ModuleType, x: Array, a: Array, b: Array, *, beta: float, alpha: float) -> Array:
    wide = accumulation_dtype(a.dtype)
    out = matrices.product(xp, a.astype(wide, copy=False), b.astype(wide, copy=False))
    if alpha != 1:
        out *= alpha
    if beta != 0:
        out += x.astype(wide, copy=False) * beta if beta != 1 else x.astype(wide, copy=False)
    return out.astype(a.dtype, copy=False)


@_addmm.cuda
@planned
def _addmm_cuda(x: Array, a: Array, b: Array, *, beta: float, alpha: float) -> Any:
    return blas.added_product(x, a, b, alpha=alpha, beta=beta)


@_addmm.vjp("x", planned=True)
def _addmm_x(m: Namespace, grad: Array, x_shape: Ints, beta: float) -> Any:
    return m.mul(m.sum_to(grad, shape=x_shape), beta)


@_addmm.vjp("a", planned=True)
def _addmm_a(m: Namespace, grad: Array, b: Array, alpha: float) -> Any:
    return m.mul(m.matmul(grad, m.swap_last(b)), alpha)


@_addmm.vjp("b", planned=True)
def _addmm_b(m: Namespace, grad: Array, a: Array, alpha: float) -> Any:
    return m.mul(m.matmul(m.swap_last(a), grad), alpha)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * (mat1 @ mat2)``, of matrices `mat1` of shape (n, k) and `mat2` of shape (k, m).

    `input` broadcasts to (n, m); if `beta` is 0, it is ignored, NaN and infinity included. `alpha` and `beta` are
    integers where the operands are, or a DtypeError is raised.

    >>> import lucid
    >>> lucid.addmm(lucid.tensor([1.0]), lucid.tensor([[1.0, 2.0]]), lucid.tensor([[3.0], [4.0]]), beta=10)
    tensor([[21.]])
    """
    matrices.of_dimensions("addmm", ("mat1", mat1, 2), ("mat2", mat2, 2))
    return added_product("addmm", input, mat1, mat2, beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * (batch1 @ batch2)``: `addmm` of as many matrices in `batch1` as in `batch2`.

    `input`, `beta` and `alpha` are as there.

    >>> import lucid
    >>> lucid.baddbmm(lucid.ones(2, 1, 1), lucid.ones(2, 1, 3), lucid.ones(2, 3, 1), alpha=2).shape
    lucid.Size([2, 1, 1])
    """
    matrices.stacks_of_one_length("baddbmm", ("batch1", "batch2"), batch1, batch2)
    return added_product("baddbmm", input, batch1, batch2, beta, alpha)


def added_product(name: str, input: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Any:
    """Return ``beta * input + alpha * (a @ b)`` of operands that have the right number of dimensions."""
    matrices.same_dtype(name, input, a, b)
    number = as_scalar if a.array.dtype.kind == "c" else as_number
    beta, alpha = number(beta, "beta"), number(alpha, "alpha")
    if a.array.dtype.kind in "iu" and not (isinstance(beta, int) and isinstance(alpha, int)):
        raise DtypeError(f"{name}: expected beta and alpha to be integers for integer operands, got {beta} and {alpha}")
    matrices.same_inner(name, a.array.shape, b.array.shape)
    shape = (*a.array.shape[:-1], b.array.shape[-1])
    matrices.broadcast_to_shape(name, "input", input.array.shape, shape)
    return _addmm(input, a, b, beta=beta, alpha=alpha)
