"""The Bernoulli distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.distributions.odds import Odds
from lucid.ops.creation.data import tensor
from lucid.ops.creation.sampling import bernoulli
from lucid.ops.loss.probability_loss import binary_cross_entropy_with_logits
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["Bernoulli"]


class Bernoulli(Odds):
    """1 with probability `probs`, otherwise 0; or with ``sigmoid(logits)``, one of both is given.

    >>> import lucid
    >>> lucid.distributions.Bernoulli(probs=lucid.tensor([0.25, 0.5])).log_prob(lucid.tensor(1.0))
    tensor([-1.3863, -0.6931])
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(validate_args, probs=probs, logits=logits)

    @property
    def mean(self) -> Tensor:
        """`probs`."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """``probs * (1 - probs)``."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of shape ``sample_shape + batch_shape``: 0 and 1 in the dtype of the parameters."""
        with no_grad():
            return bernoulli(self.probs.expand(self._shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of 0 or 1."""
        self._check_value(value, lambda: (value == 0) | (value == 1), "of 0 and 1")
        logits, wanted = broadcast_tensors(self.logits, value.to(self.logits.dtype))
        return -binary_cross_entropy_with_logits(logits, wanted, reduction="none")

    def entropy(self) -> Tensor:
        """Return ``-p * log(p) - (1 - p) * log(1 - p)``."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return 0 and 1, for each element of the batch or, without `expand`, once."""
        like = self._parameter()
        values = tensor([0.0, 1.0], dtype=like.dtype, device=like.device).view(2, *(1 for _ in self.batch_shape))
        return values.expand((2, *self.batch_shape)) if expand else values
