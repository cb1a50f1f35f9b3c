"""Numbers between two bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution, ExponentialFamily
from lucid.distributions.families.composed import TransformedDistribution
from lucid.distributions.families.exponential import TERMS, Exponential, near_zero, power_series, spread_series
from lucid.distributions.families.trials import Odds
from lucid.distributions.implicit import lgamma_rise
from lucid.distributions.transformations.elementwise import AffineTransform, ExpTransform, PowerTransform
from lucid.distributions.utils import euler_constant, named_tensors, steady
from lucid.ops.elementwise.exponential import xlog1py, xlogy
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import BERNOULLI, digamma, lgamma

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor


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

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self.low + (self.high - self.low) * self._uniform(sample_shape, self.low)
        # a sum that is rounded up to the end is the last number before it, with the slope of the sum; half a step is
        # a tie where a power of two ends a negative range
        end = self.high.detach()
        last = end - end.abs() * (0.75 * finfo(end.dtype).eps)
        return drawn - (drawn.detach() - last).clamp(min=0)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._density(value, lambda value: where(value < self.high, -(self.high - self.low).log(), -math.inf))

    def _safe(self) -> Any:
        return self.mean

    def cdf(self, value: Tensor) -> Tensor:
        value = self._bounded(self._validate_sample(value))
        return (value - self.low) / (self.high - self.low)

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        return self.low + (self.high - self.low) * value

    def _above(self, value: Tensor) -> Tensor:
        return (self.high - self._bounded(value)) / (self.high - self.low)

    def _icdf_above(self, share: Tensor) -> Tensor:
        return self.high - (self.high - self.low) * share

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


def _even(t: Tensor, factor: Callable[[int], float]) -> Any:
    """Return the sum of ``factor(k) * B(2 * k) / (2 * k)! * t**(2 * k - 2)`` from k of 1 on, B Bernoulli's numbers."""
    total: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        total = factor(k) * BERNOULLI[k - 1] / math.factorial(2 * k) + t.square() * total
    return total


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers from 0 to 1 with a density proportional to ``p**x * (1 - p)**(1 - x)``; `probs` or `logits` are given.

    Loaiza-Ganem, Cunningham: The continuous Bernoulli (2019). Where formulas divide by the logits, series take their
    place by the resolution of the dtype, so that `lims` are kept, and not needed.

    >>> import lucid
    >>> lucid.distributions.ContinuousBernoulli(probs=lucid.tensor(0.5)).log_prob(lucid.tensor(0.25)).exp()
    tensor(1.)
    """

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

    def _slope(self) -> Tensor:
        """Return the slope t of the logarithm of the density, finite."""
        most = finfo(self.logits.dtype).max
        return self.logits.clamp(-most, most)

    def _apart(self, t: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return a mask of sizes of t for a series, these, the other sizes a, and ``exp(-a) / (1 - exp(-a))``."""
        near = t.abs() < 1
        a = where(near, 1.0, t.abs())
        return near, where(near, t, 0.0), a, (-a).exp() / -(-a).expm1()

    def _log_size(self, t: Tensor) -> Tensor:
        """Return the logarithm of the integral of ``exp(t * (x - 1 / 2))`` from 0 to 1."""
        near, small, a, _ = self._apart(t)
        far = 0.5 * a - a.log() + (-(-a).exp()).log1p()
        return where(near, small.square() * _even(small, lambda k: 1 / (2 * k)), far)

    @property
    def mean(self) -> Tensor:
        t = self._slope()
        near, small, a, share = self._apart(t)
        low = 1 / a - share
        return where(near, 0.5 + small * _even(small, lambda _: 1), where(t < 0, low, 1 - low))

    @property
    def stddev(self) -> Tensor:
        near, small, a, share = self._apart(self._slope())
        far = (1 - a * share * (a * (1 + share))).sqrt() / a
        return where(near, _even(small, lambda k: 2 * k - 1).sqrt(), far)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._quantile(self._uniform(sample_shape, self.logits))

    def log_prob(self, value: Tensor) -> Tensor:
        t = self._slope()
        near, small, a, _ = self._apart(t)
        # from the end that is likelier on, as halves of a large t cancel
        size, low = a.log() - (-(-a).exp()).log1p(), t < 0

        def logs(value: Tensor) -> Tensor:
            return where(near, small * (value - 0.5) - self._log_size(small), size - a * where(low, value, 1 - value))

        return self._density(value, logs)

    def _ratio(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return a mask of t for the series of quotients, t there, its size elsewhere, and its sign."""
        t = self._slope()
        near = t.abs() < finfo(t.dtype).eps ** (1 / TERMS)
        return near, where(near, t, 0.0), where(near, 1.0, t.abs()), t < 0

    def cdf(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        near, t, a, low = self._ratio()
        x = value.clamp(0, 1)
        close = x * power_series(t * x, _reciprocal, 1) / power_series(t, _reciprocal, 1)
        share = (-a * x).expm1() / (-a).expm1()
        return where(near, close, where(low, share, (a * (x - 1)).exp() * share))

    def icdf(self, value: Tensor) -> Tensor:
        return self._quantile(self._validate_share(value))

    def _quantile(self, value: Tensor) -> Tensor:
        near, t, a, low = self._ratio()
        w = value * power_series(t, _reciprocal, 1)
        close = w * power_series(t * w, lambda k: 1 / (k + 1), -1)
        # of the falling density: the share above, of which little is left, as it is
        below, above = where(low, value, 1 - value), where(low, 1 - value, value)
        much = below > 0.5
        part = where(much, 0.0, below * (-a).expm1()).log1p()
        rest = where(much, above + below * (-a).exp(), 1.0).log()
        x = (where(much, rest, part) / -a).clamp(max=1)
        return where(near, close, where(low, x, 1 - x))

    def entropy(self) -> Tensor:
        near, small, a, share = self._apart(self._slope())
        close = small.square() * _even(small, lambda k: 1 / (2 * k) - 1)
        return where(near, close, 1 - a.log() + (-(-a).exp()).log1p() - a * share)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        # log(integral of exp(theta * x) from 0 to 1)
        (theta,) = natural_params
        return 0.5 * theta + self._log_size(theta)


def _reciprocal(k: int) -> float:
    return 1 / math.factorial(k + 1)


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
        """Return the logarithm of the mean of ``x**n``: that of ``b * B(1 + n / a, b)``."""
        # differences of large logarithms, in float64
        r, b = n / self.concentration1.double(), self.concentration0.double()
        # symmetric in both, with digits by the step that is smaller
        swapped = r > b
        return lgamma(1 + where(swapped, b, r)) - lgamma_rise(1 + where(swapped, r, b), where(swapped, b, r))

    @property
    def mean(self) -> Tensor:
        return self._log_moment(1).exp().to(self.concentration1.dtype)

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
        r, b = 1 / self.concentration1.double(), self.concentration0.double()
        near, small = near_zero(r)
        close = spread_series(r.new_ones(()), small) - spread_series(1 + b, small)
        # the second moment times a share: less the square of the first it could be below 0
        share = -(-where(near, close, second - 2 * first).clamp(min=0)).expm1()
        return (second.exp() * share).to(self.concentration1.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return self._density(value, lambda value: a.log() + b.log() + xlogy(a - 1, value) + xlog1py(b - 1, -(value**a)))

    def _safe(self) -> Any:
        return 0.5

    def cdf(self, value: Tensor) -> Tensor:
        full, log = self._log_above(self._validate_sample(value))
        return where(full, 1.0, -log.expm1())

    def _above(self, value: Tensor) -> Tensor:
        full, log = self._log_above(value)
        return where(full, 0.0, log.exp())

    def _log_above(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return a mask of values that nothing is above, and logarithms of the shares above the others."""
        power = self._bounded(value) ** self.concentration1
        full = power >= 1
        return full, self.concentration0 * (-where(full, 0.0, power)).log1p()

    def icdf(self, value: Tensor) -> Tensor:
        return self._quantile((-self._validate_share(value)).log1p())

    def _icdf_above(self, share: Tensor) -> Tensor:
        return self._quantile(share.log())

    def _quantile(self, log: Tensor) -> Tensor:
        """Return quantiles for the logarithms of the shares above them."""
        a, b = steady((log == 0) | (log == -math.inf), self.concentration1, self.concentration0)
        return (-(log / b).expm1()) ** (1 / a)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
