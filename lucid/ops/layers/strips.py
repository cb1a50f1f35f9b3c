"""Strips of images: the operands of the matrix products that make a convolution.

A column of a matrix is a window, and what it holds at each position would be a row: as many copies of the images as
there are positions. But along the first dimension a position is a step of whole rows of windows, so that one copy, a
strip, has the elements at all these positions, one behind the other: it is multiplied once for each, from another
element on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.ops.layers.windows import Axis, taps, taps_along, window_count, window_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from lucid.base.arrays import Array, Ints

# Strips of one block of images, in bytes: on the CPU what stays in the cache with what is made of it, on a GPU the
# memory that a convolution may take, and what is worth a launch.
CPU_BLOCK, CUDA_BLOCK = 1 << 19, 256 << 20
# Windows of one product on the CPU, if there are so many. BLAS multiplies few rows by few columns without packing them
# first, in a third of the time that it takes for many.
WINDOWS = 256
# Windows, for each output channel, for which kernels are worth to be rearranged.
WINDOWS_FOR_A_CHANNEL = 6


class Block(NamedTuple):
    """Some images: a slice of the batch, and how many products there are of how many images each."""

    images: slice
    products: int
    joined: int


class Strips(NamedTuple):
    """The strips of all windows.

    Attributes
    ----------
    axes : tuple of Axis
        The windows along each dimension.
    rows : int
        Rows of a strip: elements along the first dimension.
    first : tuple of Axis
        For each strip of a channel its rows, as windows of one position.
    places : tuple of (int, int)
        For each position along the first dimension its strip, and the row of the first window there.
    """

    axes: tuple[Axis, ...]
    rows: int
    first: tuple[Axis, ...]
    places: tuple[tuple[int, int], ...]

    @property
    def row(self) -> int:
        """Windows of an image in one row."""
        return math.prod(window_count(self.axes[1:]))

    @property
    def positions(self) -> int:
        """Positions of a window in one row."""
        return window_size(self.axes[1:])

    def blocks(self, xp: ModuleType, count: int, channels: int, itemsize: int) -> Iterator[Block]:
        """Yield the images in blocks, with strips that fit."""
        each = max(1, channels * len(self.first) * self.positions * self.rows * self.row * itemsize)
        joined = max(1, min(count, -(-WINDOWS // max(1, self.axes[0].out * self.row)), 4 * CPU_BLOCK // each))
        most = CPU_BLOCK // (each * joined)
        if xp is not np:
            joined, most = max(1, min(count, CUDA_BLOCK // each)), 1
        whole, step = count - count % joined, joined * max(1, most)
        for start in range(0, whole, step):
            stop = min(start + step, whole)
            yield Block(slice(start, stop), (stop - start) // joined, joined)
        if whole < count:
            yield Block(slice(whole, count), 1, count - whole)

    def shape(self, channels: int, block: Block) -> tuple[int, ...]:
        """Return (products, strips, channels, *positions in a row, rows, images, *windows in a row)."""
        kernel = [axis.kernel for axis in self.axes[1:]]
        return block.products, len(self.first), channels, *kernel, self.rows, block.joined, *window_count(self.axes[1:])

    def parts(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Yield the index of some elements in strips, and that of the same in images as `in_rows` has them."""
        inner = tuple(taps(self.axes[1:]))
        for strip, axis in enumerate(self.first):
            for _, rows, elements in taps_along(axis):
                for tap in inner:
                    at = (slice(None), strip, slice(None), *tap.position, rows, slice(None), *tap.windows)
                    yield at, (slice(None), slice(None), elements, slice(None), *tap.elements)

    def filled(self, xp: ModuleType, x: Array, dtype: np.dtype[Any]) -> Iterator[tuple[Block, Array]]:
        """Yield each block of images with the elements of its strips.

        Their memory is used again for the next block. What lies in the padding is zero and never written.
        """
        values: Any = None
        parts = tuple(self.parts())
        for block in self.blocks(xp, x.shape[0], x.shape[1], dtype.itemsize):
            shape = self.shape(x.shape[1], block)
            if values is None or values.shape != shape:
                values = xp.zeros(shape, dtype)
            source = in_rows(x, block)
            for at, elements in parts:
                values[at] = source[elements]
            yield block, values

    def at(self, values: Array, place: tuple[int, int], groups: int, joined: int) -> Array:
        """Return the columns of one place of windows, of shape (products, groups, rows, windows), as a view."""
        strip, row = place
        height = math.prod(values.shape[2 : len(self.axes) + 2]) // groups
        columns = values[:, strip].reshape(len(values), groups, height, self.rows * joined * self.row)
        return columns[..., row * joined * self.row :][..., : self.axes[0].out * joined * self.row]


