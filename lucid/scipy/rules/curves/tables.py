"""Interpolation in tables by `scipy.interpolate`: `interp1d`, `RegularGridInterpolator` and `interpn`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import plain
from lucid.scipy.rules.curves.bsplines import basis_slopes, checked_degree, knot_interval, make_interp_spline
from lucid.scipy.rules.curves.piecewise import Interpolator, interval_of, with_axis
from lucid.scipy.rules.rule import Array, arrays, host, in_double, in_dtype, put, rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, is_sequence

DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
STEPS = ("nearest", "nearest-up", "previous", "next")


class interp1d(Interpolator):  # SciPy's name
    """``scipy.interpolate.interp1d``."""

    def __init__(
        self,
        x: Array,
        y: Array,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Array = np.nan,
        assume_sorted: bool = False,
    ) -> None:
        if self._begin(
            x, y, kind=kind, axis=axis, copy=copy, bounds_error=bounds_error, fill_value=fill_value,
            assume_sorted=assume_sorted,
        ):  # fmt: skip
            x, y, fill_value, bounds_error = self._own.x, self._own.y, self._own.fill_value, self._own.bounds_error
            assume_sorted, copy = True, False
        # what is set below is kept here, and is no setting of SciPy's object
        own, self._own = self._own, None
        self._dtypes = [each.dtype for each in arrays(x, y)]
        x, y = in_double(x, y)
        self.axis = axis % y.ndim
        y = lnp.moveaxis(y, axis, 0)
        if x.ndim != 1 or x.shape[0] != y.shape[0]:
            raise ValueError("x and y arrays must be equal in length along interpolation axis.")
        if not assume_sorted:
            order = put(np.argsort(host(x), kind="mergesort"), x)
            x, y = lnp.take(x, order), lnp.take(y, order, axis=0)
        elif copy:
            x, y = lnp.copy(x), lnp.copy(y)
        self.x, self._y, self.kind = x, y, kind
        if own is None:
            self.y = lnp.moveaxis(y, 0, self.axis)
        self._fill(fill_value, bounds_error)
        if kind not in {"linear", *STEPS}:
            if isinstance(kind, str) and kind not in DEGREES:
                raise NotImplementedError(
                    f"{kind} is unsupported: expected a degree or one of {', '.join(['linear', *STEPS, *DEGREES])}"
                )
            self._degree = DEGREES[kind] if isinstance(kind, str) else checked_degree(kind)
            if x.shape[0] <= self._degree:
                raise ValueError(f"x and y arrays must have at least {self._degree + 1} entries, got {x.shape[0]}")
            # the spline itself is solved for in each call, each with a graph of its own
            if (np.diff(host(x)) <= 0).any():
                raise ValueError("expected `x` without repeated values, for a spline through the samples")
        self._own = own

    @property
    def fill_value(self) -> Any:
        """Values outside of the samples."""
        return self._fill_value

    @fill_value.setter
    def fill_value(self, value: Array) -> None:
        self._fill(value, self.bounds_error)

    def _fill(self, fill_value: Array, bounds_error: bool | None) -> None:
        """Set the treatment of places outside: an error, values, or extrapolation."""
        extrapolates = isinstance(fill_value, str)
        pair: Any = fill_value
        if extrapolates and fill_value != "extrapolate":
            raise ValueError(f"fill_value: expected numbers, a pair of them, or 'extrapolate', got {fill_value!r}")
        if extrapolates and bounds_error:
            raise ValueError("Cannot extrapolate and raise at the same time.")
        if extrapolates:
            # before the first sample there is no previous one
            pair = {"previous": (np.nan, self._y[-1]), "next": (self._y[0], np.nan)}.get(self.kind, ())
        elif not isinstance(fill_value, tuple) or len(pair) != 2:
            pair = (fill_value, fill_value)
        # all is set at the end: what is refused changes nothing
        self.fills: tuple[Any, ...] = tuple([self._filling(each) for each in pair])
        self._fill_value: Any = fill_value
        self.extrapolates = not self.fills
        self.bounds_error = not extrapolates if bounds_error is None else bounds_error

    def _filling(self, value: Array) -> Any:
        """Return a value outside of the samples, after checking that it broadcasts to one sample."""
        (value,) = in_double(value)
        shape = self._y.shape[1:]
        # SciPy takes a vector of one element for a number
        if value.ndim > max(len(shape), 1) or any(
            n not in {1, m} for n, m in zip(value.shape[::-1], shape[::-1] or (1,), strict=False)
        ):
            raise ValueError(
                f"fill_value: expected a number or an array that broadcasts to the shape {shape} of a sample, got "
                f"{value.shape}: give a value below and one above as a tuple"
            )
        return lnp.broadcast_to(value, shape) if shape else lnp.reshape(value, ())

    def __call__(self, x: Array) -> Any:
        """Return the values at places."""
        if self._computes(x):
            return self._own(plain(x))
        breaks, y, place = in_double(self.x, self._y, x)
        values = plain(place)
        is_below, is_above = values < plain(breaks)[0], values > plain(breaks)[-1]
        if self.bounds_error and (host(is_below).any() or host(is_above).any()):
            raise ValueError("A value in x_new is outside the interpolation range.")
        shape = (*place.shape, *(1,) * (y.ndim - 1))
        if self.kind == "linear" and breaks.shape[0] == 1 and not self.extrapolates:
            result = lnp.take(y, lnp.zeros_like(values, dtype=int), axis=0) + 0.0 * lnp.reshape(place, shape)
        elif self.kind == "linear":
            interval = lnp.clip(lnp.searchsorted(plain(breaks), values), 1, breaks.shape[0] - 1)
            x0, x1 = lnp.take(breaks, interval - 1), lnp.take(breaks, interval)
            y0, y1 = lnp.take(y, interval - 1, axis=0), lnp.take(y, interval, axis=0)
            result = (y1 - y0) / lnp.reshape(x1 - x0, shape) * lnp.reshape(place - x0, shape) + y0
        elif self.kind in STEPS:
            result = lnp.take(y, self._step(plain(breaks), values), axis=0)
        else:
            result = make_interp_spline(breaks, y, self._degree, check_finite=False)(place)
        if not self.extrapolates:
            for where, fill in zip((is_below, is_above), self.fills, strict=True):
                result = lnp.where(lnp.reshape(where, shape), put(fill, values), result)
        return with_axis(in_dtype(result, self._dtype(x)), self.axis, place.ndim)

    def _dtype(self, places: Array) -> np.dtype[Any]:
        """Return the dtype of SciPy's values: of steps that of the samples, and of splines double precision."""
        x, y = self._dtypes
        if self.kind in STEPS:
            return y if y.kind in "fc" else np.dtype(np.float64)
        kinds = [x, y, arrays(places)[0].dtype] if self.kind == "linear" else [y, np.dtype(np.float64)]
        return np.result_type(*kinds, np.float32 if y.kind in "fc" else np.float64)

    def _step(self, breaks: Array, values: Array) -> Any:
        last = breaks.shape[0] - 1
        if self.kind == "previous":
            return lnp.clip(lnp.searchsorted(breaks, values, side="right") - 1, 0, last)
        if self.kind == "next":
            return lnp.clip(lnp.searchsorted(breaks, values, side="left"), 0, last)
        middle = breaks[:-1] + (breaks[1:] - breaks[:-1]) / 2.0
        side = "right" if self.kind == "nearest-up" else "left"
        return lnp.clip(lnp.searchsorted(middle, values, side=side), 0, last)


