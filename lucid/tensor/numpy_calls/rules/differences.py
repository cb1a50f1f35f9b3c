"""NumPy's differences, integrals and interpolations along an axis, convolutions and phases."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.base.dtype import dtype_of
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise import arithmetic, comparison, division, nonfinite, selection, trigonometry
from lucid.ops.elementwise.complex import angle as angle_of
from lucid.ops.elementwise.complex import conj
from lucid.ops.elementwise.special import i0
from lucid.ops.index.indexing import getitem
from lucid.ops.linalg.products import matmul
from lucid.ops.reduction import differences, sums
from lucid.ops.shape import axes, joining, reshape
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import (
    NumpyCallError,
    axis_in,
    is_sequence,
    is_tensor,
    numpy_dtype,
    operand,
    placed,
    tensor_of,
    tensors_in,
    tensors_of,
    to_one_dtype,
    untyped,
    zeros_for,
)
from lucid.tensor.numpy_calls.rules.places import plain
from lucid.tensor.numpy_calls.rules.reductions import axes_in, in_fractions

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.dtype import dtype
    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Axis, Operand


def part(a: Tensor, axis: int, start: int | None, stop: int | None = None) -> Any:
    """Return a slice along an axis."""
    return getitem(a, (*(slice(None),) * axis, slice(start, stop)))


@rule("diff", "*a n axis *prepend *append")
def diff(a: Tensor, n: int = 1, axis: int = -1, prepend: Operand | None = None, append: Operand | None = None) -> Any:
    """Return ``numpy.diff``."""
    if n == 0:
        return a
    k = axis_in(axis, a.array.ndim)
    sizes = [1 if j == k else size for j, size in enumerate(a.array.shape)]
    ends: list[Any] = []
    for end in (prepend, append):
        tensor = None if end is None else tensor_of(end, a)
        ends.append(tensor if tensor is None or tensor.array.ndim else tensor.expand(sizes))
    return differences.diff(a, n, k, *ends)


@rule("ediff1d", "*ary ?to_end ?to_begin")
def ediff1d(ary: Tensor, to_end: Operand | None = None, to_begin: Operand | None = None) -> Any:
    """Return ``numpy.ediff1d``, in the dtype of `ary`."""
    ends: list[Any] = []
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        tensor = None if end is None else operand(end, ary, strong=True)
        if tensor is not None and not np.can_cast(tensor.array.dtype, ary.array.dtype, "same_kind"):
            raise DtypeError(
                f"numpy.ediff1d: {name} of {tensor.array.dtype} cannot be cast to {ary.array.dtype}: use astype()"
            )
        ends.append(None if tensor is None else reshape.ravel(cast_to(tensor, dtype_of(ary.array))))
    parts = [ends[0], differences.diff(reshape.ravel(ary)), ends[1]]
    return joining.cat([each for each in parts if each is not None])


def trapezoid(
    y: Tensor, common: Callable[[list[Any]], dtype], x: Tensor | None = None, dx: Operand = 1.0, axis: int = -1
) -> Any:
    """Return ``numpy.trapezoid``: differences of `x` are of its own dtype, and widths and samples broadcast."""
    like = next(tensors_in((y, x, dx)))
    y = operand(y, like, strong=True)
    k = axis_in(axis, y.array.ndim)
    widths: Any = dx
    if x is not None:
        places = operand(x, like, strong=True)
        widths = diff(places, axis=axis if places.array.ndim != 1 else 0)
        if places.array.ndim == 1:
            widths = reshape.reshape(widths, [-1 if j == k else 1 for j in range(y.array.ndim)])
    factors = [widths, arithmetic.add(part(y, k, 1), part(y, k, None, -1))]
    to_one_dtype([(factors, j) for j in range(2) if is_tensor(factors[j])], common)
    areas = arithmetic.mul(in_fractions(arithmetic.mul(*factors)), 0.5)
    return sums.sum(areas, axis_in(axis, areas.array.ndim))


enter("trapezoid", "?y ?x ?dx axis", trapezoid, finds_common=True)


@rule("gradient", "*f +varargs axis edge_order")
def gradient(f: Tensor, varargs: tuple[Any, ...] = (), axis: Axis = None, edge_order: int = 1) -> Any:
    """Return ``numpy.gradient``: second-order differences, at the edges of `edge_order`."""
    dims = range(f.array.ndim) if axis is None else axes_in(f, axis)
    if len({*dims}) < len(dims):
        raise SettingError(f"numpy.gradient: expected each axis once, got {axis}")
    spacings = [operand(step, f) if is_sequence(step) or is_tensor(step) else step for step in varargs] or [1.0]
    steps = spacings * len(dims) if len(spacings) == 1 and not shape_of(spacings[0]) else spacings
    if len(steps) != len(dims):
        raise NumpyCallError(f"numpy.gradient: expected a spacing for each of {len(dims)} axes, got {len(steps)}")
    for k, step in zip(dims, steps, strict=True):
        if shape_of(step) not in {(), (f.array.shape[k],)}:
            raise ShapeError(
                "numpy.gradient: when 1d, distances must match the length of the corresponding dimension: expected a "
                f"number or {f.array.shape[k]} places along axis {k}, got shape {shape_of(step)}"
            )
    if edge_order not in {1, 2}:
        raise SettingError(f"numpy.gradient: expected edge_order 1 or 2, got {edge_order}")
    results = [_slope(f, k, step, edge_order) for k, step in zip(dims, steps, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def shape_of(step: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, an array or a number."""
    return np.shape(step.array if is_tensor(step) else step)


