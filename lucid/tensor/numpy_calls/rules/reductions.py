"""NumPy's reductions, and its cumulative functions: over an axis, several, or all elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from lucid.base.dtype import float64
from lucid.errors import ShapeError
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise import arithmetic, comparison, nonfinite, selection
from lucid.ops.index.gather import take_along_dim
from lucid.ops.reduction import cumulative, extremes, running, sums
from lucid.ops.shape import axes, broadcasting, diagonal, joining, reshape
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import (
    NO_VALUE,
    NumpyCallError,
    axis_in,
    dtype_named,
    is_tensor,
    placed,
    tensor_of,
    untyped,
    written_as,
)
from lucid.tensor.numpy_calls.ufuncs import UFUNCS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Axis

Initial: TypeAlias = "Tensor | complex | None"
"""What a reduction begins with; None is its first element."""


# ---- axes ----


def dims_of(a: Tensor, axis: Axis) -> tuple[int, ...]:
    """Return the dimensions that an axis, several in a tuple, or None for all, are; without any a 0 or -1 is none."""
    ndim = a.array.ndim
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, tuple):
        return tuple([axis_in(k, ndim) for k in axis])
    return () if is_of_scalar(a, axis) else (axis_in(axis, ndim),)


def is_of_scalar(a: Tensor, axis: Axis) -> bool:
    """Return whether an axis is the one that NumPy's reductions find in an array of no dimension."""
    return not a.array.ndim and not isinstance(axis, tuple) and axis_in(cast("Any", axis), 1) == 0


def axes_in(a: Tensor, axis: Axis | Sequence[int]) -> Any:
    """Return an axis, or a sequence of any kind, as a tuple of axes that are there; None stays.

    NumPy's functions that are written in Python take axes in this way, and not as its reductions do.
    """
    if axis is None:
        return None
    several: Any = axis if np.ndim(axis) else (axis,)
    return tuple([axis_in(k, a.array.ndim) for k in several])


def checked(a: Tensor, axis: Axis) -> Axis:
    """Return an axis, or several, as given; refuse others than there are: no dimension has none, as for means."""
    dims_of(a, axis)
    axes_in(a, axis)
    return axis


def over(a: Tensor, axis: Axis, keepdims: bool) -> tuple[Any, tuple[int, ...], bool]:
    """Return a reduction's operands: tensor, dimensions, whether they stay; without axes, one of single elements."""
    dims = dims_of(a, axis)
    return (a, dims, bool(keepdims)) if dims else (reshape.unsqueeze(a, -1), (a.array.ndim,), False)


def over_axes(reduce: Callable[[Any, int], Any], a: Tensor, axis: Axis, keepdims: bool) -> Any:
    """Return a reduction along one dimension, ``reduce(x, dim)``, over any number of axes."""
    x, dims, keep = over(a, axis, keepdims)
    if len(dims) == 1:
        result = reduce(x, dims[0])
        return reshape.unsqueeze(result, dims[0]) if keep else result
    result = reduce(in_line(x, dims), -1)
    if not keep:
        return result
    return reshape.reshape(result, [1 if k in dims else size for k, size in enumerate(a.array.shape)])


def in_line(a: Tensor, dims: tuple[int, ...]) -> Any:
    """Return a tensor with all of these dimensions as its last one, in order."""
    shape = a.array.shape
    stay = [k for k in range(len(shape)) if k not in dims]
    length = math.prod([shape[k] for k in dims])
    order = *stay, *dims
    ordered = a if order == tuple(range(len(shape))) else axes.permute(a, *order)
    return reshape.reshape(ordered, (*[shape[k] for k in stay], length))


def with_initial(a: Tensor, result: Tensor, initial: Initial, op: Callable[[Any, Any], Any]) -> Any:
    """Return the result of a reduction of `a` that begins with `initial`, if one is given; it takes the dtype.

    None needs a first element, as in NumPy.
    """
    if initial is NO_VALUE or initial is None:
        if initial is None and result.array.size and not a.array.size:
            raise ShapeError("a reduction of no elements has no initial value: expected a number as initial, got None")
        return result
    if is_tensor(initial):
        initial = in_dtype(initial, result.array.dtype)
    else:
        begin = np.zeros((), result.array.dtype)
        begin[()] = initial  # of integers the whole part, as NumPy has it; what is none is refused
        initial = begin.item()
    return op(result, initial)


def in_dtype(a: Tensor, dtype: object) -> Any:
    """Return `a` in another dtype, if one is named; for results too, as sums are int64."""
    return a if dtype is None else written_as(a, dtype_named(dtype))


def in_fractions(a: Tensor) -> Any:
    """Return integers as float64, NumPy's dtype for functions with fractions; anything else as it is."""
    return cast_to(a, float64) if a.array.dtype.kind in "biu" else a


# ---- sums ----