GRID_DEGREES = {"slinear": 1, "cubic": 3, "quintic": 5}


class RegularGridInterpolator(Interpolator):
    """``scipy.interpolate.RegularGridInterpolator``, with gradients by grid, values and places."""

    def __init__(
        self,
        points: Array,
        values: Array,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Array = np.nan,
        *,
        solver: Any = None,
        solver_args: dict[str, Any] | None = None,
    ) -> None:
        # SciPy's splines are solved for by iteration unless a solver is given; those here directly
        solving = {"solver": solver, "solver_args": solver_args}
        settings = {key: value for key, value in solving.items() if value is not None}
        self._begin(points, values, method=method, bounds_error=bounds_error, fill_value=fill_value, **settings)
        # what is set below is kept here, and is no setting of SciPy's object
        own, self._own = self._own, None
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        dtype = arrays(values)[0].dtype
        self._dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
        if fill_value is not None and not np.can_cast(arrays(fill_value)[0].dtype, self._dtype, "same_kind"):
            raise ValueError(
                f"fill_value: expected None or a value that is cast to {self._dtype} of the values, got {fill_value!r}"
            )
        *grid, values = in_double(*points, values)
        if len(grid) > values.ndim:
            raise ValueError(f"There are {len(grid)} point arrays, but values has {values.ndim} dimensions")
        for k, line in enumerate(grid):
            steps = np.diff(host(line))
            if line.ndim != 1 or line.shape[0] != values.shape[k]:
                raise ValueError(f"There are {line.shape[0]} points and {values.shape[k]} values along dimension {k}")
            if (steps < 0).all():
                grid[k], values = lnp.flip(line, 0), lnp.flip(values, k)
            elif not (steps > 0).all():
                raise ValueError(f"The points in dimension {k} must be strictly ascending or descending")
        self.grid, self.values, self._own = tuple(grid), values, own

    def __call__(self, xi: Array, method: str | None = None, *, nu: Any = None) -> Any:
        """Return the values at places with coordinates along the last axis, or their derivatives along the axes."""
        if self._computes(xi):
            return self._own(plain(xi), method, **({} if nu is None else {"nu": nu}))
        method = self.method if method is None else method
        if nu is not None and method not in GRID_DEGREES:
            raise ValueError(f"Can only compute derivatives for methods {', '.join(GRID_DEGREES)}, got {method!r}")
        is_one = isinstance(xi, tuple)
        if is_one and len(xi) == 1:
            xi, is_one = xi[0], False
        count = len(self.grid)
        parts = in_double(*self.grid, self.values, *(xi if is_one else [xi]))
        grid, values = parts[:count], parts[count]
        xi = lnp.stack(lnp.broadcast_arrays(*parts[count + 1 :]), -1) if is_one else parts[-1]
        if xi.ndim == 1 and not xi.size % len(grid) and (len(grid) == 1 or not is_one):
            xi = lnp.reshape(xi, (-1, len(grid)))
        if xi.shape[-1] != len(grid):
            raise ValueError(
                f"The requested sample points xi have dimension {xi.shape[-1]} but this RegularGridInterpolator has "
                f"dimension {len(grid)}"
            )
        shape = xi.shape[:-1]
        places = [lnp.reshape(xi[..., k], (-1,)) for k in range(len(grid))]
        plains = [plain(place) for place in places]
        outside = [lnp.logical_or(p < plain(x)[0], p > plain(x)[-1]) for p, x in zip(plains, grid, strict=True)]
        for k, (each, p) in enumerate(zip(outside, plains, strict=True)):
            if self.bounds_error and host(lnp.logical_or(each, lnp.isnan(p))).any():
                raise ValueError(f"One of the requested xi is out of bounds in dimension {k}")
        if method in {"linear", "nearest"}:
            taps = [_linear(x, place, nearest=method == "nearest") for x, place in zip(grid, places, strict=True)]
        elif method in GRID_DEGREES:
            orders = [0] * len(grid) if nu is None else np.asarray(nu).tolist()
            if len(orders) != len(grid):
                raise ValueError(f"nu: expected an order for each of the {len(grid)} dimensions, got {nu}")
            values, taps = self._of_basis(grid, values, places, GRID_DEGREES[method], orders)
        else:
            raise NumpyCallError(
                "scipy.interpolate.RegularGridInterpolator: with a Tensor the method can be 'linear', 'nearest', "
                f"'slinear', 'cubic' or 'quintic', got {method!r}"
            )
        result = _combined(values, taps)
        rest = (1,) * (values.ndim - len(grid))
        if not self.bounds_error and self.fill_value is not None:
            for each in outside:
                result = lnp.where(lnp.reshape(each, each.shape + rest), self.fill_value, result)
        for each in plains:
            if host(lnp.isnan(each)).any():
                result = lnp.where(lnp.reshape(lnp.isnan(each), each.shape + rest), np.nan, result)
        result = lnp.reshape(result, (*shape, *values.shape[len(grid) :]))
        return in_dtype(result, self._dtype) if method == "nearest" else result

    @staticmethod
    def _of_basis(
        grid: list[Any], values: Array, places: list[Any], k: int, orders: list[int]
    ) -> tuple[Any, list[Any]]:
        taps: list[Any] = []
        for axis, (x, place, nu) in enumerate(zip(grid, places, orders, strict=True)):
            spline = make_interp_spline(x, values, k, axis=axis)
            t, count = spline.t, values.shape[axis]
            values = lnp.moveaxis(spline.c, 0, axis)
            interval = knot_interval(t, k, count, place)
            taps.append([(interval + (r - k), w) for r, w in enumerate(basis_slopes(t, k, nu, place, interval))])
        return values, taps