def _one_step(step: object) -> Any:
    """Return places without a gradient that lie evenly as their distance; anything else as it is."""
    if not shape_of(step) or (is_tensor(step) and step.requires_grad):
        return step
    places = plain(step)
    widths = np.diff(places.astype(np.float64) if places.dtype.kind in "biu" else places)
    return widths[0].item() if (widths == widths[0]).all() else step


def _slope(f: Tensor, k: int, step: Any, edge_order: int) -> Any:
    """Return the slope along a dimension, for a step, or the places of the samples."""
    size = f.array.shape[k]
    if size < edge_order + 1:
        raise ShapeError(f"numpy.gradient: expected at least {edge_order + 1} elements along axis {k}, got {size}")
    f, step = in_fractions(f), _one_step(step)
    three = [part(f, k, j, j - 2 or None) for j in range(3)]
    beginning, end = [part(x, k, 0, 1) for x in three], [part(x, k, -1) for x in three]
    rises = differences.diff(part(f, k, 0, 2), dim=k), differences.diff(part(f, k, -2), dim=k)
    if shape_of(step):
        sizes = [-1 if j == k else 1 for j in range(f.array.ndim)]
        widths = reshape.reshape(differences.diff(in_fractions(tensor_of(step, f))), sizes)
        inner = _weighed(three, *_parabola(part(widths, k, None, -1), part(widths, k, 1))[1])
        near, far = part(widths, k, 0, 1), part(widths, k, -1)
        if edge_order == 2:
            first = _weighed(beginning, *_parabola(near, part(widths, k, 1, 2))[0])
            last = _weighed(end, *_parabola(part(widths, k, -2, -1), far)[2])
        else:
            first, last = division.div(rises[0], near), division.div(rises[1], far)
    else:
        inner = division.div(arithmetic.sub(three[2], three[0]), arithmetic.mul(tensor_of(step, f), 2))
        if edge_order == 2:
            rises = _weighed(beginning, -1.5, 2.0, -0.5), _weighed(end, 0.5, -2.0, 1.5)
        first, last = division.div(rises[0], step), division.div(rises[1], step)
    return cast_to(joining.cat([first, inner, last], k), dtype_of(f.array))


def _weighed(samples: list[Any], *weights: Operand) -> Any:
    """Return the sum of three samples, each times its weight."""
    first, second, third = [arithmetic.mul(x, weight) for x, weight in zip(samples, weights, strict=True)]
    return arithmetic.add(arithmetic.add(first, second), third)


