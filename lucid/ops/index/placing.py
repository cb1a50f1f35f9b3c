"""Copies of a tensor with a part, as a view would show it, replaced by another tensor.

The part and what takes its place have one shape, or a ShapeError is raised; its dtype becomes that of `input`. What
holds for all of it says `lucid.ops.index`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base.device import device_of
from lucid.errors import DeviceError, ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.base.strided import as_strided
from lucid.ops.index.indexing import getitem, index_put
from lucid.ops.index.select import select
from lucid.ops.shape.diagonal import diagonal
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor


def _placed(name: str, input: Tensor, src: Tensor, part_of: Callable[[Any], Any]) -> Any:
    """Return a copy of `input` with `src` as its part."""
    source = tensor_operand(src)
    where, other = device_of(array_of(input)), device_of(source.array)
    if where is not other:
        raise DeviceError(
            f"{name}: expected src on the device of input, {where}, got it on {other}; src.to({str(where)!r})"
        )
    copy: Any = clone(input)
    part = part_of(copy)
    if part.array.shape != source.array.shape:
        raise ShapeError(f"{name}: expected src of shape {list(part.array.shape)}, got {list(source.array.shape)}")
    part.copy_(source)
    return copy


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of `input` with `src` at an index of a dimension, `dim`, that `src` lacks.

    >>> import lucid
    >>> lucid.select_scatter(lucid.zeros(2, 2), lucid.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    array_of(input)
    return _placed("select_scatter", input, src, lambda copy: select(copy, dim, index))


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy of `input` that is `src` from `start` to `end` of a dimension, at every `step`-th index.

    Both ends may be left out, and count from the end where they are below zero.

    >>> import lucid
    >>> lucid.slice_scatter(lucid.zeros(4), lucid.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    axis, by = dim_in(dim, array_of(input).ndim), as_int(step, "step")
    if by <= 0:
        raise ShapeError(f"slice_scatter: expected a step above zero, got {by}")
    first = None if start is None else as_int(start, "start")
    last = None if end is None else as_int(end, "end")
    key = along(axis, slice(first, last, by))
    return _placed("slice_scatter", input, src, lambda copy: getitem(copy, key))


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy of `input` that is `src` on a diagonal, as `diagonal` shows it.

    `offset`, `dim1` and `dim2` are as there.

    >>> import lucid
    >>> lucid.diagonal_scatter(lucid.zeros(2, 2), lucid.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    array_of(input)
    return _placed("diagonal_scatter", input, src, lambda copy: diagonal(copy, offset, dim1, dim2))


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a copy of `input`, contiguous, with `src` as the elements that `as_strided` shows.

    `size`, `stride` and `storage_offset`, 0 if it is None, are as there.

    >>> import lucid
    >>> lucid.as_strided_scatter(lucid.zeros(4), lucid.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    array_of(input)
    return _placed("as_strided_scatter", input, src, lambda copy: as_strided(copy, size, stride, storage_offset or 0))


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of `input` with `source` written, or with `accumulate` added, at `index` among all its elements.

    `source` has as many elements as `index`, and the dtype of `input`; below zero an index counts from the end.

    >>> import lucid
    >>> lucid.zeros(2, 2).put(lucid.tensor([0, -1]), lucid.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    shape, places, new = array_of(input).shape, array_of(index), array_of(source)
    if new.size != places.size or new.dtype != input.array.dtype or places.dtype.kind != "i":
        raise ShapeError(
            f"put: expected index and source of as many elements, of integers and of the dtype of input, got shapes "
            f"{list(places.shape)} of {places.dtype.name} and {list(new.shape)} of {new.dtype.name}"
        )
    return reshape(index_put(reshape(input, -1), (reshape(index, -1),), reshape(source, -1), accumulate), shape)
