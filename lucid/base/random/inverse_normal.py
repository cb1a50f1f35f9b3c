"""Inverse normal distribution function and logarithm in float64, the same bits on every device.

Made only of IEEE additions, subtractions, multiplications, divisions and square roots, each rounded once, and of
integer operations: no library function whose last bit is a matter of platform, and no fused multiply-add.
``philox.cuh`` holds the same operations in the same order.

References
----------
Wichura: Algorithm AS 241: the percentage points of the normal distribution. Applied Statistics 37 (1988), 477-484.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array


# Coefficients of PPND16 in AS 241, lowest power first; each pair is numerator and denominator.
# fmt: off
_CENTRAL = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)
_TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)
_FAR_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)
# fmt: on

# log 2 in two parts: the upper one has 42 bits, so that its product with an exponent is exact.
_LOG2_UPPER = 0.6931471805598903
_LOG2_LOWER = 5.497923018708371e-14
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_LOG_SERIES = tuple(2.0 / (2 * j + 1) for j in range(1, 11))


def _horner(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Polynomial in ``x``, coefficients lowest power first: one multiplication and one addition a step."""
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= x
    value += coefficients[0]
    return value


def _rational(x: Array, pair: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    value = _horner(x, pair[0])
    value /= _horner(x, pair[1])
    return value


def minus_log(xp: ModuleType, x: Array) -> Array:
    """-log(x) for normal positive float64: x = 2**k * z, z in [sqrt(1/2), sqrt(2)), log z = 2 atanh((z-1) / (z+1))."""
    bits = x.view(np.int64)
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    # by a product, as C++17 shifts no negative numbers
    z = (bits - exponent * 2**52).view(np.float64)
    k = exponent.astype(np.float64)
    z -= 1.0
    s = z / (z + 2.0)
    square = s * s
    # 2 atanh(s) = 2s + s * (2/3 s**2 + 2/5 s**4 + ...), |s| < 0.172; the next term is below 2**-55 of the first.
    series = _horner(square, _LOG_SERIES)
    series *= square
    series *= s
    series += k * _LOG2_LOWER
    s += s
    series += s
    series += k * _LOG2_UPPER
    return xp.negative(series, out=series)


def inverse_normal(xp: ModuleType, q: Array) -> Array:
    """Z with P(normal <= Z) = 1/2 + q, float64, q in (-1/2, 1/2) not 0: AS 241."""
    distance = xp.abs(q)
    in_tail = distance > 0.425
    # Also evaluated in the tails, where it is finite (the denominator's first zero lies beyond |q| = 1/2) and replaced.
    values = 0.180625 - q * q
    values = _rational(values, _CENTRAL)
    values *= q
    if xp is np:
        # Only the 15 % in the tails are worth the logarithm; on a device, counting them would stop the queue.
        tail = np.nonzero(in_tail)
        values[tail] = _normal_tail(xp, distance[tail], q[tail])
        return values
    return xp.where(in_tail, _normal_tail(xp, distance, q), values)


def _normal_tail(xp: ModuleType, distance: Array, q: Array) -> Array:
    r = xp.sqrt(minus_log(xp, 0.5 - distance))
    far = r > 5.0
    values = _rational(r - 1.6, _TAIL)
    if xp is not np or far.any():
        values = xp.where(far, _rational(r - 5.0, _FAR_TAIL), values)
    return xp.copysign(values, q)
