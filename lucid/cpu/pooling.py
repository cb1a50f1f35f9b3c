"""Pooling by ``kernels/cpu/pooling.cpp`` in float32 and float64, with the bits of NumPy's path.

Each function returns None where NumPy is to do it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lucid.cpu.functions import Function, address, first_element
from lucid.cuda.launch.windows import images, packed

if TYPE_CHECKING:
    from lucid.base.arrays import Array, Ints

    # the windows along each dimension: `lucid.ops.layers.windows.Axis`
    Axes: TypeAlias = tuple[Any, ...]

MUCH_PADDING = 64

FLOATS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
_NUMBERS = {np.dtype(np.uint8): "unsigned char", np.dtype(np.uint16): "unsigned short"}
_EACH = [(name,) for name in FLOATS.values()]
_TYPED = [(name, number) for name in FLOATS.values() for number in _NUMBERS.values()]

_MAX_POOL = Function("pooling.cpp", "max_pool", _TYPED)
_MAX_POOL_GRAD = Function("pooling.cpp", "max_pool_grad", _TYPED)
_MAX_POOL_SELECT = Function("pooling.cpp", "max_pool_select", _TYPED)
_SUM_POOL = Function("pooling.cpp", "sum_pool", _EACH)
_SPREAD = Function("pooling.cpp", "spread", _EACH)


@lru_cache(1024)
def windows_of(axes: Axes) -> tuple[Array, int] | None:
    """Return windows along one or two dimensions as an array of C's, and its address; None if C does not take them.

    Images are copied with their padding, which must not be much more than they are.
    """
    spans = [((axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation, axis.size) for axis in axes]
    if len(axes) > 2 or any(span > 4 * size + MUCH_PADDING for span, size in spans):
        return None
    array = np.array(packed(axes), np.int64)
    return array, address(array)


def planes_of(x: Array, count: int) -> tuple[int, ...] | None:
    """Return images, channels, and the steps along these and both dimensions; None if C does not take such an array."""
    read = images(x, count) if x.dtype in FLOATS and x.flags.aligned else None
    return None if read is None else (*read.shape[:2], *read.steps)


def max_pool(x: Array, axes: Axes, dtype: Any) -> tuple[Array, Array] | None:
    """Return the largest element of each window, and the number of its first position."""
    windows, planes, number = windows_of(axes), planes_of(x, len(axes)), _NUMBERS.get(dtype)
    if windows is None or planes is None or number is None:
        return None
    run = _MAX_POOL(x.size, FLOATS[x.dtype], number)
    if run is None:
        return None
    shape = *x.shape[: -len(axes)], *[axis.out for axis in axes]
    values, which = np.empty(shape, x.dtype), np.empty(shape, dtype)
    run(first_element(x), address(values), address(which), *planes, windows[1])
    return values, which


def max_pool_grad(g: Array, which: Array, axes: Axes) -> Array | None:
    """Return an array of the pooled shape: each element of `g` added at the position that `which` names."""
    return _moved(_MAX_POOL_GRAD, g, which, axes, tuple([axis.size for axis in axes]))


def max_pool_select(x: Array, which: Array, axes: Axes) -> Array | None:
    """Return for each window the element at the position that `which` names."""
    return _moved(_MAX_POOL_SELECT, x, which, axes, tuple([axis.out for axis in axes]))


def _moved(function: Function, x: Array, which: Array, axes: Axes, size: Ints) -> Array | None:
    windows, planes, number = windows_of(axes), planes_of(x, len(axes)), _NUMBERS.get(which.dtype)
    if windows is None or planes is None or number is None or not which.flags.c_contiguous:
        return None
    run = function(x.size, FLOATS[x.dtype], number)
    if run is None:
        return None
    out = np.empty((*x.shape[: -len(axes)], *size), x.dtype)
    run(first_element(x), address(which), address(out), *planes, windows[1])
    return out


def sum_pool(x: Array, axes: Axes, most: int) -> Array | None:
    """Return the sum of each window, of more than `most` positions in groups of as many."""
    windows, planes = windows_of(axes), planes_of(x, len(axes))
    if windows is None or planes is None or (run := _SUM_POOL(x.size, FLOATS[x.dtype])) is None:
        return None
    total = np.empty((*x.shape[: -len(axes)], *[axis.out for axis in axes]), x.dtype)
    run(first_element(x), address(total), *planes, windows[1], most)
    return total


def spread(g: Array, axes: Axes) -> Array | None:
    """Return an array of the pooled shape: each element of `g` added to each element of its window."""
    windows, planes = windows_of(axes), planes_of(g, len(axes))
    if windows is None or planes is None or (run := _SPREAD(g.size, FLOATS[g.dtype])) is None:
        return None
    result = np.empty((*g.shape[: -len(axes)], *[axis.size for axis in axes]), g.dtype)
    run(first_element(g), address(result), *planes, windows[1])
    return result
