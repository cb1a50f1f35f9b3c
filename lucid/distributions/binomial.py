"""The binomial distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.distributions.odds import Odds
from lucid.ops.activation.sigmoid import softplus
from lucid.ops.creation.filling import zeros
from lucid.ops.creation.random import rand
from lucid.ops.elementwise.special import lgamma

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["Binomial"]


class Binomial(Odds):
    """How often 1 is drawn in `total_count` draws with probability `probs`, or ``sigmoid(logits)``; one is given.

    >>> import lucid
    >>> lucid.distributions.Binomial(2, probs=lucid.tensor(0.5)).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.5000)
    """

    total_count: Tensor

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(validate_args, total_count=total_count, probs=probs, logits=logits)
        n = self.total_count
        whole = (n >= 0) & (n < math.inf) & (n == n.floor())
        self._check("total_count", self.total_count, whole, "of whole numbers from 0 on")

    @property
    def mean(self) -> Tensor:
        """``total_count * probs``."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """``total_count * probs * (1 - probs)``."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of shape ``sample_shape + batch_shape``; it takes as many steps as the largest count."""
        shape = self._shape(sample_shape)
        with no_grad():
            drawn = zeros(shape, dtype=self.probs.dtype, device=self.probs.device)
            most = int(self.total_count.max().item()) if self.total_count.numel() else 0
            for count in range(most):
                one = rand(*shape, dtype=self.probs.dtype, device=self.probs.device) < self.probs
                drawn += (one & (self.total_count > count)).to(drawn.dtype)
            return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of counts."""
        self._check_value(
            value,
            lambda: (value >= 0) & (value <= self.total_count) & (value == value.floor()),
            "of whole numbers from 0 to total_count",
        )
        n = self.total_count
        ways = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        return ways + value * self.logits - n * softplus(self.logits)
