"""Triangles and diagonals of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.recording.primitive import primitive
from lucid.backend import gpu
from lucid.backend.arrays import asarray
from lucid.backend.device import as_device
from lucid.cuda.launchers import copying
from lucid.errors import ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.dims import dim_in
from lucid.ops.base.promotion import array_of, requested_dtype
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive
def _tril(xp: Any, x: Array, *, diagonal: int) -> Array:
    return xp.tril(x, diagonal)


@_tril.vjp
def _tril_vjp(m: Any, grad: Any, diagonal: int) -> Any:
    return m.tril(grad, diagonal=diagonal)


@primitive
def _triu(xp: Any, x: Array, *, diagonal: int) -> Array:
    return xp.triu(x, diagonal)


_tril.cuda(copying.tril)
_triu.cuda(copying.triu)


@_triu.vjp
def _triu_vjp(m: Any, grad: Any, diagonal: int) -> Any:
    return m.triu(grad, diagonal=diagonal)


def diagonal_of(x: Array, offset: int, dim1: int, dim2: int) -> Array:
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
    if isinstance(x, np.ndarray):
        return np.lib.stride_tricks.as_strided(corner, shape, strides)
    return gpu.cupy().lib.stride_tricks.as_strided(corner, shape, strides)


@primitive(view=True)
def _diagonal(xp: Any, x: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    return diagonal_of(x, offset, dim1, dim2)


@_diagonal.vjp
def _diagonal_vjp(m: Any, grad: Any, x_shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    return m.diagonal_put(grad, shape=x_shape, offset=offset, dim1=dim1, dim2=dim2)


@primitive
def _diagonal_put(xp: Any, x: Array, *, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    out = xp.zeros(shape, x.dtype)
    diagonal_of(out, offset, dim1, dim2)[...] = x
    return out


@_diagonal_put.vjp
def _diagonal_put_vjp(m: Any, grad: Any, offset: int, dim1: int, dim2: int) -> Any:
    return m.diagonal(grad, offset=offset, dim1=dim1, dim2=dim2)


def check_matrices(input: Any, name: str) -> None:
    """Raise unless `input` has two dimensions or more."""
    if array_of(input).ndim < 2:
        raise ShapeError(f"{name}: expected at least 2 dimensions, got shape {list(input.array.shape)}")


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of matrices with zeros above a diagonal.

    Parameters
    ----------
    input : Tensor
        Of shape (..., rows, columns).
    diagonal : int
        0 for the main diagonal, k above it for k > 0, below it for k < 0.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Examples
    --------
    >>> import lucid
    >>> lucid.tril(lucid.ones(2, 3))
    tensor([[1., 0., 0.],
            [1., 1., 0.]])
    """
    check_matrices(input, "tril")
    return _tril(input, diagonal=as_int(diagonal, "diagonal"))


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of matrices with zeros below a diagonal.

    Parameters
    ----------
    input : Tensor
        Of shape (..., rows, columns).
    diagonal : int
        0 for the main diagonal, k above it for k > 0, below it for k < 0.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Examples
    --------
    >>> import lucid
    >>> lucid.triu(lucid.ones(2, 3), 1)
    tensor([[0., 1., 1.],
            [0., 0., 1.]])
    """
    check_matrices(input, "triu")
    return _triu(input, diagonal=as_int(diagonal, "diagonal"))


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = "int64", device: Any = None) -> Tensor:
    """Return the places of a matrix on and below a diagonal, row by row.

    Parameters
    ----------
    row, col : int
        The size of the matrix.
    offset : int
        0 for the main diagonal, k above it for k > 0, below it for k < 0.
    dtype : dtype
        Of the result.
    device : device, optional
        Where to put it; None for the default device.

    Returns
    -------
    Tensor
        Of shape (2, count): rows and columns.

    Raises
    ------
    ShapeError
        If a size is negative.

    Examples
    --------
    >>> import lucid
    >>> lucid.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return corner_places(np.tril, row, col, offset, dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = "int64", device: Any = None) -> Tensor:
    """Return the places of a matrix on and above a diagonal, row by row.

    Parameters
    ----------
    row, col : int
        The size of the matrix.
    offset : int
        0 for the main diagonal, k above it for k > 0, below it for k < 0.
    dtype : dtype
        Of the result.
    device : device, optional
        Where to put it; None for the default device.

    Returns
    -------
    Tensor
        Of shape (2, count): rows and columns.

    Raises
    ------
    ShapeError
        If a size is negative.

    Examples
    --------
    >>> import lucid
    >>> lucid.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return corner_places(np.triu, row, col, offset, dtype, device)


def corner_places(corner: Any, row: int, col: int, offset: int, dtype: Any, device: Any) -> Any:
    """Return the places that `corner`, NumPy's tril or triu, keeps of a matrix."""
    row, col = as_int(row, "row"), as_int(col, "col")
    if row < 0 or col < 0:
        raise ShapeError(f"expected sizes of zero or more, got {row} rows and {col} columns")
    places = np.stack(np.nonzero(corner(np.ones((row, col), np.bool_), as_int(offset, "offset"))))
    return wrap(asarray(places.astype(requested_dtype(dtype)), device=as_device(device)))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of `input` with respect to two dimensions.

    Parameters
    ----------
    input : Tensor
        Of at least two dimensions.
    offset : int
        0 for the main diagonal, k above it for k > 0, below it for k < 0.
    dim1, dim2 : int
        The dimensions that count rows and columns.

    Returns
    -------
    Tensor
        A view without these two dimensions and with a new last one.

    Raises
    ------
    ShapeError
        If both are the same dimension.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.diagonal(lucid.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    ndim = array_of(input).ndim
    check_matrices(input, "diagonal")
    first, second = dim_in(dim1, ndim), dim_in(dim2, ndim)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _diagonal(input, offset=as_int(offset, "offset"), dim1=first, dim2=second)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices of zeros with the last dimension of `input` on a diagonal.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    offset : int
        0 for the main diagonal, k above it for k > 0, below it for k < 0.
    dim1, dim2 : int
        The dimensions of the result that count rows and columns.

    Returns
    -------
    Tensor
        Of one dimension more, the two being of the size of the last plus the offset; of the dtype of `input`.

    Raises
    ------
    ShapeError
        If both are the same dimension, or `input` has none.
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.diag_embed(lucid.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    shape = array_of(input).shape
    if not shape:
        raise ShapeError("diag_embed: expected at least 1 dimension, got a 0-dim tensor")
    first, second = dim_in(dim1, len(shape) + 1), dim_in(dim2, len(shape) + 1)
    if first == second:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    offset = as_int(offset, "offset")
    size = shape[-1] + abs(offset)
    rest = iter(shape[:-1])
    full = tuple([size if d in {first, second} else next(rest) for d in range(len(shape) + 1)])
    return _diagonal_put(input, shape=full, offset=offset, dim1=first, dim2=second)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal.

    Parameters
    ----------
    input : Tensor
        A matrix or a vector.
    diagonal : int
        0 for the main diagonal, k above it for k > 0, below it for k < 0.

    Returns
    -------
    Tensor
        A copy, of the dtype of `input`.

    Raises
    ------
    ShapeError
        If `input` is neither.

    Examples
    --------
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
