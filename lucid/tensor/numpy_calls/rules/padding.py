"""``numpy.pad`` in all of its modes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.base.dtype import as_dtype, dtype_of
from lucid.errors import ShapeError
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise import arithmetic, rounding
from lucid.ops.shape import broadcasting, joining, padding
from lucid.ops.shape.reshape import clone, ravel
from lucid.tensor.numpy_calls.definition import rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, any_recorded, operand, tensor_of, tensors_in, written_as
from lucid.tensor.numpy_calls.rules.creation import linspace
from lucid.tensor.numpy_calls.rules.differences import part
from lucid.tensor.numpy_calls.rules.places import selected
from lucid.tensor.numpy_calls.rules.reductions import in_fractions, largest, smallest
from lucid.tensor.numpy_calls.rules.statistics import mean, median

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Operand

MOVING = frozenset(("constant", "edge", "empty", "reflect", "symmetric", "wrap"))
"""The modes whose elements are those of the array, or constants."""


def _mean(a: Tensor, axis: int, keepdims: bool) -> Any:
    return mean(in_fractions(a), axis, keepdims=keepdims)


OF_PARTS: dict[str, Callable[..., Any]] = {"maximum": largest, "mean": _mean, "median": median, "minimum": smallest}
"""The modes that pad with one number for each line, which is made of its part next to the edge."""


@rule("pad", "*array pad_width mode +kwargs")
def pad(array: Tensor, pad_width: Any, mode: Any = "constant", kwargs: dict[str, Any] | None = None) -> Any:
    """Return ``numpy.pad``."""
    settings = dict(kwargs or {})
    if any_recorded((settings.get("stat_length"),)):
        raise NumpyCallError("numpy.pad: stat_length, a number of elements, requires grad: use stat_length.detach()")
    ndim = array.array.ndim
    if not ndim:
        return clone(array)
    if isinstance(pad_width, dict):
        by_axis = cast("dict[int, Any]", pad_width)
        pad_width = [by_axis.get(k, by_axis.get(k - ndim, 0)) for k in range(ndim)]
        pad_width = [np.broadcast_to(each, 2) for each in pad_width]
    pairs = np.asarray(pad_width)
    if pairs.dtype.kind not in "iu":
        raise NumpyCallError(f"numpy.pad: pad_width must be of integral type, got {pairs.dtype}")
    widths = np.broadcast_to(pairs, (ndim, 2)).tolist()
    if callable(mode):
        raise NumpyCallError(
            "numpy.pad: expected the name of a mode with a Tensor, got a function: it changes in place"
        )
    if mode == "constant" and not settings and min(map(min, widths)) >= 0:
        return padding.pad(array, [width for pair in reversed(widths) for width in pair])
    if mode in MOVING and settings.get("reflect_type", "even") == "even":
        return _moved(array, widths, mode, settings)
    # NumPy's own checks of the mode and its settings
    few = [min(size, 1) for size in array.array.shape]
    np.pad(np.zeros(few), widths, mode, **{key: plain_setting(value) for key, value in settings.items()})
    result = array
    for k, (before, after) in enumerate(widths):
        if mode in OF_PARTS:
            result = _of_parts(result, k, before, after, OF_PARTS[mode], pair_of(settings.get("stat_length"), k, array))
        elif mode == "linear_ramp":
            result = _ramps(result, k, before, after, pair_of(settings.get("end_values", 0), k, array))
        else:
            result = _reflected_oddly(result, k, before, after, mode)
    return result


def plain_setting(value: object) -> Any:
    """Return a setting for NumPy's check, with a number in place of a tensor."""
    return 0 if next(tensors_in((value,)), None) is not None else value


def pair_of(value: object, k: int, array: Tensor) -> tuple[Any, Any]:
    """Return the settings of an axis before and behind it, of one that NumPy broadcasts to all."""
    if value is None:
        return None, None
    is_of_tensors = next(tensors_in((value,)), None) is not None
    values: Any = operand(value, array, strong=True) if is_of_tensors else np.asarray(value, object)
    shape: tuple[int, ...] = values.array.shape if is_of_tensors else values.shape
    before, after = np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), (array.array.ndim, 2))[k].tolist()
    line: Any = ravel(values) if is_of_tensors else values.ravel()
    return line[before], line[after]


def _moved(array: Tensor, widths: Sequence[Sequence[int]], mode: str, settings: dict[str, Any]) -> Any:
    # what is not set may as well be 0
    mode = "constant" if mode == "empty" else mode
    arguments = {"array": array, "pad_width": np.array(widths, np.int64).reshape(-1, 2), "mode": mode, **settings}
    if mode == "constant":
        values = tensor_of(settings.get("constant_values", 0), array)
        arguments["constant_values"] = written_as(values, dtype_of(array.array))
    return selected(np.pad, arguments, {"array", "constant_values"})


def _of_parts(x: Tensor, k: int, before: int, after: int, reduce: Callable[..., Any], lengths: tuple[Any, Any]) -> Any:
    size = x.array.shape[k]
    first, last = (size if length is None else min(int(length), size) for length in lengths)

    def repeated(number: Tensor, count: int) -> Any:
        return broadcasting.broadcast_to(number, [count if j == k else s for j, s in enumerate(x.array.shape)])

    def rounded(number: Tensor) -> Any:
        whole = x.array.dtype.kind in "iu" and number.is_floating_point()
        return cast_to(rounding.round(number) if whole else number, as_dtype(x.array.dtype))

    parts = part(x, k, 0, first), part(x, k, size - last)
    ends = [rounded(reduce(each, axis=k, keepdims=True)) for each in parts]
    return joining.cat([repeated(ends[0], before), x, repeated(ends[1], after)], k)


def _ramps(x: Tensor, k: int, before: int, after: int, ends: tuple[Any, Any]) -> Any:
    first, last = part(x, k, 0, 1), part(x, k, -1)

    def ramp(edge: Tensor, end: Operand, count: int) -> Any:
        return linspace(end, edge.squeeze(k), count, endpoint=False, dtype=as_dtype(x.array.dtype), axis=k)

    behind = ramp(last, ends[1], after)
    return joining.cat([ramp(first, ends[0], before), x, behind.flip(k)], k)


def _reflected_oddly(x: Tensor, k: int, before: int, after: int, mode: str) -> Any:
    """Return an axis padded by its values turned about those at its edges, as often as it takes."""
    if (before or after) and not x.array.shape[k]:
        raise ShapeError(f"numpy.pad: mode {mode!r} cannot extend axis {k}, which is empty: use 'constant'")
    while before or after:
        size = x.array.shape[k]
        inner = max(size - 1, 1) if mode == "reflect" else size
        left, right = min(before, inner), min(after, inner)
        skip = 1 if mode == "reflect" and size > 1 else 0
        first, last = part(x, k, 0, 1), part(x, k, -1)
        start = arithmetic.sub(arithmetic.mul(first, 2), part(x, k, skip, skip + left).flip(k))
        end = arithmetic.sub(arithmetic.mul(last, 2), part(x, k, size - skip - right, size - skip).flip(k))
        x = joining.cat([start, x, end], k)
        before, after = before - left, after - right
    return x
