"""The Bernoulli distribution."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.backend.limits import finfo
from lucid.distributions.distribution import Distribution, broadcast_all
from lucid.errors import SettingError
from lucid.ops.activation.sigmoid import sigmoid
from lucid.ops.creation.data import tensor
from lucid.ops.creation.sampling import bernoulli
from lucid.ops.elementwise.nonfinite import isnan
from lucid.ops.loss.probability_loss import binary_cross_entropy_with_logits
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["Bernoulli"]


class Bernoulli(Distribution):
    """1 with probability `probs`, otherwise 0; or with ``sigmoid(logits)``, one of both is given.

    >>> import lucid
    >>> lucid.distributions.Bernoulli(probs=lucid.tensor([0.25, 0.5])).log_prob(lucid.tensor(1.0))
    tensor([-1.3863, -0.6931])
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise SettingError("Bernoulli: expected either probs or logits, got both or neither")
        if logits is None:
            (self.probs,) = broadcast_all("Bernoulli", probs=probs)
            super().__init__(self.probs.shape, validate_args)
            self._check("probs", self.probs, (self.probs >= 0) & (self.probs <= 1), "between 0 and 1")
        else:
            (self.logits,) = broadcast_all("Bernoulli", logits=logits)
            super().__init__(self.logits.shape, validate_args)
            self._check("logits", self.logits, ~isnan(self.logits), "that are numbers")

    @functools.cached_property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return sigmoid(self.logits)

    @functools.cached_property
    def logits(self) -> Tensor:
        """The logarithm of the odds of 1, finite."""
        eps = finfo(self.probs.dtype).eps
        bounded = self.probs.clamp(eps, 1 - eps)
        return bounded.log() - (-bounded).log1p()

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
        self._check_value(value, (value == 0) | (value == 1), "of 0 and 1")
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
