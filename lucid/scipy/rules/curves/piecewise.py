"""Piecewise polynomials of `scipy.interpolate`, with gradients by breakpoints, coefficients and places."""

from __future__ import annotations

import functools
import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import any_recorded, array_on_device, plain, wrapped
from lucid.numpy.results import hand_over
from lucid.scipy.rules.rule import Array, host, host_library, in_double
from lucid.tensor.numpy_calls.operands import NumpyCallError

if TYPE_CHECKING:
    from collections.abc import Callable


class NoAttributeError(NumpyCallError, AttributeError):
    """A recorded interpolator was asked for an attribute of SciPy's alone, as `hasattr` may do."""


KINDS: dict[str, type[Interpolator]] = {}
"""The classes here, by their names."""


def as_ours(result: object) -> Any:
    """Return an interpolator of SciPy's as one of the class here; anything else as it is."""
    kind = KINDS.get(type(result).__name__)
    if kind is None or type(result) is not getattr(host_library("interpolate"), kind.__name__):
        return result
    made = kind.__new__(kind)
    vars(made)["_own"] = result
    return made


def by_scipys(title: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of SciPy's that takes and gives interpolators of the classes here."""

    def unwrapped(value: object) -> Any:
        if not isinstance(value, Interpolator):
            return value
        if (own := vars(value).get("_own")) is None:
            raise NumpyCallError(f"{title}: an object that is recorded has no rule: make it of arrays, x.detach()")
        return own

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return as_ours(
            function(*[unwrapped(each) for each in args], **{key: unwrapped(each) for key, each in kwargs.items()})
        )

    return call


class _Kind(type):
    """Metaclass that adds the class methods of SciPy's classes."""

    def __getattr__(cls, name: str) -> Any:
        method = getattr(getattr(host_library("interpolate"), cls.__name__, None), name, None)
        if not inspect.ismethod(method):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        title = f"scipy.interpolate.{cls.__name__}.{name}"
        return by_scipys(title, wrapped(title, method))


class Interpolator(metaclass=_Kind):
    """An object of SciPy's class of the same name, or one that is recorded.

    Where nothing is recorded it computes by SciPy's own, and has its methods and attributes.
    """

    _own: Any = None

    def __init_subclass__(cls) -> None:
        KINDS[cls.__name__] = cls

    def _begin(self, *operands: Array, **settings: Array) -> bool:
        """Make SciPy's object, if all is plain and on the host; return whether there is one."""
        self._own: Any = None
        values = (*operands, *settings.values())
        if not any_recorded(values) and array_on_device(plain(values)) is None:
            kind = getattr(host_library("interpolate"), type(self).__name__)
            hand_over(values)
            self._own = kind(*plain(operands), **{key: plain(value) for key, value in settings.items()})
        return self._own is not None

    def _computes(self, *places: Array) -> bool:
        """Return whether SciPy's object is asked."""
        return self._own is not None and not any_recorded(places) and array_on_device(plain(places)) is None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._own is not None:
            value = getattr(self._own, name)
            title = f"scipy.interpolate.{type(self).__name__}.{name}"
            return by_scipys(title, wrapped(title, value)) if inspect.ismethod(value) else value
        title = f"scipy.interpolate.{type(self).__name__}"
        if hasattr(getattr(host_library("interpolate"), type(self).__name__), name):
            raise NoAttributeError(f"{title}.{name} has no rule: make the object of arrays, x.detach()")
        raise AttributeError(f"{title} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        own = self._own
        if own is None or not hasattr(own, name):
            super().__setattr__(name, value)
            return
        if any_recorded((value,)):
            raise NumpyCallError(
                f"scipy.interpolate.{type(self).__name__}.{name}: the object is made of plain arrays, and would not "
                "record it: make an object of it"
            )
        setattr(own, name, plain(value))
        # what is kept here too
        if name in vars(self) or isinstance(getattr(type(self), name, None), property):
            super().__setattr__(name, value)


def checked_places(x: Array) -> Any:
    """Return breakpoints after checking that they increase."""
    if x.ndim != 1 or x.dtype.kind == "c":
        raise ValueError(f"expected `x` as a vector of real values, got shape {x.shape} of {x.dtype}")
    if x.shape[0] < 2:
        raise ValueError("`x` must contain at least 2 elements.")
    if not (np.diff(host(x)) > 0).all():
        raise ValueError("`x` must be strictly increasing sequence.")
    return x


def interval_of(breaks: Array, places: Array, *, falls: bool = False) -> Any:
    """Return the index of the interval of each place, or of the nearest interval; `falls`, of breakpoints that do."""
    breaks, places = plain(breaks), plain(places)
    if falls:
        breaks, places = -breaks, -places
    index = lnp.searchsorted(breaks, places, side="right") - 1
    return lnp.clip(index, 0, breaks.shape[0] - 2)


def with_axis(values: Array, axis: int, ndim: int) -> Any:
    """Return values with their first `ndim` axes, those of the places, moved to the position of the axis."""
    if not axis:
        return values
    order = list(range(values.ndim))
    return lnp.transpose(values, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])


def wrapped_places(x: Array, start: Array, stop: Array) -> Any:
    """Return places moved by whole periods into an interval."""
    return start + (x - start) % (stop - start)


def outside_as_nan(values: Array, x: Array, start: Array, stop: Array) -> Any:
    """Return values, with NaN for the places outside."""
    place = plain(x)
    is_outside = lnp.logical_or(place < plain(start), place > plain(stop))
    return lnp.where(lnp.reshape(is_outside, x.shape + (1,) * (values.ndim - x.ndim)), np.nan, values)


class PPoly(Interpolator):
    """``scipy.interpolate.PPoly``: polynomials between breakpoints, the highest power first."""

    def __init__(self, c: Array, x: Array, extrapolate: Array = None, axis: int = 0) -> None:
        if not self._begin(c, x, extrapolate=extrapolate, axis=axis):
            c, x = in_double(c, x)
            if not 0 <= axis < c.ndim - 1:
                raise ValueError(f"axis={axis} must be between 0 and {c.ndim - 2}")
            if axis:
                c = lnp.moveaxis(lnp.moveaxis(c, axis + 1, 0), axis + 1, 0)
            if x.ndim != 1 or c.ndim < 2 or 0 in c.shape[:2] or c.shape[1] != x.shape[0] - 1:
                raise ValueError(
                    f"expected x of shape (n + 1,) and c of shape (k, n, ...), k and n > 0, got {x.shape} and {c.shape}"
                )
            steps = np.diff(host(x))
            if not ((steps >= 0).all() or (steps <= 0).all()):
                raise ValueError("`x` must be strictly increasing or decreasing.")
            self._set(c, x, extrapolate, axis, falls=bool((steps < 0).any()))

    def _set(self, c: Array, x: Array, extrapolate: Array, axis: int, *, falls: bool = False) -> None:
        self.c, self.x, self.axis, self._is_falling = c, x, axis, falls
        self.extrapolate = True if extrapolate is None else extrapolate

    def _falls(self) -> bool:
        """Return whether the breakpoints decrease."""
        return self._is_falling if self._own is None else bool(self._own.x[-1] < self._own.x[0])

    def __call__(self, x: Array, nu: int = 0, extrapolate: Array = None) -> Any:
        """Return the values at places, or those of a derivative."""
        if self._computes(x):
            return self._own(plain(x), nu, extrapolate)
        kind = self.extrapolate if extrapolate is None else extrapolate
        c, breaks, place = in_double(self.c, self.x, x)
        if kind == "periodic":
            place = wrapped_places(place, breaks[0], breaks[-1])
        falls = self._falls()
        values = self._values(c, breaks, place, nu, falls=falls)
        if not kind:
            values = outside_as_nan(values, place, *(breaks[-1], breaks[0]) if falls else (breaks[0], breaks[-1]))
        return with_axis(values, self.axis, place.ndim)

    @staticmethod
    def _values(c: Array, breaks: Array, place: Array, nu: int, *, falls: bool) -> Any:
        interval = interval_of(breaks, place, falls=falls)
        degree = c.shape[0] - 1
        rest = (1,) * (c.ndim - 2)
        way = lnp.reshape(place - lnp.take(breaks, interval), (*place.shape, *rest))
        parts = lnp.take(c, interval, axis=1)
        total: Any = parts[0] * float(math.perm(degree, nu))
        for power in range(degree - 1, nu - 1, -1):
            total = total * way + parts[degree - power] * float(math.perm(power, nu))
        # where no power is left, a place that is NaN would be lost
        return total if nu < degree else lnp.where(lnp.isnan(plain(way)), np.nan, total)

    def derivative(self, nu: int = 1) -> Any:
        """Return the derivative, as an object of this kind."""
        if nu < 0:
            return self.antiderivative(-nu)
        (c,) = in_double(self.c)
        degree = c.shape[0] - 1
        rows = [c[degree - power] * float(math.perm(power, nu)) for power in range(degree, nu - 1, -1)]
        return made_of(lnp.stack(rows) if rows else c[:1] * 0.0, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> Any:
        """Return the integral from the first breakpoint on, as an object of this kind."""
        if nu <= 0:
            return self.derivative(-nu)
        c, x = in_double(self.c, self.x)
        for _ in range(nu):
            degree = c.shape[0]
            rows = [c[k] / float(degree - k) for k in range(degree)]
            widths = lnp.reshape(lnp.diff(x), (-1, *(1,) * (c.ndim - 2)))
            gains: Any = rows[0] * 0.0
            for row in rows:
                gains = (gains + row) * widths
            starts = lnp.concatenate([gains[:1] * 0.0, lnp.cumsum(gains, 0)[:-1]])
            c = lnp.stack([*rows, starts])
        return made_of(c, x, False if self.extrapolate == "periodic" else self.extrapolate, self.axis)

    def integrate(self, a: Array, b: Array, extrapolate: Array = None) -> Any:
        """Return the integral between two places."""
        if self._computes(a, b):
            return self._own.integrate(plain(a), plain(b), extrapolate)
        kind = self.extrapolate if extrapolate is None else extrapolate
        x, a, b = in_double(self.x, a, b)
        whole = self.antiderivative()
        if kind != "periodic":
            return whole(b, extrapolate=kind) - whole(a, extrapolate=kind)
        period = x[-1] - x[0]
        total = whole(x[-1], extrapolate=True)

        def upto(place: Array) -> Any:
            turns = lnp.floor(plain((place - x[0]) / period))
            return total * turns + whole(place - turns * period, extrapolate=True)

        return upto(b) - upto(a)


def made_of(c: Array, x: Array, extrapolate: Array, axis: int) -> PPoly:
    """Return an object of coefficients as it holds them, whatever its axis."""
    # its constructor gets them where the axis is
    return PPoly(lnp.moveaxis(c, (0, 1), (axis, axis + 1)) if axis else c, x, extrapolate, axis)


def hermite(x: Array, y: Array, slopes: Array) -> Any:
    """Return the coefficients of cubic polynomials of values and slopes at their ends."""
    h = lnp.reshape(lnp.diff(x), (-1, *(1,) * (y.ndim - 1)))
    rise = lnp.diff(y, axis=0) / h
    bend = (slopes[:-1] + slopes[1:] - 2.0 * rise) / h
    return lnp.stack([bend / h, (rise - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]])


class CubicHermiteSpline(PPoly):
    """``scipy.interpolate.CubicHermiteSpline``."""

    def __init__(self, x: Array, y: Array, dydx: Array, axis: int = 0, extrapolate: Array = None) -> None:
        if not self._begin(x, y, dydx, axis=axis, extrapolate=extrapolate):
            x, y, dydx = in_double(x, y, dydx)
            if y.shape != dydx.shape:
                raise ValueError("The shapes of `y` and `dydx` must be identical.")
            x, y = samples_of(x, y, axis)
            finite(dydx=dydx)
            self._set(hermite(x, y, lnp.moveaxis(dydx, axis, 0)), x, extrapolate, axis % y.ndim)


def finite(**operands: Array) -> None:
    """Refuse operands that have NaN or infinities, by their names."""
    for name, x in operands.items():
        if not bool(lnp.isfinite(plain(x)).all()):
            raise ValueError(f"`{name}` must contain only finite values: leave out what is NaN or infinite")


def samples_of(x: Array, y: Array, axis: int) -> tuple[Any, Any]:
    """Return places and values with their axis first, checked."""
    x, y = in_double(x, y)
    finite(x=x, y=y)
    axis %= y.ndim
    if x.ndim == 1 and x.shape[0] != y.shape[axis]:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    return checked_places(x), lnp.moveaxis(y, axis, 0)


def real_samples(name: str, x: Array, y: Array, axis: int) -> tuple[Any, Any]:
    """Return places and values as `samples_of` does, of an interpolator that compares values."""
    x, y = samples_of(x, y, axis)
    if y.dtype.kind == "c":
        raise ValueError(f"`{name}` only works with real values for `y`: give it y.real and y.imag in turn")
    return x, y


class PchipInterpolator(CubicHermiteSpline):
    """``scipy.interpolate.PchipInterpolator``: cubic, and monotonic between monotonic samples."""

    def __init__(self, x: Array, y: Array, axis: int = 0, extrapolate: Array = None) -> None:
        if self._begin(x, y, axis=axis, extrapolate=extrapolate):
            return
        x, values = real_samples("PchipInterpolator", x, y, axis)
        h = lnp.reshape(lnp.diff(x), (-1, *(1,) * (values.ndim - 1)))
        rise = lnp.diff(values, axis=0) / h
        if values.shape[0] == 2:
            slopes = lnp.concatenate([rise, rise])
        else:
            left, right = rise[:-1], rise[1:]
            # not by their product, which underflows
            is_turn = lnp.sign(plain(left)) * lnp.sign(plain(right)) <= 0
            one = 2.0 * h[1:] + h[:-1]
            two = h[1:] + 2.0 * h[:-1]
            mean = (one + two) / (one / lnp.where(is_turn, 1.0, left) + two / lnp.where(is_turn, 1.0, right))
            ends = [self._end(h[0], h[1], rise[0], rise[1]), self._end(h[-1], h[-2], rise[-1], rise[-2])]
            slopes = lnp.concatenate([ends[0][None], lnp.where(is_turn, 0.0, mean), ends[1][None]])
        self._set(hermite(x, values, slopes), x, extrapolate, axis % values.ndim)

    @staticmethod
    def _end(h0: Array, h1: Array, m0: Array, m1: Array) -> Any:
        """Return the slope at an end, of the parabola through three samples, limited."""
        slope = ((2.0 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
        d, a, b = plain(slope), plain(m0), plain(m1)
        is_turn = lnp.sign(d) != lnp.sign(a)
        is_steep = lnp.logical_and(lnp.sign(a) != lnp.sign(b), lnp.abs(d) > 3.0 * lnp.abs(a))
        return lnp.where(is_turn, 0.0, lnp.where(is_steep, 3.0 * m0, slope))


class Akima1DInterpolator(CubicHermiteSpline):
    """``scipy.interpolate.Akima1DInterpolator``, by the methods 'akima' and 'makima'."""

    def __init__(self, x: Array, y: Array, axis: int = 0, *, method: str = "akima", extrapolate: Array = None) -> None:
        if self._begin(x, y, axis=axis, method=method, extrapolate=extrapolate):
            return
        if method not in {"akima", "makima"}:
            raise NotImplementedError(f"`method`={method} is unsupported.")
        x, values = real_samples("Akima1DInterpolator", x, y, axis)
        rise = lnp.diff(values, axis=0) / lnp.reshape(lnp.diff(x), (-1, *(1,) * (values.ndim - 1)))
        if values.shape[0] == 2:
            slopes = lnp.concatenate([rise, rise])
        else:
            before = 2.0 * rise[0] - rise[1]
            behind = 2.0 * rise[-1] - rise[-2]
            ends = [2.0 * before - rise[0], before], [behind, 2.0 * behind - rise[-1]]
            m = lnp.concatenate([lnp.stack(ends[0]), rise, lnp.stack(ends[1])])
            steps = lnp.abs(lnp.diff(m, axis=0))
            if method == "makima":
                steps = steps + 0.5 * lnp.abs(m[1:] + m[:-1])
            one, two = steps[2:], steps[:-2]
            both = one + two
            is_flat = plain(both) <= 1e-9 * float(host(both).max())
            share = two / lnp.where(is_flat, 1.0, both)
            slopes = lnp.where(is_flat, 0.5 * (m[3:] + m[:-3]), m[1:-2] + share * (m[2:-1] - m[1:-2]))
        self._set(hermite(x, values, slopes), x, False if extrapolate is None else extrapolate, axis % values.ndim)
