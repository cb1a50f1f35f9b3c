"""Resizing of one dimension: the elements that each element of the result is made of, and their weights.

Every mode is linear and separable, so that this is all there is to say of it. With `position` = scale * (i + shift) of
element i of the result:

    nearest   the element floor(position), computed in float32 as PyTorch does there, so that the same one is taken
    linear    the two elements around position - shift, by their distance
    cubic     the four elements around position - shift, by Keys' cubic convolution with a = -0.75; for both, elements
              beyond the ends are the ones at the ends
    area      the mean of the elements from floor(i * size / out) to ceil((i + 1) * size / out)
    linear and cubic filter   all elements nearer to scale * (i + 0.5) than the filter is wide, which is as many times
              wider as the result is smaller; the weights, of the cubic with a = -0.5, are divided by their sum

Keys, Cubic convolution interpolation for digital image processing, IEEE Transactions on Acoustics, Speech, and Signal
Processing 29 (1981). The device's twin is kernels/resampling/interpolation.cu.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lucid.base.arrays import Array

# Rows and columns that a product with weights has, if it can: fewer are slow, and most weights of more would be zero.
BLOCK = 48
FEWEST_ROWS = 8


class Axis(NamedTuple):
    """One dimension and its new size.

    Attributes
    ----------
    kind : str
        What each element of the result is made of: see above.
    size, out : int
        Elements of the input, and of the result.
    scale, shift : float
        Elements of the input for each of the result, and where in an element its position is.
    """

    kind: str
    size: int
    out: int
    scale: float
    shift: float


def cubic(distance: Array, a: float) -> Array:
    """Return the weight of elements at a distance, by Keys' cubic convolution."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def taps(axis: Axis) -> tuple[Array, Array]:
    """Return index and weight, shape (out, taps), of the elements that each element of the result is made of."""
    number = np.arange(axis.out)
    if axis.kind == "nearest":
        position = (number + axis.shift).astype(np.float32) * np.float32(axis.scale)
        return np.minimum(position.astype(np.int64), axis.size - 1)[:, None], np.ones((axis.out, 1))
    return beside(axis, number) if axis.kind in {"linear", "cubic"} else within(axis, number)


def beside(axis: Axis, number: Array) -> tuple[Array, Array]:
    """Return index and weight of the two or four elements around each position."""
    last = axis.size - 1
    position = axis.scale * (number + axis.shift) - axis.shift
    first = np.minimum(np.floor(position), last)
    beyond = np.clip(position - first, 0, 1)[:, None]
    around = np.arange(2) if axis.kind == "linear" else np.arange(-1, 3)
    weight = 1 - np.abs(beyond - around) if axis.kind == "linear" else cubic(beyond - around, -0.75)
    return np.clip(first.astype(np.int64)[:, None] + around, 0, last), weight


def within(axis: Axis, number: Array) -> tuple[Array, Array]:
    """Return index and weight of all elements of a part, or within the width of a filter; 0 for those behind them."""
    wider = max(axis.scale, 1.0)
    begin, end = bounds(axis, number, wider)
    index = np.add.outer(begin, np.arange(int((end - begin).max())))
    distance = (index + 0.5 - axis.scale * (number[:, None] + 0.5)) / wider
    if axis.kind == "area":
        weight = np.ones(index.shape)
    else:
        weight = np.maximum(1 - np.abs(distance), 0) if axis.kind == "linear filter" else cubic(distance, -0.5)
    weight = np.where(index < end[:, None], weight, 0)
    return np.minimum(index, axis.size - 1), weight / weight.sum(1, keepdims=True)


def bounds(axis: Axis, number: Array, wider: float) -> tuple[Array, Array]:
    """Return the first element of a part or filter, and the first behind it."""
    if axis.kind == "area":
        return number * axis.size // axis.out, -(-(number + 1) * axis.size // axis.out)
    half = wider if axis.kind == "linear filter" else 2 * wider
    centre = axis.scale * (number + 0.5)
    begin = np.maximum((centre - half + 0.5).astype(np.int64), 0)
    return begin, np.minimum((centre + half + 0.5).astype(np.int64), axis.size)


def blocks(axis: Axis, dtype: Any, *, adjoint: bool) -> Iterator[tuple[slice, slice, Array]]:
    """Yield matrices that together give the elements of the result, or with `adjoint` of its gradient.

    Each with the elements that it makes, and of which: all weights of the others are zero.
    """
    index, weight = taps(axis)
    made, read = np.broadcast_to(np.arange(axis.out)[:, None], index.shape).ravel(), index.ravel()
    count, of = axis.out, axis.size
    if adjoint:
        order = np.argsort(read, kind="stable")
        made, read, weight = read[order], made[order], weight.ravel()[order]
        count, of = of, count
    weight = weight.ravel()
    rows = int(np.clip(BLOCK * count / of, FEWEST_ROWS, BLOCK))
    for begin in range(0, count, rows):
        end = min(begin + rows, count)
        part = slice(*np.searchsorted(made, (begin, end)))
        first, behind = (int(read[part].min()), int(read[part].max()) + 1) if part.stop > part.start else (0, 1)
        matrix = np.zeros((end - begin, behind - first), dtype)
        np.add.at(matrix, (made[part] - begin, read[part] - first), weight[part])
        yield slice(begin, end), slice(first, behind), matrix


@lru_cache(32)
def kept_blocks(axis: Axis, dtype: Any, *, adjoint: bool) -> tuple[tuple[slice, slice, Array], ...]:
    """Return all blocks, the same each time."""
    return tuple(blocks(axis, dtype, adjoint=adjoint))