def _parabola(left: Tensor, right: Tensor) -> tuple[tuple[Any, Any, Any], ...]:
    """Return the weights of three samples at these distances in the slopes of their parabola, at each of the three."""
    both = arithmetic.add(left, right)
    whole = division.div(both, arithmetic.mul(left, right))
    of_first = division.div(right, arithmetic.mul(left, both))
    of_last = division.div(left, arithmetic.mul(right, both))
    return (
        (arithmetic.sub(of_last, whole), whole, arithmetic.neg(of_last)),
        (arithmetic.neg(of_first), arithmetic.sub(of_first, of_last), of_last),
        (of_first, arithmetic.neg(whole), arithmetic.sub(whole, of_first)),
    )


@rule("interp", "?x ?xp *fp *left *right +period")
def interp(
    x: Tensor,
    xp: Tensor,
    fp: Tensor,
    left: Operand | None = None,
    right: Operand | None = None,
    period: float | None = None,
) -> Any:
    """Return ``numpy.interp``, with gradients by the places asked for, the places of samples, and the samples."""
    like = next(each for each in (fp, x, xp) if is_tensor(each))
    x, xp, fp = (tensor_of(each, like) for each in (x, xp, fp))
    if "c" in {x.array.dtype.kind, xp.array.dtype.kind}:
        raise DtypeError(
            "numpy.interp: expected real places x and xp, got complex numbers: interpolate for their parts"
        )
    wanted = numpy_dtype([x, xp, fp])
    x, xp, fp = cast_to(x, wanted.to_real()), cast_to(xp, wanted.to_real()), cast_to(fp, wanted)
    like = fp
    if xp.array.shape != fp.array.shape:
        raise ShapeError(f"numpy.interp: fp and xp are not of the same length: {fp.array.shape}, {xp.array.shape}")
    if xp.array.ndim != 1 or not xp.array.size:
        raise ShapeError(f"numpy.interp: data points must be a 1-D sequence of at least one, got {xp.array.shape}")
    if period is not None:
        if period == 0:
            raise SettingError("numpy.interp: period must be a non-zero value, got 0")
        x, xp = (division.remainder(each, abs(period)) for each in (x, xp))
        order = np.argsort(plain(xp))
        xp, fp = getitem(xp, order), getitem(fp, order)
        xp = joining.cat(
            [arithmetic.sub(part(xp, 0, -1), abs(period)), xp, arithmetic.add(part(xp, 0, 0, 1), abs(period))]
        )
        fp = joining.cat([part(fp, 0, -1), fp, part(fp, 0, 0, 1)])
        left = right = None
    count = xp.array.shape[0]
    if count == 1:
        inside = arithmetic.add(zeros_for(x), getitem(fp, 0))
    else:
        place = untyped.clip(untyped.searchsorted(plain(xp), plain(x), "right"), 1, count - 1)
        high, low = placed(place, like), placed(place - 1, like)
        rise = arithmetic.sub(getitem(fp, high), getitem(fp, low))
        run = arithmetic.sub(getitem(xp, high), getitem(xp, low))
        near, is_met = (placed(each, like) for each in _nearer(plain(x), plain(xp), plain(fp), place))
        slope = division.div(selection.where(is_met, 0.0, rise), run)
        inside = arithmetic.add(arithmetic.mul(slope, arithmetic.sub(x, getitem(xp, near))), getitem(fp, near))
    first = getitem(fp, 0) if left is None else tensor_of(left, like)
    last = getitem(fp, -1) if right is None else tensor_of(right, like)
    inside = selection.where(comparison.lt(x, getitem(xp, 0)), first, inside)
    return selection.where(comparison.gt(x, getitem(xp, -1)), last, inside)


def _nearer(x: Any, xp: Any, fp: Any, place: Any) -> tuple[Any, Any]:
    """Return the sample that a line starts from for each place, and whether the place has its value, as in NumPy.

    It is the one before, unless that makes NaN of infinite samples.
    """
    low, high = place - 1, place
    with np.errstate(all="ignore"):
        rise, run = fp[high] - fp[low], xp[high] - xp[low]
        by_last = np.isnan(rise / run * (x - xp[low]) + fp[low])
    near: Any = untyped.where((x == xp[high]) | (by_last & (x != xp[low])), high, low)
    return near, ~untyped.isfinite(rise) & ((x == xp[near]) | (fp[high] == fp[low]))


