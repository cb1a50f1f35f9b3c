"""Dimensions and sizes as users write them, brought to one form."""

from __future__ import annotations

import operator
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from lucid.base.memory import check_size
from lucid.errors import IndexOutOfRangeError, ShapeError
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from collections.abc import Sequence

Sizes: TypeAlias = "int | Sequence[int]"
"""One number, or one for each dimension."""

Dims: TypeAlias = "Sizes | None"
"""The dimensions that are reduced; None for all."""


def dim_in(dim: Any, ndim: int) -> int:
    """Return `dim` counted from the left; a 0-dim tensor is treated as having one dimension.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    """
    limit = ndim or 1
    number = dim if type(dim) is int else as_int(dim, "dim")
    if not -limit <= number < limit:
        raise IndexOutOfRangeError(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {number})"
        )
    return number % limit


def dims_in(dims: Any, ndim: int) -> tuple[int, ...]:
    """Return one dimension or several as a tuple, each counted from the left.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    ShapeError
        If one is named twice.
    """
    named: tuple[Any, ...] = tuple(cast("Any", dims)) if isinstance(dims, tuple | list) else (dims,)
    axes = tuple([dim_in(d, ndim) for d in named])
    if len(set(axes)) < len(axes):
        twice = next(dim for k, dim in enumerate(axes) if dim in axes[:k])
        raise ShapeError(f"dim {twice} appears multiple times in the list of dims {list(named)}")
    return axes


def sizes_in(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes that were written as ``f(2, 3)`` or ``f((2, 3))``.

    Raises
    ------
    ArgumentError
        If one is no integer.
    """
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list):
        sizes = tuple(cast("Any", sizes[0]))
    try:
        return tuple(map(operator.index, sizes))
    except TypeError:
        return tuple([as_int(size, "size") for size in sizes])


def along(dim: int, part: Any) -> tuple[Any, ...]:
    """Return the key ``array[key]`` of a `part` of one dimension, with all of the others."""
    return (*(slice(None),) * dim, part, ...)


def tensors_in(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors that were written as ``f(a, b)`` or ``f((a, b))``."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        return tuple(cast("Any", tensors[0]))
    return tensors


def shape_for(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return the shape of `count` elements that `sizes` names, its -1 inferred.

    Raises
    ------
    ShapeError
        If the number of elements does not fit, or -1 stands twice or for anything.
    """
    known, free = 1, -1
    for position, size in enumerate(sizes):
        if size >= 0:
            known *= size
        elif size != -1:
            raise ShapeError(f"invalid shape dimension {size} at index {position} of shape {list(sizes)}")
        elif free >= 0:
            raise ShapeError(f"only one dimension can be inferred, got shape {list(sizes)}")
        else:
            free = position
    if free < 0:
        if known == count:
            if not count:
                check_size("reshape", sizes)
            return sizes
    elif known:
        if count % known == 0:
            return (*sizes[:free], count // known, *sizes[free + 1 :])
    elif not count:
        raise ShapeError(
            f"cannot reshape tensor of 0 elements into shape {list(sizes)}: the unspecified dimension -1 can be any "
            "size; write it out"
        )
    raise ShapeError(f"shape '{list(sizes)}' is invalid for input of size {count}")


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape that `shapes` broadcast to.

    Raises
    ------
    ShapeError
        If they do not.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        # counted from the right
        columns = zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1)
        check_size("broadcast", [max(sizes) for sizes in columns])
        raise ShapeError(f"shapes {', '.join(map(str, shapes))} cannot be broadcast to one shape") from error


def viewable(shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether memory of `shape` and `strides` can be seen as `wanted`, a shape of as many elements.

    Old and new dimensions are matched in groups of equal products; the old ones of a group must lie behind one another.
    """
    if 0 in shape:
        return True
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    new = [size for size in wanted if size != 1]
    i = j = 0
    while i < len(old):
        start, have, want = i, old[i][0], new[j]
        while have != want:
            if have < want:
                i += 1
                have *= old[i][0]
            else:
                j += 1
                want *= new[j]
        if any(old[k][1] != old[k + 1][1] * old[k + 1][0] for k in range(start, i)):
            return False
        i += 1
        j += 1
    return True