def strips_of(axes: tuple[Axis, ...]) -> Strips:
    """Return the strips of windows: one for each remainder of positions by the stride, or for each position if less."""
    axis = axes[0]
    steps = [divmod(position * axis.dilation, axis.stride) for position in range(axis.kernel)]
    starts = sorted({start for _, start in steps})
    rows = axis.out + max((row for row, _ in steps), default=0)
    if rows * len(starts) > axis.out * axis.kernel:
        starts = [position * axis.dilation for position in range(axis.kernel)]
        rows, places = axis.out, [(position, 0) for position in range(axis.kernel)]
    else:
        places = [(starts.index(start), row) for row, start in steps]
    first = [Axis(axis.size, rows, 1, axis.stride, axis.before - start, 1) for start in starts]
    return Strips(axes, rows, tuple(first), tuple(places))


def needs_columns(axes: tuple[Axis, ...], count: int, weight: Ints, groups: int) -> bool:
    """Return whether strips of a convolution do not pay, for kernels of shape `weight` and `count` images.

    They are written once instead of once for each position along the first dimension, but as many products have to be
    added, and kernels to be rearranged. With one more dimension of size 1 before the first, strips are columns.
    """
    made, channels, first, *rest = weight
    return first > 1 and (
        channels * math.prod(rest) * groups < made
        or count * math.prod(window_count(axes)) * groups < WINDOWS_FOR_A_CHANNEL * made
    )


def in_rows(x: Array, block: Block) -> Array:
    """Return the images of a block as (products, channels, first size, images, *sizes), a view."""
    each = x[block.images].reshape(block.products, block.joined, *x.shape[1:])
    return each.swapaxes(1, 2).swapaxes(2, 3)


def matrices(x: Array, block: Block, groups: int, dtype: np.dtype[Any]) -> Array:
    """Return the images of a block as (products, groups, channels, elements), in the order of the windows of strips."""
    channels, pixels = x.shape[1] // groups, math.prod(x.shape[2:])
    shape = block.products, groups, channels, block.joined * pixels
    return in_rows(x, block).reshape(shape).astype(dtype, copy=False)


def kernels_of(weight: Array, groups: int, dtype: np.dtype[Any]) -> Array:
    """Return kernels as a matrix for each position along the first dimension and each group.

    Their shape is (positions, groups, output channels, input channels * positions in a row).
    """
    made, channels, first, *rest = weight.shape
    matrix = weight.reshape(groups, made // groups, channels, first, math.prod(rest))
    matrix = matrix.transpose(3, 0, 1, 2, 4)
    return matrix.reshape(first, groups, made // groups, channels * math.prod(rest)).astype(dtype, copy=False)


def pointwise_kernels(weight: Array, groups: int, dtype: np.dtype[Any]) -> Array:
    """Return kernels of one position as one matrix for each group, (groups, output channels, input channels)."""
    return kernels_of(weight.reshape(*weight.shape[:2], 1), groups, dtype)[0]


def turned_kernels(weight: Array, groups: int) -> Array:
    """Return the kernels of the transposed convolution: turned around, with input and output channels exchanged."""
    made, each, *kernel = weight.shape
    back = (slice(None, None, -1),) * len(kernel)
    turned = weight.reshape(groups, made // groups, each, *kernel).swapaxes(1, 2)[(..., *back)]
    return turned.reshape(groups * each, made // groups, *kernel)


def with_rows(stride: Ints, before: Ints, dilation: Ints, groups: int) -> dict[str, Any]:
    """Return the settings of a convolution with one more dimension, the first, of size 1."""
    return {"stride": (1, *stride), "before": (0, *before), "dilation": (1, *dilation), "groups": groups}
