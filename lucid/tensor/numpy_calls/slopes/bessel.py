"""Slopes of Bessel's functions and their relatives, by recurrences over the order; it has no slope itself.

References
----------
NIST Digital Library of Mathematical Functions, 9.2, 10.6, 10.29, 10.51 and 11.4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise.complex import sgn
from lucid.ops.elementwise.power import pow as raised
from lucid.tensor.numpy_calls.by_scipy import TO_COMPLEX, by_scipy, enter
from lucid.tensor.numpy_calls.slopes.polynomials import below

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def between(name: str, above: float, scale: float = 0.5) -> Callable[..., Any]:
    """Return the slope that is the sum of the next lower order and, `above` times, the next higher one, scaled."""
    bessel = by_scipy(name)

    def slope(v: Tensor, x: Tensor) -> Any:
        return (bessel(v - 1, x) + above * bessel(v + 1, x)) * scale

    return slope


def scaled(name: str, above: float, scale: float, rate: complex) -> Callable[..., Any]:
    """Return the slope of a function with an exponential of `rate` as a further factor."""
    inner, bessel = between(name, above, scale), by_scipy(name)

    def slope(v: Tensor, x: Tensor) -> Any:
        return inner(v, x) + bessel(v, x) * rate

    return slope


def struve_term(v: Tensor, x: Tensor) -> Any:
    """Return the additional term of Struve's recurrences: the first of the series of the next order, over x / 2."""
    return raised(x * 0.5, v) * by_scipy("rgamma")(v + 1.5) * (1 / math.sqrt(math.pi))


def of_sphere(name: str, below_sign: float, above_sign: float) -> Callable[..., Any]:
    """Return the slope of a spherical function, of the orders beside its own; of order 0 there is none below."""
    function = by_scipy(name)

    def slope(n: Tensor, x: Tensor) -> Any:
        terms = function(below(n), x) * n * below_sign + function(n + 1, x) * (n + 1) * above_sign
        return terms / (n * 2 + 1)

    return slope


enter(
    {
        "j0": lambda x: -by_scipy("j1")(x),
        "j1": lambda x: between("jv", -1.0)(1, x),
        "k0": lambda x: -by_scipy("k1")(x),
        "k0e": lambda x: by_scipy("k0e")(x) - by_scipy("k1e")(x),
        "k1": lambda x: -(by_scipy("k0")(x) + by_scipy("k1")(x) / x),
        "k1e": lambda x: by_scipy("k1e")(x) * (1 - 1 / x) - by_scipy("k0e")(x),
        "y0": lambda x: -by_scipy("y1")(x),
        "y1": lambda x: by_scipy("y0")(x) - by_scipy("y1")(x) / x,
        "ive": lambda v, x: between("ive", 1.0)(v, x) - by_scipy("ive")(v, x) * sgn(x),
        "jve": between("jve", -1.0),
        "kn": between("kv", 1.0, -0.5),
        "yn": between("yv", -1.0),
        "yve": between("yve", -1.0),
        "struve": lambda v, x: between("struve", -1.0)(v, x) + struve_term(v, x) * 0.5,
        "modstruve": lambda v, x: between("modstruve", 1.0)(v, x) + struve_term(v, x) * 0.5,
    }
)
enter(
    {
        "iv": between("iv", 1.0),
        "jv": between("jv", -1.0),
        "kv": between("kv", 1.0, -0.5),
        "kve": scaled("kve", 1.0, -0.5, 1.0),
        "yv": between("yv", -1.0),
        "hankel1": between("hankel1", -1.0),
        "hankel1e": scaled("hankel1e", -1.0, 0.5, -1j),
        "hankel2": between("hankel2", -1.0),
        "hankel2e": scaled("hankel2e", -1.0, 0.5, 1j),
        "_spherical_in": of_sphere("_spherical_in", 1.0, 1.0),
        "_spherical_jn": of_sphere("_spherical_jn", 1.0, -1.0),
        "_spherical_kn": of_sphere("_spherical_kn", -1.0, -1.0),
        "_spherical_yn": of_sphere("_spherical_yn", 1.0, -1.0),
    },
    is_holomorphic=True,
)
TO_COMPLEX.update({"hankel1", "hankel1e", "hankel2", "hankel2e"})


def _airy_slopes(z: Tensor) -> Any:
    a, a_slope, b, b_slope = by_scipy("airy")(z)
    return a_slope, z * a, b_slope, z * b


enter({"airy": _airy_slopes}, is_holomorphic=True)
