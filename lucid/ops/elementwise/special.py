"""Error, gamma and Bessel functions, elementwise, of real numbers.

What holds for them all says `lucid.ops.base.declaration`. On NumPy they are computed in float64.

References
----------
Abramowitz and Stegun: Handbook of Mathematical Functions (1964), chapters 6, 9 and 23, of which the series are.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.errors import SettingError
from lucid.ops.base.declaration import REAL, Fused, elementwise
from lucid.ops.base.operands import refuse
from lucid.ops.base.promotion import float_operand
from lucid.ops.base.scalars import as_int
from lucid.ops.elementwise.normal_tail import erf_into, erfc_into, erfinv_into

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# erf'(x) = SLOPE * exp(-x**2)
SLOPE = 2 / math.sqrt(math.pi)

# Bernoulli's numbers of even index, from 2 on
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
# From here on the asymptotic series of gamma functions are exact, and those of Bessel functions.
FAR, BESSEL_FAR = 10, 20


@elementwise(erf_into, Fused(lambda m, grad, x: m.mul(grad, m.mul(m.exp(m.neg(m.square(x))), SLOPE))), refused=REAL)
def erf(input: Tensor) -> Tensor:
    """Return the error function ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to input``, elementwise.

    >>> import lucid
    >>> lucid.erf(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return GRAPH.erf(input)


@elementwise(erfc_into, Fused(lambda m, grad, x: m.mul(grad, m.mul(m.exp(m.neg(m.square(x))), -SLOPE))), refused=REAL)
def erfc(input: Tensor) -> Tensor:
    """Return ``1 - erf(input)``, elementwise, exact also for small results.

    >>> import lucid
    >>> lucid.erfc(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    return GRAPH.erfc(input)


@elementwise(
    erfinv_into,
    Fused(lambda m, grad, out: m.mul(grad, m.mul(m.exp(m.square(out)), 1 / SLOPE))),
    kernel="special.Erfinv",
    refused=REAL,
)
def erfinv(input: Tensor) -> Tensor:
    """Return the inverse of the error function of `input`, elementwise; NaN outside of [-1, 1].

    >>> import lucid
    >>> lucid.erfinv(lucid.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """
    return GRAPH.erfinv(input)


# ---- gamma functions ----


def _zeta(xp: ModuleType, s: int, q: Array) -> Array:
    """Return the sum of ``(q + k) ** -s`` over all k from 0 on, for q >= 0: Euler's and Maclaurin's formula."""
    total = xp.zeros_like(q)
    # the terms of the formula fall while s is below q
    for _ in range(FAR + s):
        near = q < FAR + s
        total = total + xp.where(near, xp.power(q, -float(s)), 0)
        q = q + near
    term = xp.power(q, -float(s))
    total = total + xp.power(q, 1.0 - s) / (s - 1) + term / 2
    for k, number in enumerate(BERNOULLI, 1):
        # s (s + 1) ... (s + 2k - 2) / (2k)! / q ** (s + 2k - 1)
        term = (
            term * s / q / 2 if k == 1 else term * ((s + 2 * k - 3) * (s + 2 * k - 2) / (2 * k - 1) / (2 * k)) / q / q
        )
        total = total + number * term
    return total


def _series(xp: ModuleType, x: Array, terms: tuple[float, ...]) -> Array:
    """Return the sum of ``terms[k] * x ** k``."""
    total = xp.full_like(x, terms[-1])
    for term in terms[-2::-1]:
        total = total * x + term
    return total


@functools.cache
def _around_two() -> tuple[float, ...]:
    """Return the series of ``lgamma(2 + z)`` in z, exact for ``abs(z) <= 0.5``."""
    tails = [float(_zeta(np, k, np.array(2.0))) for k in range(2, 29)]
    return (0.0, 1 - np.euler_gamma, *((-1) ** k * tail / k for k, tail in enumerate(tails, 2)))


def lgamma_above(xp: ModuleType, x: Array) -> Array:
    """Return the logarithm of the gamma function for x >= 0."""
    near = xp.clip(x, 0, FAR)
    # gamma(x) = product * gamma(x - steps), with x - steps from 1.5 to below 2.5
    product, steps = xp.ones_like(x), xp.zeros_like(x)
    for step in range(1, FAR - 1):
        factor = near - step
        more = factor >= 1.5
        product = product * xp.where(more, factor, 1)
        steps = steps + more
    low, lowest = near < 1.5, near < 0.5
    z = near - xp.where(lowest, 0, xp.where(low, 1, steps + 2))
    close = _series(xp, z, _around_two()) + xp.log(product)
    close = close - xp.where(low, xp.log1p(z), 0) - xp.where(lowest, xp.log(near), 0)
    x = xp.maximum(x, FAR)
    terms = tuple([number / (2 * k * (2 * k - 1)) for k, number in enumerate(BERNOULLI, 1)])
    far = (x - 0.5) * (xp.log(x) - 1) + (math.log(2 * math.pi) - 1) / 2 + _series(xp, 1 / (x * x), terms) / x
    return xp.where(near < FAR, close, far)


def _lgamma_into(xp: ModuleType, out: Array, x: Array) -> None:
    x = x.astype(np.float64)
    above = lgamma_above(xp, xp.where(x < 0, 1 - x, x))
    # gamma(x) gamma(1 - x) = pi / sin(pi x), where the sine is that of the distance to a whole number
    part = x - xp.rint(x)
    below = -xp.log(xp.abs(part)) - xp.log(xp.sinc(part)) - above
    out[...] = xp.where(x < 0, xp.where(xp.isinf(x) | (part == 0), np.inf, below), above)


def _digamma_into(xp: ModuleType, out: Array, x: Array) -> None:
    x = x.astype(np.float64)
    part = x - xp.rint(x)
    total = xp.where(x < 0, xp.where(part == 0, np.nan, -math.pi / xp.tan(math.pi * part)), 0)
    x = xp.where(x < 0, 1 - x, x)
    for _ in range(FAR):
        near = x < FAR
        total = total - xp.where(near, 1 / x, 0)
        x = x + near
    terms = (0.0, *(number / (2 * k) for k, number in enumerate(BERNOULLI, 1)))
    out[...] = total + xp.log(x) - 0.5 / x - _series(xp, 1 / (x * x), terms)


def _polygamma_into(xp: ModuleType, out: Array, x: Array, *, n: int) -> None:
    x = x.astype(np.float64)
    s, sign = n + 1, (-1) ** (n + 1)
    # over all whole k, those below zero too, the sum of (x + k) ** -s depends on the distance to a whole number
    part = x - xp.rint(x)
    size = xp.abs(part)
    around = xp.where(part < 0, sign, 1) * (_zeta(xp, s, size) + sign * _zeta(xp, s, 1 - size))
    above = _zeta(xp, s, xp.where(x <= 0, 1 - x, x))
    total = xp.where(x <= 0, xp.where(size == 0, np.inf, around - sign * above), above)
    # the factorial of 171 is beyond float64
    out[...] = total * (sign * (float(math.factorial(n)) if n <= 170 else np.inf))


@elementwise(_lgamma_into, lambda m, grad, x: m.mul(grad, m.digamma(x)), refused=REAL)
def lgamma(input: Tensor) -> Tensor:
    """Return the logarithm of the absolute value of the gamma function, elementwise; infinite at 0, -1, -2, ...

    >>> import lucid
    >>> lucid.lgamma(lucid.tensor([0.5, 1.0, 4.0]))
    tensor([0.5724, 0.0000, 1.7918])
    """
    return GRAPH.lgamma(input)


@elementwise(_digamma_into, lambda m, grad, x: m.mul(grad, m.polygamma(x, n=1)), kernel="special.Digamma", refused=REAL)
def digamma(input: Tensor) -> Tensor:
    """Return the derivative of `lgamma`, elementwise; NaN at -1, -2, ..., infinite at 0.

    >>> import lucid
    >>> lucid.digamma(lucid.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """
    return GRAPH.digamma(input)


@elementwise(
    _polygamma_into,
    lambda m, grad, x, n: m.mul(grad, m.polygamma(x, n=n + 1)),
    kernel="special.Polygamma",
    refused=REAL,
)
def polygamma(n: int, input: Tensor) -> Tensor:
    """Return derivative number `n` of `digamma`, elementwise; `n` below zero raises a ValueError.

    >>> import lucid
    >>> lucid.polygamma(1, lucid.tensor([1.0, 0.5]))
    tensor([1.6449, 4.9348])
    """
    order = as_int(n, "n")
    if order < 0:
        raise SettingError(f"polygamma: expected n >= 0, got {order}")
    return GRAPH.polygamma(input, n=order) if order else digamma(input)


def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the gamma function of `p` dimensions, elementwise.

    That is ``p * (p - 1) / 4 * log(pi) + sum of lgamma(input - j / 2) for j below p``; `p` below 1 raises a ValueError.

    >>> import lucid
    >>> lucid.mvlgamma(lucid.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    count = as_int(p, "p")
    if count < 1:
        raise SettingError(f"mvlgamma: expected p >= 1, got {count}")
    refuse("mvlgamma", "c", input, instead=REAL[1])
    total: Any = lgamma(input)
    for j in range(1, count):
        total = GRAPH.add(total, lgamma(GRAPH.sub(input, j / 2)))
    return GRAPH.add(total, count * (count - 1) / 4 * math.log(math.pi))


# ---- Bessel functions ----


def _bessel_into(xp: ModuleType, out: Array, x: Array, order: int) -> None:
    """Write the modified Bessel function of the first kind, of order 0 or 1, to `out`."""
    x = x.astype(np.float64)
    size = xp.abs(x)
    # (x/2)**order / order! * (1 + t / (1 (1 + order)) * (1 + t / (2 (2 + order)) * (...))) with t = (x/2)**2
    quarter = xp.square(xp.minimum(size, BESSEL_FAR) / 2)
    near = xp.ones_like(x)
    for k in range(40, 0, -1):
        near = near * quarter / (k * (k + order)) + 1
    if order:
        near = near * xp.minimum(size, BESSEL_FAR) / 2
    size = xp.maximum(size, BESSEL_FAR)
    far = xp.ones_like(x)
    for k in range(28, 0, -1):
        far = far * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k) / size + 1
    # exp(x) overflows before the function does
    root = xp.exp(size / 2)
    far = far * (root / xp.sqrt(size)) * root / math.sqrt(2 * math.pi)
    total = xp.where(size > BESSEL_FAR, far, near)
    # of infinity the square root is infinite, too
    total = xp.where(xp.isinf(size), np.inf, total)
    out[...] = xp.copysign(total, x) if order else total


def _i0_into(xp: ModuleType, out: Array, x: Array) -> None:
    _bessel_into(xp, out, x, 0)


def _i1_into(xp: ModuleType, out: Array, x: Array) -> None:
    _bessel_into(xp, out, x, 1)


def _i1_slope(m: Namespace, grad: Array, x: Array, out: Array) -> Any:
    zero = m.eq(x, 0)
    return m.mul(grad, m.where(zero, 0.5, m.sub(m.i0(x), m.div(out, m.where(zero, 1, x)))))


@elementwise(_i0_into, lambda m, grad, x: m.mul(grad, m.i1(x)), kernel="special.BesselI0", refused=REAL)
def i0(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind, of order 0, elementwise.

    >>> import lucid
    >>> lucid.i0(lucid.tensor([0.0, 1.0, -2.0]))
    tensor([1.0000, 1.2661, 2.2796])
    """
    return GRAPH.i0(input)


@elementwise(_i1_into, _i1_slope, kernel="special.BesselI1", refused=REAL)
def i1(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind, of order 1, elementwise.

    >>> import lucid
    >>> lucid.special.i1(lucid.tensor([0.0, 1.0, -2.0]))
    tensor([ 0.0000,  0.5652, -1.5906])
    """
    return GRAPH.i1(input)


def ndtr(input: Tensor) -> Tensor:
    """Return the share of the normal distribution below `input`, elementwise.

    >>> import lucid
    >>> lucid.special.ndtr(lucid.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """
    refuse("ndtr", "c", input, instead=REAL[1])
    return GRAPH.mul(erfc(GRAPH.mul(float_operand(input), -math.sqrt(0.5))), 0.5)