def _linear(x: Array, place: Array, *, nearest: bool) -> list[Any]:
    """Return the samples on both sides of each place, with their weights; or the nearest one."""
    if x.shape[0] == 1:
        return [(lnp.zeros_like(plain(place), dtype=int), 1.0)]
    interval = interval_of(x, place)
    x0, x1 = lnp.take(x, interval), lnp.take(x, interval + 1)
    share = (place - x0) / (x1 - x0)
    if nearest:
        return [(lnp.where(plain(share) <= 0.5, interval, interval + 1), 1.0)]
    return [(interval, 1.0 - share), (interval + 1, share)]


def _combined(values: Array, taps: list[Any]) -> Any:
    """Return sums of values at all choices of one sample along each axis, weighted."""
    count = len(taps)
    lines = lnp.reshape(values, (-1, *values.shape[count:]))
    rest = (1,) * (values.ndim - count)
    total: Any = 0.0
    for choice in itertools.product(*taps):
        index: Any = 0
        weight: Any = 1.0
        for (each, w), size in zip(choice, values.shape[:count], strict=True):
            index, weight = index * size + each, weight * w
        part = lnp.take(lines, index, axis=0)
        total = total + part * (lnp.reshape(weight, weight.shape + rest) if lnp.ndim(weight) else weight)
    return total


@rule("interpolate.interpn", "points values xi method bounds_error fill_value")
def interpn(points: Array, values: Array, xi: Array, **settings: Array) -> Any:
    """Return ``scipy.interpolate.interpn``."""
    (values,) = arrays(values)
    if is_sequence(xi) and isinstance(xi, tuple) and len(xi) > 1:
        # one place of coordinates is an array of one here
        xi = lnp.stack(lnp.broadcast_arrays(*in_double(values, *xi)[1:]), -1)
        xi = xi if xi.ndim > 1 else xi[None]
    return RegularGridInterpolator(points, values, **settings)(xi)
