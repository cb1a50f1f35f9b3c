"""NumPy's functions that join arrays, and those that split them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.shape import joining, reshape, splitting, stacking
from lucid.tensor.numpy_calls.definition import rule
from lucid.tensor.numpy_calls.operands import axis_in, dtype_named, strong_operands, the_axis
from lucid.tensor.numpy_calls.rules.reductions import in_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Sizes


def of_one_kind(parts: Sequence[Tensor], dtype: object, casting: str) -> list[Any]:
    """Return arrays in the dtype of a join, if any; refuse a cast that drops an imaginary part or a fraction."""
    if casting not in {"same_kind", "safe"}:
        raise SettingError(
            f"expected casting 'same_kind' or 'safe' with a Tensor, got {casting!r}: use astype() on the parts"
        )
    wanted = None if dtype is None else dtype_named(dtype)
    for own in [part.array.dtype for part in parts]:
        if wanted is not None and not np.can_cast(own, wanted.numpy, cast("Any", casting)):
            raise DtypeError(f"cannot cast from {own} to {wanted} by the rule {casting!r}: use astype() on the parts")
    return [in_dtype(part, wanted) for part in parts]


@rule("concatenate concat", "**arrays axis dtype casting")
def concatenated(
    arrays: Sequence[Tensor], axis: int | None = 0, dtype: object = None, casting: str = "same_kind"
) -> Any:
    """Return ``numpy.concatenate``: without an axis, of all elements in a row."""
    parts = [reshape.ravel(part) for part in arrays] if axis is None else arrays
    if any(not part.array.ndim for part in parts):
        raise ShapeError("numpy.concatenate: arrays of no dimension cannot be concatenated: stack() joins them")
    check_dimensions(parts)
    k = 0 if axis is None or not parts else axis_in(axis, parts[0].array.ndim)
    return joining.cat(of_one_kind(parts, dtype, casting), k)


def check_dimensions(parts: Sequence[Tensor]) -> None:
    """Refuse arrays of several numbers of dimensions, even if one of them has no elements."""
    counts = sorted({max(part.array.ndim, 1) for part in parts})
    if len(counts) > 1:
        raise ShapeError(f"all the input array dimensions must match, got arrays of {counts} dimensions")


@rule("stack", "**arrays axis dtype casting")
def stacked(arrays: Sequence[Tensor], axis: int = 0, dtype: object = None, casting: str = "same_kind") -> Any:
    """Return ``numpy.stack``."""
    return joining.stack(of_one_kind(arrays, dtype, casting), axis)


def _enter_stack(name: str, function: Callable[[Any], Any], *, typed: bool) -> None:
    def stack(tup: Sequence[Tensor], dtype: object = None, casting: str = "same_kind") -> Any:
        if name == "hstack":
            check_dimensions(tup)
        return function(of_one_kind(tup, dtype, casting))

    rule(name, "**tup dtype casting" if typed else "**tup")(stack)


_enter_stack("hstack", joining.hstack, typed=True)
_enter_stack("vstack row_stack", joining.vstack, typed=True)
_enter_stack("dstack", stacking.dstack, typed=False)
_enter_stack("column_stack", stacking.column_stack, typed=False)


@rule("array_split", "*ary indices_or_sections axis")
def unevenly_split(ary: Tensor, indices_or_sections: Sizes, axis: int = 0) -> Any:
    """Return ``numpy.array_split``: views."""
    parts: Any = indices_or_sections
    return list(splitting.tensor_split(ary, int(parts) if np.ndim(parts) == 0 else np.asarray(parts).tolist(), axis))


@rule("split", "*ary indices_or_sections axis")
def evenly_split(ary: Tensor, indices_or_sections: Sizes, axis: int = 0) -> Any:
    """Return ``numpy.split``: a count of parts must divide the axis."""
    parts: Any = indices_or_sections
    if np.ndim(parts) == 0 and ary.array.shape[axis_in(axis, ary.array.ndim)] % parts:
        raise ShapeError("numpy.split: array split does not result in an equal division: array_split() takes any count")
    return unevenly_split(ary, indices_or_sections, axis)


def _enter_split(name: str, least: int, axis: int) -> None:
    def split(ary: Tensor, indices_or_sections: Sizes) -> Any:
        if ary.array.ndim < least:
            raise ShapeError(f"numpy.{name}: expected at least {least} dimensions, got {ary.array.ndim}")
        return evenly_split(ary, indices_or_sections, min(axis, ary.array.ndim - 1))

    rule(name, "*ary indices_or_sections")(split)


_enter_split("hsplit", 1, 1)
_enter_split("vsplit", 2, 0)
_enter_split("dsplit", 3, 2)


@rule("unstack", "*x axis")
def unstacked(x: Tensor, axis: int = 0) -> Any:
    """Return ``numpy.unstack``: views."""
    return tuple(splitting.unbind(x, the_axis(axis)))


def _enter_at_least(name: str, function: Callable[..., Any]) -> None:
    def at_least(arys: tuple[Any, ...]) -> Any:
        made: Any = tuple(map(function, strong_operands(arys)))
        return made if len(made) > 1 else made[0]

    rule(name, "+arys")(at_least)


_enter_at_least("atleast_1d", stacking.atleast_1d)
_enter_at_least("atleast_2d", stacking.atleast_2d)
_enter_at_least("atleast_3d", stacking.atleast_3d)
