"""Depthwise convolutions with stride 1 on the CPU: sums over the positions of a window, without columns.

Channels are padded and laid out with their images one behind the other, so that the elements of all windows at one
position are one run of memory. Runs go over the ends of rows: what is computed there is left out, or weighed with zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.ops.base.rows import by_rows, row_products
from lucid.ops.layers.windows import axes_of, window_count, window_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lucid.base.arrays import Array, Ints
    from lucid.ops.layers.windows import Axis

# Bytes of the channels that are computed at a time: they are gone through once for each position, in the cache.
BLOCK = 1 << 19
# More positions are left to matrix products, which add them up in another order than one after the other.
MOST_POSITIONS = 49


def is_depthwise(axes: tuple[Axis, ...], channels: int, made: int, groups: int) -> bool:
    """Return whether each channel has a group of its own, and windows are dense and few of them reach over an end."""
    return (
        channels == made == groups > 1
        and 1 < window_size(axes) <= MOST_POSITIONS
        and all(axis.stride == 1 and 0 <= axis.before for axis in axes)
        and 0 < math.prod(map(_extent, axes)) <= 4 * math.prod(window_count(axes))
    )


def _extent(axis: Axis) -> int:
    """Return how many elements the windows span along a dimension, those of the padding too."""
    return axis.out + (axis.kernel - 1) * axis.dilation


def _extents(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return tuple(map(_extent, axes))


def _offsets(axes: tuple[Axis, ...]) -> list[int]:
    """Return for each position in the window how far its elements lie behind those of the first one."""
    offsets = [0]
    for axis in axes:
        steps = [position * axis.dilation for position in range(axis.kernel)]
        offsets = [offset * _extent(axis) + step for offset in offsets for step in steps]
    return offsets


def _blocks(count: int, channels: int, axes: tuple[Axis, ...], itemsize: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of the images and of the channels that are computed at a time."""
    each = math.prod(_extents(axes)) * itemsize
    images = max(1, min(count, BLOCK // each))
    step = max(1, BLOCK // (each * images))
    for first in range(0, channels, step):
        for start in range(0, count, images):
            yield slice(start, min(start + images, count)), slice(first, min(first + step, channels))


def _room(block: tuple[slice, slice], axes: tuple[Axis, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros for a block, of shape (channels, images, *extents)."""
    images, channels = block
    return np.zeros((channels.stop - channels.start, images.stop - images.start, *_extents(axes)), dtype)


def _padded(x: Array, block: tuple[slice, slice], axes: tuple[Axis, ...], dtype: np.dtype[Any]) -> Array:
    """Return the channels of a block, each with its images as one row, with zeros in the padding."""
    room = _room(block, axes, dtype)
    ends = [max(axis.before, min(axis.before + axis.size, _extent(axis))) for axis in axes]
    within = [slice(axis.before, end) for axis, end in zip(axes, ends, strict=True)]
    source = [slice(0, end - axis.before) for axis, end in zip(axes, ends, strict=True)]
    room[(..., *within)] = x[block].swapaxes(0, 1)[(..., *source)]
    return room.reshape(len(room), -1)


def depthwise(x: Array, weight: Array, bias: Array | None, axes: tuple[Axis, ...], dtype: np.dtype[Any]) -> Array:
    """Return the cross-correlation of each channel with its kernel, computed in `dtype`."""
    out = window_count(axes)
    result = np.empty((*x.shape[:2], *out), x.dtype)
    weight = weight.reshape(len(weight), -1).astype(dtype, copy=False)
    offsets = _offsets(axes)
    for images, channels in _blocks(*x.shape[:2], axes, dtype.itemsize):
        rows = _padded(x, (images, channels), axes, dtype)
        factors = weight[channels]
        whole = np.empty_like(rows)
        length = rows.shape[1] - offsets[-1]
        total, product = whole[:, :length], np.empty((len(rows), length), dtype)
        with by_rows(*total.shape):
            np.multiply(rows[:, :length], factors[:, :1], out=total)
            for k, offset in enumerate(offsets[1:], 1):
                total += np.multiply(rows[:, offset : offset + length], factors[:, k : k + 1], out=product)
            if bias is not None:
                total += bias[channels, None]
        made = whole.reshape(len(rows), -1, *_extents(axes))[(..., *map(slice, out))]
        result[images, channels] = made.swapaxes(0, 1)
    return result


def depthwise_weight_grad(g: Array, x: Array, axes: tuple[Axis, ...], dtype: np.dtype[Any]) -> Array | None:
    """Return for each channel the products of `g` and the elements at each position, summed over all windows.

    None if they are not finite: elements behind the end of a row are multiplied by zero, which infinity does not bear.
    """
    offsets = _offsets(axes)
    total = np.zeros((g.shape[1], len(offsets)), dtype)
    for images, channels in _blocks(*x.shape[:2], axes, dtype.itemsize):
        rows = _padded(x, (images, channels), axes, dtype)
        room = _room((images, channels), axes, dtype)
        room[(..., *map(slice, window_count(axes)))] = g[images, channels].swapaxes(0, 1)
        length = rows.shape[1] - offsets[-1]
        grads = room.reshape(len(room), -1)[:, :length]
        for k, offset in enumerate(offsets):
            total[channels, k : k + 1] += row_products(rows[:, offset : offset + length], grads)
    return total if np.isfinite(total).all() else None
