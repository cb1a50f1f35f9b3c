"""Tails of the normal distribution: the error function and its relatives, written against NumPy or CuPy.

References
----------
Cody: Rational Chebyshev approximations for the error function. Mathematics of Computation 23 (1969), 631-637. The
float64 coefficients are Cody's; the float32 ones are least-maximum fits of the same kind.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lucid.base.random.inverse_normal import inverse_normal
from lucid.ops.base.blocks import repeated

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array

# the height of the normal density
PEAK = 1 / math.sqrt(2 * math.pi)

# Numerators and denominators, lowest power first; the highest of a denominator has the coefficient 1.
# fmt: off
# erf(x) / x in x**2, |x| <= 0.46875
_CENTRE = (
    (3.20937758913846947e3, 3.77485237685302021e2, 1.13864154151050156e2, 3.16112374387056560e0,
     1.85777706184603153e-1),
    (2.84423683343917062e3, 1.28261652607737228e3, 2.44024637934444173e2, 2.36012909523441209e1, 1.0),
)
# erfc(x) * exp(x**2) in x, 0.46875 <= x <= 4
_SHOULDER = (
    (1.23033935479799725e3, 2.05107837782607147e3, 1.71204761263407058e3, 8.81952221241769090e2,
     2.98635138197400131e2, 6.61191906371416295e1, 8.88314979438837594e0, 5.64188496988670089e-1,
     2.15311535474403846e-8),
    (1.23033935480374942e3, 3.43936767414372164e3, 4.36261909014324716e3, 3.29079923573345963e3,
     1.62138957456669019e3, 5.37181101862009858e2, 1.17693950891312499e2, 1.57449261107098347e1, 1.0),
)
# (1/sqrt(pi) - x * erfc(x) * exp(x**2)) * x**2 in 1/x**2, x >= 4
_FAR = (
    (6.58749161529837803e-4, 1.60837851487422766e-2, 1.25781726111229246e-1, 3.60344899949804439e-1,
     3.05326634961232344e-1, 1.63153871373020978e-2),
    (2.33520497626869185e-3, 6.05183413124413191e-2, 5.27905102951428412e-1, 1.87295284992346725e0,
     2.56852019228982242e0, 1.0),
)
# erf(x) / x in x**2 for float32, |x| <= 3.92, relative error below 2e-8
_ERF32 = (
    (29656.89652, 5009.344898, 1386.924266, 99.15377886, 7.486491473, 0.05377511024),
    (26282.74072, 13200.31405, 3001.042596, 393.8011236, 30.58958087, 1.0),
)
# Q(x) * exp(x**2 / 2) in x for float32, 0 <= x <= 14.6 with the upper tail Q, relative error below
# 6.4e-8 * (1 + x**2 / 2), which is what half a unit of x makes of it; exact at 0
_TAIL32 = (
    (13.87835038, 9.491434823, 3.000867007, 0.3988149065),
    (27.75670076, 41.12944131, 24.94080562, 7.511312546, 1.0),
)
# fmt: on

_CENTRE_END, _SHOULDER_END = 0.46875, 4.0
# beyond these, erfc and the density are zero, and erf is one
_END, _ERF32_END, _TAIL_END = 28.0, 3.92, 40.0


def _horner_into(xp: ModuleType, out: Array, x: Array, coefficients: tuple[float, ...]) -> None:
    xp.multiply(x, coefficients[-1], out=out)
    for coefficient in coefficients[-2:0:-1]:
        xp.add(out, coefficient, out=out)
        xp.multiply(out, x, out=out)
    xp.add(out, coefficients[0], out=out)


def _ratio_into(xp: ModuleType, out: Array, spare: Array, x: Array, pair: tuple[tuple[float, ...], ...]) -> None:
    numerator, denominator = pair
    _horner_into(xp, out, x, numerator)
    xp.add(x, denominator[-2], out=spare)
    for coefficient in denominator[-3::-1]:
        xp.multiply(spare, x, out=spare)
        xp.add(spare, coefficient, out=spare)
    xp.divide(out, spare, out=out)


def _ratio(xp: ModuleType, x: Array, pair: tuple[tuple[float, ...], ...]) -> Array:
    out = xp.empty_like(x)
    _ratio_into(xp, out, xp.empty_like(x), x, pair)
    return out


def _erf_centre(xp: ModuleType, x: Array) -> Array:
    """Return erf(x) for |x| <= 0.46875; beyond, something finite."""
    x = xp.clip(x, -_CENTRE_END, _CENTRE_END)
    return x * _ratio(xp, x * x, _CENTRE)


def _erfc_beyond(xp: ModuleType, x: Array) -> Array:
    """Return erfc(x) for x >= 0.46875; below, its value there."""
    x = xp.clip(x, _CENTRE_END, _END)
    shoulder = _ratio(xp, xp.minimum(x, _SHOULDER_END), _SHOULDER)
    inverse = 1 / xp.square(xp.maximum(x, _SHOULDER_END))
    far = (1 / math.sqrt(math.pi) - inverse * _ratio(xp, inverse, _FAR)) / x
    # exp(-x**2) by a part of x whose square is exact, and the rest
    part = xp.trunc(x * 16) / 16
    scale = xp.exp(-part * part) * xp.exp((part - x) * (part + x))
    return scale * xp.where(x <= _SHOULDER_END, shoulder, far)


def _erf64(xp: ModuleType, x: Array) -> Array:
    size = xp.abs(x)
    return xp.where(size <= _CENTRE_END, _erf_centre(xp, x), xp.copysign(1 - _erfc_beyond(xp, size), x))


def _erfc64(xp: ModuleType, x: Array) -> Array:
    size = xp.abs(x)
    beyond = _erfc_beyond(xp, size)
    return xp.where(size <= _CENTRE_END, 1 - _erf_centre(xp, x), xp.where(x < 0, 2 - beyond, beyond))


def erf_into(xp: ModuleType, out: Array, x: Array, inside: Array, square: Array, upper: Array, lower: Array) -> None:
    """Write erf(x) to `out`: to four units in the last place in float64, to six in float32."""
    if out.dtype == np.float64:
        out[...] = _erf64(xp, x)
        return
    xp.clip(x, -_ERF32_END, _ERF32_END, out=inside)
    xp.multiply(inside, inside, out=square)
    _ratio_into(xp, upper, lower, square, _ERF32)
    xp.multiply(upper, inside, out=upper)
    xp.clip(upper, -1, 1, out=out)


def erfc_into(xp: ModuleType, out: Array, x: Array) -> None:
    """Write 1 - erf(x) to `out`, exact to a few units in the last place also for large `x`."""
    out[...] = _erfc64(xp, x.astype(np.float64))


def erfinv_into(xp: ModuleType, out: Array, y: Array) -> None:
    """Write the x with erf(x) = y to `out`."""
    # in one dimension: of arrays without dimensions ufuncs make scalars, and the tails are found by their indices
    y = y.astype(np.float64).reshape(-1)
    size = xp.minimum(xp.abs(y), 1 - 2.0**-53)
    x = inverse_normal(xp, size / 2) * math.sqrt(0.5)
    for _ in range(2):
        # Newton's step, from whichever of erf and erfc is small
        error = xp.where(size < 0.5, size - _erf64(xp, x), _erfc64(xp, x) - (1 - size))
        x += error * xp.exp(x * x) * (math.sqrt(math.pi) / 2)
    x = xp.where(xp.abs(y) == 1, np.inf, xp.where(xp.abs(y) > 1, np.nan, x))
    out[...] = xp.copysign(x, y).reshape(out.shape)


def tail_into(xp: ModuleType, out: Array, size: Array, x: Array, density: Array, spare: Array) -> None:
    """Write the normal distribution's share above ``|x|`` to `out`.

    ``|x|``, at most 40, is left in `size`, and ``exp(-x**2 / 2)`` in `density`.
    """
    xp.abs(x, out=size)
    xp.minimum(size, repeated(xp, _TAIL_END, size), out=size)
    xp.multiply(size, size, out=density)
    xp.multiply(density, -0.5, out=density)
    xp.exp(density, out=density)
    if out.dtype == np.float64:
        xp.multiply(_erfc64(xp, size * math.sqrt(0.5)), 0.5, out=out)
        return
    _ratio_into(xp, out, spare, size, _TAIL32)
    xp.multiply(out, density, out=out)
