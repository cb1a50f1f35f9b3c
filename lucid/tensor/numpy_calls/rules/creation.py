"""NumPy's functions that make arrays, of tensors or like them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.base.dtype import int64
from lucid.errors import SettingError, ShapeError
from lucid.ops.creation import filling
from lucid.ops.elementwise import arithmetic, division, exponential, power, rounding
from lucid.ops.index.indexing import getitem
from lucid.ops.shape import axes, broadcasting, joining, reshape
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import (
    dtype_named,
    is_tensor,
    operand,
    placed,
    same_kind,
    sizes_of,
    strong_operands,
    tensor_of,
    tensors_in,
    the_axis,
    to_one_dtype,
    zeros_for,
)
from lucid.tensor.numpy_calls.rules.places import plain
from lucid.tensor.numpy_calls.rules.reductions import in_dtype, in_fractions
from lucid.tensor.numpy_calls.rules.shapes import in_layout
from lucid.tensor.numpy_calls.ufuncs import sign

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.dtype import dtype as dtype_
    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Operand, Sizes


@rule("array", "+object dtype copy order ndmin")
def array(object: object, dtype: object = None, copy: object = True, order: Any = "K", ndmin: int = 0) -> Any:
    """Return ``numpy.array``: of nested lists of tensors and numbers too."""
    np.array(0, order=order)  # refuses what NumPy refuses
    order = (order or "K").upper()
    result = in_dtype(operand(object, next(tensors_in((object,)), None), strong=True), dtype)
    flags = result.array.flags
    is_other = (order == "F" and not flags.f_contiguous) or (order == "C" and not flags.c_contiguous)
    if is_other or (copy and result is object):
        result = in_layout(result, order)
    if copy is False and result is not object:
        raise SettingError(
            "numpy.array: a copy is needed for another dtype or order, or of a list: expected copy=None, got False"
        )
    if result.array.ndim >= ndmin:
        return result
    return reshape.reshape(result, (1,) * (ndmin - result.array.ndim) + tuple(result.array.shape))


@rule("asarray asanyarray", "+a dtype order copy")
def as_array(a: object, dtype: object = None, order: object = None, copy: object = None) -> Any:
    """Return ``numpy.asarray``."""
    return array(a, dtype, copy, order)


@rule("asarray_chkfinite", "?a dtype order")
def as_finite_array(a: Tensor, dtype: object = None, order: object = None) -> Any:
    """Return ``numpy.asarray_chkfinite``."""
    np.asarray_chkfinite(plain(a))
    return array(a, dtype, None, order)


@rule("require", "?a dtype requirements")
def required(a: Tensor, dtype: object = None, requirements: Any = None) -> Any:
    """Return ``numpy.require``: recorded arrays are aligned, and may be written to."""
    np.require(0, None, requirements)  # refuses what NumPy refuses
    wanted = {str(each).upper()[0] for each in requirements or ()}
    order = "F" if "F" in wanted else "C" if "C" in wanted else "K"
    return array(a, dtype, ("O" in wanted and not a.array.flags.owndata) or None, order)


@rule("ascontiguousarray", "?a dtype")
def in_order(a: Tensor, dtype: object = None) -> Any:
    """Return ``numpy.ascontiguousarray``: at least one dimension."""
    return array(a, dtype, None, "C", ndmin=1)


@rule("asfortranarray", "?a dtype")
def in_reverse_order(a: Tensor, dtype: object = None) -> Any:
    """Return ``numpy.asfortranarray``: at least one dimension."""
    return array(a, dtype, None, "F", ndmin=1)


@rule("astype", "*x dtype copy")
def astype(x: Tensor, dtype: object, copy: bool = True) -> Any:
    """Return ``numpy.astype``."""
    return array(x, dtype, copy or None)


def _enter_like(name: str, function: Callable[..., Any]) -> None:
    def like(a: Tensor, dtype: object = None, shape: Sizes | None = None) -> Any:
        a = a.detach()
        return function(
            a if shape is None else broadcasting.broadcast_to(zeros_for(a, ()), sizes_of(shape)),
            dtype=None if dtype is None else dtype_named(dtype),
        )

    rule(name, "*prototype:a dtype shape" if name == "empty_like" else "*a dtype shape")(like)


_enter_like("zeros_like", filling.zeros_like)
_enter_like("ones_like", filling.ones_like)
_enter_like("empty_like", filling.empty_like)


@rule("full_like", "?a ?fill_value dtype shape")
def full_like(a: Tensor, fill_value: Operand, dtype: object = None, shape: Sizes | None = None) -> Any:
    """Return ``numpy.full_like``: the gradient of `fill_value` is the sum over all elements."""
    a, value = strong_operands((a, fill_value))
    return full(a.array.shape if shape is None else shape, value, a.array.dtype if dtype is None else dtype)


@rule("full", "shape ?fill_value dtype")
def full(shape: Sizes, fill_value: Tensor, dtype: object = None) -> Any:
    """Return ``numpy.full``."""
    sizes = sizes_of(shape)
    value = in_dtype(fill_value, dtype)
    # as NumPy writes it, without sizes of 1 in front that the result has not
    more = value.array.ndim - len(sizes)
    if more > 0 and value.array.shape[:more] == (1,) * more:
        value = reshape.reshape(value, tuple(value.array.shape[more:]))
    return reshape.clone(broadcasting.broadcast_to(value, sizes))


@rule("linspace", "*start *stop num endpoint retstep dtype axis")
def linspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: object = None,
    axis: int = 0,
) -> Any:
    """Return ``numpy.linspace``."""
    if operator.index(num) < 0:
        raise SettingError(f"numpy.linspace: number of samples, {num}, must be non-negative")
    first, last = ends_of(start, stop)
    span = arithmetic.sub(last, first)
    parts = num - 1 if endpoint else num
    step = division.div(span, parts) if parts > 0 else np.nan
    counts = np.arange(num, dtype=span.array.dtype).reshape(-1, *(1,) * span.array.ndim)
    rises = arithmetic.mul(placed(counts, span), step if parts > 0 else span)
    points = with_ends(arithmetic.add(rises, first), None, last if endpoint and num > 1 else None)
    if dtype is not None and dtype_named(dtype).category == int64.category:
        points = rounding.floor(points)
    points = axes.movedim(in_dtype(points, dtype), 0, the_axis(axis))
    return (points, step) if retstep else points


def ends_of(start: Operand, stop: Operand) -> tuple[Any, Any]:
    """Return both ends of a range, in floats and in one shape."""
    like = in_fractions(next(tensors_in((start, stop))))
    first, last = broadcasting.broadcast_tensors(*[in_fractions(tensor_of(each, like)) for each in (start, stop)])
    return first, last


def with_ends(points: Tensor, first: Tensor | None, last: Tensor | None) -> Any:
    """Return points with their ends replaced by `first` and `last`, as sums and powers need not meet them."""
    ends = [None if each is None else reshape.unsqueeze(each, 0) for each in (first, last)]
    middle = getitem(points, slice(None if first is None else 1, None if last is None else -1))
    return joining.cat([each for each in (ends[0], middle, ends[1]) if each is not None])


def logspace(
    start: Operand,
    stop: Operand,
    common: Callable[[list[Any]], dtype_],
    num: int = 50,
    endpoint: bool = True,
    base: Operand = 10.0,
    dtype: object = None,
    axis: int = 0,
) -> Any:
    """Return ``numpy.logspace``; several bases have an axis in front, as the exponents have."""
    like = next(tensors_in((start, stop, base)))
    # numbers alone, or beside several bases, are arrays to NumPy
    several = is_tensor(base) or np.ndim(cast("Any", base)) > 0
    strong = several or not (is_tensor(start) or is_tensor(stop))
    ends: list[Any] = [operand(each, like, strong=strong) for each in (start, stop)]
    to_one_dtype([(ends, 0), (ends, 1)], common)
    ends = [in_fractions(tensor_of(each, next(tensors_in(ends)))) for each in ends]
    if several:
        *ends, bases = broadcasting.broadcast_tensors(*ends, operand(base, like, strong=True))
        base = reshape.unsqueeze(bases, 0)
    factors = [base, linspace(*ends, num, endpoint)]
    to_one_dtype([(factors, 0), (factors, 1)], common)
    return axes.movedim(in_dtype(power.pow(*factors), dtype), 0, the_axis(axis))


enter("logspace", "?start ?stop num endpoint ?base dtype axis", logspace, finds_common=True)


@rule("geomspace", "*start *stop num endpoint dtype axis")
def geomspace(
    start: Operand, stop: Operand, num: int = 50, endpoint: bool = True, dtype: object = None, axis: int = 0
) -> Any:
    """Return ``numpy.geomspace``."""
    first, last = ends_of(start, stop)
    if not (plain(first).all() and plain(last).all()):
        raise SettingError("numpy.geomspace: expected ends other than zero, got 0, which no factor leads to")
    if dtype is not None and dtype_named(dtype).is_complex:
        first, last = in_dtype(first, dtype), in_dtype(last, dtype)
    turn = sign(first)
    first, last = (division.div(each, turn) for each in (first, last))
    points = power.pow(10.0, linspace(exponential.log10(first), exponential.log10(last), num, endpoint))
    if num > 0:
        points = with_ends(points, first, last if endpoint and num > 1 else None)
    return axes.movedim(in_dtype(arithmetic.mul(points, turn), dtype), 0, the_axis(axis))


@rule("meshgrid", "+xi copy sparse indexing")
def meshgrid(xi: tuple[Any, ...], copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return ``numpy.meshgrid``."""
    if indexing not in {"xy", "ij"}:
        raise SettingError(f"numpy.meshgrid: Valid values for `indexing` are 'xy' and 'ij', got {indexing!r}")
    lines = [reshape.ravel(each) for each in strong_operands(xi)]
    order = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[:2] = [1, 0]
    open_grid = [
        reshape.reshape(line, [-1 if k == place else 1 for k in range(len(lines))])
        for line, place in zip(lines, order, strict=True)
    ]
    grid = open_grid if sparse else broadcasting.broadcast_tensors(*open_grid)
    return tuple([reshape.clone(each) if copy else each for each in grid])


@rule("apply_along_axis", "func1d axis *arr +args +kwargs")
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Tensor, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Return ``numpy.apply_along_axis``."""
    lines = axes.movedim(arr, axis, -1)
    shape = tuple(lines.array.shape[:-1])
    if 0 in shape:
        raise ShapeError(
            "numpy.apply_along_axis: Cannot apply_along_axis when any iteration dimensions are 0: expected at least "
            f"one line along axis {axis}, got an array of shape {arr.array.shape}"
        )
    results = [
        operand(func1d(same_kind(getitem(lines, place), arr), *args, **(kwargs or {})), arr, strong=True)
        for place in np.ndindex(shape)
    ]
    made = results[0].array.shape
    whole = reshape.reshape(joining.stack(results), (*shape, *made))
    k = axis % arr.array.ndim
    if not made:
        return whole
    return axes.movedim(whole, list(range(len(shape), len(shape) + len(made))), list(range(k, k + len(made))))
