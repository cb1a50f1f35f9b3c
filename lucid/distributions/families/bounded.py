"""Numbers between two bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution, ExponentialFamily
from lucid.distributions.families.composed import TransformedDistribution
from lucid.distributions.families.exponential import Exponential
from lucid.distributions.families.trials import Odds
from lucid.distributions.transformations.elementwise import AffineTransform, ExpTransform, PowerTransform
from lucid.distributions.utils import (
    clamp_probs,
    euler_constant,
    lazy_property,
    logits_to_probs,
    named_tensors,
)
from lucid.ops.elementwise.exponential import xlog1py, xlogy
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma, lgamma
from lucid.ops.loss.probability_loss import binary_cross_entropy_with_logits
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["ContinuousBernoulli", "Kumaraswamy", "Uniform"]


class Uniform(Distribution):
    """Numbers of [low, high), all as likely, with the density ``1 / (high - low)``; `low` is below `high`.

    >>> import lucid
    >>> lucid.distributions.Uniform(0.0, 4.0).log_prob(lucid.tensor([1.0, 3.0]))
    tensor([-1.3863, -1.3863])
    """

    has_rsample = True
    low: Tensor
    high: Tensor

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> Any:
        """`low` is below `high`."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Numbers from `low` to `high`."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return self._nan()

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self.low + (self.high - self.low) * self._uniform(sample_shape, self.low)
        # a sum that is rounded up to the end is the last number before it, with the slope of the sum
        end = self.high.detach()
        last = end - end.abs() * (0.5 * finfo(end.dtype).eps)
        return drawn - (drawn.detach() - last).clamp(min=0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        within = (value >= self.low) & (value < self.high)
        return where(within, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * value

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers from 0 to 1 with a density proportional to ``p**x * (1 - p)**(1 - x)``; `probs` or `logits` are given.

    Loaiza-Ganem, Cunningham: The continuous Bernoulli (2019). Where p is between the two `lims`, formulas that divide
    by ``1 - 2 * p`` are replaced by their series.

    >>> import lucid
    >>> lucid.distributions.ContinuousBernoulli(probs=lucid.tensor(0.5)).log_prob(lucid.tensor(0.25)).exp()
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        self._begin(validate_args, probs, logits)
        if "probs" in vars(self):
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter p, clamped away from 0 and 1 by the resolution of the dtype."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self, p: Tensor) -> Tensor:
        """Return a mask of the probabilities with exact formulas."""
        return (p <= self._lims[0]) | (p > self._lims[1])

    def _cut(self, p: Tensor) -> Tensor:
        """Return probabilities with exact formulas."""
        return where(self._outside(p), p, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Return the logarithm of the density's normalizing constant: ``2 * atanh(1 - 2 * p) / (1 - 2 * p)``."""
        p = self.probs
        cut = self._cut(p)
        below = where(cut <= 0.5, cut, 0.0)
        above = where(cut >= 0.5, cut, 1.0)
        span = where(cut <= 0.5, (-2 * below).log1p(), (2 * above - 1).log())
        exact = ((-cut).log1p() - cut.log()).abs().log() - span
        x = (p - 0.5).square()
        return where(self._outside(p), exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p, cut = self.probs, self._cut(self.probs)
        exact = cut / (2 * cut - 1) + 1 / ((-cut).log1p() - cut.log())
        x = p - 0.5
        return where(self._outside(p), exact, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        p, cut = self.probs, self._cut(self.probs)
        exact = cut * (cut - 1) / (1 - 2 * cut).square() + 1 / ((-cut).log1p() - cut.log()).square()
        x = (p - 0.5).square()
        return where(self._outside(p), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(self._uniform(sample_shape, self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, wanted = broadcast_tensors(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, wanted, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        cut = self._cut(self.probs)
        exact = (cut**value * (1 - cut) ** (1 - value) + cut - 1) / (2 * cut - 1)
        near = value - 2 * (self.probs - 0.5) * value * (1 - value)
        inside = where(self._outside(self.probs), exact, near)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut(self.probs)
        exact = ((-cut + value * (2 * cut - 1)).log1p() - (-cut).log1p()) / (cut.log() - (-cut).log1p())
        near = value + 2 * (self.probs - 0.5) * value * (1 - value)
        return where(self._outside(self.probs), exact, near)

    def entropy(self) -> Tensor:
        p = self.probs
        return self.mean * ((-p).log1p() - p.log()) - self._cont_bern_log_norm() - (-p).log1p()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        # log(integral of exp(theta * x) from 0 to 1)
        (theta,) = natural_params
        outside = (theta <= self._lims[0] - 0.5) | (theta > self._lims[1] - 0.5)
        cut = where(outside, theta, 1.0)
        exact = (cut.expm1() / cut).log()
        return where(outside, exact, theta / 2 + theta.square() / 24)


class Kumaraswamy(TransformedDistribution):
    """Numbers from 0 to 1 with the density ``a * b * x**(a - 1) * (1 - x**a)**(b - 1)``.

    a is `concentration1` and b `concentration0`, both above 0.

    >>> import lucid
    >>> lucid.distributions.Kumaraswamy(2.0, 1.0).log_prob(lucid.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None
    ) -> None:
        parameters = named_tensors("Kumaraswamy", {"concentration1": concentration1, "concentration0": concentration0})
        self.concentration1, self.concentration0 = a, b = parameters
        base = Exponential(b, validate_args=False)
        chain = [AffineTransform(0, -1), ExpTransform(), AffineTransform(1, -1), PowerTransform(1 / a)]
        super().__init__(base, chain, validate_args)

    def _log_moment(self, n: int) -> Tensor:
        """Return the logarithm of the mean of ``x**n``: ``b * B(1 + n / a, b)``."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return b.log() + lgamma(first) + lgamma(b) - lgamma(first + b)

    @property
    def mean(self) -> Tensor:
        return self._log_moment(1).exp()

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        edge, inside = (a < 1) | (b < 1), (a > 1) | (b > 1)
        inside = inside & ~edge
        above, below = where(inside, a - 1, 0.5), where(inside, a * b - 1, 1.0)
        # where the density is infinite, at both ends at that of the smaller power
        end = where(edge, (a >= b).to(a.dtype), math.nan)
        return where(inside, (above / below) ** (1 / a), end)

    @property
    def variance(self) -> Tensor:
        first, second = self._log_moment(1), self._log_moment(2)
        # the second moment times a share: less the square of the first it could be below 0
        return -second.exp() * (-(second - 2 * first).clamp(min=0)).expm1()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + xlogy(a - 1, value) + xlog1py(b - 1, -(value**a))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return -(b * (-(value**a)).log1p()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (-((-value).log1p() / b).expm1()) ** (1 / a)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
