"""What distributions of trials share: the probability of 1 in one of them, or the logarithm of its odds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.backend.limits import finfo
from lucid.distributions.distribution import Distribution, broadcast_all
from lucid.errors import SettingError
from lucid.ops.activation.sigmoid import sigmoid
from lucid.ops.elementwise.nonfinite import isnan

if TYPE_CHECKING:
    from lucid.tensor import Tensor

__all__ = ["Odds"]


class Odds(Distribution):
    """The base of distributions that are given `probs` or `logits`; the other follows when it is asked for."""

    def __init__(self, validate_args: bool | None, *, probs: Any, logits: Any, **others: Any) -> None:
        title = type(self).__name__
        if (probs is None) == (logits is None):
            raise SettingError(f"{title}: expected either probs or logits, got both or neither")
        parameters = {**others, **({"logits": logits} if probs is None else {"probs": probs})}
        tensors = broadcast_all(title, **parameters)
        for name, value in zip(parameters, tensors, strict=True):
            setattr(self, name, value)
        given = tensors[-1]
        super().__init__(given.shape, validate_args)
        if probs is None:
            self._check("logits", given, ~isnan(given), "that are numbers")
        else:
            self._check("probs", given, (given >= 0) & (given <= 1), "between 0 and 1")

    @functools.cached_property
    def probs(self) -> Tensor:
        """The probability of 1 in one trial."""
        return sigmoid(self.logits)

    @functools.cached_property
    def logits(self) -> Tensor:
        """The logarithm of the odds of 1 in one trial, finite."""
        eps = finfo(self.probs.dtype).eps
        bounded = self.probs.clamp(eps, 1 - eps)
        return bounded.log() - (-bounded).log1p()
