"""Arguments of kernels of sliding windows: planes of images, windows along both dimensions, and launch shapes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.cuda.launch.indexing import steps_of

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_THREADS = 256
_LARGEST_GRID_Y = 65_535
LARGEST_INT = 2**31 - 1

# Windows along a dimension of one element.
_NONE = (1, 1, 1, 1, 0, 1)


class Images(NamedTuple):
    """An array as images.

    Attributes
    ----------
    shape : tuple of int
        Images, channels, rows, columns.
    steps : tuple of int
        The distance between neighbours along each dimension, in elements.
    """

    shape: tuple[int, int, int, int]
    steps: tuple[int, int, int, int]

    @property
    def planes(self) -> int:
        """Images times channels."""
        return self.shape[0] * self.shape[1]


def images(x: Array, count: int) -> Images | None:
    """Return an array with the last `count` dimensions as an image; None if it has more than two before them."""
    lead = x.ndim - count
    if lead > 2 or count > 2:
        return None
    steps = steps_of(x)
    shape: Any = (*[1] * (2 - lead), *x.shape[:lead], *[1] * (2 - count), *x.shape[lead:])
    strides: Any = (*[0] * (2 - lead), *steps[:lead], *[0] * (2 - count), *steps[lead:])
    return Images(shape, strides)


def addressable(axes: Any) -> bool:
    """Return whether kernels, with 32 bits for the pixels of a plane, reach all elements and windows of these axes."""
    for size, out, kernel, stride, before, dilation in axes:
        if max(size, out * stride) + before + kernel * dilation + stride > LARGEST_INT:
            return False
    return max(math.prod(axis[k] for axis in axes) for k in range(3)) <= LARGEST_INT


def packed(axes: Any) -> tuple[int, ...]:
    """Return the members of Windows, from the properties of the windows along one or two dimensions."""
    return (*(_NONE if len(axes) == 1 else axes[0]), *axes[-1])


def launch_shape(planes: int, pixels: int, lanes: int = 1) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return grid and block of a kernel that goes over the pixels of planes; None if there are too many pixels.

    Parameters
    ----------
    planes, pixels : int
        How many there are, at least one.
    lanes : int
        Neighbouring threads that share a pixel.
    """
    across = pixels * lanes
    if across > LARGEST_INT:
        return None
    width = min(_THREADS, max(lanes, 1 << (across - 1).bit_length()))
    height = min(_THREADS // width, 1 << (planes - 1).bit_length())
    return (-(-across // width), min(-(-planes // height), _LARGEST_GRID_Y)), (width, height)
