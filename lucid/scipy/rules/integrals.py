"""Integrals of samples: `scipy.integrate`."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.border import plain
from lucid.scipy.rules.rule import Array, arrays, as_array, host, host_library, in_dtype, in_one_dtype, put, rule
from lucid.tensor.numpy_calls.operands import NumpyCallError, axis_in
from lucid.tensor.numpy_calls.protocols import REMEDIES

if TYPE_CHECKING:
    from collections.abc import Callable

REMEDIES["scipy.integrate.solve_ivp"] = (
    "its solver sees numbers alone: use odeint, which is recorded, or take steps of fixed size in a loop of "
    "lucid.numpy, such as y = y + h * f(y, t) or the Runge-Kutta steps in docs/users/from-cupy.md"
)
for _name in ("quad", "dblquad", "tplquad", "nquad", "quad_vec"):
    REMEDIES[f"scipy.integrate.{_name}"] = "use fixed_quad, one in the function of another for several variables"

WIDENS = tuple(map(int, version("scipy").split(".")[:2])) < (1, 18)
"""Whether SciPy's own constants are of double precision beside samples of single."""


def samples(y: Array, x: Array, dx: Array, axis: int) -> tuple[Any, Any, int]:
    """Return samples with their axis last, the distances between them, and the position of that axis.

    The distances are one number, or as many as there are intervals, along a last axis.
    """
    y, x = in_one_dtype(y, x)
    axis = axis_in(axis, y.ndim)
    if x is None:
        if lnp.ndim(dx):
            _, dx = arrays(y, dx)
            dx = lnp.moveaxis(lnp.reshape(dx, (1,) * (y.ndim - dx.ndim) + tuple(dx.shape)), axis, -1)
        return lnp.moveaxis(y, axis, -1), dx, axis
    if x.ndim != 1:
        if x.ndim != y.ndim:
            raise ValueError("If given, shape of x must be 1-D or the same as y.")
        x = lnp.moveaxis(x, axis, -1)
    y = lnp.moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("If given, length of x along axis must be the same as y.")
    return y, lnp.diff(x, axis=-1), axis


@rule("integrate.trapezoid")
def trapezoid(y: Array, x: Array = None, dx: Array = 1.0, axis: int = -1) -> Any:
    """Return ``scipy.integrate.trapezoid``."""
    result = lnp.trapezoid(y, x, dx, axis)
    dtype = plain(as_array(y)).dtype
    if result.dtype.kind == "c" != dtype.kind:
        raise NumpyCallError("scipy.integrate.trapezoid: expected real places of real samples, got complex ones")
    # SciPy's sum has the dtype of the samples, whatever that of the places
    if dtype.kind in "biu":
        return in_dtype(result, np.result_type(result.dtype, np.float64))
    return in_dtype(result, dtype) if dtype.kind in {"c", result.dtype.kind} else result


@rule("integrate.cumulative_trapezoid")
def cumulative_trapezoid(y: Array, x: Array = None, dx: Array = 1.0, axis: int = -1, initial: Array = None) -> Any:
    """Return ``scipy.integrate.cumulative_trapezoid``."""
    y, steps, axis = samples(y, x, dx, axis)
    if not y.shape[-1]:
        raise ValueError("At least one point is required along `axis`.")
    if initial is not None and (np.ndim(initial) or initial != 0):
        raise ValueError("`initial` must be `None` or `0`.")
    sums = lnp.cumsum((y[..., 1:] + y[..., :-1]) * steps / 2.0, -1)
    if initial is not None:
        sums = lnp.concatenate([put(np.zeros((*sums.shape[:-1], 1), sums.dtype), sums), sums], -1)
    return lnp.moveaxis(sums, -1, axis)


def over(x: Array, y: Array) -> Any:
    """Return a quotient, and zero for two samples at one place."""
    if isinstance(y, int | float):
        return x / y if y else x * 0.0
    is_zero = plain(y) == 0
    return lnp.where(is_zero, 0.0, x / lnp.where(is_zero, 1.0, y))


def both_intervals(y: tuple[Any, Any, Any], h0: Array, h1: Array) -> Any:
    """Return the integral of a parabola through three samples."""
    ratio = over(h0, h1)
    span = h0 + h1
    ends = y[0] * (2.0 - over(1.0, ratio)) + y[2] * (2.0 - ratio)
    return span / 6.0 * (ends + y[1] * (span * over(span, h0 * h1)))


def first_interval(y: tuple[Any, Any, Any], h0: Array, h1: Array) -> Any:
    """Return the integral of a parabola through three samples, from the first to the second."""
    share = over(h0, h0 + h1)
    both = share * over(h0, h1)
    return h0 / 6.0 * ((3.0 - share) * y[0] + (3.0 + both + share) * y[1] - both * y[2])


