"""Slopes of gamma and beta functions, of combinatorial functions, of roots, and of functions of degrees."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.creation.filling import zeros_like
from lucid.ops.elementwise.comparison import lt
from lucid.ops.elementwise.power import square
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma
from lucid.ops.elementwise.trigonometry import cos
from lucid.tensor.numpy_calls.by_scipy import SLOPES, by_scipy, enter

if TYPE_CHECKING:
    from lucid.tensor import Tensor

DEGREE = math.pi / 180


def _slope_of_inverse(x: Tensor) -> Any:
    """Return the slope of ``rgamma``, below a half by reflection: `digamma` has poles there that the slope has not."""
    is_low = lt(x, 0.5)
    low, high = where(is_low, x, 0.0), where(is_low, 1.0, x)
    below = cos(low * math.pi) * by_scipy("gamma")(1 - low) - by_scipy("rgamma")(low) * digamma(1 - low)
    return where(is_low, below, -(by_scipy("rgamma")(high) * digamma(high)))


enter(
    {
        "cbrt": lambda x: by_scipy("cbrt")(x) / (x * 3),
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


def _beta_by_first(a: Tensor, b: Tensor) -> Any:
    return by_scipy("beta")(a, b) * _log_beta_by_first(a, b)


def _log_beta_by_first(a: Tensor, b: Tensor) -> Any:
    return digamma(a) - digamma(a + b)


def _log_beta_by_second(a: Tensor, b: Tensor) -> Any:
    return _log_beta_by_first(b, a)


def _rising_by_start(z: Tensor, m: Tensor) -> Any:
    return by_scipy("poch")(z, m) * (digamma(z + m) - digamma(z))


def _chosen_by_whole(n: Tensor, k: Tensor) -> Any:
    return by_scipy("binom")(n, k) * (digamma(n + 1) - digamma(n - k + 1))


def _chosen_by_part(n: Tensor, k: Tensor) -> Any:
    return by_scipy("binom")(n, k) * (digamma(n - k + 1) - digamma(k + 1))


def _beta_by_second(a: Tensor, b: Tensor) -> Any:
    return _beta_by_first(b, a)


def _rising_by_steps(z: Tensor, m: Tensor) -> Any:
    return by_scipy("poch")(z, m) * digamma(z + m)


SLOPES["beta"] = {-2: _beta_by_first, -1: _beta_by_second}
SLOPES["betaln"] = {-2: _log_beta_by_first, -1: _log_beta_by_second}
SLOPES["binom"] = {-2: _chosen_by_whole, -1: _chosen_by_part}
SLOPES["poch"] = {-2: _rising_by_start, -1: _rising_by_steps}