@rule("sum", "*a axis dtype keepdims +initial")
def total(
    a: Tensor, axis: Axis = None, dtype: object = None, keepdims: bool = False, initial: Initial = NO_VALUE
) -> Any:
    """Return ``numpy.sum``."""
    result = in_dtype(sums.sum(*over(in_dtype(a, dtype), axis, keepdims)), dtype)
    return with_initial(a, result, initial, arithmetic.add)


@rule("prod", "*a axis dtype keepdims +initial")
def product(
    a: Tensor, axis: Axis = None, dtype: object = None, keepdims: bool = False, initial: Initial = NO_VALUE
) -> Any:
    """Return ``numpy.prod``."""
    result = in_dtype(over_axes(cumulative.prod, in_dtype(a, dtype), axis, keepdims), dtype)
    return with_initial(a, result, initial, arithmetic.mul)


def without_nan(a: Tensor, instead: float) -> Any:
    """Return `a` with a number in the place of each NaN."""
    return selection.where(nonfinite.isnan(a), tensor_of(instead, a), a)


def enter_without_nan(name: str, takes: str, reduce: Callable[..., Any], instead: float) -> None:
    """Enter a reduction with a number in the place of each NaN."""

    def reduced(a: Tensor, **settings: object) -> Any:
        return reduce(without_nan(a, instead), **settings)

    enter(name, takes, reduced)


enter_without_nan("nansum", "*a axis dtype keepdims +initial", total, 0)
enter_without_nan("nanprod", "*a axis dtype keepdims +initial", product, 1)


@rule("trace", "*a offset axis1 axis2 dtype")
def trace(a: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: object = None) -> Any:
    """Return ``numpy.trace``."""
    return in_dtype(sums.sum(diagonal.diagonal(in_dtype(a, dtype), offset, axis1, axis2), -1), dtype)


# ---- extremes ----


def from_initial(a: Tensor, axis: Axis, keepdims: bool, initial: Initial, reduce: Callable[[], Any], name: str) -> Any:
    """Return the ufunc of a name of `initial` and the result of `reduce`; of no elements `initial`."""
    if initial is None:
        return reduce()
    x, dims, keep = over(a, axis, keepdims)
    if not math.prod([x.array.shape[k] for k in dims]):
        return with_initial(a, sums.sum(x, dims, keep), initial, arithmetic.add)
    return with_initial(a, reduce(), initial, UFUNCS[name])


def enter_extreme(names: str, op: Callable[..., Any], place: Callable[..., Any], ufunc: str) -> Callable[..., Any]:
    """Enter extremes, and return their function; of complex numbers by the real part and then the imaginary one."""

    def along_one(x: Tensor, dim: int) -> Any:
        index = placed(np.expand_dims(place(x.numpy(force=True), dim), dim), x)
        return reshape.squeeze(take_along_dim(x, index, dim), dim)

    def extreme(a: Tensor, axis: Axis = None, keepdims: bool = False, initial: Initial = None) -> Any:
        def reduced() -> Any:
            if a.array.dtype.kind != "c":
                return op(*over(a, axis, keepdims))
            return over_axes(along_one, a, axis, keepdims)

        return from_initial(a, axis, keepdims, initial, reduced, ufunc)

    return rule(names, "*a axis keepdims +initial")(extreme)


largest = enter_extreme("max amax", extremes.amax, np.argmax, "maximum")
smallest = enter_extreme("min amin", extremes.amin, np.argmin, "minimum")


def of_numbers(a: Tensor, axis: Axis, keepdims: bool, last: float, reduce: Callable[..., Any]) -> Any:
    """Return a reduction of all elements but NaN; NaN if no others are there."""
    result = reduce(without_nan(a, last), axis, keepdims)
    nothing = sums.all(*over(nonfinite.isnan(a), axis, keepdims))
    # of complex numbers one of them, as only one of their parts may be NaN
    nan = reduce(a, axis, keepdims) if a.array.dtype.kind == "c" else tensor_of(np.nan, a)
    return selection.where(nothing, nan, result)


def enter_of_numbers(name: str, last: float, reduce: Callable[..., Any], ufunc: str) -> None:
    """Enter an extreme of all elements but NaN, `last` in their place."""

    def extreme_number(a: Tensor, axis: Axis = None, keepdims: bool = False, initial: Initial = None) -> Any:
        return from_initial(a, axis, keepdims, initial, lambda: of_numbers(a, axis, keepdims, last, reduce), ufunc)

    enter(name, "*a axis keepdims +initial", extreme_number)


enter_of_numbers("nanmax", -np.inf, largest, "fmax")
enter_of_numbers("nanmin", np.inf, smallest, "fmin")


