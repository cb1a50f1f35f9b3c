"""Numbers around a place: on a scale, with heavier tails than normal ones, Cauchy's, Laplace's and Gumbel's; angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution, Symmetric
from lucid.distributions.families.composed import Half, TransformedDistribution
from lucid.distributions.families.exponential import Exponential
from lucid.distributions.transformations.elementwise import AbsTransform, AffineTransform, ExpTransform
from lucid.distributions.utils import euler_constant, log1p_square, named_tensors, steady
from lucid.ops.creation.rejection import von_mises
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import i0, i1
from lucid.ops.elementwise.trigonometry import atan2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


# From here on Hankel's asymptotic series of Bessel functions is exact to the last place.
FAR = 30.0


class Cauchy(Symmetric):
    """Numbers around `loc` with the density ``1 / (pi * scale * (1 + ((x - loc) / scale)**2))``; `scale` is above 0.

    There is no mean, and no finite variance.

    >>> import lucid
    >>> lucid.distributions.Cauchy(0.0, 1.0).log_prob(lucid.tensor(0.0))
    tensor(-1.1447)
    """

    @property
    def mean(self) -> Tensor:
        return self._nan()

    @property
    def variance(self) -> Tensor:
        return self.loc.new_full(self._extended_shape(), math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + self.scale * self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - log1p_square((value - self.loc) / self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        loc, scale = steady(value.isinf(), self.loc, self.scale)
        z = (value - loc) / scale
        # the angle from the far end below, which is small there
        return atan2(z.new_ones(()), -z) / math.pi

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        above, far = value > 0.5, (value - 0.5).abs() > 0.25
        share = where(above, 1 - value, value)
        tail = -1 / (math.pi * where(far, share, 0.25)).tan()
        middle = (math.pi * where(far, 0.0, value - 0.5)).tan()
        return where(far, where(above, -tail, tail), middle) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Half):
    """Absolute values of Cauchy's numbers around 0: ``2 / (pi * scale * (1 + (x / scale)**2))`` for x of 0 or more.

    `scale` is above 0.

    >>> import lucid
    >>> lucid.distributions.HalfCauchy(1.0).log_prob(lucid.tensor(0.0))
    tensor(-0.4516)
    """

    base_dist: Cauchy

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    def cdf(self, value: Tensor) -> Tensor:
        value = self._bounded(self._validate_sample(value))
        (scale,) = steady(value.isinf(), self.scale)
        return 2 / math.pi * (value / scale).atan()

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        above = value > 0.5
        # from the nearer end on, as 1 has few digits less than the share
        tail = (math.pi / 2 * where(above, 1 - value, value)).tan()
        return self.scale * where(above, 1 / where(above, tail, 1.0), tail)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.variance

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance


class Laplace(Symmetric):
    """Numbers around `loc` with the density ``exp(-abs(x - loc) / scale) / (2 * scale)``; `scale` is above 0.

    >>> import lucid
    >>> lucid.distributions.Laplace(0.0, 1.0).log_prob(lucid.tensor(1.0))
    tensor(-1.6931)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # the difference of two waiting times
        first, second = (self._exponential(sample_shape, self.loc) for _ in range(2))
        return self.loc + self.scale * (first - second)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        loc, scale = steady(value.isinf(), self.loc, self.scale)
        away = (value - loc) / scale
        below = away < 0
        share = 0.5 * where(below, away, -away).exp()
        return where(below, share, 1 - share)

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        below = value < 0.5
        log = (2 * where(below, value, 1 - value)).log()
        return self.loc + self.scale * where(below, log, -log)

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Gumbel(TransformedDistribution):
    """The largest of many: ``exp(-(z + exp(-z))) / scale`` with ``z = (x - loc) / scale``; `scale` is above 0.

    >>> import lucid
    >>> lucid.distributions.Gumbel(0.0, 1.0).log_prob(lucid.tensor(0.0))
    tensor(-1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = named_tensors("Gumbel", {"loc": loc, "scale": scale})
        base = Exponential(self.scale.new_ones(()).expand(self.scale.shape), validate_args=False)
        # the logarithm of a waiting time, turned round
        chain = [ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, chain, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-self._waited(self._validate_sample(value))).exp()

    def _above(self, value: Tensor) -> Tensor:
        return -(-self._waited(value)).expm1()

    def _waited(self, value: Tensor) -> Tensor:
        """Return the waiting time that a value is the logarithm of."""
        loc, scale = steady(value.isinf(), self.loc, self.scale)
        # from 10 on the share is 0 in each dtype, and later the exponential overflows
        return (-(value - loc) / scale).clamp(max=10.0).exp()

    def icdf(self, value: Tensor) -> Tensor:
        value = self._validate_share(value)
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


def _terms(x: Tensor, order: int) -> list[Tensor]:
    """Return the terms after 1 of the series of ``I(x) * exp(-x) * sqrt(2 * pi * x)``."""
    terms: list[Any] = [1.0]
    for k in range(1, 16):
        terms.append(terms[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k) / x)
    return terms[1:]


def _log_bessel(x: Tensor) -> Tensor:
    """Return the logarithm of ``i0(x) * exp(-x)`` for x of 0 or more, also of those with an infinite i0."""
    wide = x.double()
    near = wide < FAR
    low = where(near, wide, 1.0)
    far = where(near, FAR, wide)
    series: Any = sum(_terms(far, 0))
    return where(near, i0(low).log() - low, series.log1p() - 0.5 * (2 * math.pi * far).log()).to(x.dtype)


def _lack(x: Tensor) -> Tensor:
    """Return ``1 - i1(x) / i0(x)`` for x of 0 or more; of a large x by the differences of the terms."""
    wide = x.double()
    near = wide < FAR
    low = where(near, wide, 1.0)
    first, second = (_terms(where(near, FAR, wide), order) for order in (0, 1))
    gap: Any = sum(a - b for a, b in zip(first, second, strict=True))
    whole: Any = 1 + sum(first)
    return where(near, 1 - i1(low) / i0(low), gap / whole).to(x.dtype)


class VonMises(Distribution):
    """Angles from -pi to pi around `loc` with the density ``exp(c * cos(x - loc)) / (2 * pi * i0(c))``.

    c, the `concentration`, is above 0. The mean and the variance are those on the circle.

    >>> import lucid
    >>> lucid.distributions.VonMises(lucid.tensor(0.0), 1.0).log_prob(lucid.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return _lack(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = von_mises(self.concentration.expand(self._extended_shape(sample_shape)))
            return (drawn + math.pi + self.loc) % (2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        c = self.concentration
        # 1 - cos, also of small angles
        fall = 2 * (0.5 * (value - self.loc)).sin().square()
        return -c * fall - math.log(2 * math.pi) - _log_bessel(c)
