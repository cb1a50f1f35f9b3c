"""Divergences between two families: p's mean of the logarithm of q's density, and p's entropy; or infinity.

What q's density is made of is a number of x, its square, its logarithm, or an exponential, whose means `_mean_log` and
`_mean_exp` know for each p.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.distributions.families.bounded import ContinuousBernoulli, Uniform
from lucid.distributions.families.exponential import Exponential, Pareto
from lucid.distributions.families.gamma import Beta, Gamma
from lucid.distributions.families.location import Gumbel, Laplace
from lucid.distributions.families.normal import Normal
from lucid.distributions.families.trials import Bernoulli, Binomial, Poisson
from lucid.distributions.kl import register_kl
from lucid.distributions.utils import euler_constant, where_above
from lucid.ops.elementwise.exponential import xlogy
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma, erf, lgamma

# families have their own parts, and those of PyTorch's protocol, under an underscore
# pyright: reportPrivateUsage=false

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def _of(q: type, *kinds: type) -> Callable[[Any], Any]:
    """Register one function for several p and one q."""

    def add(function: Any) -> Any:
        for kind in kinds:
            register_kl(kind, q)(function)
        return function

    return add


def _bounds(p: Any) -> tuple[Any, Any]:
    """Return the bounds of all draws."""
    return (p.low, p.high) if isinstance(p, Uniform) else (p.mean * 0, p.mean * 0 + 1)


def _within(value: Tensor, p: Any, low: Any, high: Any = math.inf) -> Tensor:
    """Return a divergence, infinite if p, a family with bounds, leaves those of q."""
    if not isinstance(p, Uniform | Beta | ContinuousBernoulli):
        return value
    least, most = _bounds(p)
    return where((least >= low) & (most <= high), value, math.inf)


def _mean_uniform_log(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of ``log(x)`` of uniform numbers of 0 or more."""
    some = low > 0
    wide = where(some, (high - low) / where(some, low, 1.0), 1.0)
    # from the larger bound on, as both may be large and near each other
    return high.log() + where(some, wide.log1p() / wide, 0.0) - 1


def _mean_log(p: Any) -> Tensor:
    """Return the mean of ``log(x)`` of a positive variable."""
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Gamma):
        return digamma(p.concentration) - p.rate.log()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + 1 / p.alpha
    positive = p.low >= 0
    return _mean_uniform_log(where(positive, p.low, 0.0), where(positive, p.high, 1.0))


def _mean_exp(p: Any, t: Tensor, at: Tensor) -> Tensor:
    """Return the mean of ``exp(-t * (x - at))``, t above 0; of one exponential, as a factor of two may overflow."""
    if isinstance(p, Normal):
        return (0.5 * (t * p.scale).square() - t * (p.loc - at)).exp()
    if isinstance(p, Uniform):
        wide = t * (p.high - p.low)
        return -(-t * (p.low - at)).exp() * (-wide).expm1() / wide
    share = -(t / p.rate).log1p()
    return (t * at + (share if isinstance(p, Exponential) else p.concentration * share)).exp()


def _of_moments(order: int) -> Callable[[Any], Any]:
    """Return a decorator: a divergence from a Pareto is infinite, with gradients of 0, if a moment of an order is."""

    def add(function: Any) -> Any:
        def divergence(p: Any, q: Any) -> Tensor:
            if not isinstance(p, Pareto):
                return function(p, q)
            return where_above(p.alpha, order, lambda alpha: function(Pareto(p.scale, alpha, validate_args=False), q))

        return divergence

    return add


@_of(Normal, Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)
@_of_moments(2)
def _normal(p: Any, q: Normal) -> Tensor:
    far = (p.stddev / q.scale).square() + ((p.mean - q.loc) / q.scale).square()
    return 0.5 * (far + math.log(2 * math.pi)) + q.scale.log() - p.entropy()


@_of(Exponential, Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)
@_of_moments(1)
def _exponential(p: Any, q: Exponential) -> Tensor:
    return _within(q.rate * p.mean - q.rate.log() - p.entropy(), p, 0)


@_of(Gamma, Beta, Exponential, Pareto, Uniform)
@_of_moments(1)
def _gamma(p: Any, q: Gamma) -> Tensor:
    size = lgamma(q.concentration) - q.concentration * q.rate.log()
    value = size - (q.concentration - 1) * _mean_log(p) + q.rate * p.mean - p.entropy()
    return _within(value, p, 0)


@_of(Gumbel, Exponential, Gamma, Normal, Uniform)
def _gumbel(p: Any, q: Gumbel) -> Tensor:
    return q.scale.log() + (p.mean - q.loc) / q.scale + _mean_exp(p, 1 / q.scale, q.loc) - p.entropy()


@_of(Uniform, Beta, ContinuousBernoulli)
def _uniform(p: Any, q: Uniform) -> Tensor:
    return _within((q.high - q.low).log() - p.entropy(), p, q.low, q.high)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    inside = (p.low >= 0) & (p.high <= 1)
    low, high = where(inside, p.low, 0.0), where(inside, p.high, 1.0)
    a, b = q.concentration1, q.concentration0
    size = lgamma(a) + lgamma(b) - lgamma(a + b) - p.entropy()
    value = size - (a - 1) * _mean_uniform_log(low, high) - (b - 1) * _mean_uniform_log(1 - high, 1 - low)
    return where(inside, value, math.inf)


@_of(ContinuousBernoulli, Beta, Uniform)
def _continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    slope = q._slope()
    return _within(q._log_size(slope) - p.entropy() - (p.mean - 0.5) * slope, p, 0, 1)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    size = q.alpha.log() + q.alpha * q.scale.log()
    return _within((q.alpha + 1) * _mean_log(p) - size - p.entropy(), p, q.scale)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    away = p.loc - q.loc
    ratio = away / p.scale
    size = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio.square()).exp() + away * erf(math.sqrt(0.5) * ratio)
    return size / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - xlogy(p.probs, q.rate) - p.entropy()


@_of(Bernoulli, Poisson)
@_of(Binomial, Poisson)
def _poisson_trials(p: Poisson, q: Any) -> Tensor:
    # of a rate of 0 there is 0 alone, otherwise each count, also those that are more than the trials
    losses = q.total_count if isinstance(q, Binomial) else 1.0
    return where(p.rate == 0, -q._log_chance(0.0, losses), math.inf)


# what p draws that q cannot
_NEVER: tuple[tuple[tuple[type, ...], tuple[type, ...]], ...] = (
    ((Beta, ContinuousBernoulli), (Pareto,)),
    ((Exponential, Gamma), (Beta, ContinuousBernoulli, Pareto, Uniform)),
    ((Gumbel, Laplace, Normal), (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    ((Pareto,), (Beta, ContinuousBernoulli, Uniform)),
)


def _infinite(p: Any, q: Any) -> Tensor:
    return (p._parameter().new_zeros(p.batch_shape) + q._parameter().new_zeros(q.batch_shape)) + math.inf


for _kinds, _others in _NEVER:
    for _q in _others:
        _of(_q, *_kinds)(_infinite)
