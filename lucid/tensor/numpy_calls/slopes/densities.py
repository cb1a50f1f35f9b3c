"""Slopes of distribution functions: densities; and of their inverses: one over densities."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from lucid.base.dtype import float64
from lucid.ops.base.promotion import cast_to, tensor_dtype
from lucid.ops.elementwise.comparison import eq, gt
from lucid.ops.elementwise.exponential import exp, log, log1p, xlog1py, xlogy
from lucid.ops.elementwise.logic import logical_or
from lucid.ops.elementwise.power import sqrt, square
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import erf, lgamma
from lucid.tensor.numpy_calls.by_scipy import SLOPES, by_scipy, enter

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def of_gamma(a: Tensor, x: Tensor) -> Any:
    """Return the density of the gamma distribution of scale 1."""
    is_end = eq(x, math.inf)
    x = where(is_end, 1.0, x)
    return where(is_end, 0.0, exp(xlogy(a - 1, x) - x - lgamma(a)))


def of_chi_square(v: Tensor, x: Tensor) -> Any:
    """Return the density of the chi-squared distribution."""
    return of_gamma(v * 0.5, x * 0.5) * 0.5


def of_beta(a: Tensor, b: Tensor, x: Tensor) -> Any:
    """Return the density of the beta distribution."""
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - (lgamma(a) + lgamma(b) - lgamma(a + b)))


def of_f(m: Tensor, n: Tensor, x: Tensor) -> Any:
    """Return the density of the F distribution."""
    is_end = eq(x, math.inf)
    x = where(is_end, 1.0, x)
    half, other = m * 0.5, n * 0.5
    size = half * log(m / n) - (lgamma(half) + lgamma(other) - lgamma(half + other))
    return where(is_end, 0.0, exp(xlogy(half - 1, x) - (half + other) * log1p(m * x / n) + size))


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
        # in float32 nothing may be left between the place and its end
        *parameters, share = [cast_to(each, float64) for each in operands]
        is_point = functools.reduce(logical_or, [eq(each, 0) for each in parameters])
        height = density(*[where(is_point, 1.0, each) for each in parameters], by_scipy(name)(*parameters, share))
        return cast_to(where(is_point, 0.0, sign / height), tensor_dtype(operands[-1]))

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
