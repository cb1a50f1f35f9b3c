"""Slopes of error functions, integrals of elementary functions, and elliptic and hypergeometric functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise.comparison import eq, ge, gt, lt
from lucid.ops.elementwise.complex import abs as absolute
from lucid.ops.elementwise.complex import imag, real
from lucid.ops.elementwise.exponential import exp, log
from lucid.ops.elementwise.logic import logical_and, logical_or
from lucid.ops.elementwise.power import sqrt, square
from lucid.ops.elementwise.rounding import round as rint
from lucid.ops.elementwise.rounding import trunc
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.trigonometry import cos, cosh, sin
from lucid.tensor.numpy_calls.box_cox import NEAR_LOG, relative_logarithm
from lucid.tensor.numpy_calls.by_scipy import SLOPES, TO_COMPLEX, by_scipy, enter, series
from lucid.tensor.numpy_calls.slopes.polynomials import below

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor

HEIGHT = 2 / math.sqrt(math.pi)
"""The slope of the error function at 0."""


def evenly(name: str, z: Tensor) -> Any:
    """Return a spherical function of order 0, an even one: of real numbers SciPy has none below 0."""
    return by_scipy(name)(0, z if z.array.dtype.kind == "c" else where(lt(z, 0), -z, z))


def _spence_slope(z: Tensor) -> Any:
    is_near = lt(absolute(z - 1), NEAR_LOG)
    safe = where(is_near, 2.0, z)
    return where(is_near, -relative_logarithm(where(is_near, z - 1, 0.0)), log(safe) / (1 - safe))


def _gauss_slope(a: Tensor, b: Tensor, c: Tensor, z: Tensor) -> Any:
    # SciPy's function of a that is c is a power, also where both are 0
    product = a * b
    rest = product / where(eq(product, 0), 1.0, c)
    rest = where(eq(a, c), b, rest)
    is_flat = eq(rest, 0)
    return where(is_flat, 0.0, by_scipy("hyp2f1")(a + 1, b + 1, c + 1, where(is_flat, 0.0, z)) * rest)


def _kummer_slope(a: Tensor, b: Tensor, z: Tensor) -> Any:
    # SciPy's function of a = b = -n is the polynomial of degree n, and infinite where both are 0
    is_line = eq(a, -1)
    above = [where(is_line, other, each) for each, other in ((a + 1, 1.0), (b + 1, 1.0), (z, 0.0))]
    return where(is_line, 1.0, by_scipy("hyp1f1")(*above)) * (a / b)


def _fresnel_slopes(z: Tensor) -> Any:
    quarters = square(z)
    # less whole turns, as the product with pi is rounded
    angle = (quarters - rint(real(quarters) * 0.25) * 4) * (math.pi / 2)
    return sin(angle), cos(angle)


def _omega_slope(z: Tensor) -> Any:
    w = by_scipy("wrightomega")(z)
    is_large = gt(absolute(w), 1)
    small = where(is_large, 0.0, w)
    return where(is_large, 1 - 1 / (w + 1), small / (small + 1))


def tail(z: Tensor, sign: float) -> Any:
    """Return the sum of ``(2 k - 1)!! * (sign / (2 z ** 2)) ** k`` over k from 1 on, for z beyond `FAR`."""
    inverse = sign * 0.5 / square(z)
    total: Any = 1.0
    for odd in range(27, 1, -2):
        total = inverse * total * odd + 1
    return inverse * total


FAR = 10.0
"""Beyond this what is near ``1 / z`` has the slope of its asymptotic series, and no difference of near numbers."""


def _dawson_slope(z: Tensor) -> Any:
    is_far = gt(absolute(z), FAR) if z.array.dtype.kind == "f" else eq(z, math.nan)
    near = where(is_far, 0.0, z)
    return where(is_far, -tail(where(is_far, z, FAR), 1.0), 1 - near * by_scipy("dawsn")(near) * 2)


def _scaled_slope(z: Tensor) -> Any:
    is_far = gt(z, FAR) if z.array.dtype.kind == "f" else eq(z, math.nan)
    near = where(is_far, 0.0, z)
    return where(is_far, tail(where(is_far, z, FAR), -1.0) * HEIGHT, by_scipy("erfcx")(near) * near * 2 - HEIGHT)


def _lambert_slope(z: Tensor, k: Tensor, tol: Tensor) -> Any:
    w = by_scipy("_lambertw")(z, k, tol)
    return exp(-w) / (w + 1)


def _next_integral(n: Tensor, x: Tensor) -> Any:
    """Return the slope of ``expn``, minus that of the order below; SciPy has orders from 0 on, and truncates them."""
    n = trunc(n)
    lowest = -((exp(-x) + by_scipy("expn")(n, x)) / x)
    return where(eq(n, 0), lowest, -by_scipy("expn")(below(n), x))


enter({"erfcinv": lambda x: exp(square(by_scipy("erfcinv")(x))) * (-1 / HEIGHT), "expn": _next_integral})
enter(
    {
        "dawsn": _dawson_slope,
        "erf": lambda z: exp(-square(z)) * HEIGHT,
        "erfc": lambda z: exp(-square(z)) * -HEIGHT,
        "erfcx": _scaled_slope,
        "erfi": lambda z: exp(square(z)) * HEIGHT,
        "exp1": lambda z: -(exp(-z) / z),
        "expi": lambda z: exp(z) / z,
        "fresnel": _fresnel_slopes,
        "shichi": lambda z: (evenly("_spherical_in", z), cosh(z) / z),
        "sici": lambda z: (evenly("_spherical_jn", z), cos(z) / z),
        "spence": _spence_slope,
        "wrightomega": _omega_slope,
        "wofz": lambda z: z * by_scipy("wofz")(z) * -2 + HEIGHT * 1j,
        "hyp0f1": lambda v, z: by_scipy("hyp0f1")(v + 1, z) / v,
        "hyp1f1": _kummer_slope,
        "hyp2f1": _gauss_slope,
    },
    is_holomorphic=True,
)
enter({"_lambertw": _lambert_slope}, place=-3, is_holomorphic=True)
TO_COMPLEX.update({"wofz", "_lambertw"})


# ---- Voigt's profile: the real part of w(z) over a width ----


def _place(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    return (x + gamma * 1j) / (sigma * math.sqrt(2))


def _is_wing(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    """Mark places far out in units of sigma, by the asymptotic series of w(z): its slopes are no differences."""
    is_wide = logical_and(ge(sigma, 0), gt(absolute(x + gamma * 1j), sigma * (FAR * math.sqrt(2))))
    return logical_and(is_wide, logical_or(ge(gamma, 0), eq(sigma, 0)))


def _wing(x: Tensor, sigma: Tensor, gamma: Tensor, terms: Sequence[int]) -> Any:
    """Return the sum of ``terms[k] * (sigma / y) ** (2 k)``, and y itself, the place ``x + gamma * 1j``."""
    y = x + gamma * 1j
    return series(square(sigma / y), [float(term) for term in terms]), y


BY_PLACE = [math.prod(range(1, 2 * k + 2, 2)) for k in range(14)]
BY_WIDTH = [(k + 1) * odd for k, odd in enumerate(BY_PLACE)]


def _in_wings(wing: Callable[..., Any], usual: Callable[..., Any]) -> Callable[..., Any]:
    """Return a slope by its formula in the wings of the profile, and by another one elsewhere."""

    def slope(*operands: Tensor) -> Any:
        is_wing = _is_wing(*operands)
        far = [where(is_wing, each, other) for each, other in zip(operands, (0.0, 0.0, 1.0), strict=True)]
        near = [where(is_wing, 1.0, each) for each in operands]
        return where(is_wing, wing(*far), usual(*near))

    return slope


def _core(y: Tensor, sigma: Tensor) -> Any:
    """Return the normal density at y, as far as it counts, y over sigma, and sigma, both 1 elsewhere.

    It is all that there is in the wings without gamma, and less than what is rounded of others.
    """
    is_near = logical_and(lt(imag(y), sigma), lt(absolute(y), sigma * 40))
    width = where(is_near, sigma, 1.0)
    place = where(is_near, y, 1.0) / width
    return where(is_near, exp(square(place) * -0.5) / (width * math.sqrt(2 * math.pi)), 0.0), place, width


def _wing_slope(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    total, y = _wing(x, sigma, gamma, BY_PLACE)
    density, place, width = _core(y, sigma)
    return total / square(y) * (-1j / math.pi) - density * place / width


def _wing_by_width(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    total, y = _wing(x, sigma, gamma, BY_WIDTH)
    density, place, width = _core(y, sigma)
    return real(total / (y * square(y)) * 1j) * sigma * (2 / math.pi) + real(density * (square(place) - 1) / width)


def _near_slope(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    slope = SLOPES["wofz"][-1](_place(x, sigma, gamma))
    return slope / (square(sigma) * (2 * math.sqrt(math.pi)))


def _near_by_width(x: Tensor, sigma: Tensor, gamma: Tensor) -> Any:
    moved = real((x + gamma * 1j) * _near_slope(x, sigma, gamma))
    return -(by_scipy("voigt_profile")(x, sigma, gamma) + moved) / sigma


_voigt_slope = _in_wings(_wing_slope, _near_slope)
SLOPES["voigt_profile"] = {
    -3: lambda *operands: real(_voigt_slope(*operands)),
    -2: _in_wings(_wing_by_width, _near_by_width),
    -1: lambda *operands: -imag(_voigt_slope(*operands)),
}


# ---- elliptic integrals and functions ----


def _depth(phi: Tensor, m: Tensor) -> Any:
    return sqrt(1 - m * square(sin(phi)))


def _jacobi_slopes(u: Tensor, m: Tensor) -> Any:
    sine, cosine, delta, _ = by_scipy("ellipj")(u, m)
    return cosine * delta, -(sine * delta), -(m * sine * cosine), delta


enter(
    {
        "ellipe": lambda m: by_scipy("hyp2f1")(0.5, 1.5, 2.0, m) * (-math.pi / 8),
        "ellipk": lambda m: by_scipy("hyp2f1")(1.5, 1.5, 2.0, m) * (math.pi / 8),
    }
)
enter({"ellipeinc": _depth, "ellipkinc": lambda phi, m: 1 / _depth(phi, m), "ellipj": _jacobi_slopes}, place=-2)
