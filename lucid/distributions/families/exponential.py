"""Waiting times and sizes above a least one: the exponential distribution, and powers and exponentials of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution, ExponentialFamily
from lucid.distributions.families.composed import TransformedDistribution
from lucid.distributions.transformations.elementwise import AffineTransform, ExpTransform, PowerTransform
from lucid.distributions.utils import euler_constant, named_tensors, steady, where_above
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import lgamma, polygamma

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor


TERMS = 6
"""Of the series by which a concentration near 0 is computed, so that it has derivatives at 0 as well."""


def near_zero(u: Tensor) -> tuple[Tensor, Tensor]:
    """Return a mask of numbers so small that a series is closer than its formula, and these, 0 in place of others."""
    near = u.abs() < finfo(u.dtype).eps ** (1 / TERMS)
    return near, where(near, u, 0.0)


def power_series(u: Tensor, factor: Callable[[int], Any], sign: int) -> Any:
    """Return the sum of ``factor(k) * (sign * u)**k``."""
    total: Any = factor(TERMS - 1)
    for k in range(TERMS - 2, -1, -1):
        total = factor(k) + sign * u * total
    return total


def spread_series(x: Tensor, step: Tensor) -> Tensor:
    """Return ``lgamma(x + 2 * step) - 2 * lgamma(x + step) + lgamma(x)`` for a small step."""
    return step.square() * power_series(
        step, lambda k: polygamma(k + 1, x) * ((2 ** (k + 2) - 2) / math.factorial(k + 2)), 1
    )


def _with_ends(ends: Tensor, value: Tensor, waited: Callable[[Tensor], Tensor], inside: Tensor) -> Tensor:
    """Return waiting times of values, those of the ends 0 or infinity, as they are, without slopes."""
    return where(ends, value.detach(), waited(where(ends, inside.detach(), value)))


class Exponential(ExponentialFamily):
    """Numbers of 0 or more with the density ``rate * exp(-rate * x)``; `rate` is above 0.

    >>> import lucid
    >>> lucid.distributions.Exponential(lucid.tensor(2.0)).log_prob(lucid.tensor(1.0))
    tensor(-1.3069)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    rate: Tensor

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate * 0

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._exponential(sample_shape, self.rate) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self._density(value, lambda value: self.rate.log() - self.rate * value)

    def _safe(self) -> Any:
        # 1 of the rate 1, and never so large that its exponential is infinite
        return 2 / (1 + self.rate)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._bounded(self._validate_sample(value))
        (rate,) = steady(value.isinf(), self.rate)
        return -(-rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        return -(-value).log1p() / self.rate

    def _above(self, value: Tensor) -> Tensor:
        value = self._bounded(value)
        (rate,) = steady(value.isinf(), self.rate)
        return (-rate * value).exp()

    def _icdf_above(self, share: Tensor) -> Tensor:
        return -share.log() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -(-natural_params[0]).log()


class Weibull(TransformedDistribution):
    """Numbers above 0: ``k / scale * (x / scale)**(k - 1) * exp(-(x / scale)**k)`` with k the `concentration`.

    `scale` and `concentration` are above 0.

    >>> import lucid
    >>> lucid.distributions.Weibull(1.0, 2.0).log_prob(lucid.tensor(1.0))
    tensor(-0.3069)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True
    scale: Tensor
    concentration: Tensor

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        parameters = named_tensors("Weibull", {"scale": scale, "concentration": concentration})
        self.scale, self.concentration = parameters
        self.concentration_reciprocal = 1 / self.concentration
        base = Exponential(self.scale.new_ones(()).expand(self.scale.shape), validate_args=False)
        chain = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, chain, validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return Distribution.sample(self, sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # a power of small numbers may be 0, which has no density
        draws = super().rsample(sample_shape)
        return draws.clamp(min=finfo(draws.dtype).tiny)

    @property
    def mean(self) -> Tensor:
        return self.scale * lgamma(1 + self.concentration_reciprocal).exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * (((k - 1) / k).clamp(min=0)) ** self.concentration_reciprocal

    @property
    def stddev(self) -> Tensor:
        r = self.concentration_reciprocal
        first, second = lgamma(1 + r), lgamma(1 + 2 * r)
        near, small = near_zero(r)
        apart = where(near, spread_series(r.new_ones(()), small), second - 2 * first)
        # the second moment times a share: less the square of the first it could be below 0, or of two infinities
        return self.scale * (0.5 * second).exp() * (-(-apart).expm1()).sqrt()

    def _untransformed(self, value: Tensor) -> Tensor:
        # beyond this the share rounds to 1, and later the power overflows
        last = self.scale * 1000.0**self.concentration_reciprocal
        value = self._moved(self._beside(value), self.support).clamp(max=last.detach())
        return _with_ends((value == 0) | (value == math.inf), value, super()._untransformed, self.scale)

    def entropy(self) -> Tensor:
        size = self.scale.log() - self.concentration.log()
        return euler_constant * (1 - self.concentration_reciprocal) + size + 1


class Pareto(TransformedDistribution):
    """Numbers above `scale` with the density ``alpha * scale**alpha / x**(alpha + 1)``; both are above 0.

    The mean is infinite for `alpha` up to 1, the variance up to 2.

    >>> import lucid
    >>> lucid.distributions.Pareto(1.0, 1.0).log_prob(lucid.tensor(2.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True
    scale: Tensor
    alpha: Tensor

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = named_tensors("Pareto", {"scale": scale, "alpha": alpha})
        base = Exponential(self.alpha, validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Numbers of `scale` or more."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        return where_above(self.alpha, 1, lambda a: a * self.scale / (a - 1))

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def stddev(self) -> Tensor:
        return where_above(self.alpha, 2, lambda a: self.scale * (a / (a - 2)).sqrt() / (a - 1))

    def _untransformed(self, value: Tensor) -> Tensor:
        value = self._beside(value)
        return _with_ends(value == math.inf, value, super()._untransformed, self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + 1 / self.alpha)


class GeneralizedPareto(Distribution):
    """How far beyond a threshold: ``(1 + c * z)**(-1 / c - 1) / scale`` with ``z = (x - loc) / scale`` of 0 or more.

    c, the `concentration`, is any number: of 0 it is the exponential distribution, and below 0 z is at most ``-1 / c``.
    `scale` is above 0.

    >>> import lucid
    >>> lucid.distributions.GeneralizedPareto(0.0, 1.0, 0.5).log_prob(lucid.tensor(2.0)).exp()
    tensor(0.1250)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Numbers of `loc` or more, and for a `concentration` below 0 up to the last that has a density."""
        c = self.concentration
        last = where(c < 0, self.loc - self.scale / where(c < 0, c, -1.0), math.inf)
        return constraints.interval(self.loc, last)

    @staticmethod
    def _scaled(c: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return a mask of ``c * z`` so small that a series is closer, these, a divisor c, and the other ``c * z``."""
        u = where((c == 0) & z.isinf(), 0.0, c * z)
        near, small = near_zero(u)
        return near, small, where(near, 1.0, c), where(near, 0.0, u)

    def _beyond(self, waited: Tensor) -> Tensor:
        """Return the quantile of a waiting time of the exponential distribution: ``expm1(c * waited) / c``."""
        near, small, c, u = self._scaled(self.concentration, waited)
        close = waited * power_series(small, lambda k: 1 / math.factorial(k + 1), 1)
        return self.loc + self.scale * where(near, close, u.expm1() / c)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of draws greater than the value."""
        return self._log_survival(self._bounded(self._validate_sample(value)))

    def _log_survival(self, value: Tensor) -> Tensor:
        loc, scale, c = steady(value.isinf(), self.loc, self.scale, self.concentration)
        z = (value - loc) / scale
        near, small, c, u = self._scaled(c, z)
        # nothing is drawn beyond the last number, which rounding may be
        past = u <= -1
        far = where(past, -math.inf, -where(past, 0.0, u).log1p() / c)
        return where(near, -z * power_series(small, lambda k: 1 / (k + 1), -1), far)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of `cdf`."""
        log = self.log_survival_function(value)
        near = log > -math.log(2)
        return where(near, -where(near, log, -1.0).expm1(), 1.0).log() + (-where(near, -math.inf, log).exp()).log1p()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._beyond(self._exponential(sample_shape, self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        def logs(value: Tensor) -> Tensor:
            power, log = 1 + self.concentration, self._log_survival(value)
            # of a concentration of -1 the density is as large at the end
            return where((power == 0) & (log == -math.inf), 0.0, log) * power - self.scale.log()

        return self._density(value, logs)

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        full = value == 1
        return where(full, self.support.upper_bound, self._beyond(-(-where(full, 0.0, value)).log1p()))

    def _above(self, value: Tensor) -> Tensor:
        return self.log_survival_function(value).exp()

    def _icdf_above(self, share: Tensor) -> Tensor:
        none = share == 0
        return where(none, self.support.upper_bound, self._beyond(-where(none, 1.0, share).log()))

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        low = c < 1
        return where(low, self.loc + self.scale / (1 - where(low, c, 0.0)), math.inf)

    @property
    def mode(self) -> Tensor:
        # of these the density grows to the end
        grows = self.concentration < -1
        return where(grows, self.loc - self.scale / where(grows, self.concentration, -1.0), self.loc)

    @property
    def stddev(self) -> Tensor:
        c = self.concentration
        low = c < 0.5
        b = where(low, c, 0.0)
        return where(low, self.scale / ((1 - b) * (1 - 2 * b).sqrt()), math.inf)

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self.batch_shape)
