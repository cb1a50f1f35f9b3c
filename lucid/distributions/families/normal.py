"""The normal distribution, and elementwise functions of its draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.function import Function
from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import ExponentialFamily, Symmetric
from lucid.distributions.families.composed import Half, TransformedDistribution
from lucid.distributions.transformations.elementwise import AbsTransform, ExpTransform
from lucid.distributions.utils import reading, steady
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import erf, erfc, erfinv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class _Quantile(Function):
    """Quantiles of shares up to a half of standard normal numbers.

    They are near those of Abramowitz and Stegun 26.2.23, or of a series, and then of two of Halley's steps in float64.
    """

    @staticmethod
    def forward(ctx: Any, share: Tensor) -> Tensor:
        wide = share.double()
        p = wide.clamp(finfo(wide.dtype).tiny, 0.5)
        t = (-2 * p.log()).sqrt()
        far = (2.515517 + (0.802853 + 0.010328 * t) * t) / (1 + (1.432788 + (0.189269 + 0.001308 * t) * t) * t) - t
        y, close = 2 * p - 1, p > 0.25
        x = where(close, math.sqrt(math.pi / 2) * y * (1 + math.pi / 12 * y.square()), far)
        for _ in range(2):
            u = math.sqrt(0.5) * x
            step = 0.5 * where(close, erf(u) - y, erfc(-u) - 2 * p) * math.sqrt(2 * math.pi) * u.square().exp()
            x = x - step / (1 + 0.5 * x * step)
        inside = (wide > 0) & (wide <= 0.5)
        x = where(inside, x, where(wide == 0, -math.inf, math.nan)).to(share.dtype)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_outputs[0] * (math.sqrt(2 * math.pi) * (0.5 * x.square()).exp())


class Normal(Symmetric, ExponentialFamily):
    """Numbers around `loc` with the density ``exp(-((x - loc) / scale)**2 / 2) / (scale * sqrt(2 * pi))``.

    `scale` is above 0.

    >>> import lucid
    >>> normal = lucid.distributions.Normal(0.0, lucid.tensor([1.0, 2.0]))
    >>> normal.log_prob(lucid.tensor(1.0))
    tensor([-1.4189, -1.7371])
    """

    _mean_carrier_measure = 0

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * self._normal(sample_shape, self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        away = (value - self.loc) / self.scale
        return -0.5 * away.square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        loc, scale = steady(value.isinf(), self.loc, self.scale)
        # divided by the scale alone: times a number it would be rounded to its own dtype, however wide the value is
        return 0.5 * erfc((loc - value) / scale / math.sqrt(2))

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        above = value > 0.5
        below: Any = _Quantile.apply(where(above, 1 - value, value))
        place = where(above, -below, below)
        # that of 0 or 1 may be the logarithm of a number
        (scale,) = steady(place.isinf(), self.scale)
        return self.loc + scale * place

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
    loc: Tensor = reading("base_dist.loc", "The mean of the logarithm.")
    scale: Tensor = reading("base_dist.scale", "The deviation of the logarithm.")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=False), ExpTransform(), validate_args)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def stddev(self) -> Tensor:
        square = self.scale.square()
        small = square < finfo(square.dtype).eps
        spread = where(small, self.scale, where(small, 1.0, square).expm1().sqrt())
        return spread * (self.loc + 0.5 * square).exp()

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
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(1 - 2 / math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._bounded(self._validate_sample(value))
        (scale,) = steady(value.isinf(), self.scale)
        return erf(value / scale / math.sqrt(2))

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (math.sqrt(2) * erfinv(self._validate_share(value)))
