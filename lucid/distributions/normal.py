"""The normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lucid.distributions.distribution import Distribution, broadcast_all
from lucid.ops.creation.random import randn
from lucid.ops.elementwise.nonfinite import isnan
from lucid.ops.elementwise.special import erf, erfinv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["Normal"]


class Normal(Distribution):
    """Numbers around `loc` with the density ``exp(-((x - loc) / scale)**2 / 2) / (scale * sqrt(2 * pi))``.

    `scale` is above 0.

    >>> import lucid
    >>> normal = lucid.distributions.Normal(0.0, lucid.tensor([1.0, 2.0]))
    >>> normal.log_prob(lucid.tensor(1.0))
    tensor([-1.4189, -1.7371])
    """

    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all("Normal", loc=loc, scale=scale)
        super().__init__(self.loc.shape, validate_args)
        self._check("scale", self.scale, self.scale > 0, "above 0")
        self._check("loc", self.loc, ~isnan(self.loc), "that is a number")

    @property
    def mean(self) -> Tensor:
        """`loc`."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """`loc`."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """`scale`."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The square of `scale`."""
        return self.scale.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return ``loc + scale * n`` with standard normal numbers n."""
        noise = randn(*self._shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self.scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        self._check_value(value, lambda: ~isnan(value), "that are numbers")
        away = (value - self.loc) / self.scale
        return -0.5 * away.square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        """Return ``(1 + erf((x - loc) / (scale * sqrt(2)))) / 2``."""
        self._check_value(value, lambda: ~isnan(value), "that are numbers")
        return 0.5 * (1 + erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        """Return ``loc + scale * sqrt(2) * erfinv(2 * value - 1)``."""
        return self.loc + self.scale * (math.sqrt(2) * erfinv(2 * value - 1))

    def entropy(self) -> Tensor:
        """Return ``log(scale) + log(2 * pi * e) / 2``."""
        return self.scale.log() + 0.5 * math.log(2 * math.pi * math.e)
