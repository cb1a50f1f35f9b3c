"""Whole slices of a tensor by an index of one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.elementwise import as_factor, mul
from lucid.ops.base.promotion import array_of, as_operand
from lucid.ops.index.select import pick_at, put
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def check_line(index: Any, size: int, name: str, dim: int) -> None:
    """Raise unless `index` holds integers from 0 to below `size`, in one dimension; on CUDA in debug mode."""
    array = array_of(index)
    if array.dtype.kind != "i":
        raise DtypeError(f"{name}: expected an index of int32 or int64, got {array.dtype.name}")
    if array.ndim > 1:
        raise ShapeError(f"{name}: expected an index of one dimension, got shape {list(array.shape)}")
    if looked_at(array):
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= size:
            raise IndexOutOfRangeError(
                f"{name}: index {low if low < 0 else high} is out of bounds for dimension {dim} with size {size}"
            )


def line(input: Any, dim: Any, index: Any, name: str) -> tuple[int, Any]:
    """Return the dimension and the index, checked, of an op on whole slices."""
    shape = array_of(input).shape
    axis = dim_in(dim, len(shape))
    check_line(index, shape[axis] if shape else 1, name, axis)
    return axis, index if index.array.ndim else reshape(index, 1)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices of `input` at the places `index` of a dimension.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension.
    index : Tensor
        Of integers, in one dimension.

    Returns
    -------
    Tensor
        A copy; its size along `dim` is the length of `index`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension, or a place is outside of it; on CUDA only in debug mode.
    DtypeError, ShapeError
        If `index` does not hold integers in one dimension.

    Examples
    --------
    >>> import lucid
    >>> lucid.index_select(lucid.tensor([[1, 2], [3, 4]]), 1, lucid.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    axis, places = line(input, dim, index, "index_select")
    if not input.array.ndim:
        return reshape(pick_at(reshape(input, 1), places, dims=(0,)), ())
    return pick_at(input, places, dims=(axis,))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Return a copy of `input` to whose slices at `index` those of ``alpha * source`` were added.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension.
    index : Tensor
        Of integers, in one dimension. Slices of one place are all added.
    source : Tensor
        Of the dtype of `input`, and of its shape but for the length of `index` along `dim`.
    alpha : number
        Factor of `source`.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError, DtypeError, ShapeError
        As for :func:`index_select`, or if `source` does not fit, or `alpha` is a fraction and they are integers.

    Examples
    --------
    >>> import lucid
    >>> lucid.index_add(lucid.zeros(3), 0, lucid.tensor([2, 2]), lucid.tensor([1.0, 4.0]))
    tensor([0., 0., 5.])
    """
    axis, places = line(input, dim, index, "index_add")
    source = fitting_source(input, axis, places, source, "index_add")
    alpha, _ = as_factor("index_add", "alpha", alpha, source)
    return _written(input, axis, places, source if alpha == 1 else mul(source, alpha), accumulate=True)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` whose slices at `index` are those of `source`.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension.
    index : Tensor
        Of integers, in one dimension. If a place stands twice, one of its slices stays.
    source : Tensor
        Of the dtype of `input`, and of its shape but for the length of `index` along `dim`.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError, DtypeError, ShapeError
        As for :func:`index_select`, or if `source` does not fit.

    Examples
    --------
    >>> import lucid
    >>> lucid.index_copy(lucid.zeros(3), 0, lucid.tensor([2, 0]), lucid.tensor([1.0, 4.0]))
    tensor([4., 0., 1.])
    """
    axis, places = line(input, dim, index, "index_copy")
    source = fitting_source(input, axis, places, source, "index_copy")
    return _written(input, axis, places, source, accumulate=False)


def _written(input: Any, dim: int, places: Any, source: Any, *, accumulate: bool) -> Any:
    """Return a copy of `input` with slices of `source` in it, a tensor of no dimension as a vector of one element."""
    if not input.array.ndim:
        return reshape(put(reshape(input, 1), source, places, dims=(0,), accumulate=accumulate), ())
    return put(input, source, places, dims=(dim,), accumulate=accumulate)


def fitting_source(input: Any, dim: int, index: Any, source: Any, name: str) -> Any:
    """Return `source` if it has the dtype of `input`, and its shape but for the length of `index` along `dim`.

    A source of no dimension stands for a vector of one element.
    """
    shape = input.array.shape
    wanted = (*shape[:dim], index.array.size, *shape[dim + 1 :]) if shape else (index.array.size,)
    if array_of(source).dtype != array_of(input).dtype:
        raise DtypeError(
            f"{name}: expected source of {input.array.dtype.name} like input, got {source.array.dtype.name}; cast it"
        )
    if source.array.shape == wanted:
        return source
    if wanted == (1,) and not source.array.ndim:
        return reshape(source, 1)
    raise ShapeError(f"{name}: expected source of shape {list(wanted)}, got {list(source.array.shape)}")


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy of `input` whose slices at `index` hold `value`.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension.
    index : Tensor
        Of integers, in one dimension.
    value : number or Tensor
        A number, or a tensor of no dimension of the dtype of `input`.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError, DtypeError, ShapeError
        As for :func:`index_select`; or if the value has dimensions.

    Examples
    --------
    >>> import lucid
    >>> lucid.index_fill(lucid.zeros(3), 0, lucid.tensor([0, 2]), 7)
    tensor([7., 0., 7.])
    """
    axis, places = line(input, dim, index, "index_fill")
    if getattr(value, "ndim", 0):
        raise ShapeError(f"index_fill: expected a number or a 0-dim tensor, got shape {list(value.shape)}")
    return put(input, as_operand(value), places, dims=(axis,), accumulate=False)
