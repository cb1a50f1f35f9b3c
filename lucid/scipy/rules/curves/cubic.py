"""``scipy.interpolate.CubicSpline``: cubic polynomials with continuous second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid import numpy as lnp
from lucid.scipy.rules.curves.piecewise import CubicHermiteSpline, hermite, samples_of
from lucid.scipy.rules.equations import banded_solution
from lucid.scipy.rules.rule import Array, as_array, host, in_double, put

KINDS = ("not-a-knot", "periodic", "clamped", "natural")


class CubicSpline(CubicHermiteSpline):
    """The spline, with gradients by places, values and the derivatives at both ends."""

    def __init__(
        self, x: Array, y: Array, axis: int = 0, bc_type: Array = "not-a-knot", extrapolate: Array = None
    ) -> None:
        if self._begin(x, y, axis=axis, bc_type=bc_type, extrapolate=extrapolate):
            return
        x, values = samples_of(x, y, axis)
        ends = conditions(bc_type, values)
        if extrapolate is None and ends[0] == "periodic":
            extrapolate = "periodic"
        slopes = slopes_of(x, values, ends)
        self._set(hermite(x, values, slopes), x, extrapolate, axis % values.ndim)


def conditions(bc_type: Array, y: Array) -> list[Any]:
    """Return the conditions at both ends: a name, or the order of a derivative and its value."""
    if isinstance(bc_type, str):
        if bc_type == "periodic" and not np.allclose(host(y)[0], host(y)[-1], rtol=1e-15, atol=1e-15):
            raise ValueError(
                "The first and last `y` point must be identical (within machine precision) when bc_type='periodic'."
            )
        bc_type = (bc_type, bc_type)
    elif len(bc_type) != 2:
        raise ValueError("`bc_type` must contain 2 elements to specify start and end conditions.")
    elif any(isinstance(each, str) and each == "periodic" for each in bc_type):
        raise ValueError(
            "'periodic' `bc_type` is defined for both curve ends and cannot be used with other conditions."
        )
    results: list[Any] = []
    for each in bc_type:
        if isinstance(each, str):
            if each not in KINDS:
                raise ValueError(f"bc_type={each} is not allowed.")
            order = {"clamped": 1, "natural": 2}.get(each)
            results.append(each if order is None else (order, y[0] * 0.0))
        else:
            order, value = each
            if order not in {1, 2}:
                raise ValueError("The specified derivative order must be 1 or 2.")
            (value,) = in_double(value)
            if value.shape != y.shape[1:]:
                raise ValueError(f"`deriv_value` shape {value.shape} is not the expected one {y.shape[1:]}.")
            results.append((order, put(value, y)))
    return results


def slopes_of(x: Array, y: Array, ends: list[Any]) -> Any:
    """Return the slopes at the samples."""
    n = y.shape[0]
    h = lnp.diff(x)
    wide = lnp.reshape(h, (-1, *(1,) * (y.ndim - 1)))
    rise = lnp.diff(y, axis=0) / wide
    if n == 2:
        ends = [(1, rise[0]) if isinstance(end, str) else end for end in ends]
    if ends[0] == "periodic":
        return periodic_slopes(h, wide, rise)
    if n == 3 and ends == ["not-a-knot", "not-a-knot"]:
        # one parabola, of which both conditions say the same
        first, last = (1.0, 1.0, 2.0 * rise[0]), (1.0, 1.0, 2.0 * rise[1])
    else:
        first = at_end(ends[0], h, wide, rise, 0, 1, 1.0)
        last = at_end(ends[1], h, wide, rise, -1, -2, -1.0)
    return solved(h, wide, rise, first, last)


def at_end(end: Array, h: Array, wide: Array, rise: Array, near: int, far: int, sign: float) -> tuple[Any, Any, Any]:
    """Return the equation at an end: the factors of its slope and of the next one, and the right side."""
    if end == "not-a-knot":
        span = h[near] + h[far]
        whole = wide[near] + wide[far]
        right = (wide[near] + 2.0 * whole) * wide[far] * rise[near] + wide[near] ** 2 * rise[far]
        return h[far], span, right / whole
    order, value = end
    if order == 1:
        return 1.0, 0.0, value
    return 2.0 * h[near], h[near], 3.0 * rise[near] * wide[near] - sign * 0.5 * value * wide[near] ** 2


def line(parts: list[Any], like: Array) -> Any:
    """Return numbers, recorded ones among them, and vectors, as one vector."""
    return lnp.concatenate([lnp.reshape(put(as_array(each), like), (-1,)) for each in parts])


def solved(h: Array, wide: Array, rise: Array, first: tuple[Any, Any, Any], last: tuple[Any, Any, Any]) -> Any:
    """Return the slopes that the equations between give, with one at each end."""
    inner = 3.0 * (wide[1:] * rise[:-1] + wide[:-1] * rise[1:])
    right = lnp.concatenate([as_array(first[2])[None], inner, as_array(last[2])[None]])
    upper = line([0.0, first[1], h[:-1]], h)
    middle = line([first[0], 2.0 * (h[:-1] + h[1:]), last[0]], h)
    lower = line([h[1:], last[1], 0.0], h)
    return banded_solution(lnp.stack([upper, middle, lower]), right, 1, 1)


def periodic_slopes(h: Array, wide: Array, rise: Array) -> Any:
    """Return the slopes of a periodic spline: those but the last unknown, computed after them."""
    n = h.shape[0] + 1
    if n == 3:
        slope = lnp.sum(rise / wide, 0) / lnp.sum(1.0 / wide, 0)
        return lnp.stack([slope, slope, slope])
    # of the unknowns 0 to n - 2 the last is set apart, the others are linear in it
    right = 3.0 * (wide * lnp.roll(rise, 1, 0) + lnp.roll(wide, 1, 0) * rise)
    before = lnp.roll(h, 1)
    upper = line([0.0, before[: n - 3]], h)
    middle = 2.0 * (h[: n - 2] + before[: n - 2])
    lower = line([h[1 : n - 2], 0.0], h)
    unit = lnp.concatenate([-h[:1], lnp.zeros_like(h[: n - 4]), -before[n - 3 : n - 2]])
    columns = lnp.reshape(unit, (-1, *(1,) * (rise.ndim - 1)))
    diagonals = lnp.stack([upper, middle, lower])
    fixed = banded_solution(diagonals, right[: n - 2], 1, 1)
    moved = banded_solution(diagonals, columns, 1, 1)
    a, b, c = h[n - 2], before[n - 2], 2.0 * (h[n - 2] + before[n - 2])
    # the equation of the last one: its neighbours are the one before and the first
    last = (right[n - 2] - h[n - 2] * fixed[-1] - before[n - 2] * fixed[0]) / (c + a * moved[-1] + b * moved[0])
    return lnp.concatenate([fixed + moved * last[None], last[None], (fixed[0] + moved[0] * last)[None]])
