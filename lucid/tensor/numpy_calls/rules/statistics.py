"""NumPy's averages, variances, quantiles and histograms; variances divide by the count, less `ddof`, 0 by default."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.dtype import as_dtype, dtype_of, float64, int64
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.elementwise import arithmetic, comparison, division, nonfinite, power, selection
from lucid.ops.elementwise.complex import conj, real
from lucid.ops.index.index_select import index_add
from lucid.ops.index.indexing import getitem
from lucid.ops.reduction import covariance, statistics, sums
from lucid.ops.shape import axes, joining, reshape
from lucid.tensor.numpy_calls.definition import BESIDE, enter, rule
from lucid.tensor.numpy_calls.operands import (
    WEAK,
    NumpyCallError,
    dtype_named,
    in_native_order,
    is_tensor,
    operand,
    placed,
    tensor_of,
    untyped,
    zeros_for,
)
from lucid.tensor.numpy_calls.rules.places import plain
from lucid.tensor.numpy_calls.rules.reductions import axes_in, checked, in_dtype, in_fractions, in_line, over, total
from lucid.tensor.numpy_calls.rules.selection import sorted_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Axis, Indices

# ---- means and variances ----


@rule("mean", "*a axis dtype keepdims")
def mean(a: Tensor, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Any:
    """Return ``numpy.mean``."""
    return sums.mean(*over(in_dtype(a, dtype), checked(a, axis), keepdims))


@rule("var", "*a axis dtype ddof keepdims *mean correction")
def variance(
    a: Tensor,
    axis: Axis = None,
    dtype: object = None,
    ddof: int = 0,
    keepdims: bool = False,
    mean: Tensor | None = None,
    correction: int | None = None,
    op: Callable[..., Any] = statistics.var,
) -> Any:
    """Return ``numpy.var``; of complex numbers that of their distances from the mean.

    As in NumPy, sums are of `dtype`, and numbers are not cast before the mean is subtracted. `op` is lucid's, of real
    numbers in their dtype, from their own mean.
    """
    x, dims, keep = over(a, checked(a, axis), keepdims)
    less = correction_of(ddof, correction)
    if mean is None and x.array.dtype.kind != "c" and (dtype is None or dtype_named(dtype) is dtype_of(x.array)):
        return op(x, dims, correction=less, keepdim=keep)
    away = arithmetic.sub(x, sums.mean(in_dtype(x, dtype), dims, True) if mean is None else mean)
    squares = in_dtype(real(arithmetic.mul(away, conj(away))), dtype)
    result = division.div(sums.sum(squares, dims, keep), max(count_over(x, dims) - less, 0))
    return result if op is statistics.var else _root(result)


def correction_of(ddof: int, correction: int | None) -> int:
    """Return the number taken from the count, by one of its two names."""
    if correction is None:
        return ddof
    if ddof != 0:
        raise SettingError(f"numpy.var: ddof and correction can't be provided simultaneously, got {ddof}, {correction}")
    return correction


deviation = functools.partial(variance, op=statistics.std)
enter("std", "*a axis dtype ddof keepdims *mean correction", deviation)


def _root(x: Tensor) -> Any:
    """Return the root of a variance, with the gradient 0 at 0: all numbers are equal there."""
    none = comparison.eq(x, 0)
    return selection.where(none, tensor_of(0, x), power.sqrt(selection.where(none, tensor_of(1, x), x)))


def count_over(x: Tensor, dims: Iterable[int]) -> int:
    """Return how many elements each result is made of."""
    return math.prod([x.array.shape[k] for k in dims])


@rule("average", "*a axis *weights returned keepdims")
def average(
    a: Tensor, axis: Axis = None, weights: Tensor | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """Return ``numpy.average``."""
    dims: Any = axes_in(a, axis)
    if weights is None:
        result = mean(a, dims, None, keepdims)
        weight: Any = tensor_of(count_over(a, range(a.array.ndim) if dims is None else dims), result)
    else:
        if weights.array.shape != a.array.shape:
            if dims is None:
                raise NumpyCallError("numpy.average: expected an axis, since a and weights have two shapes, got None")
            expected = tuple([a.array.shape[k] for k in dims])
            if weights.array.shape != expected:
                raise ShapeError(
                    "numpy.average: Shape of weights must be consistent with shape of a along specified axis: expected "
                    f"{expected}, got {weights.array.shape}"
                )
            order = sorted(range(len(dims)), key=dims.__getitem__)
            sizes = [size if k in dims else 1 for k, size in enumerate(a.array.shape)]
            weights = reshape.reshape(axes.permute(weights, *order), sizes)
        weight = total(arithmetic.add(weights, zeros_for(a)), dims, None, keepdims)
        if (weight.array == 0).any():
            raise ZeroDivisionError("numpy.average: weights sum to zero, can't be normalized")
        result = division.div(total(arithmetic.mul(a, weights), dims, None, keepdims), weight)
    return (result, arithmetic.add(weight, zeros_for(result))) if returned else result


@rule("nanmean", "*a axis dtype keepdims")
def mean_of_numbers(a: Tensor, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Any:
    """Return ``numpy.nanmean``."""
    x, dims, keep = over(in_dtype(a, dtype), axis, keepdims)
    known = comparison.eq(nonfinite.isnan(x), 0)
    return _sums_over(sums.sum(known, dims, keep), selection.where(known, x, tensor_of(0, x)), dims, keep)


def _sums_over(counts: Tensor, x: Tensor, dims: tuple[int, ...], keep: bool) -> Any:
    """Return sums divided by counts: of half precision in single, as counts may be beyond its range."""
    wide = cast_to(x, as_dtype(accumulation_dtype(x.array.dtype)))
    shares = division.div(sums.sum(wide, dims, keep), counts)
    return shares if wide is x else cast_to(shares, dtype_of(x.array))


@rule("nanvar", "*a axis dtype ddof keepdims *mean correction")
def variance_of_numbers(
    a: Tensor,
    axis: Axis = None,
    dtype: object = None,
    ddof: int = 0,
    keepdims: bool = False,
    mean: Tensor | None = None,
    correction: int | None = None,
) -> Any:
    """Return ``numpy.nanvar``: NaN if the count of numbers is not above the correction."""
    x, dims, keep = over(a, axis, keepdims)
    known = comparison.eq(nonfinite.isnan(x), 0)
    away = arithmetic.sub(x, mean_of_numbers(x, dims, dtype, True) if mean is None else mean)
    if x.array.dtype.kind in "fc":
        away = cast_to(away, dtype_of(x.array))
    away = selection.where(known, away, tensor_of(0, x))
    squares = in_dtype(real(arithmetic.mul(away, conj(away))), dtype)
    less = correction_of(ddof, correction)
    count = sums.sum(known, dims, keep)
    exact = as_dtype(accumulation_dtype(squares.array.dtype))
    freedom = arithmetic.sub(count if isinstance(less, int) else cast_to(count, exact), less)
    enough = comparison.gt(freedom, 0)
    spread = _sums_over(selection.where(enough, freedom, tensor_of(1, freedom)), squares, dims, keep)
    return selection.where(enough, spread, tensor_of(np.nan, spread))


@rule("nanstd", "*a axis dtype ddof keepdims *mean correction")
def deviation_of_numbers(a: Tensor, **settings: Any) -> Any:
    """Return ``numpy.nanstd``."""
    return _root(variance_of_numbers(a, **settings))


@rule("cov", "*m *y rowvar bias ddof fweights +aweights dtype")
def covariances(
    m: Tensor,
    y: Tensor | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Indices | None = None,
    aweights: Indices | None = None,
    dtype: object = None,
) -> Any:
    """Return ``numpy.cov``."""
    variables = [x for x in (m, y) if x is not None]
    wanted = np.result_type(np.float64, *[x.array.dtype for x in variables]) if dtype is None else dtype
    parts = [in_dtype(x, wanted) for x in variables]
    rows: list[Any] = []
    for k, x in enumerate(parts):
        # NumPy turns `m` of one row, but not `y`
        is_turned = x.array.ndim > 1 and not (rowvar or (k and len(x.array) == 1))
        row = axes.transpose(x, 0, 1) if is_turned else x
        rows.append(row if x.array.ndim > 1 else reshape.reshape(x, 1, -1))
    weights = {
        key: None if value is None else cast_to(operand(value, m, strong=True), weighed)
        for key, value, weighed in (("fweights", fweights, int64), ("aweights", aweights, float64))
    }
    factors: list[Any] = [np.asarray(plain(value)) for value in (fweights, aweights) if value is not None]
    if fweights is not None and not untyped.array_equal(factors[0], untyped.around(factors[0])):
        raise NumpyCallError("numpy.cov: fweights must be integer, as they say how often each observation counts")
    if any((each < 0).any() for each in factors):
        raise SettingError("numpy.cov: fweights and aweights cannot be negative")
    if factors and not np.prod(np.broadcast_arrays(*factors), axis=0).sum():
        raise ZeroDivisionError("numpy.cov: weights sum to zero, can't be normalized")
    if not len(rows[0].array):
        return placed(np.zeros((0, 0)), m)  # of float64 whatever the variables are
    less = (0 if bias else 1) if ddof is None else ddof
    return covariance.cov(joining.cat(rows) if len(rows) > 1 else rows[0], correction=less, **weights)


@rule("corrcoef", "*x *y rowvar dtype")
def correlations(x: Tensor, y: Tensor | None = None, rowvar: bool = True, dtype: object = None) -> Any:
    """Return ``numpy.corrcoef``."""
    c = covariances(x, y, rowvar, dtype=dtype)
    if not c.array.ndim:
        return division.div(c, c)
    root = power.sqrt(real(getitem(c, (np.arange(len(c.array)),) * 2)))
    scaled = division.div(division.div(c, reshape.unsqueeze(root, -1)), root)
    return scaled if scaled.array.dtype.kind == "c" else selection.clamp(scaled, -1, 1)


# ---- quantiles ----


def quantiles(a: Tensor, q: Array | float, axis: Axis, keepdims: bool, method: str | None = None) -> Any:
    """Return quantiles, or of no method a median: of no elements their mean, as NumPy has it.

    Between which two of n sorted numbers one lies, and where, NumPy's own quantile of the numbers from 0 to n - 1 says.
    """
    x, dims, keep = over(in_fractions(a), axes_in(a, axis), keepdims)
    length = count_over(x, dims)
    if not length and method is None:
        return sums.mean(x, dims, keep)
    line = sorted_values(in_line(x, dims))
    if line.array.dtype.kind == "c" and method is not None:
        raise DtypeError(f"numpy.quantile: expected real numbers, got {line.array.dtype}")
    if not length:
        raise IndexError("numpy.quantile: expected at least one element, got none")
    quantile_of: Any = np.quantile
    place: Any = np.asarray(quantile_of(np.arange(length), q, method=method or "linear"))
    low = np.floor(place).astype(np.int64)
    first, second = getitem(line, (..., low)), getitem(line, (..., np.minimum(low + 1, length - 1)))
    share, back = (placed(np.asarray(each, line.array.dtype), line) for each in (place - low, place - low - 1))
    if method is None:
        between = arithmetic.mul(arithmetic.add(first, second), 0.5)
    else:
        rise, is_near = arithmetic.sub(second, first), comparison.lt(share, 0.5)
        # from the nearer of the two, as NumPy goes, of which an infinite one has its own value
        way = arithmetic.mul(rise, selection.where(is_near, share, back))
        between = arithmetic.add(selection.where(is_near, first, second), way)
    # none of what is beside a number counts for it, and nothing of infinity would be NaN
    result = selection.where(comparison.eq(share, 0), first, between)
    # NaN is sorted to the end, and makes the whole of it one
    last = getitem(line, (..., *(None,) * place.ndim, -1)) if place.ndim else getitem(line, (..., -1))
    result = selection.where(nonfinite.isnan(last), last, result)
    stay = result.array.ndim - place.ndim
    result = axes.permute(result, *range(stay, result.array.ndim), *range(stay))
    if keep:
        kept = [1 if k in dims else size for k, size in enumerate(a.array.shape)]
        return reshape.reshape(result, (*place.shape, *kept))
    return result


def dtype_by(name: str) -> Callable[[dict[str, Any]], Any]:
    """Return a function of the arguments of a quantile, for `BESIDE`: NumPy's own result, of `q` and the method."""
    quantile_of: Any = getattr(np, name)

    @functools.cache
    def beside_number(dtype: np.dtype[Any], q: complex, method: str) -> Any:
        return quantile_of(np.zeros(1, dtype), q, method=method)

    def beside(arguments: dict[str, Any]) -> Any:
        dtype, q, method = arguments["a"].array.dtype, plain(arguments["q"]), arguments.get("method", "linear")
        if dtype.kind == "c":
            return 0
        if type(q) in WEAK:
            return beside_number(dtype, type(q)(0), method)
        return np.zeros((), quantile_of(np.zeros(1, dtype), q, method=method).dtype)[()]

    return beside


