"""Transforms of numbers, one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.transformations.base import Transform, widened
from lucid.distributions.utils import count_of, is_whole, sum_rightmost, tensor_or_number
from lucid.ops.activation.sigmoid import sigmoid, softplus
from lucid.ops.base.dims import common_shape
from lucid.ops.base.promotion import promote_to_tensors
from lucid.ops.elementwise.exponential import xlogy
from lucid.ops.elementwise.selection import where
from lucid.tensor import Tensor
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.distributions.constraints import Constraint
    from lucid.distributions.distribution import Distribution


def _broadcast(shape: Sequence[int], *settings: Any) -> Size:
    return Size(common_shape(tuple(shape), *(tuple(getattr(each, "shape", ())) for each in settings)))


def _number(value: Any, name: str) -> Any:
    setting = tensor_or_number(value)
    if setting is None:
        raise unfit(value, "a Tensor or a number", name)
    return setting


class ExpTransform(Transform):
    """``y = exp(x)``.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.ExpTransform()(lucid.tensor([0.0]))
    tensor([1.])
    """

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, +1
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``y = x**exponent`` for x above 0.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.PowerTransform(2.0)(lucid.tensor([3.0]))
    tensor([9.])
    """

    domain, codomain = constraints.positive, constraints.positive
    bijective = True
    _settings = ("exponent",)

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = _number(exponent, "exponent")

    def _recached(self, cache_size: int) -> Transform:
        return PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else math.copysign(1, self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self._exponent_beside(y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # of x and y the one that is the nearer to 1: the other may be 0 or infinite
        exponent = self._exponent_beside(y)
        if isinstance(exponent, Tensor):
            of_y = exponent.abs() < 1
            power, base = where(of_y, 1 - 1 / exponent, exponent - 1), where(of_y, y, x)
            return exponent.abs().log() + xlogy(power, base.abs())
        power, base = (1 - 1 / exponent, y) if abs(exponent) < 1 else (exponent - 1, x)
        return math.log(abs(exponent)) + xlogy(power, base.abs())

    def _exponent_beside(self, value: Tensor) -> Any:
        exponent: Any = self.exponent
        # a quotient of integers is of the default dtype
        return exponent.to(value.dtype) if isinstance(exponent, Tensor) and is_whole(exponent) else exponent

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _broadcast(shape, self.exponent)

    inverse_shape = forward_shape


class SigmoidTransform(Transform):
    """``y = 1 / (1 + exp(-x))``, clamped away from 0 and 1 by the resolution of the dtype.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.SigmoidTransform()(lucid.tensor([0.0]))
    tensor([0.5000])
    """

    domain, codomain = constraints.real, constraints.unit_interval
    bijective, sign = True, +1
    _settings, _takes_whole = (), False

    @staticmethod
    def _inside(y: Tensor) -> Tensor:
        limits = finfo(y.dtype)
        return y.clamp(limits.tiny, 1 - limits.eps)

    def _call(self, x: Tensor) -> Tensor:
        return self._inside(sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = self._inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """``y = log(1 + exp(x))``.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.SoftplusTransform()(lucid.tensor([0.0]))
    tensor([0.6931])
    """

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, +1
    _settings, _takes_whole = (), False

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(Transform):
    """``y = tanh(x)``; with a cache of 1 the inverse is exact even if y is rounded to 1.

    >>> import lucid
    >>> squash = lucid.distributions.TanhTransform()
    >>> squash.inv(squash(lucid.tensor(0.5)))
    tensor(0.5000)
    """

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    bijective, sign = True, +1
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)**2), where the square is rounded to 1 too
        return 2 * (math.log(2) - x - softplus(-2 * x))


class AbsTransform(Transform):
    """``y = abs(x)``; the inverse is the nonnegative one of both.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.AbsTransform()(lucid.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    domain, codomain = constraints.real, constraints.nonnegative
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """``y = loc + scale * x``, of events of `event_dim` dimensions.

    >>> import lucid
    >>> lucid.distributions.AffineTransform(1.0, 2.0)(lucid.tensor(3.0))
    tensor(7.)
    """

    bijective = True
    _settings = ("loc", "scale", "event_dim")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = _number(loc, "loc"), _number(scale, "scale")
        self._event_dim = count_of("AffineTransform: event_dim", event_dim)

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return widened(constraints.real, self._event_dim)

    codomain = domain

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _recached(self, cache_size: int) -> Transform:
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale: Any = self.scale
        log = promote_to_tensors(scale, x, at_least_float=True)[0].abs().log()
        return sum_rightmost(log.expand(common_shape(tuple(x.shape), tuple(log.shape))), self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """``y = distribution.cdf(x)``: draws of a distribution become uniform.

    >>> import lucid
    >>> from lucid.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(lucid.tensor(0.0))
    tensor(0.5000)
    """

    bijective, sign = True, +1
    codomain = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _recached(self, cache_size: int) -> Transform:
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
