"""Sliding windows: the elements of the input at each position of a window, for convolutions and pooling.

Nothing is padded in memory: positions of a window that fall into the padding are left out.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.base.scalars import as_int, is_single

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lucid.base.arrays import Ints
    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


# Windows of as many positions are remembered by their sizes: small arrays take less time than it takes to go over them.
FEW_TAPS = 64


class Axis(NamedTuple):
    """The windows along one dimension.

    Attributes
    ----------
    size, out : int
        Elements of the input, and windows.
    kernel, stride, before, dilation : int
        Positions of a window, the distance between windows, padding before the first element, and the distance between
        positions.
    """

    size: int
    out: int
    kernel: int
    stride: int
    before: int
    dilation: int


class Tap(NamedTuple):
    """One position in the window, over all windows that have an element there.

    Attributes
    ----------
    position : tuple of int
        An index for each dimension.
    windows, elements : tuple of slice
        The windows and, in the same order, the elements that they have there.
    """

    position: tuple[int, ...]
    windows: tuple[slice, ...]
    elements: tuple[slice, ...]


def axes_of(size: Ints, out: Ints, kernel: Ints, stride: Ints, before: Ints, dilation: Ints) -> tuple[Axis, ...]:
    """Return the windows along each dimension, from one tuple for each property."""
    return tuple([Axis(*each) for each in zip(size, out, kernel, stride, before, dilation, strict=True)])


def taps_along(axis: Axis) -> Iterator[tuple[int, slice, slice]]:
    """Yield each position in the window along one dimension with its windows and elements, if there are any."""
    for position in range(axis.kernel):
        offset = position * axis.dilation - axis.before
        first = max(0, -(offset // axis.stride))
        end = min(axis.out, (axis.size - 1 - offset) // axis.stride + 1)
        if first < end:
            begin = first * axis.stride + offset
            last = (end - 1) * axis.stride + offset
            yield position, slice(first, end), slice(begin, last + 1, axis.stride)


def taps(axes: tuple[Axis, ...]) -> Iterable[Tap]:
    """Return each position in the window, the last dimension fastest."""
    return _few_taps(axes) if window_size(axes) <= FEW_TAPS else _taps(axes)


def _taps(axes: tuple[Axis, ...]) -> Iterator[Tap]:
    if not axes:
        yield Tap((), (), ())
        return
    for combination in product(*[tuple(taps_along(axis)) for axis in axes]):
        yield Tap(*zip(*combination, strict=True))


@lru_cache(maxsize=256)
def _few_taps(axes: tuple[Axis, ...]) -> tuple[Tap, ...]:
    return tuple(_taps(axes))


def window_count(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """Return how many windows there are along each dimension."""
    return tuple([axis.out for axis in axes])


def window_size(axes: tuple[Axis, ...]) -> int:
    """Return how many positions a window has."""
    return math.prod(axis.kernel for axis in axes)


def are_pointwise(axes: tuple[Axis, ...]) -> bool:
    """Return whether each window is the one element at its own index, so that images are their own columns."""
    return all(axis.kernel == axis.stride == 1 and not axis.before and axis.size == axis.out for axis in axes)


def elements_in(axis: Axis, *, padded: bool) -> tuple[int, ...]:
    """Return how many elements each window holds along a dimension, with those of the padding or without."""
    begins = [window * axis.stride - axis.before for window in range(axis.out)]
    if padded:
        return tuple([min(begin + axis.kernel, axis.size + axis.before) - begin for begin in begins])
    return tuple([min(begin + axis.kernel, axis.size) - max(begin, 0) for begin in begins])


def shape_of(name: str, input: Tensor, count: int) -> tuple[int, ...]:
    """Return the shape of an input; refuse one without `count` dimensions behind its channels, with a batch or not."""
    only_tensors(input)
    shape = input.array.shape
    if len(shape) not in {count + 1, count + 2}:
        raise ShapeError(
            f"{name}: expected input of {count + 2} dimensions (batch, channels, ...), or {count + 1} without a batch, "
            f"got shape {shape}"
        )
    return shape


def check_floating(name: str, input: Tensor, kinds: str = "fV") -> None:
    """Refuse an input of other kinds of dtypes, NumPy's letters, than floating-point ones."""
    if input.array.dtype.kind not in kinds:
        raise DtypeError(
            f"{name}: expected a floating-point input, got {input.array.dtype}; convert it with .to(dtype)"
        )


def sizes_for(name: str, argument: str, value: Sizes, count: int, *, least: int) -> tuple[int, ...]:
    """Return a setting of the op `name` as one integer, at least `least`, for each of `count` dimensions.

    Too many, too few, and what is too small raise a ShapeError.
    """
    entries: Any = (value,) if is_single(value) else value
    sizes = [as_int(entry, argument) for entry in entries]
    if len(sizes) == 1:
        sizes *= count
    if len(sizes) != count or min(sizes) < least:
        raise ShapeError(
            f"{name}: expected {argument} to be an int or a tuple of {count}, each at least {least}, got {value!r}"
        )
    return tuple(sizes)
