"""Slopes of distribution functions: densities; and of their inverses: one over densities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise.exponential import exp, log, log1p, xlog1py, xlogy
from lucid.ops.elementwise.power import square
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.special import erf, lgamma
from lucid.tensor.numpy_calls.by_scipy import SLOPES, by_scipy, enter

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def of_gamma(a: Tensor, x: Tensor) -> Any:
    """Return the density of the gamma distribution of scale 1."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


def of_chi_square(v: Tensor, x: Tensor) -> Any:
    """Return the density of the chi-squared distribution."""
    return of_gamma(v * 0.5, x * 0.5) * 0.5


def of_beta(a: Tensor, b: Tensor, x: Tensor) -> Any:
    """Return the density of the beta distribution."""
    return exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - (lgamma(a) + lgamma(b) - lgamma(a + b)))


def of_f(m: Tensor, n: Tensor, x: Tensor) -> Any:
    """Return the density of the F distribution."""
    whole = m * x + n
    return of_beta(m * 0.5, n * 0.5, m * x / whole) * (m * n / square(whole))


def of_student(v: Tensor, t: Tensor) -> Any:
    """Return the density of Student's distribution."""
    half = v * 0.5
    size = lgamma(half + 0.5) - lgamma(half) - log(v * math.pi) * 0.5
    return exp(size - (half + 0.5) * log1p(square(t) / v))


def of_poisson(k: Tensor, m: Tensor) -> Any:
    """Return the chance of Poisson's distribution: of a count that is a whole number."""
    return of_gamma(floor(k) + 1, m)


def downwards(slope: Callable[..., Any]) -> Callable[..., Any]:
    """Return the slope of a function that falls as another one rises."""
    return lambda *operands: -slope(*operands)


def inverted(name: str, density: Callable[..., Any], sign: float = 1.0) -> Callable[..., Any]:
    """Return the slope of the inverse of a distribution function, of the name of the inverse."""
    return lambda *operands: sign / density(*operands[:-1], by_scipy(name)(*operands))


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
