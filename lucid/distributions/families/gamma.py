"""Gamma variates and distributions derived from them: shares, ratios, inverses, and normal numbers over their roots."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution, ExponentialFamily
from lucid.distributions.families.composed import TransformedDistribution
from lucid.distributions.implicit import (
    digamma_rise,
    dirichlet_from,
    gamma_entropy,
    gamma_share,
    lgamma_rise,
    log_gamma,
    log_gamma_density,
    standard_gamma,
)
from lucid.distributions.transformations.elementwise import PowerTransform
from lucid.distributions.utils import log1p_square, named_tensors, reading, steady, where_above
from lucid.errors import SettingError
from lucid.ops.elementwise.exponential import xlogy
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import digamma, lgamma
from lucid.ops.index.gather import one_hot
from lucid.ops.shape.joining import stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class Gamma(ExponentialFamily):
    """Numbers above 0 with the density ``b**a * x**(a - 1) * exp(-b * x) / gamma(a)``.

    a is the `concentration` and b the `rate`, both above 0.

    >>> import lucid
    >>> lucid.distributions.Gamma(lucid.tensor(2.0), 1.0).log_prob(lucid.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def stddev(self) -> Tensor:
        return self.concentration.sqrt() / self.rate

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return standard_gamma(self.concentration.expand(self._extended_shape(sample_shape))) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self._density(
            value, lambda value: self.rate.log() + log_gamma_density(self.concentration, self.rate * value)
        )

    def _safe(self) -> Any:
        return self.mean

    def cdf(self, value: Tensor) -> Tensor:
        return gamma_share(self.concentration, self._at_rate(self._validate_sample(value)))

    def _above(self, value: Tensor) -> Tensor:
        return gamma_share(self.concentration, self._at_rate(value), above=True)

    def _at_rate(self, value: Tensor) -> Tensor:
        """Return values of rate 1, without slopes at the ends: at 0 the density may be infinite."""
        value = self._bounded(value)
        (rate,) = steady((value == 0) | value.isinf(), self.rate)
        return rate * value

    def entropy(self) -> Tensor:
        return gamma_entropy(self.concentration) - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return lgamma(x + 1) - (x + 1) * (-y).log()


class Chi2(Gamma):
    """Sums of squares of `df` normal numbers; with h half of `df`, ``x**(h - 1) * exp(-x / 2) / (2**h * gamma(h))``.

    `df` is above 0, and need not be whole.

    >>> import lucid
    >>> lucid.distributions.Chi2(lucid.tensor(2.0)).log_prob(lucid.tensor(0.0))
    tensor(-0.6931)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        (parameter,) = named_tensors("Chi2", {"df": df})
        super().__init__(0.5 * parameter, 0.5, validate_args)

    @property
    def df(self) -> Tensor:
        """How many squares are summed up."""
        return self.concentration * 2


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma variates: ``b**a * x**(-a - 1) * exp(-b / x) / gamma(a)`` for x above 0.

    a is the `concentration` and b the `rate`, both above 0; the mean is infinite for a up to 1, the variance up to 2.

    >>> import lucid
    >>> lucid.distributions.InverseGamma(lucid.tensor(2.0), 1.0).log_prob(lucid.tensor(1.0))
    tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    concentration: Tensor = reading("base_dist.concentration", "The power of the density, less 1.")
    rate: Tensor = reading("base_dist.rate", "The rate, a factor of the reciprocals.")

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Gamma(concentration, rate, validate_args=False), PowerTransform(-1.0), validate_args)

    @property
    def mean(self) -> Tensor:
        return where_above(self.concentration, 1, lambda a: self.rate / (a - 1))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def stddev(self) -> Tensor:
        return where_above(self.concentration, 2, lambda a: self.rate / ((a - 1) * (a - 2).sqrt()))

    def entropy(self) -> Tensor:
        a = self.concentration
        return gamma_entropy(a) + self.rate.log() - 2 * digamma(a)


class Dirichlet(ExponentialFamily):
    """Shares x that sum to 1, with the density ``gamma(sum(a)) * prod(x**(a - 1) / gamma(a))``.

    a, the `concentration`, is above 0; its last dimension is that of the shares. The gradient of draws moves a share
    by its own concentration as the beta variate that it is, and the others in proportion.

    >>> import lucid
    >>> lucid.distributions.Dirichlet(lucid.ones(3)).log_prob(lucid.tensor([0.25, 0.25, 0.5])).exp()
    tensor(2.)
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        (self.concentration,) = named_tensors("Dirichlet", {"concentration": concentration})
        shape = self.concentration.shape
        if not shape:
            raise SettingError("Dirichlet: expected a concentration of at least one dimension, got a number")
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        a = self.concentration
        above = (a - 1).clamp(min=0)
        corner = one_hot(a.argmax(-1), a.shape[-1]).to(a.dtype)
        low = (a <= 1).all(-1, keepdim=True) & (a < 1).any(-1, keepdim=True)
        return where(low, corner, above / where(low, 1.0, above.sum(-1, keepdim=True)))

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        total = a.sum(-1, keepdim=True)
        return a / total * ((total - a) / total) / (total + 1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return dirichlet_from(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        return self._density(value, lambda value: xlogy(a - 1, value).sum(-1) + (lgamma(a.sum(-1)) - lgamma(a).sum(-1)))

    def _safe(self) -> Any:
        return 1 / self.event_shape[0]

    def entropy(self) -> Tensor:
        a = self.concentration
        total = a.sum(-1)
        each = lgamma(a) - (a - 1) * digamma(a)
        return each.sum(-1) - lgamma(total) - (a.shape[-1] - total) * digamma(total)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))

    @property
    def _mean_carrier_measure(self) -> Tensor:
        a = self.concentration
        # theta is a, so that what is carried is 1 / prod(x)
        return -(digamma(a) - digamma(a.sum(-1, keepdim=True))).sum(-1)


class Beta(ExponentialFamily):
    """Numbers from 0 to 1 with the density ``x**(a - 1) * (1 - x)**(b - 1) * gamma(a + b) / (gamma(a) * gamma(b))``.

    a is `concentration1` and b `concentration0`, both above 0.

    >>> import lucid
    >>> lucid.distributions.Beta(lucid.tensor(2.0), 1.0).log_prob(lucid.tensor(0.5))
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
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _dirichlet(self) -> Dirichlet:
        return Dirichlet(stack([self.concentration1, self.concentration0], -1), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a / total * (b / total) / (total + 1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        return self._density(value, lambda value: self._dirichlet.log_prob(stack([value, 1 - value], -1)))

    def _safe(self) -> Any:
        return 0.5

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return lgamma(x) + lgamma(y) - lgamma(x + y)

    @property
    def _mean_carrier_measure(self) -> Tensor:
        return self._dirichlet._mean_carrier_measure  # noqa: SLF001 - its own  # pyright: ignore[reportPrivateUsage]


class StudentT(Distribution):
    """Normal numbers over the root of a mean of `df` squares, with a density like ``(1 + z**2 / df)**(-(df + 1) / 2)``.

    z is ``(x - loc) / scale``; `df` and `scale` are above 0. There is no mean for `df` up to 1, and no finite variance
    up to 2.

    >>> import lucid
    >>> lucid.distributions.StudentT(lucid.tensor(1.0)).log_prob(lucid.tensor(0.0))
    tensor(-1.1447)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    @property
    def _finite_df(self) -> Tensor:
        """Return `df`, of infinite ones so large a number that the difference is lost."""
        limits = finfo(self.df.dtype)
        return self.df.clamp(max=min(limits.eps**-2, limits.max / 4))

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        value = where_above(self._finite_df, 2, lambda df: self.scale * (df / (df - 2)).sqrt())
        return where(self.df > 1, value, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        number = self._normal(sample_shape, self.df)
        mean = standard_gamma((0.5 * self._finite_df).expand(shape)) / (0.5 * self._finite_df)
        return self.loc + self.scale * number * mean.rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        df = self._finite_df
        y = (value - self.loc) / self.scale
        return -0.5 * (df + 1) * log1p_square(y / df.sqrt()) - self._log_size(df)

    def _log_size(self, df: Tensor) -> Tensor:
        """Return the negative logarithm of the density at `loc`."""
        return self.scale.log() + 0.5 * (df.log() + math.log(math.pi)) - lgamma_rise(0.5 * df, df.new_full((), 0.5))

    def entropy(self) -> Tensor:
        df = self._finite_df
        half = 0.5 * df
        return self._log_size(df) + (half + 0.5) * digamma_rise(half, df.new_full((), 0.5))


class FisherSnedecor(Distribution):
    """Ratios of two means, of `df1` and of `df2` squares of standard normal numbers.

    With ``r = df1 / df2`` the density is proportional to ``x**(df1 / 2 - 1) * (1 + r * x)**(-(df1 + df2) / 2)``; both
    are above 0.

    >>> import lucid
    >>> lucid.distributions.FisherSnedecor(lucid.tensor(2.0), 2.0).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    df1: Tensor
    df2: Tensor

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        return where_above(self.df2, 2, lambda m: m / (m - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        n = self.df1
        return where_above(
            self.df2, 4, lambda m: 2 * m.square() * (n + m - 2) / (n * (m - 2).square() * (m - 4)), math.nan
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # of little freedom both may underflow, and the difference of their logarithms is that of the ratio
        above, below = (log_gamma((0.5 * df).expand(shape)) - df.log() for df in (self.df1, self.df2))
        limits = finfo(above.dtype)
        return (above - below).exp().clamp(limits.tiny, limits.max)

    def log_prob(self, value: Tensor) -> Tensor:
        first, second = 0.5 * self.df1, 0.5 * self.df2
        ratio = self.df1 / self.df2
        size = lgamma(first + second) - lgamma(first) - lgamma(second)
        size = size + first * ratio.log()
        return self._density(
            value, lambda value: size + (first - 1) * value.log() - (first + second) * (ratio * value).log1p()
        )

    def _safe(self) -> Any:
        return 1.0