@rule("ptp", "*a axis keepdims")
def span(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``numpy.ptp``: the largest less the smallest."""
    return arithmetic.sub(largest(a, axis, keepdims), smallest(a, axis, keepdims))


@rule("argmax", "*a axis keepdims")
def index_of_largest(a: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return ``numpy.argmax``."""
    return extremes.argmax(a, axis, bool(keepdims))


@rule("argmin", "*a axis keepdims")
def index_of_smallest(a: Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return ``numpy.argmin``."""
    return extremes.argmin(a, axis, bool(keepdims))


# ---- truth ----


def truth_of(a: Tensor) -> Any:
    """Return whether each element is not 0, as bools: of uint8, `lucid.all` gives uint8, as in PyTorch."""
    return a if a.array.dtype.kind == "b" else comparison.ne(a, 0)


@rule("all", "*a axis keepdims")
def all_true(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``numpy.all``."""
    return sums.all(*over(truth_of(a), axis, keepdims))


@rule("any", "*a axis keepdims")
def any_true(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``numpy.any``."""
    return sums.any(*over(truth_of(a), axis, keepdims))


@rule("count_nonzero", "*a axis keepdims")
def count_of_nonzero(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``numpy.count_nonzero``."""
    return sums.sum(*over(comparison.ne(a, 0), axis, keepdims))


# ---- running ----


def along(a: Tensor, axis: int | None) -> tuple[Any, int]:
    """Return a tensor and a dimension of it: without an axis, of all elements in a row."""
    return (reshape.ravel(a), 0) if axis is None else (a, axis_in(axis, a.array.ndim))


def running_along(a: Tensor, axis: int | None) -> tuple[Any, int]:
    """Return the result of `along`; a single number of no dimension is a row."""
    return along(a, None if axis is not None and is_of_scalar(a, axis) else axis)


def one_axis(name: str, a: Tensor, axis: Axis) -> Any:
    """Return the one axis of an accumulation, also in a tuple of one; None is that of a vector."""
    several = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
    if len(several) == 1 or (axis is None and a.array.ndim < 2):
        return several[0] if several else 0
    raise ShapeError(f"numpy.{name}: expected one axis for {a.array.ndim} dimensions, got {axis}")


@rule("cumsum", "*a axis dtype")
def running_sum(a: Tensor, axis: int | None = None, dtype: object = None) -> Any:
    """Return ``numpy.cumsum``."""
    return in_dtype(cumulative.cumsum(*running_along(in_dtype(a, dtype), axis)), dtype)


@rule("cumprod", "*a axis dtype")
def running_product(a: Tensor, axis: int | None = None, dtype: object = None) -> Any:
    """Return ``numpy.cumprod``."""
    return in_dtype(cumulative.cumprod(*running_along(in_dtype(a, dtype), axis)), dtype)


enter_without_nan("nancumsum", "*a axis dtype", running_sum, 0)
enter_without_nan("nancumprod", "*a axis dtype", running_product, 1)


def enter_so_far(name: str, running: Callable[..., Any], first: int) -> Callable[..., Any]:
    """Enter running results along one axis, behind `first` if that is asked for, and return their function."""

    def so_far(x: Tensor, axis: int | None = None, dtype: object = None, include_initial: bool = False) -> Any:
        x = in_dtype(x, dtype)
        line, k = running_along(x, one_axis(name, x, axis))
        result = running(line, k)
        if include_initial:
            sizes = [1 if j == k else size for j, size in enumerate(line.array.shape)]
            result = joining.cat([broadcasting.broadcast_to(tensor_of(first, result), sizes), result], k)
        return in_dtype(result, dtype)

    return rule(name, "*x axis dtype include_initial")(so_far)


sum_so_far = enter_so_far("cumulative_sum", running_sum, 0)
product_so_far = enter_so_far("cumulative_prod", running_product, 1)


def running_extreme(a: Tensor, axis: int, run: Callable[..., Any], ufunc: np.ufunc) -> Any:
    """Return running extremes; of complex numbers in NumPy's order, each from its first place."""
    if a.array.dtype.kind != "c":
        return run(a, axis)[0]
    accumulate: Any = ufunc.accumulate
    reached: Any = np.moveaxis(accumulate(a.numpy(force=True), axis), axis, -1)
    before, now = reached[..., :-1], reached[..., 1:]
    is_new = (now != before) & ~(np.isnan(now) & np.isnan(before))
    index = np.zeros(reached.shape, np.int64)
    index[..., 1:] = untyped.maximum.accumulate(is_new * np.arange(1, reached.shape[-1]), -1)
    return take_along_dim(a, placed(np.moveaxis(index, -1, axis), a), axis)


def enter_accumulation(name: str, takes: str, run: Callable[..., Any], *functions: object) -> None:
    """Enter the method ``accumulate`` of a ufunc."""
    title = f"{name}.accumulate"

    def accumulated(array: Tensor, axis: Axis = 0, **settings: object) -> Any:
        if not array.array.ndim:
            raise NumpyCallError(f"numpy.{title}: cannot accumulate on a scalar: expected an axis of the array")
        return run(array, axis_in(one_axis(title, array, axis), array.array.ndim), *functions, **settings)

    enter(title, takes, accumulated)


enter_accumulation("add", "*array axis dtype", running_sum)
enter_accumulation("multiply", "*array axis dtype", running_product)
enter_accumulation("maximum", "*array axis", running_extreme, running.cummax, np.maximum)
enter_accumulation("minimum", "*array axis", running_extreme, running.cummin, np.minimum)
