"""What the strides of an array say of its memory, and what becomes of memory that is freed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lucid.backend.arrays import Array

# glibc asks the system for each array above a threshold, and gives back what is free at the end of its heap: a page
# that comes again costs an interrupt, which was three quarters of the time of a layer norm of 512 x 512. Once it frees
# an array of this size, the largest from which it learns, it keeps up to twice as much. Who has set its thresholds
# keeps them.
with suppress(MemoryError):
    np.empty((32 << 20) - 8192, np.uint8)


def writeable(array: Array) -> bool:
    """Return whether each element of an array has memory of its own, and it may be written to."""
    flags = array.flags
    if type(array) is np.ndarray and not flags.writeable:
        return False
    return flags.c_contiguous or not overlapping(array)


def overlapping(array: Array) -> bool:
    """Return whether elements of an array share memory; also True for some in which they interleave."""
    reach = 0
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def byte_bounds(array: Any) -> tuple[int, int]:
    """Return the addresses of the first byte of a CUDA array and of the one after its last; equal if it has none."""
    start = array.data.ptr
    if not array.size:
        return start, start
    reaches = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    first = start + sum([reach for reach in reaches if reach < 0])
    return first, first + sum(map(abs, reaches)) + array.itemsize
