"""The categorical distribution."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.backend.limits import finfo
from lucid.distributions.distribution import Distribution, broadcast_all
from lucid.errors import SettingError
from lucid.ops.activation.softmax import softmax
from lucid.ops.creation.ranges import arange
from lucid.ops.creation.sampling import multinomial
from lucid.ops.reduction.norms import logsumexp
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["Categorical"]


class Categorical(Distribution):
    """Indices of the last dimension, drawn with probabilities proportional to `probs`, or by ``softmax(logits)``.

    One of both is given; `probs` are 0 or more, and not all 0 in a row. What is kept is normalised.

    >>> import lucid
    >>> choice = lucid.distributions.Categorical(probs=lucid.tensor([1.0, 1.0, 2.0]))
    >>> choice.log_prob(lucid.tensor(2)).item() == choice.probs.log()[2].item()
    True
    """

    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise SettingError("Categorical: expected either probs or logits, got both or neither")
        (given,) = broadcast_all("Categorical", **({"logits": logits} if probs is None else {"probs": probs}))
        if given.dim() < 1 or not given.shape[-1]:
            raise SettingError(
                f"Categorical: expected at least one dimension, with events, got shape {tuple(given.shape)}"
            )
        super().__init__(given.shape[:-1], validate_args)
        self._events = given.shape[-1]
        if logits is None:
            total = given.sum(-1, keepdim=True)
            fit = (given >= 0) & (total > 0) & (total < math.inf)
            self._check("probs", given, fit, "of 0 and more, finite, not all 0 in a row")
            self.probs = given / total
        else:
            fit = (given < math.inf) & (given.amax(-1, keepdim=True) > -math.inf)
            self._check("logits", given, fit, "that are numbers below infinity, not all -infinity in a row")
            self.logits = given - logsumexp(given, -1, keepdim=True)

    @functools.cached_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return softmax(self.logits, -1)

    @functools.cached_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, finite."""
        eps = finfo(self.probs.dtype).eps
        return self.probs.clamp(eps, 1 - eps).log()

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._parameter().shape

    @property
    def mode(self) -> Tensor:
        """The index of the largest probability."""
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return indices, int64, of shape ``sample_shape + batch_shape``."""
        shape = self._shape(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._events)
            count = 1
            for size in shape[: len(shape) - len(self.batch_shape)]:
                count *= size
            if not count or not rows.shape[0]:
                return self.probs.new_empty(shape).long()
            return multinomial(rows, count, True).t().reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of indices."""
        self._check_value(
            value,
            lambda: (value >= 0) & (value < self._events) & (value == value.floor()),
            f"of whole numbers from 0 to {self._events - 1}",
        )
        index, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return ``-sum(p * log(p))``."""
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all indices, for each element of the batch or, without `expand`, once."""
        like = self._parameter()
        values = arange(self._events, device=like.device).view(-1, *(1 for _ in self.batch_shape))
        return values.expand((self._events, *self.batch_shape)) if expand else values
