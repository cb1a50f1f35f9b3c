"""The uniform distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lucid.distributions.distribution import Distribution, broadcast_all
from lucid.ops.creation.random import rand
from lucid.ops.elementwise.selection import where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers of [low, high), all as likely; `low` is below `high`.

    >>> import lucid
    >>> lucid.distributions.Uniform(0.0, 4.0).log_prob(lucid.tensor([1.0, 3.0]))
    tensor([-1.3863, -1.3863])
    """

    has_rsample = True

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all("Uniform", low=low, high=high)
        super().__init__(self.low.shape, validate_args)
        self._check("high", self.high, self.low < self.high, f"above low, {self.low.detach()!r}")

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """A twelfth of the square of the length."""
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return ``low + (high - low) * u`` with u of [0, 1)."""
        part = rand(*self._shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + (self.high - self.low) * part

    def log_prob(self, value: Tensor) -> Tensor:
        """Return ``-log(high - low)``; of what is not within, where values are not looked at, minus infinity."""
        self._check_value(value, lambda: (value >= self.low) & (value <= self.high), "from low to high")
        within = (value >= self.low) & (value < self.high)
        return where(within, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """Return how much of the length lies below."""
        self._check_value(value, lambda: (value >= self.low) & (value <= self.high), "from low to high")
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        """Return the place at a part of the length."""
        return self.low + (self.high - self.low) * value

    def entropy(self) -> Tensor:
        """Return ``log(high - low)``."""
        return (self.high - self.low).log()