BESIDE.update({name: dtype_by(name) for name in ("nanpercentile", "nanquantile", "percentile", "quantile")})


@rule("median", "*a axis keepdims")
def median(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``numpy.median``: of an even count the mean of the two in the middle, with half the gradient each."""
    return quantiles(a, 0.5, axis, keepdims)


def _of_numbers(a: Tensor, q: Array | float, axis: Axis, keepdims: bool, method: str | None) -> Any:
    """Return quantiles of all elements but NaN, line after line: each has its own count of them.

    Of no elements NumPy gives their mean, without a dimension for several quantiles.
    """
    axis = axes_in(a, axis)
    x, dims, keep = over(a, axis, keepdims)
    if not a.array.size:
        return mean_of_numbers(a, axis, None, keepdims)
    line = in_line(x, dims)
    known = ~np.isnan(line.numpy(force=True))
    results = [
        _known_quantiles(getitem(line, (*place, known[place])), q, method) for place in np.ndindex(known.shape[:-1])
    ]
    shape = np.shape(q)
    whole = reshape.reshape(joining.stack(results, -1), (*shape, *known.shape[:-1]))
    if keep:
        return reshape.reshape(whole, (*shape, *[1 if k in dims else size for k, size in enumerate(a.array.shape)]))
    return whole


def _known_quantiles(line: Tensor, q: Array | float, method: str | None) -> Any:
    if line.array.size:
        return quantiles(line, q, None, False, method)
    return placed(np.full(np.shape(q), np.nan, line.array.dtype), line)


def enter_quantiles(name: str, find: Callable[..., Any], whole: int) -> None:
    """Enter quantiles in shares of `whole`."""

    def of_shares(a: Tensor, q: object, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> Any:
        return find(a, plain(q) if whole == 1 else np.true_divide(plain(q), whole), axis, keepdims, method)

    enter(name, "*a q axis method keepdims", of_shares)


enter_quantiles("quantile", quantiles, 1)
enter_quantiles("percentile", quantiles, 100)
enter_quantiles("nanquantile", _of_numbers, 1)
enter_quantiles("nanpercentile", _of_numbers, 100)


@rule("nanmedian", "*a axis keepdims")
def median_of_numbers(a: Tensor, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return ``numpy.nanmedian``."""
    return _of_numbers(a, 0.5, axis, keepdims, None)


# ---- counts ----


@rule("bincount", "x *weights minlength")
def weighted_counts(x: Tensor, weights: Tensor | Array | None = None, minlength: int = 0) -> Any:
    """Return ``numpy.bincount``: weights have a gradient, and are not integers."""
    indices = in_native_order(np.asarray(plain(x)))
    indices = indices if indices.size else indices.astype(np.int64)  # an empty list is one of floats
    if not is_tensor(weights):
        return np.bincount(indices, weights, minlength)
    np.bincount(indices[:0], minlength=minlength)  # refuses what NumPy refuses
    values = in_fractions(weights)
    if values.array.dtype.kind == "c":
        raise DtypeError("numpy.bincount: expected real weights, got complex ones: count by their parts")
    return counts_of(indices.astype(np.int64), values, minlength)  # of uint8 there is no index -1


def counts_of(indices: Array, values: Tensor, minlength: int) -> Any:
    """Return for each index the sum of its values."""
    length = max(operator.index(minlength), int(indices.max(initial=-1)) + 1)
    zeros = zeros_for(values, (length,))
    return index_add(zeros, 0, placed(indices, values), values)


@rule("histogram", "+a bins range density *weights")
def histogram(
    a: Tensor, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Tensor | Array | None = None
) -> Any:
    """Return ``numpy.histogram``: the counts have a gradient by the weights, but none by `a`."""
    values = np.asarray(plain(a))
    if not is_tensor(weights) or not weights.requires_grad:
        return np.histogram(values, bins, range, density, plain(weights))
    if values.dtype.kind == "c":
        raise DtypeError("numpy.histogram: expected real numbers beside a Tensor of weights, got complex ones")
    if values.shape != weights.array.shape:
        raise ShapeError(
            f"numpy.histogram: weights should have the same shape as a: {values.shape}, got {weights.array.shape}"
        )
    values = np.ravel(values)
    edges = np.histogram_bin_edges(values, bins, range, np.ravel(plain(weights)))
    inside = (values >= edges[0]) & (values <= edges[-1])
    place = np.minimum(np.searchsorted(edges, values[inside], "right") - 1, len(edges) - 2)
    counts = counts_of(place, in_fractions(getitem(reshape.ravel(weights), inside)), len(edges) - 1)
    if density:
        widths = placed(np.diff(edges).astype(np.float64), counts)
        counts = division.div(division.div(counts, widths), sums.sum(counts))
    return counts, edges
