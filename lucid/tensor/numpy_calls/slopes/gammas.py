"""Slopes of gamma and beta functions, of combinatorial functions, of roots, and of functions of degrees."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.creation.filling import zeros_like
from lucid.ops.elementwise.comparison import eq, gt, lt
from lucid.ops.elementwise.complex import abs as absolute
from lucid.ops.elementwise.logic import logical_and, logical_not, logical_or
from lucid.ops.elementwise.power import square
from lucid.ops.elementwise.rounding import floor
from lucid.ops.elementwise.rounding import round as rint
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma, polygamma
from lucid.ops.elementwise.trigonometry import cos, sin
from lucid.tensor.numpy_calls.by_scipy import by_scipy, enter

if TYPE_CHECKING:
    from lucid.tensor import Tensor

DEGREE = math.pi / 180


def sign_of_turns(whole: Tensor) -> Any:
    """Return ``(-1) ** whole``."""
    return 1 - whole % 2 * 2


def cos_of_turns(x: Tensor) -> Any:
    """Return ``cos(pi * x)``, exact far out too, though the product is rounded there."""
    whole = rint(x)
    return cos((x - whole) * math.pi) * sign_of_turns(whole)


def _slope_of_inverse(x: Tensor) -> Any:
    """Return the slope of ``rgamma``, below a half by reflection: `digamma` has poles there that the slope has not."""
    is_low = lt(x, 0.5)
    low, high = where(is_low, x, 0.0), where(is_low, 1.0, x)
    below = cos_of_turns(low) * by_scipy("gamma")(1 - low) - by_scipy("rgamma")(low) * digamma(1 - low)
    is_end = eq(high, math.inf)
    high = where(is_end, 1.0, high)
    above = where(is_end, 0.0, -(by_scipy("rgamma")(high) * digamma(high)))
    return where(is_low, below, above)


enter(
    {
        "cbrt": lambda x: square(1 / by_scipy("cbrt")(x)) * (1 / 3),
        "gamma": lambda x: by_scipy("gamma")(x) * digamma(x),
        "gammasgn": zeros_like,
        "loggamma": digamma,
        "rgamma": _slope_of_inverse,
        "_zeta": lambda s, q: by_scipy("_zeta")(s + 1, q) * -s,
        "cosdg": lambda x: by_scipy("sindg")(x) * -DEGREE,
        "cotdg": lambda x: (square(by_scipy("cotdg")(x)) + 1) * -DEGREE,
        "sindg": lambda x: by_scipy("cosdg")(x) * DEGREE,
        "tandg": lambda x: (square(by_scipy("tandg")(x)) + 1) * DEGREE,
    }
)


# ---- quotients of gamma functions: there a pole of a `digamma` may stand beside a zero ----


def whole_steps(z: Tensor, m: Tensor) -> Any:
    """Mark whole steps with both ends below a half, among the poles of the gamma function.

    Those of `digamma` are then the same at both ends.
    """
    return logical_and(eq(floor(m), m), logical_and(lt(z, 0.5), lt(z + m, 0.5)))


def small_step(z: Tensor, m: Tensor) -> Any:
    """Mark steps small beside the distance from poles: of these Taylor's series of `digamma` is exact."""
    room = where(gt(z, 0), z, absolute(z - rint(z)))
    return lt(absolute(m), room * (5e-4 if z.array.dtype.itemsize > 4 else 0.02))


def rise(z: Tensor, m: Tensor) -> Any:
    """Return ``digamma(z + m) - digamma(z)``, also of a small step, and of two poles."""
    is_both, end = whole_steps(z, m), z + m
    # by reflection
    start, stop, step = where(is_both, 1 - z, z), where(is_both, 1 - end, end), where(is_both, -m, m)
    is_small = small_step(start, step)
    # around the middle, where the series has no even terms
    middle, step = where(is_small, (start + stop) * 0.5, 1.0), where(is_small, step, 0.0)
    small = step * (polygamma(1, middle) + square(step) * polygamma(3, middle) * (1 / 24))
    return where(is_small, small, digamma(where(is_small, 1.0, stop)) - digamma(where(is_small, 1.0, start)))