@rule("integrate.simpson")
def simpson(y: Array, x: Array = None, *, dx: Array = 1.0, axis: int = -1) -> Any:
    """Return ``scipy.integrate.simpson``; of an even number of samples the last interval has a parabola of its own."""
    if lnp.ndim(dx) or hasattr(dx, "dtype"):
        # it belongs to the integrals, which have no such axis; SciPy multiplied these in place
        (y,) = in_one_dtype(y)
        _, dx = arrays(y, dx)
        if WIDENS and y.shape[axis] != 2 and y.ndim > 1:
            dx = in_dtype(dx, y.dtype)
        dx = lnp.expand_dims(dx, axis_in(axis, y.ndim)) if dx.ndim else dx
    y, steps, _ = samples(y, x, dx, axis)
    n = y.shape[-1]

    def step(*key: Array) -> Any:
        one_for_all = steps[..., 0] if key and isinstance(key[0], int) and lnp.ndim(steps) else steps
        return one_for_all if x is None else steps[(..., *key)]

    if WIDENS and n != 2 and (x is not None or (not n % 2 and y.ndim == 1)):
        # SciPy computes with distances of double precision
        y = in_dtype(y, np.result_type(y.dtype, np.float64))
    if n == 2:
        return (y[..., 0] + y[..., 1]) * step(0) * 0.5
    last = n - 1 if n % 2 else n - 2
    parts = y[..., 0 : max(last - 1, 0) : 2], y[..., 1:last:2], y[..., 2 : last + 1 : 2]
    total = lnp.sum(both_intervals(parts, step(slice(0, last, 2)), step(slice(1, last, 2))), -1)
    if n % 2 or not n:
        return total
    # in SciPy's terms, of which each is zero where its own denominator is
    h, last_h = step(-2), step(-1)
    near = over(2.0 * last_h * last_h + 3.0 * h * last_h, 6.0 * (h + last_h)) * y[..., -1]
    middle = over(last_h * last_h + 3.0 * h * last_h, 6.0 * h) * y[..., -2]
    return total + near + middle - over(last_h * last_h * last_h, 6.0 * h * (h + last_h)) * y[..., -3]


@rule("integrate.cumulative_simpson")
def cumulative_simpson(y: Array, *, x: Array = None, dx: Array = 1.0, axis: int = -1, initial: Array = None) -> Any:
    """Return ``scipy.integrate.cumulative_simpson``."""
    y, steps, axis = samples(y, x, dx, axis)
    if y.shape[-1] < 3:
        sums = lnp.cumsum((y[..., 1:] + y[..., :-1]) * steps / 2.0, -1)
    else:
        if x is not None and (host(steps) <= 0).any():
            raise ValueError("Input x must be strictly increasing.")
        ones = np.ones(y.shape[-1] - 1, plain(steps).dtype if lnp.ndim(steps) else np.float64)
        h = steps * put(ones, y) if x is None else steps
        triple = y[..., :-2], y[..., 1:-1], y[..., 2:]
        forth = first_interval(triple, h[..., :-1], h[..., 1:])
        back = first_interval(triple[::-1], h[..., 1:], h[..., :-1])
        # the first of two intervals, and the second
        is_first = put(np.arange(y.shape[-1] - 2) % 2 == 0, y)
        inner = lnp.where(is_first, forth, lnp.concatenate([forth[..., :1], back[..., :-1]], -1))
        sums = lnp.cumsum(lnp.concatenate([inner, back[..., -1:]], -1), -1)
    if initial is not None:
        _, start = arrays(y, initial)
        start = lnp.moveaxis(start, axis, -1) if start.ndim else start
        start = lnp.broadcast_to(start, (*y.shape[:-1], 1))
        sums = lnp.concatenate([start, sums + start], -1)
    return lnp.moveaxis(sums, -1, axis)


@rule("integrate.romb")
def romb(y: Array, dx: Array = 1.0, axis: int = -1) -> Any:
    """Return ``scipy.integrate.romb``: a sum with weights that depend on the number of samples alone."""
    y, _, _ = samples(y, None, 1.0, axis)
    y = in_dtype(y, np.result_type(y.dtype, np.float64))
    weights = host_library("integrate").romb(np.eye(y.shape[-1]), axis=0)
    return y @ put(weights.astype(y.dtype), y) * dx


@rule("integrate.fixed_quad")
def fixed_quad(
    func: Callable[..., Any], a: Array, b: Array, args: tuple[Any, ...] = (), n: int = 5
) -> tuple[Any, None]:
    """Return ``scipy.integrate.fixed_quad``: the function is called with places that may be recorded."""
    places, weights = np.polynomial.legendre.leggauss(n)
    a, b = in_one_dtype(a, b)
    if np.isinf([*map(host, (a, b))]).any():
        raise ValueError("scipy.integrate.fixed_quad: expected finite limits, got an infinity: transform the function")
    if not WIDENS:
        places, weights = (each.astype(a.dtype) for each in (places, weights))
    half = (b - a) * 0.5
    values = func(half * put(places + 1, a) + a, *args)
    return half * lnp.sum(values * put(weights, a), -1), None
