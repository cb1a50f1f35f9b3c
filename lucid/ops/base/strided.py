"""How elements lie in memory: strides and offsets counted in elements, and views that are given by them.

What holds for these, as for all views, says `lucid.ops.shape`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, describe
from lucid.autograd.recording.primitive import primitive
from lucid.base.memory import check_size, forwards, overlapping
from lucid.errors import ShapeError
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.index.accumulation import sums_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# Where elements lie: sizes, strides, and how many elements lie before the first one.
Grid = tuple[tuple[int, ...], tuple[int, ...], int]


def strides_of(array: Array) -> tuple[int, ...]:
    """Return how many elements lie from one index to the next along every dimension."""
    return tuple([step // array.dtype.itemsize for step in array.strides])


def address_of(array: Any) -> int:
    """Return the address of the first element."""
    return array.ctypes.data if type(array) is np.ndarray else array.data.ptr


def offset_of(tensor: TensorBase) -> int:
    """Return how many elements of the base lie in memory before the first one of a tensor, maybe a view of it."""
    array = tensor.array
    base = array if tensor.origin is None else tensor.origin.base.array
    return (address_of(array) - address_of(forwards(base))) // array.dtype.itemsize


def span(size: Sequence[int], stride: Sequence[int]) -> int:
    """Return how many elements lie from the first to the last one, both included."""
    if 0 in size:
        return 0
    return 1 + sum((count - 1) * step for count, step in zip(size, stride, strict=True))


def dense(array: Array) -> bool:
    """Return whether the elements fill their memory without gaps, in any order of the dimensions."""
    return not overlapping(array) and span(array.shape, strides_of(array)) == array.size


def offsets(xp: ModuleType, grid: Grid) -> Array:
    """Return for each element of a grid its offset in memory."""
    size, stride, offset = grid
    out = xp.full((1,) * len(size), offset, dtype=xp.int64)
    for dim, (count, step) in enumerate(zip(size, stride, strict=True)):
        along = xp.arange(count, dtype=xp.int64) * step
        out = out + along.reshape(-1, *(1,) * (len(size) - dim - 1))
    return out


@primitive(view=True)
def _as_strided(xp: ModuleType, x: Array, *, taken: Grid, lies: Grid) -> Array:
    size, stride, offset = taken
    item = x.dtype.itemsize
    view = xp.lib.stride_tricks.as_strided
    memory = view(x, (span(*lies[:2]),), (item,))
    return view(memory[offset:], size, tuple([step * item for step in stride]))


@_as_strided.vjp
def _as_strided_vjp(m: Namespace, grad: Array, taken: Grid, lies: Grid) -> Any:
    return m.moved_on_grid(grad, source=taken, target=lies)


@primitive
def _moved_on_grid(xp: ModuleType, x: Array, *, source: Grid, target: Grid) -> Array:
    length = max(span(*source[:2]) + source[2], span(*target[:2]) + target[2])
    return sums_at(xp, (length,), (0,), (offsets(xp, source),), x).take(offsets(xp, target))


@_moved_on_grid.vjp
def _moved_on_grid_vjp(m: Namespace, grad: Array, source: Grid, target: Grid) -> Any:
    return m.moved_on_grid(grad, source=target, target=source)


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return a view of elements of the memory of `input`: element (i, j, ...) lies at offset + i * stride[0] + ...

    `size` is its shape, `stride` how many elements lie from one index to the next, `storage_offset` how many of the
    base lie before the first one, by default as many as for `input`. A view that would leave the memory of `input`, and
    an input whose elements share memory or whose base has gaps, raise a ShapeError. Elements of the view may share
    memory: their gradients are added, and it cannot be changed in place.

    >>> import lucid
    >>> x = lucid.tensor([[1, 2, 3], [4, 5, 6]])
    >>> x.as_strided((2, 2), (1, 3), 1)
    tensor([[2, 5],
            [3, 6]])
    """
    sizes, strides = sizes_in((size,)), sizes_in((stride,))
    array = array_of(input)
    own = offset_of(input)
    offset = 0 if storage_offset is None else as_int(storage_offset, "storage_offset") - own
    if len(sizes) != len(strides):
        raise ShapeError(f"as_strided: mismatch in length of strides and shape: got size {sizes} and stride {strides}")
    if min((*sizes, *strides), default=0) < 0:
        raise ShapeError(f"as_strided: expected no negative size or stride, got size {sizes} and stride {strides}")
    check_size("as_strided", sizes, array.itemsize)
    base = array if input.origin is None else input.origin.base.array
    if overlapping(array) or not dense(base):
        raise ShapeError(
            f"as_strided: elements of the tensor of {describe(input)} share memory, or its base has gaps: clone() it "
            "first"
        )
    lies = array.shape, strides_of(array), 0
    end = span(*lies[:2])
    if offset < 0 or (math.prod(sizes) and offset + span(sizes, strides) > end):
        raise ShapeError(
            f"as_strided: size {sizes}, stride {strides} and storage offset {offset + own} leave the memory of the "
            f"tensor of {describe(input)}, which is elements {own} to below {own + end}"
        )
    return _as_strided(input, taken=(sizes, strides, min(offset, end)), lies=lies)
