"""Slopes of distribution functions: densities; and of their inverses: one over densities."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise.comparison import eq, ge, gt, lt
from lucid.ops.elementwise.exponential import exp, log, log1p, xlogy
from lucid.ops.elementwise.logic import logical_and, logical_or
from lucid.ops.elementwise.power import sqrt, square
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import erf, lgamma
from lucid.tensor.numpy_calls.by_scipy import SLOPES, by_scipy, enter, series

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def above_lgamma(a: Tensor) -> Any:
    """Return Stirling's rest: ``lgamma(a + 1)`` less ``a * log(a) - a + log(2 * pi * a) / 2``, of `a` from 1 on."""
    is_small = lt(a, 32)
    small, large = where(is_small, a, 1.0), where(is_small, 32.0, a)
    rest = lgamma(small + 1) - (small * log(small) - small + log(small * (2 * math.pi)) * 0.5)
    return where(is_small, rest, series(1 / square(large), [1 / 12, -1 / 360, 1 / 1260, -1 / 1680]) / large)


def below_top(a: Tensor, x: Tensor) -> Any:
    """Return ``a * log(x / a) - x + a``: no difference of large numbers near its top at a."""
    away = (x - a) / a
    return a * (log1p(away) - away)


def of_gamma(a: Tensor, x: Tensor) -> Any:
    """Return the density of the gamma distribution of scale 1."""
    is_end = eq(x, math.inf)
    x = where(is_end, 1.0, x)
    is_large = ge(a, 2)
    small, large = where(is_large, 1.0, a), where(is_large, a, 2.0) - 1
    usual = exp(xlogy(small - 1, x) - x - lgamma(small))
    far = exp(below_top(large, where(is_large, x, 1.0)) - above_lgamma(large)) / sqrt(large * (2 * math.pi))
    return where(is_end, 0.0, where(is_large, far, usual))


def of_chi_square(v: Tensor, x: Tensor) -> Any:
    """Return the density of the chi-squared distribution."""
    return of_gamma(v * 0.5, x * 0.5) * 0.5


def of_shares(a: Tensor, b: Tensor, x: Tensor, rest: Tensor) -> Any:
    """Return the density of the beta distribution at `x`, with the rest to 1 given too."""
    is_large = logical_and(ge(a, 2), ge(b, 2))
    size = lgamma(a) + lgamma(b) - lgamma(a + b)
    usual = exp(where(is_large, 0.0, xlogy(a - 1, x) + xlogy(b - 1, rest) - size))
    one, other = where(is_large, a, 2.0) - 1, where(is_large, b, 2.0) - 1
    both = one + other
    far = below_top(one, where(is_large, x, 0.5) * both) + below_top(other, where(is_large, rest, 0.5) * both)
    far = far + above_lgamma(both) - above_lgamma(one) - above_lgamma(other)
    far = exp(far) * (both + 1) * sqrt(both / one / other * (0.5 / math.pi))
    return where(is_large, far, usual)


def of_beta(a: Tensor, b: Tensor, x: Tensor) -> Any:
    """Return the density of the beta distribution."""
    return of_shares(a, b, x, 1 - x)


def of_f(m: Tensor, n: Tensor, x: Tensor) -> Any:
    """Return the density of the F distribution."""
    is_end = eq(x, math.inf)
    ratio = where(is_end, 1.0, x) * m / n
    rest = 1 / (ratio + 1)
    return where(is_end, 0.0, of_shares(m * 0.5, n * 0.5, ratio * rest, rest) * square(rest) * m / n)


def of_student(v: Tensor, t: Tensor) -> Any:
    """Return the density of Student's distribution."""
    # beyond this it is the normal distribution's, which has none of the infinities of the others
    is_normal = gt(v, 1e20)
    half = where(is_normal, 1.0, v) * 0.5
    # the quotient of gamma functions is near the root of the half, and their logarithms far from each other
    size = by_scipy("poch")(half, 0.5) / sqrt(half * (2 * math.pi))
    other = size * exp(-(half + 0.5) * log1p(square(t) / (half * 2)))
    return where(is_normal, exp(square(t) * -0.5) / math.sqrt(2 * math.pi), other)


def of_poisson(k: Tensor, m: Tensor) -> Any:
    """Return the chance of Poisson's distribution: of a count that is a whole number."""
    return of_gamma(floor(k) + 1, m)


def downwards(slope: Callable[..., Any]) -> Callable[..., Any]:
    """Return the slope of a function that falls as another one rises."""
    return lambda *operands: -slope(*operands)


def inverted(name: str, density: Callable[..., Any], sign: float = 1.0) -> Callable[..., Any]:
    """Return the slope of the inverse of a distribution function, of the name of the inverse; 0 of one at a point."""

    def slope(*operands: Tensor) -> Any:
        *parameters, share = operands
        is_point = functools.reduce(logical_or, [eq(each, 0) for each in parameters])
        height = density(*[where(is_point, 1.0, each) for each in parameters], by_scipy(name)(*parameters, share))
        return where(is_point, 0.0, sign / height)

    return slope


enter(
    {
        "betainc": of_beta,
        "betaincc": downwards(of_beta),
        "betainccinv": inverted("betainccinv", of_beta, -1.0),
        "betaincinv": inverted("betaincinv", of_beta),
        "chdtr": of_chi_square,
        "chdtrc": downwards(of_chi_square),
        "chdtri": inverted("chdtri", of_chi_square, -1.0),
        "fdtr": of_f,
        "fdtrc": downwards(of_f),
        "fdtri": inverted("fdtri", of_f),
        "gammainc": of_gamma,
        "gammaincc": downwards(of_gamma),
        "gammainccinv": inverted("gammainccinv", of_gamma, -1.0),
        "gammaincinv": inverted("gammaincinv", of_gamma),
        "ndtri_exp": lambda y: exp(y + square(by_scipy("ndtri_exp")(y)) * 0.5) * math.sqrt(2 * math.pi),
        "pdtr": downwards(of_poisson),
        "pdtrc": of_poisson,
        "stdtr": of_student,
        "stdtrit": inverted("stdtrit", of_student),
    }
)


def _t_by_height(h: Tensor, a: Tensor) -> Any:
    return exp(square(h) * -0.5) * erf(a * h * math.sqrt(0.5)) * (-0.5 / math.sqrt(2 * math.pi))


def _t_by_slope(h: Tensor, a: Tensor) -> Any:
    whole = square(a) + 1
    return exp(square(h) * whole * -0.5) / (whole * (2 * math.pi))


SLOPES["owens_t"] = {-2: _t_by_height, -1: _t_by_slope}
