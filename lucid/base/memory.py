"""Layout of an array in memory, by shape and strides, and the return of freed memory to the system."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.errors import OutOfMemoryError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.arrays import Array

# glibc asks the system for each array above a threshold, and gives back what is free at the end of its heap: a page
# that comes again costs an interrupt, which was three quarters of the time of a layer norm of 512 x 512. Once it frees
# an array of this size, the largest from which it learns, it keeps up to twice as much. Who has set its thresholds
# keeps them.
with suppress(MemoryError):
    np.empty((32 << 20) - 8192, np.uint8)


# Bytes of a tile by which an array is transposed, and its elements that lie together in what is read: those of a first-
# level cache, in which each line that is read stays until all of it has been written.
TILE = 1 << 15
NEAR = 128
# Elements along the other dimension below which tiles do not pay.
WIDE = 128
# Elements from which an array is transposed by tiles: fewer lie in the cache.
TILED = 1 << 16
# Bytes of a line of the cache, and of the longest vector of a processor.
LINE = 64

# What any size is below: NumPy and CuPy count bytes in signed integers of 64 bits, and CuPy in silence past their end.
END = 1 << 63


class SizeError(ShapeError, TypeError, OverflowError):
    """A size is more than an integer of 64 bits holds; PyTorch has errors of several types for it."""


def check_size(name: str, shape: Sequence[int], itemsize: int = 1) -> None:
    """Raise unless elements of `itemsize` bytes in this shape are fewer than 2 ** 63 bytes, with zeros taken for ones.

    Each array is made, each view taken, behind this: a product that wraps around makes an array whose memory is smaller
    than its shape says. A size of zero does not help, since strides wrap all the same.

    Raises
    ------
    ShapeError
        If they are more.
    SizeError
        If one of the sizes is more already; a ShapeError.
    """
    if itemsize * math.prod(shape) < END and 0 not in shape:
        return
    if (largest := max(shape, default=0)) >= END:
        raise SizeError(f"{name}: expected sizes below 2 ** 63, got {largest} in shape {list(shape)}")
    if itemsize * math.prod([size or 1 for size in shape]) >= END:
        raise ShapeError(
            f"{name}: a tensor of shape {list(shape)} with elements of {itemsize} bytes is larger than any memory "
            "(2 ** 63 bytes or more): use smaller sizes"
        )


def no_room(error: MemoryError) -> OutOfMemoryError:
    """Return the error of lucid's for one that is about memory; one of lucid's itself."""
    if isinstance(error, OutOfMemoryError):
        return error
    return OutOfMemoryError(f"the CPU has no room left: {error or 'out of memory'}: use smaller tensors or batches")


def writeable(array: Array) -> bool:
    """Return whether each element of an array has memory of its own, and it may be written to."""
    flags = array.flags
    if type(array) is np.ndarray and not flags.writeable:
        return False
    return flags.c_contiguous or not overlapping(array)


def overlapping(array: Array) -> bool:
    """Return whether elements of an array share memory; also True for some with interleaved elements."""
    reach = 0
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def forwards(array: Array) -> Array:
    """Return the elements of an array in the order of their addresses: no stride of the view is below zero."""
    if all(step >= 0 for step in array.strides):
        return array
    return array[tuple([slice(None, None, -1 if step < 0 else 1) for step in array.strides])]


def c_copy(array: Array) -> Array:
    """Return a copy of an array of NumPy's in C order."""
    if array.size < TILED or array.flags.c_contiguous:
        return np.array(array, order="C")
    out = np.empty(array.shape, array.dtype)
    copy_tiled(out, array)
    return out


def copy_tiled(out: Array, array: Array) -> None:
    """Write an array of NumPy's to another of its shape and any dtype: by tiles if its lines lie across in that.

    NumPy writes line by line: where those of `array` lie across, each element is read from another line of the cache,
    which is gone before its next element is wanted.
    """
    pair = _transposed(out, array)
    if pair is None or np.may_share_memory(out, array):
        np.copyto(out, array, "unsafe")
        return
    out, array = pair
    down = min(out.shape[-2], NEAR)
    right = TILE // out.itemsize // down
    for place in np.ndindex(out.shape[:-2]):
        target, source = out[place], array[place]
        for i in range(0, out.shape[-2], down):
            for j in range(0, out.shape[-1], right):
                target[i : i + down, j : j + right] = source[i : i + down, j : j + right]


def _transposed(out: Array, array: Array) -> tuple[Array, Array] | None:
    """Return views of two arrays of one shape if lines of the one lie across in the other; else None.

    Of their last two dimensions the elements of one lie nearest in `array`, those of the other in `out`.
    """
    if array.size < TILED:
        return None
    order = sorted(range(out.ndim), key=lambda axis: -abs(out.strides[axis]))
    # size, and steps in both; dimensions that follow one another in both are one
    dims: list[tuple[int, int, int]] = []
    for size, step, read in [(out.shape[axis], out.strides[axis], array.strides[axis]) for axis in order]:
        if dims and dims[-1][1:] == (size * step, size * read):
            dims[-1] = dims[-1][0] * size, step, read
        elif size > 1:
            dims.append((size, step, read))
    *rest, (width, _, across) = dims or [(0, 0, 0)]
    near = min(range(len(rest)), key=lambda axis: abs(rest[axis][2]) or END, default=-1)
    if near < 0 or not 0 < abs(rest[near][2]) < abs(across) >= LINE // 2 or width < WIDE:
        return None
    shape = tuple([size for size, *_ in dims])
    axes = *[axis for axis in range(len(rest)) if axis != near], near, len(rest)
    a, b = (x.transpose(order).reshape(shape).transpose(axes) for x in (out, array))
    return a, b


def byte_bounds(array: Any) -> tuple[int, int]:
    """Return the addresses of the first byte of a CUDA array and of the one after its last; equal if it has none."""
    start = array.data.ptr
    if not array.size:
        return start, start
    reaches = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    first = start + sum([reach for reach in reaches if reach < 0])
    return first, first + sum(map(abs, reaches)) + array.itemsize
