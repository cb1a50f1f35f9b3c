"""Splines of `scipy.interpolate` by their basis: `BSpline`, and `make_interp_spline` to compute coefficients."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import plain
from lucid.scipy.rules.curves.piecewise import Interpolator, finite, outside_as_nan, with_axis, wrapped_places
from lucid.scipy.rules.equations import banded_solution
from lucid.scipy.rules.integrals import over
from lucid.scipy.rules.rule import Array, host, in_double, put, rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, axis_in


def constant_at(x: Array, value: float) -> Any:
    """Return a number for each place, and NaN for a place that is NaN."""
    return lnp.where(lnp.isnan(plain(x)), np.nan, value)


def basis(t: Array, k: int, x: Array, interval: Array) -> list[Any]:
    """Return the k + 1 elements of the basis that are not zero in the interval of each place, by Cox and de Boor."""
    elements: list[Any] = [constant_at(x, 1.0)]
    for p in range(1, k + 1):
        raised: list[Any] = [0.0] * (p + 1)
        for r in range(p):
            left, right = lnp.take(t, interval + (r + 1 - p)), lnp.take(t, interval + (r + 1))
            share = over(elements[r], right - left)
            raised[r] = raised[r] + (right - x) * share
            raised[r + 1] = raised[r + 1] + (x - left) * share
        elements = raised
    return elements


def basis_slopes(t: Array, k: int, nu: int, x: Array, interval: Array) -> list[Any]:
    """Return the derivatives of a degree of the same elements."""
    if nu < 0:
        raise ValueError(f"Cannot do derivative order nu={nu}: expected 0 or more; antiderivative() is of the integral")
    if nu > k:
        # SciPy's of degree zero are zero everywhere
        return [constant_at(x, 0.0) if k else lnp.zeros_like(plain(x))] * (k + 1)
    elements = basis(t, k - nu, x, interval)
    for p in range(k - nu + 1, k + 1):
        raised: list[Any] = [0.0] * (p + 1)
        for r in range(p):
            width = lnp.take(t, interval + (r + 1)) - lnp.take(t, interval + (r + 1 - p))
            share = over(elements[r] * float(p), width)
            raised[r] = raised[r] - share
            raised[r + 1] = raised[r + 1] + share
        elements = raised
    return elements


def knot_interval(t: Array, k: int, count: int, x: Array) -> Any:
    """Return the index of the knot before each place, limited to the interval of the complete basis.

    At more than k + 1 equal knots at an end that is empty, and SciPy's basis is zero there.
    """
    return lnp.clip(lnp.searchsorted(plain(t), plain(x), side="right") - 1, k, count - 1)


def checked_degree(k: object) -> int:
    """Return a degree after checking that it is a whole number."""
    if (degree := operator.index(k)) < 0:  # pyright: ignore[reportArgumentType] - what has no index is refused so
        raise ValueError(f"expected a degree of 0 or more, got {degree}")
    return degree


def checked_knots(t: Array, k: int) -> None:
    """Refuse knots that are no basis of a degree."""
    knots = host(t)
    if knots.ndim != 1 or knots.shape[0] < 2 * k + 2:
        raise ValueError(f"expected a vector of at least {2 * k + 2} knots for degree {k}, got shape {knots.shape}")
    if not np.isfinite(knots).all() or (np.diff(knots) < 0).any():
        raise ValueError("expected knots in a non-decreasing order without NaN and infinities: sort them, np.sort(t)")
    if knots[k] == knots[knots.shape[0] - k - 1]:
        raise ValueError("expected at least two internal knots: those between which the spline is are one place")


class BSpline(Interpolator):
    """``scipy.interpolate.BSpline``, with gradients by knots, coefficients and places."""

    def __init__(self, t: Array, c: Array, k: int, extrapolate: Array = True, axis: int = 0) -> None:
        if not self._begin(t, c, k, extrapolate=extrapolate, axis=axis):
            t, c = in_double(t, c)
            axis, k = axis_in(axis, c.ndim), checked_degree(k)
            checked_knots(t, k)
            if c.shape[axis] < t.shape[0] - k - 1:
                raise ValueError("Knots, coefficients and degree are inconsistent.")
            self._set(t, lnp.moveaxis(c, axis, 0), k, extrapolate, axis)

    def _set(self, t: Array, c: Array, k: int, extrapolate: Array, axis: int) -> None:
        self.t, self.c, self.k, self.extrapolate, self.axis = t, c, k, extrapolate, axis

    @classmethod
    def construct_fast(cls, t: Array, c: Array, k: int, extrapolate: Array = True, axis: int = 0) -> BSpline:
        """Return a spline of coefficients with the axis of the basis first, without checks."""
        spline: Any = cls.__new__(cls)
        if not spline._begin(t, lnp.moveaxis(c, 0, axis), k, extrapolate=extrapolate, axis=axis):  # noqa: SLF001 - its own
            spline._set(t, c, k, extrapolate, axis)  # noqa: SLF001
        return spline

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Array, nu: int = 0, extrapolate: Array = None) -> Any:
        """Return the values at places, or those of a derivative."""
        if self._computes(x):
            return self._own(plain(x), nu, extrapolate)
        kind = self.extrapolate if extrapolate is None else extrapolate
        t, c, place = in_double(self.t, self.c, x)
        count = t.shape[0] - self.k - 1
        if kind == "periodic":
            place = wrapped_places(place, t[self.k], t[count])
        interval = knot_interval(t, self.k, count, place)
        rest = (1,) * (c.ndim - 1)
        total: Any = 0.0
        for r, weight in enumerate(basis_slopes(t, self.k, nu, place, interval)):
            total = total + lnp.take(c, interval + (r - self.k), axis=0) * lnp.reshape(weight, (*place.shape, *rest))
        if not kind and (self.k or not nu):
            total = outside_as_nan(total, place, t[self.k], t[count])
        return with_axis(total, self.axis, place.ndim)

    def derivative(self, nu: int = 1) -> Any:
        """Return the derivative, as a spline of a lower degree."""
        if nu < 0:
            return self.antiderivative(-nu)
        t, c = in_double(self.t, self.c)
        k = self.k
        if nu > k:
            raise ValueError(f"Order of derivative (n = {nu}) must be <= order of spline (k = {k})")
        for _ in range(nu):
            n = t.shape[0] - k - 1
            widths = lnp.reshape(t[k + 1 : k + n] - t[1:n], (-1, *(1,) * (c.ndim - 1)))
            if not (host(widths) != 0).all():
                raise ValueError(f"The spline has internal repeated knots and is not differentiable {nu} times")
            c = (c[1:n] - c[: n - 1]) * float(k) / widths
            t, k = t[1:-1], k - 1
        # as many as knots, as SciPy has them
        c = lnp.pad(c, [(0, t.shape[0] - c.shape[0]), *[(0, 0)] * (c.ndim - 1)])
        return BSpline.construct_fast(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Any:
        """Return the integral from the first knot on, as a spline of a higher degree."""
        if nu <= 0:
            return self.derivative(-nu)
        t, c = in_double(self.t, self.c)
        k = self.k
        for _ in range(nu):
            n = t.shape[0] - k - 1
            widths = lnp.reshape(t[k + 1 : k + 1 + n] - t[:n], (-1, *(1,) * (c.ndim - 1)))
            sums = lnp.cumsum(c[:n] * widths, 0) / float(k + 1)
            c = lnp.concatenate([sums[:1] * 0.0, sums])
            t, k = lnp.concatenate([t[:1], t, t[-1:]]), k + 1
        c = lnp.pad(c, [(0, t.shape[0] - c.shape[0]), *[(0, 0)] * (c.ndim - 1)], mode="edge")
        return BSpline.construct_fast(t, c, k, False if self.extrapolate == "periodic" else self.extrapolate, self.axis)

    def integrate(self, a: Array, b: Array, extrapolate: Array = None) -> Any:
        """Return the integral between two places."""
        if self._computes(a, b):
            return self._own.integrate(plain(a), plain(b), extrapolate)
        kind = self.extrapolate if extrapolate is None else extrapolate
        if kind == "periodic":
            raise NumpyCallError("scipy.interpolate.BSpline.integrate: extrapolate='periodic' has no rule")
        t, a, b = in_double(self.t, a, b)
        if not kind:
            first, last = t[self.k], t[t.shape[0] - self.k - 1]
            # the ends of what is integrated move with their knots
            a, b = (
                lnp.where(plain(each) < plain(first), first, lnp.where(plain(each) > plain(last), last, each))
                for each in (a, b)
            )
        whole = self.antiderivative()
        return whole(b, extrapolate=True) - whole(a, extrapolate=True)


def usual_knots(x: Array, k: int) -> Any:
    """Return the default knots: as many are left out at both ends as the basis has elements too many."""
    middle = x if k % 2 else (x[1:] + x[:-1]) / 2.0
    skipped = (k + 1) // 2 if k % 2 else k // 2
    return ends_repeated(x, middle[skipped : middle.shape[0] - skipped], k + 1)


def ends_repeated(x: Array, inner: Array, times: int) -> Any:
    """Return inner knots between several at each end."""
    return lnp.concatenate([lnp.repeat(x[:1], times), inner, lnp.repeat(x[-1:], times)])


ALIASES = {"clamped": 1, "natural": 2}


def derivatives(condition: Array, y: Array) -> list[tuple[int, Any]]:
    """Return the orders of derivatives at an end, and their values."""
    if condition is None:
        return []
    if isinstance(condition, str):
        if condition not in ALIASES:
            raise ValueError(f"Unknown boundary condition : {condition}")
        return [(ALIASES[condition], y[0] * 0.0)]
    return [(order, put(in_double(value)[0], y)) for order, value in condition]


@rule("interpolate.make_interp_spline")
def make_interp_spline(
    x: Array, y: Array, k: int = 3, t: Array = None, bc_type: Array = None, axis: int = 0, check_finite: bool = True
) -> Any:
    """Return ``scipy.interpolate.make_interp_spline``."""
    x, y = in_double(x, y)
    axis, k = axis_in(axis, y.ndim), checked_degree(k)
    y = lnp.moveaxis(y, axis, 0)
    if check_finite:
        finite(x=x, y=y)
    if x.ndim != 1 or x.shape[0] != y.shape[0]:
        raise ValueError(f"Shapes of x {x.shape} and y {y.shape} are incompatible")
    if (np.diff(host(x)) <= 0).any():
        raise ValueError("Expect x to be a 1D strictly increasing sequence.")
    if isinstance(bc_type, str) and bc_type == "periodic":
        raise NumpyCallError(
            "scipy.interpolate.make_interp_spline: with a Tensor bc_type='periodic' cannot be used: "
            "CubicSpline(x, y, bc_type='periodic') is the same spline"
        )
    both = None if bc_type is None or (isinstance(bc_type, str) and bc_type == "not-a-knot") else bc_type
    starts, stops = (derivatives(each, y) for each in ((both, both) if both is None or isinstance(both, str) else both))
    if k == 0 or (k == 1 and t is None):
        if starts or stops:
            raise ValueError(f"Too much info for k={k}: bc_type can only be None.")
        knots = lnp.concatenate([x, x[-1:]]) if k == 0 else lnp.concatenate([x[:1], x, x[-1:]])
        return BSpline.construct_fast(knots, y, k, True, axis)
    if t is not None:
        t, _ = in_double(t, x)
        checked_knots(t, k)
        if host(x)[0] < host(t)[k] or host(x)[-1] > host(t)[-k - 1]:
            raise ValueError(f"Out of bounds: expected x between the knots {k} and {-k - 1}, got {host(x)[[0, -1]]}")
    elif starts or stops:
        t = ends_repeated(x, x[1:-1], k + 1)
    else:
        t = usual_knots(x, k)
    count = t.shape[0] - k - 1
    if count - x.shape[0] != len(starts) + len(stops):
        raise ValueError(
            "The number of derivatives at boundaries does not match: "
            f"expected {count - x.shape[0]}, got {len(starts)}+{len(stops)}"
        )
    rows = [(x[:1], order) for order, _ in starts], [(x[-1:], order) for order, _ in stops]
    right = lnp.concatenate([*[v[None] for _, v in starts], y, *[v[None] for _, v in stops]])
    return BSpline.construct_fast(t, banded_solution(collocation(t, k, count, x, *rows), right, k, k), k, True, axis)


def collocation(t: Array, k: int, count: int, x: Array, starts: list[Any], stops: list[Any]) -> Any:
    """Return the diagonals of the matrix of the basis at places, with derivatives at both ends before and behind."""
    lines: list[Any] = []
    columns: list[Any] = []
    for place, order in [*starts, (x, 0), *stops]:
        interval = knot_interval(t, k, count, place)
        lines.append(lnp.stack([weight + 0.0 * place for weight in basis_slopes(t, k, order, place, interval)], -1))
        columns.append(host(interval)[:, None] + np.arange(-k, 1))
    weights, column = lnp.concatenate(lines), np.concatenate(columns)
    # each element goes to its diagonal: where none goes is the zero behind them all
    row = k + np.arange(count)[:, None] - column
    is_inside = (row >= 0) & (row <= 2 * k)
    order = np.full((2 * k + 1, count), column.size)
    order[row[is_inside], column[is_inside]] = np.flatnonzero(is_inside)
    line = lnp.concatenate([lnp.reshape(weights, (-1,)), put(np.zeros(1), weights)])
    return lnp.take(line, put(order, weights))
