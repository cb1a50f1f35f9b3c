"""The normal distribution, and elementwise functions of its draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lucid.distributions import constraints
from lucid.distributions.distribution import ExponentialFamily
from lucid.distributions.families.composed import Half, TransformedDistribution
from lucid.distributions.transformations.elementwise import AbsTransform, ExpTransform
from lucid.ops.elementwise.special import erf, erfinv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["HalfNormal", "LogNormal", "Normal"]


class Normal(ExponentialFamily):
    """Numbers around `loc` with the density ``exp(-((x - loc) / scale)**2 / 2) / (scale * sqrt(2 * pi))``.

    `scale` is above 0.

    >>> import lucid
    >>> normal = lucid.distributions.Normal(0.0, lucid.tensor([1.0, 2.0]))
    >>> normal.log_prob(lucid.tensor(1.0))
    tensor([-1.4189, -1.7371])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * self._normal(sample_shape, self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        away = (value - self.loc) / self.scale
        return -0.5 * away.square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        # divided by the scale alone: times a number it would be rounded to its own dtype, however wide the value is
        return 0.5 * (1 + erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        return self.loc + self.scale * (math.sqrt(2) * erfinv(2 * value - 1))

    def entropy(self) -> Tensor:
        return self.scale.log() + 0.5 * math.log(2 * math.pi * math.e)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.variance, -0.5 / self.variance

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()


class LogNormal(TransformedDistribution):
    """Numbers with a normal logarithm z: ``exp(-((z - loc) / scale)**2 / 2) / (x * scale * sqrt(2 * pi))``.

    `scale` is above 0.

    >>> import lucid
    >>> lucid.distributions.LogNormal(0.0, 1.0).log_prob(lucid.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=False), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(Half):
    """Absolute values of normal numbers around 0: ``exp(-(x / scale)**2 / 2) * sqrt(2 / pi) / scale``, x of 0 or more.

    `scale` is above 0.

    >>> import lucid
    >>> lucid.distributions.HalfNormal(1.0).log_prob(lucid.tensor(0.0))
    tensor(-0.2258)
    """

    base_dist: Normal

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
