"""Norms of vectors and matrices, under the names of `lucid.linalg`. The rest says `lucid.ops.decomposition`.

Half types are taken, but for norms that are made of singular values. `dim` says along which dimensions the vectors, or
rows and columns, lie; with `keepdim` the result has them in size 1. The input is converted to `dtype` before.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.dtype import as_dtype
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.dims import Dims, dims_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import cast_to, tensor_dtype
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.decomposition.spectral import svdvals
from lucid.ops.elementwise.complex import abs as size_of
from lucid.ops.reduction import norms
from lucid.ops.reduction.extremes import amax, amin
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.axes import movedim
from lucid.ops.shape.reshape import unsqueeze

if TYPE_CHECKING:
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def _converted(name: str, x: Tensor, dtype: Dtype | None) -> Any:
    tensor = tensor_operand(x)
    own = tensor_dtype(tensor)
    if not (own.is_floating_point or own.is_complex):
        raise DtypeError(f"{name}: expected floating-point or complex numbers, got {own}; convert them with .to(dtype)")
    if dtype is None:
        return tensor
    wanted = as_dtype(dtype)
    if own.is_complex != wanted.is_complex or not (wanted.is_floating_point or wanted.is_complex):
        kind = "complex" if own.is_complex else "floating-point"
        raise DtypeError(f"{name}: expected a {kind} dtype for a tensor of {own}, got {wanted}")
    return cast_to(tensor, wanted)


def vector_norm(
    x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype | None = None
) -> Tensor:
    """Return the norms ``sum(|x| ** ord) ** (1 / ord)`` of all elements of `x`, or of those along `dim`.

    The order `ord` is a number: infinity gives the largest, minus infinity the smallest absolute value, 0 the number of
    elements that are not zero.

    >>> import lucid
    >>> lucid.linalg.vector_norm(lucid.tensor([[3.0, 4.0]]), dim=1)
    tensor([5.])
    """
    tensor = _converted("linalg.vector_norm", x, dtype)
    order = float(as_number(ord, "ord"))
    return norms.norm(size_of(tensor) if tensor.array.dtype.kind == "c" else tensor, order, dim, keepdim)


def largest(sizes: Any, dim: int, keepdim: bool = False) -> Any:
    """Return the largest of sizes along a dimension: of none it is 0, as their sum."""
    return (amax if sizes.array.shape[dim] else sum)(sizes, dim, keepdim)


def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
) -> Tensor:
    """Return norms of matrices of the order `ord`.

    ``"fro"`` is that of all elements as one vector, ``"nuc"`` the sum of the singular values, 2 and -2 the largest and
    the smallest of them, 1 and -1 the largest and the smallest sum of absolute values of a column, infinity and minus
    infinity of a row.

    >>> import lucid
    >>> lucid.linalg.matrix_norm(lucid.tensor([[3.0, 0.0], [4.0, 0.0]]), 1)
    tensor(7.)
    """
    name = "linalg.matrix_norm"
    tensor, keepdim = _converted(name, A, dtype), as_bool(keepdim, "keepdim")
    ndim = tensor.array.ndim
    if ndim < 2:
        raise ShapeError(f"{name}: expected A of at least 2 dimensions, got shape {list(tensor.array.shape)}")
    dims = dims_in(dim, ndim)
    if len(dims) != 2:
        raise ShapeError(f"{name}: expected dim to be two dimensions, got {dim!r}")
    if ord == "fro":
        return vector_norm(tensor, 2, dims, keepdim)
    if isinstance(ord, str):
        order = 2.0 if ord == "nuc" else math.nan
    else:
        order = float(as_number(ord, "ord"))
    if abs(order) not in {1, 2, math.inf}:
        raise SettingError(
            f"{name}: expected ord to be 'fro', 'nuc', or one of 1, 2 and inf or minus these, got {ord!r}"
        )
    if abs(order) == 2:
        values = svdvals(movedim(tensor, dims, (-2, -1)))
        out = sum(values, -1) if ord == "nuc" else (largest if order > 0 else amin)(values, -1)
        for place in sorted(dims) if keepdim else ():
            out = unsqueeze(out, place)
        return out
    inner, outer = dims if abs(order) == 1 else dims[::-1]
    sums = sum(size_of(tensor), inner, True)
    out = (largest if order > 0 else amin)(sums, outer, True)
    return out if keepdim else out.squeeze(dims)


def norm(
    A: Tensor, ord: float | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype | None = None
) -> Tensor:
    """Return norms of vectors, or of matrices if `dim` is two dimensions and `ord` is given.

    Without `dim` the order `ord` asks for a vector, or a matrix where it has two dimensions; without both all elements
    are one vector.

    >>> import lucid
    >>> lucid.linalg.norm(lucid.tensor([[3.0, 0.0], [4.0, 0.0]])), lucid.linalg.norm(lucid.ones(2, 2), "nuc")
    (tensor(5.), tensor(2.))
    """
    name = "linalg.norm"
    ndim = tensor_operand(A).array.ndim
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if ndim not in {1, 2} or (isinstance(ord, str) and ndim != 2):
            raise ShapeError(
                f"{name}: expected {'2' if isinstance(ord, str) else '1 or 2'} dimensions where ord is given "
                f"without dim, got shape {list(A.array.shape)}"
            )
        dims = tuple(range(ndim))
    else:
        dims = dims_in(dim, ndim)
    if len(dims) == 2:
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise SettingError(f"{name}: ord {ord!r} is that of a matrix: expected dim to be two dimensions, got {dim!r}")
    return vector_norm(A, ord, dims, keepdim, dtype=dtype)
