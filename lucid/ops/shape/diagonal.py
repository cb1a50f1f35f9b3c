"""Triangles and diagonals of matrices. Common rules: `lucid.ops.shape`.

A diagonal is named by a number: 0 is the main one, k the k-th above it, -k the k-th below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch import copying
from lucid.errors import IndexOutOfRangeError, ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.dims import dim_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


@primitive
def _tril(xp: ModuleType, x: Array, *, diagonal: int) -> Array:
    return xp.tril(x, diagonal)


@_tril.vjp
def _tril_vjp(m: Namespace, grad: Array, diagonal: int) -> Any:
    return m.tril(grad, diagonal=diagonal)


@primitive
def _triu(xp: ModuleType, x: Array, *, diagonal: int) -> Array:
    return xp.triu(x, diagonal)


@_triu.vjp
def _triu_vjp(m: Namespace, grad: Array, diagonal: int) -> Any:
    return m.triu(grad, diagonal=diagonal)


_tril.cuda(copying.tril)
_triu.cuda(copying.triu)


def diagonal_of(xp: ModuleType, x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Return the diagonals as a view that can be written to; NumPy's own cannot."""
    rows, columns = x.shape[dim1], x.shape[dim2]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    key: list[Any] = [slice(None)] * x.ndim
    # empty ones begin nowhere
    key[dim1] = slice(-offset if offset < 0 and length else 0, None)
    key[dim2] = slice(offset if offset > 0 and length else 0, None)
    corner = x[tuple(key)]
    rest = [d for d in range(x.ndim) if d not in {dim1, dim2}]
    shape = (*[x.shape[d] for d in rest], length)
    strides = (*[x.strides[d] for d in rest], x.strides[dim1] + x.strides[dim2])
    return xp.lib.stride_tricks.as_strided(corner, shape, strides)


@primitive(view=True)
def _diagonal(xp: ModuleType, x: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    return diagonal_of(xp, x, offset, dim1, dim2)


@_diagonal.vjp
def _diagonal_vjp(m: Namespace, grad: Array, x_shape: Ints, offset: int, dim1: int, dim2: int) -> Any:
    return m.diagonal_put(grad, shape=x_shape, offset=offset, dim1=dim1, dim2=dim2)


@primitive
def _diagonal_put(xp: ModuleType, x: Array, *, shape: Ints, offset: int, dim1: int, dim2: int) -> Array:
    out = xp.zeros(shape, x.dtype)
    diagonal_of(xp, out, offset, dim1, dim2)[...] = x
    return out


@_diagonal_put.vjp
def _diagonal_put_vjp(m: Namespace, grad: Array, offset: int, dim1: int, dim2: int) -> Any:
    return m.diagonal(grad, offset=offset, dim1=dim1, dim2=dim2)


def check_matrices(input: Tensor, name: str) -> None:
    """Raise unless `input` has two dimensions or more."""
    if array_of(input).ndim < 2:
        raise IndexOutOfRangeError(f"{name}: expected at least 2 dimensions, got shape {list(input.array.shape)}")


def _rows_and_columns(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Return two dimensions counted from the left; raise if they are one."""
    first, second = dim_in(dim1, ndim), dim_in(dim2, ndim)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of the matrices in the last two dimensions of `input`, with zeros above a `diagonal`.

    >>> import lucid
    >>> lucid.tril(lucid.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    check_matrices(input, "tril")
    return _tril(input, diagonal=as_int(diagonal, "diagonal"))


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of the matrices in the last two dimensions of `input`, with zeros below a `diagonal`.

    >>> import lucid
    >>> lucid.triu(lucid.ones(2, 3), 1)
    tensor([[0., 1., 1.],
            [0., 0., 1.]])
    """
    check_matrices(input, "triu")
    return _triu(input, diagonal=as_int(diagonal, "diagonal"))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of a diagonal, `offset`, of matrices with rows along `dim1` and columns along `dim2`.

    It has a new last dimension instead of the two.

    >>> import lucid
    >>> lucid.diagonal(lucid.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    ndim = array_of(input).ndim
    check_matrices(input, "diagonal")
    first, second = _rows_and_columns(dim1, dim2, ndim)
    return _diagonal(input, offset=as_int(offset, "offset"), dim1=first, dim2=second)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices of zeros with the last dimension of `input` on a diagonal, `offset`.

    `dim1` and `dim2` of the result count rows and columns.

    >>> import lucid
    >>> lucid.diag_embed(lucid.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    shape = array_of(input).shape
    if not shape:
        raise ShapeError("diag_embed: expected at least 1 dimension, got a 0-dim tensor")
    first, second = _rows_and_columns(dim1, dim2, len(shape) + 1)
    offset = as_int(offset, "offset")
    size = shape[-1] + abs(offset)
    rest = iter(shape[:-1])
    full = tuple([size if d in {first, second} else next(rest) for d in range(len(shape) + 1)])
    return _diagonal_put(input, shape=full, offset=offset, dim1=first, dim2=second)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of a `diagonal` of a matrix, or a matrix of zeros with a vector on it.

    >>> import lucid
    >>> lucid.diag(lucid.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    diagonal = as_int(diagonal, "diagonal")
    if array_of(input).ndim == 1:
        return diag_embed(input, diagonal)
    if input.array.ndim != 2:
        raise ShapeError(f"diag: expected a tensor of 1 or 2 dimensions, got shape {list(input.array.shape)}")
    return clone(_diagonal(input, offset=diagonal, dim1=0, dim2=1))
