"""Slopes of Bessel's functions and their relatives, by recurrences over the order; it has no slope itself.

References
----------
NIST Digital Library of Mathematical Functions, 9.2, 10.6, 10.29, 10.51 and 11.4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.elementwise.comparison import eq
from lucid.ops.elementwise.complex import sgn
from lucid.ops.elementwise.logic import logical_and
from lucid.ops.elementwise.nonfinite import isinf
from lucid.ops.elementwise.power import pow as raised
from lucid.ops.elementwise.rounding import trunc
from lucid.ops.elementwise.selection import where
from lucid.tensor.numpy_calls.by_scipy import TO_COMPLEX, Slope, by_scipy, enter
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


def of_whole_order(slope: Callable[..., Any]) -> Callable[..., Any]:
    """Return a slope at the truncated order, as SciPy truncates it in the value."""

    def function(n: Tensor, x: Tensor) -> Any:
        return slope(trunc(n), x)

    return function


def scaled(name: str, above: float, scale: float, rate: complex) -> Callable[..., Any]:
    """Return the slope of a function with an exponential of `rate` as a further factor."""
    inner, bessel = between(name, above, scale), by_scipy(name)

    def slope(v: Tensor, x: Tensor) -> Any:
        return inner(v, x) + bessel(v, x) * rate

    return slope


def struve_term(v: Tensor, x: Tensor) -> Any:
    """Return the additional term of Struve's recurrences: the first of the series of the next order, over x / 2."""
    size = by_scipy("rgamma")(v + 1.5) * (1 / math.sqrt(math.pi))
    is_none = eq(size, 0)
    return where(is_none, 0.0, raised(where(is_none, 1.0, x * 0.5), v) * size)


def of_struve(name: str, above: float) -> Callable[..., Any]:
    """Return the slope of a function of Struve's: of order 0 by the order above alone, as those below have a pole."""
    function = by_scipy(name)

    def slope(v: Tensor, x: Tensor) -> Any:
        is_zero = eq(v, 0)
        order = where(is_zero, 1, v)
        usual = between(name, above)(order, x) + struve_term(order, x) * 0.5
        return where(is_zero, function(1, x) * above + 2 / math.pi, usual)

    return slope


def of_sphere(name: str, below_sign: float, above_sign: float) -> Callable[..., Any]:
    """Return the slope of a spherical function, of the orders beside its own; of order 0 there is none below."""
    function = by_scipy(name)

    def slope(n: Tensor, x: Tensor) -> Any:
        terms = function(below(n), x) * n * below_sign + function(n + 1, x) * (n + 1) * above_sign
        return terms / (n * 2 + 1)

    return slope


def away_from_pole(name: str, slope: Callable[..., Any]) -> Callable[..., Any]:
    """Return a slope, infinite at a pole at 0: of terms of both signs the sum is no number."""

    def function(*operands: Any) -> Any:
        x, made = operands[-1], slope(*operands)
        if x.array.dtype.kind == "c" or not (is_zero := eq(x, 0)).array.any():
            return made
        value = by_scipy(name)(*operands).detach()
        return where(logical_and(is_zero, isinf(value)), -value, made)

    return function


def enter_with_poles(slopes: dict[str, Slope], *, is_holomorphic: bool = False) -> None:
    """Enter functions with a pole at 0, or of some orders."""
    enter({name: away_from_pole(name, slope) for name, slope in slopes.items()}, is_holomorphic=is_holomorphic)


enter(
    {
        "j0": lambda x: -by_scipy("j1")(x),
        "j1": lambda x: between("jv", -1.0)(1, x),
        "struve": of_struve("struve", -1.0),
        "modstruve": of_struve("modstruve", 1.0),
    }
)
enter(
    {
        "hankel1": between("hankel1", -1.0),
        "hankel1e": scaled("hankel1e", -1.0, 0.5, -1j),
        "hankel2": between("hankel2", -1.0),
        "hankel2e": scaled("hankel2e", -1.0, 0.5, 1j),
        "_spherical_in": of_sphere("_spherical_in", 1.0, 1.0),
        "_spherical_jn": of_sphere("_spherical_jn", 1.0, -1.0),
    },
    is_holomorphic=True,
)
enter_with_poles(
    {
        "k0": lambda x: -by_scipy("k1")(x),
        "k0e": lambda x: by_scipy("k0e")(x) - by_scipy("k1e")(x),
        "k1": lambda x: -(by_scipy("k0")(x) + by_scipy("k1")(x) / x),
        "k1e": lambda x: by_scipy("k1e")(x) * (1 - 1 / x) - by_scipy("k0e")(x),
        "y0": lambda x: -by_scipy("y1")(x),
        "y1": lambda x: by_scipy("y0")(x) - by_scipy("y1")(x) / x,
        "ive": lambda v, x: between("ive", 1.0)(v, x) - by_scipy("ive")(v, x) * sgn(x),
        "jve": between("jve", -1.0),
        "kn": of_whole_order(between("kv", 1.0, -0.5)),
        "yn": of_whole_order(between("yv", -1.0)),
        "yve": between("yve", -1.0),
    }
)
enter_with_poles(
    {
        "iv": between("iv", 1.0),
        "jv": between("jv", -1.0),
        "kv": between("kv", 1.0, -0.5),
        "kve": scaled("kve", 1.0, -0.5, 1.0),
        "yv": between("yv", -1.0),
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