def is_near_pole(z: Tensor, m: Tensor) -> Any:
    """Mark quotients ``gamma(z + m) / gamma(z)`` with a slope that is not to be the quotient times its `rise`."""
    return logical_and(lt(z, 0.5), logical_not(logical_or(whole_steps(z, m), small_step(z, m))))


# Near a pole of gamma(z), 1 / gamma(z) has by reflection the slope cos(pi z) gamma(1 - z) - digamma(1 - z) / gamma(z).


def _beta_by_first(a: Tensor, b: Tensor) -> Any:
    beta = by_scipy("beta")
    is_low = is_near_pole(a + b, -b)
    one, other = where(is_low, a, 0.25), where(is_low, b, 0.125)
    low = beta(one, other) * (digamma(one) - digamma(1 - one - other))
    # gamma(a) gamma(b) gamma(1 - a - b), of the lower of both by reflection: no factor is out of range alone
    is_first = lt(one, other)
    lower, upper = where(is_first, one, other), where(is_first, other, one)
    whole = rint(lower)
    ratio = beta(upper, 1 - one - other) / sin((lower - whole) * math.pi)
    low = low + cos_of_turns(one + other) * sign_of_turns(whole) * ratio * math.pi
    one, other = where(is_low, 1.0, a), where(is_low, 1.0, b)
    return where(is_low, low, -(beta(one, other) * rise(one, other)))


def _rising_by_start(z: Tensor, m: Tensor) -> Any:
    poch = by_scipy("poch")
    is_low = is_near_pole(z, m)
    start, step = where(is_low, z, 0.25), where(is_low, m, 1.0)
    low = poch(start, step) * digamma(start + step) + by_scipy("gamma")(start + step) * _slope_of_inverse(start)
    start, step = where(is_low, 1.0, z), where(is_low, 1.0, m)
    return where(is_low, low, poch(start, step) * rise(start, step))


def _chosen_by_whole(n: Tensor, k: Tensor) -> Any:
    is_low = is_near_pole(n - k + 1, k)
    whole, part = where(is_low, n, 0.5), where(is_low, k, 1.75)
    low = _chosen_below(whole, whole - part, whole)
    whole, part = where(is_low, 1.0, n), where(is_low, 1.0, k)
    return where(is_low, low, by_scipy("binom")(whole, part) * rise(whole - part + 1, part))


def _chosen_by_part(n: Tensor, k: Tensor) -> Any:
    rest = n - k
    is_low = logical_or(lt(k, -0.5), lt(rest, -0.5))
    # of the two parts, the one nearer to a pole
    is_rest = lt(_distance(rest), _distance(k))
    whole, other = where(is_low, n, 0.5), where(is_low, where(is_rest, rest, k), -0.75)
    low = _chosen_below(whole, other, whole - other)
    usual = by_scipy("binom")(n, where(is_low, 0.0, k)) * rise(where(is_low, 1.0, k + 1), where(is_low, 0.0, rest - k))
    return where(is_low, where(is_rest, -low, low), usual)


def _chosen_below(whole: Tensor, part: Tensor, beside: Tensor) -> Any:
    """Return the slope of a binomial coefficient by one of its parts, below zero; that of the rest is `beside`."""
    pole = cos_of_turns(part) * by_scipy("beta")(whole + 1, -part)
    return by_scipy("binom")(whole, part) * (digamma(beside + 1) - digamma(-part)) - pole


def _distance(part: Tensor) -> Any:
    """Return how far the gamma function of ``part + 1`` is from a pole, 1 if it is not below a half."""
    return where(lt(part, -0.5), absolute(part - rint(part)), 1.0)


enter({"beta": _beta_by_first, "betaln": lambda a, b: -rise(a, b)}, place=-2)
enter({"beta": lambda a, b: _beta_by_first(b, a), "betaln": lambda a, b: -rise(b, a)})
enter({"binom": _chosen_by_whole, "poch": _rising_by_start}, place=-2)
enter({"binom": _chosen_by_part, "poch": lambda z, m: by_scipy("poch")(z, m) * digamma(z + m)})
