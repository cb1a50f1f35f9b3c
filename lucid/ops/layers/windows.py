"""Sliding windows: which elements of the input meet which places of a window, for convolutions and pooling.

Nothing is padded in memory: places of a window that fall into the padding are left out.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.errors import ShapeError
from lucid.ops.base.scalars import as_int, is_single

if TYPE_CHECKING:
    from collections.abc import Iterator


class Axis(NamedTuple):
    """The windows along one dimension.

    Attributes
    ----------
    size, out : int
        Elements of the input, and windows.
    kernel, stride, before, dilation : int
        Places of a window, the distance between windows, padding before the first element, the distance between places.
    """

    size: int
    out: int
    kernel: int
    stride: int
    before: int
    dilation: int


class Tap(NamedTuple):
    """One place of the window, over all windows in which it falls on an element.

    Attributes
    ----------
    place : tuple of int
        The place, an index for each dimension.
    windows, elements : tuple of slice
        The windows and, in the same order, the elements that they meet there.
    """

    place: tuple[int, ...]
    windows: tuple[slice, ...]
    elements: tuple[slice, ...]


def axes_of(size: Any, out: Any, kernel: Any, stride: Any, before: Any, dilation: Any) -> tuple[Axis, ...]:
    """Return the windows along each dimension, from one tuple for each property."""
    return tuple([Axis(*each) for each in zip(size, out, kernel, stride, before, dilation, strict=True)])


def along(axis: Axis) -> Iterator[tuple[int, slice, slice]]:
    """Yield each place of the window along one dimension with its windows and elements, where there are any."""
    for place in range(axis.kernel):
        offset = place * axis.dilation - axis.before
        first = max(0, -(offset // axis.stride))
        end = min(axis.out, (axis.size - 1 - offset) // axis.stride + 1)
        if first < end:
            begin = first * axis.stride + offset
            last = (end - 1) * axis.stride + offset
            yield place, slice(first, end), slice(begin, last + 1, axis.stride)


def taps(axes: tuple[Axis, ...]) -> Iterator[Tap]:
    """Yield each place of the window, the last dimension fastest."""
    for combination in product(*[tuple(along(axis)) for axis in axes]):
        yield Tap(
            tuple([place for place, _, _ in combination]),
            tuple([windows for _, windows, _ in combination]),
            tuple([elements for _, _, elements in combination]),
        )


def window_count(axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """Return how many windows there are along each dimension."""
    return tuple([axis.out for axis in axes])


def places(axes: tuple[Axis, ...]) -> int:
    """Return how many places a window has."""
    return math.prod(axis.kernel for axis in axes)


def elements_in(axis: Axis, *, padded: bool) -> tuple[int, ...]:
    """Return how many elements each window holds along a dimension, with those of the padding or without."""
    begins = [window * axis.stride - axis.before for window in range(axis.out)]
    if padded:
        return tuple([min(begin + axis.kernel, axis.size + axis.before) - begin for begin in begins])
    return tuple([min(begin + axis.kernel, axis.size) - max(begin, 0) for begin in begins])


def sizes_for(name: str, argument: str, value: Any, count: int, *, least: int) -> tuple[int, ...]:
    """Return one integer for each dimension.

    Parameters
    ----------
    name, argument : str
        The op and its argument, for the message.
    value : int or sequence of int
        One for all dimensions, or one for each.
    count : int
        How many dimensions there are.
    least : int
        The smallest allowed value.

    Raises
    ------
    ShapeError
        If there are too many or too few, or one is too small.
    ArgumentError
        If one is no integer.
    """
    entries: Any = (value,) if is_single(value) else value
    given = [as_int(entry, argument) for entry in entries]
    if len(given) == 1:
        given *= count
    if len(given) != count or min(given) < least:
        raise ShapeError(
            f"{name}: expected {argument} to be an int or a tuple of {count}, each at least {least}, got {value!r}"
        )
    return tuple(given)