# ---- convolutions ----


def _sliding(a: Tensor, v: Tensor, mode: str | int) -> Any:
    """Return sums of products of a vector, moved along another one: by products with a matrix of its parts."""
    if a.array.ndim != 1 or v.array.ndim != 1 or not a.array.size or not v.array.size:
        raise ShapeError(f"expected vectors that are not empty, got shapes {a.array.shape} and {v.array.shape}")
    long, short = len(a.array), len(v.array)
    wanted = {2: "full", 1: "same", 0: "valid"}.get(cast("Any", mode), mode)
    middle = (short - 1) // 2
    ranges = {"full": (0, long + short - 1), "same": (middle, middle + long), "valid": (short - 1, long)}
    if wanted not in ranges:
        raise SettingError(f"expected mode 'full', 'same' or 'valid', got {mode!r}")
    start, stop = ranges[wanted]
    zeros = zeros_for(a, (short - 1,))
    padded = joining.cat([zeros, a, zeros])

    def products(begin: int, end: int, is_inside: bool) -> Any:
        places = np.arange(begin, end)[:, None] + np.arange(short)
        lines = getitem(padded, placed(places, a))
        if is_inside:
            return matmul(lines, v)
        # what is beside the vector is no zero: its product with an infinite number would be NaN
        known = placed((places >= short - 1) & (places < short - 1 + long), a)
        return sums.sum(selection.where(known, arithmetic.mul(lines, v), 0), -1)

    cuts = pairwise([start, *np.clip([short - 1, long], start, stop).tolist(), stop])
    return joining.cat([products(*cut, k == 1) for k, cut in enumerate(cuts) if cut[0] < cut[1]])


def lines_of(*values: Operand) -> list[Any]:
    """Return operands as tensors of at least one dimension."""
    return [x if x.array.ndim else reshape.reshape(x, 1) for x in tensors_of(*values)]


@rule("convolve", "*a *v mode")
def convolve(a: Tensor, v: Tensor, mode: str | int = "full") -> Any:
    """Return ``numpy.convolve``."""
    a, v = lines_of(a, v)
    if len(a.array) < len(v.array):
        a, v = v, a
    return _sliding(a, axes.flip(v, (0,)), mode)


@rule("correlate", "*a *v mode")
def correlate(a: Tensor, v: Tensor, mode: str | int = "valid") -> Any:
    """Return ``numpy.correlate``: the second vector is conjugated."""
    a, v = tensors_of(a, v)
    v = conj(v)
    if a.array.size >= v.array.size:
        return _sliding(a, v, mode)
    return axes.flip(_sliding(v, a, mode), (0,))


# ---- phases ----


@rule("unwrap", "*p discont axis period")
def unwrap(p: Tensor, discont: float | None = None, axis: int = -1, period: float = 2 * np.pi) -> Any:
    """Return ``numpy.unwrap``: the summand is constant around each number."""
    values = plain(p)
    made = np.unwrap(values, discont, axis, period=period)
    # the difference of infinities that stayed what they were is no NaN
    steps = np.subtract(made, values, out=np.zeros_like(made), where=made != values)
    return arithmetic.add(p, placed(steps, p))


@rule("angle", "*z deg")
def angle(z: Tensor, deg: bool = False) -> Any:
    """Return ``numpy.angle``."""
    # of real numbers that of a complex one without an imaginary part: minus zero lies at 180 degrees
    turn = angle_of(z) if z.array.dtype.kind == "c" else trigonometry.atan2(zeros_for(z), z)
    return trigonometry.rad2deg(turn) if deg else turn


enter("sinc", "*x:input", trigonometry.sinc)


@rule("i0", "*x")
def bessel(x: Tensor) -> Any:
    """Return ``numpy.i0``: NaN at infinities."""
    return selection.where(nonfinite.isinf(x), np.nan, i0(x))
