"""Slopes of error functions, integrals of elementary functions, and elliptic and hypergeometric functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise.comparison import eq, lt
from lucid.ops.elementwise.complex import abs as absolute
from lucid.ops.elementwise.complex import imag, real
from lucid.ops.elementwise.exponential import exp, log
from lucid.ops.elementwise.power import sqrt, square
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.trigonometry import cos, cosh, sin
from lucid.tensor.numpy_calls.box_cox import NEAR_LOG, relative_logarithm
from lucid.tensor.numpy_calls.by_scipy import HOLOMORPHIC, SLOPES, TO_COMPLEX, by_scipy, enter
from lucid.tensor.numpy_calls.slopes.polynomials import below

if TYPE_CHECKING:
    from lucid.tensor import Tensor

HEIGHT = 2 / math.sqrt(math.pi)
"""The slope of the error function at 0."""


def evenly(name: str, z: Tensor) -> Any:
    """Return a spherical function of order 0, which is even: of real numbers SciPy has none below 0."""
    return by_scipy(name)(0, z if z.array.dtype.kind == "c" else where(lt(z, 0), -z, z))


def _spence_slope(z: Tensor) -> Any:
    is_near = lt(absolute(z - 1), NEAR_LOG)
    safe = where(is_near, 2.0, z)
    return where(is_near, -relative_logarithm(where(is_near, z - 1, 0.0)), log(safe) / (1 - safe))


def _share(w: Tensor) -> Any:
    return 1 - 1 / (w + 1)


def _lambert_slope(z: Tensor, k: Tensor, tol: Tensor) -> Any:
    w = by_scipy("_lambertw")(z, k, tol)
    return exp(-w) / (w + 1)


def _next_integral(n: Tensor, x: Tensor) -> Any:
    """Return the slope of ``expn``, minus that of the order below; SciPy has orders from 0 on."""
    lowest = -((exp(-x) + by_scipy("expn")(n, x)) / x)
    return where(eq(n, 0), lowest, -by_scipy("expn")(below(n), x))


enter(
    {
        "erfcinv": lambda x: exp(square(by_scipy("erfcinv")(x))) * (-1 / HEIGHT),
        "expn": _next_integral,
    }
)
enter(
    {
        "dawsn": lambda z: 1 - z * by_scipy("dawsn")(z) * 2,
        "erf": lambda z: exp(-square(z)) * HEIGHT,
        "erfc": lambda z: exp(-square(z)) * -HEIGHT,
        "erfcx": lambda z: by_scipy("erfcx")(z) * z * 2 - HEIGHT,
        "erfi": lambda z: exp(square(z)) * HEIGHT,
        "exp1": lambda z: -(exp(-z) / z),
        "expi": lambda z: exp(z) / z,
        "fresnel": lambda z: (sin(square(z) * (math.pi / 2)), cos(square(z) * (math.pi / 2))),
        "shichi": lambda z: (evenly("_spherical_in", z), cosh(z) / z),
        "sici": lambda z: (evenly("_spherical_jn", z), cos(z) / z),
        "spence": _spence_slope,
        "wrightomega": lambda z: _share(by_scipy("wrightomega")(z)),
        "wofz": lambda z: z * by_scipy("wofz")(z) * -2 + HEIGHT * 1j,
        "hyp0f1": lambda v, z: by_scipy("hyp0f1")(v + 1, z) / v,
        "hyp1f1": lambda a, b, z: by_scipy("hyp1f1")(a + 1, b + 1, z) * (a / b),
        "hyp2f1": lambda a, b, c, z: by_scipy("hyp2f1")(a + 1, b + 1, c + 1, z) * (a * b / c),
    },
    is_holomorphic=True,
)
SLOPES["_lambertw"] = {-3: _lambert_slope}
HOLOMORPHIC.add("_lambertw")
TO_COMPLEX.update({"wofz", "_lambertw"})


# ---- Voigt's profile: the real part of w(z) over a width ----


def _place(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    return (x + gamma * 1j) / (sigma * math.sqrt(2))


def _voigt_slope(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    slope = SLOPES["wofz"][-1](_place(x, sigma, gamma))
    return slope / (square(sigma) * (2 * math.sqrt(math.pi)))


def _voigt_by_width(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    moved = real((x + gamma * 1j) * _voigt_slope(x, sigma, gamma))
    return -(by_scipy("voigt_profile")(x, sigma, gamma) + moved) / sigma


SLOPES["voigt_profile"] = {
    -3: lambda *operands: real(_voigt_slope(*operands)),
    -2: _voigt_by_width,
    -1: lambda *operands: -imag(_voigt_slope(*operands)),
}


# ---- elliptic integrals and functions ----


def _depth(phi: Tensor, m: Tensor) -> Any:
    return sqrt(1 - m * square(sin(phi)))


def _over_depth(phi: Tensor, m: Tensor) -> Any:
    return 1 / _depth(phi, m)


def _jacobi_slopes(u: Tensor, m: Tensor) -> Any:
    sine, cosine, delta, _ = by_scipy("ellipj")(u, m)
    return cosine * delta, -(sine * delta), -(m * sine * cosine), delta


enter(
    {
        "ellipe": lambda m: by_scipy("hyp2f1")(0.5, 1.5, 2.0, m) * (-math.pi / 8),
        "ellipk": lambda m: by_scipy("hyp2f1")(1.5, 1.5, 2.0, m) * (math.pi / 8),
    }
)
SLOPES["ellipeinc"] = {-2: _depth}
SLOPES["ellipkinc"] = {-2: _over_depth}
SLOPES["ellipj"] = {-2: _jacobi_slopes}
