"""Whole slices of a tensor by an index of one dimension. Common rules: `lucid.ops.index`.

`source` has the shape of `input`, but for the length of `index` along `dim`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.modes.autocast import casting_on
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.modes.state import unusual
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.operands import as_factor
from lucid.ops.base.promotion import array_of, as_operand, tensor_dtype
from lucid.ops.base.scalars import as_element
from lucid.ops.elementwise.arithmetic import mul
from lucid.ops.index.select import check_bounds, put, select_at
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.base.arrays import Number
    from lucid.tensor import Tensor


def line(input: Tensor, dim: int, index: Tensor, name: str) -> tuple[int, Any]:
    """Return the dimension and the index of an op on whole slices; on CUDA its values are checked in debug mode."""
    shape = array_of(input).shape
    axis, array = dim_in(dim, len(shape)), array_of(index)
    if array.dtype.kind != "i":
        raise DtypeError(f"{name}: expected an index of int32 or int64, got {array.dtype.name}")
    if array.ndim > 1:
        raise ShapeError(f"{name}: expected an index of one dimension, got shape {list(array.shape)}")
    check_bounds(array, axis, shape[axis] if shape else 1, name=name)
    return axis, index if index.array.ndim else reshape(index, 1)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices of `input` at `index` along a dimension.

    >>> import lucid
    >>> lucid.index_select(lucid.tensor([[1, 2], [3, 4]]), 1, lucid.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    axis, indices = line(input, dim, index, "index_select")
    if not input.array.ndim:
        return reshape(select_at(reshape(input, 1), indices, dims=(0,)), ())
    return select_at(input, indices, dims=(axis,))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    """Return a copy of `input` with the slices of ``alpha * source`` added to those at `index`.

    A factor `alpha` that is a fraction raises a DtypeError where `source` holds integers.

    >>> import lucid
    >>> lucid.index_add(lucid.zeros(3), 0, lucid.tensor([2, 2]), lucid.tensor([1.0, 4.0]))
    tensor([0., 0., 5.])
    """
    axis, indices = line(input, dim, index, "index_add")
    source = fitting_source(input, axis, indices, source, "index_add")
    alpha, _ = as_factor("index_add", "alpha", alpha, source)
    return _written(input, axis, indices, source if alpha == 1 else mul(source, alpha), accumulate=True)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with its slices at `index` replaced by those of `source`.

    >>> import lucid
    >>> lucid.index_copy(lucid.zeros(3), 0, lucid.tensor([2, 0]), lucid.tensor([1.0, 4.0]))
    tensor([4., 0., 1.])
    """
    if unusual and casting_on() and isinstance(source, TensorBase) and source.array.dtype != array_of(input).dtype:
        input, source = wide_in_autocast(input, cpu=True, cuda=False), wide_in_autocast(source, cpu=True, cuda=False)
    axis, indices = line(input, dim, index, "index_copy")
    source = fitting_source(input, axis, indices, source, "index_copy")
    return _written(input, axis, indices, source, accumulate=False)


def _written(input: Tensor, dim: int, indices: Tensor, source: Tensor | Number, *, accumulate: bool) -> Any:
    """Return a copy of `input` with slices of `source` in it, a tensor of no dimension as a vector of one element."""
    if not input.array.ndim:
        return reshape(put(reshape(input, 1), source, indices, dims=(0,), accumulate=accumulate), ())
    return put(input, source, indices, dims=(dim,), accumulate=accumulate)


def fitting_source(input: Tensor, dim: int, index: Tensor, source: Tensor, name: str) -> Any:
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


def index_fill(input: Tensor, dim: int, index: Tensor, value: Number | Tensor) -> Tensor:
    """Return a copy of `input` with its slices at `index` filled with `value`, a number or a tensor of no dimension.

    >>> import lucid
    >>> lucid.index_fill(lucid.zeros(3), 0, lucid.tensor([0, 2]), 7)
    tensor([7., 0., 7.])
    """
    axis, indices = line(input, dim, index, "index_fill")
    new = as_operand(value)
    if isinstance(new, complex):
        new = as_element(new, tensor_dtype(input), "value")
    elif getattr(value, "ndim", 0):
        raise ShapeError(f"index_fill: expected a number or a 0-dim tensor, got shape {list(new.shape)}")
    return _written(input, axis, indices, new, accumulate=False)
