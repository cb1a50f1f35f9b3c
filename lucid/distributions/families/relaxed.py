"""Choices made continuous, by a temperature; and shares with normal logits.

Maddison, Mnih, Teh: The concrete distribution (2017); Jang, Gu, Poole: Categorical reparameterization with
Gumbel-softmax (2017).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.families.categorical import OfCategorical
from lucid.distributions.families.composed import TransformedDistribution
from lucid.distributions.families.normal import Normal
from lucid.distributions.families.trials import Odds
from lucid.distributions.transformations.elementwise import ExpTransform, SigmoidTransform
from lucid.distributions.transformations.vectors import StickBreakingTransform
from lucid.distributions.utils import broadcast_all, parameters_of, reading
from lucid.ops.activation.sigmoid import softplus
from lucid.ops.elementwise.selection import where
from lucid.ops.reduction.norms import logsumexp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class LogitRelaxedBernoulli(Odds):
    """The logits of a `RelaxedBernoulli`: ``(logits + noise) / temperature``, the noise of the logistic distribution.

    >>> import lucid
    >>> from lucid.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(1.0, probs=lucid.tensor(0.5)).log_prob(lucid.tensor(0.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {
        "temperature": constraints.positive,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real
    has_rsample = True
    temperature: Tensor

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._begin(validate_args, probs, logits, temperature=temperature)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # the logarithm of a ratio of two waiting times is logistic
        first, second = (self._exponential(sample_shape, self.logits) for _ in range(2))
        return (self.logits + first.log() - second.log()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        apart = self.logits - value * self.temperature
        return self.temperature.log() + apart - 2 * softplus(apart)


class _Relaxed(TransformedDistribution):
    """The base of continuous relaxations of discrete distributions, with a `temperature` as distance from a choice."""

    has_rsample = True
    _before: Any
    _transform: Any
    temperature: Tensor = reading("base_dist.temperature", "How far from a choice.")
    logits: Tensor = reading("base_dist.logits", "Those of the discrete distribution that it becomes.")
    probs: Tensor = reading("base_dist.probs", "Those of the discrete distribution that it becomes.")

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = self._before(temperature, probs, logits, validate_args)
        super().__init__(base, self._transform(), validate_args)


class RelaxedBernoulli(_Relaxed):
    """Numbers from 0 to 1, the nearer to these the lower the positive `temperature`.

    `probs` or `logits` are those of the `Bernoulli` that it becomes at 0. Draws are
    ``sigmoid((logits + noise) / temperature)``, the noise of the logistic distribution.

    >>> import lucid
    >>> lucid.distributions.RelaxedBernoulli(1.0, probs=lucid.tensor(0.5)).log_prob(lucid.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _before, _transform = LogitRelaxedBernoulli, SigmoidTransform


class ExpRelaxedCategorical(OfCategorical):
    """Logarithms of a `RelaxedOneHotCategorical`: ``log_softmax((logits + noise) / temperature)``, the noise Gumbel's.

    >>> import lucid
    >>> from lucid.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> draw = ExpRelaxedCategorical(0.5, probs=lucid.ones(3)).rsample()
    >>> lucid.allclose(draw.exp().sum(), lucid.tensor(1.0))
    True
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        named = {"temperature": temperature, "probs": probs, "logits": logits}
        named = {name: value for name, value in named.items() if value is not None}
        made = dict(zip(named, parameters_of("ExpRelaxedCategorical", named), strict=True))
        self._begin(validate_args, made.get("probs"), made.get("logits"))
        # of one element, of any shape, it is that of all rows
        one = made["temperature"]
        one = one.reshape(()) if one.numel() == 1 else one
        self._check("temperature", one, constraints.positive)
        self.temperature, rows = broadcast_all(one, self._param[..., 0])
        self._categorical = self._categorical.expand(rows.shape)
        self._batch_shape = rows.shape

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        scores = self.logits - self._exponential(sample_shape, self.logits).log()
        # from the largest on, as quotients by a low temperature have few digits after the point
        scores = (scores - scores.detach().amax(-1, keepdim=True)) / self.temperature.unsqueeze(-1)
        return scores - logsumexp(scores, -1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        n = self.event_shape[0]
        score = self.logits - value * self.temperature.unsqueeze(-1)
        score = (score - logsumexp(score, -1, keepdim=True)).sum(-1)
        return score + (n - 1) * self.temperature.log() + math.lgamma(n)


class _SharesTransform(ExpTransform):
    """Logarithms to shares, clamped away from 0 unless their logarithm is infinite."""

    def _call(self, x: Tensor) -> Tensor:
        return where(x == -math.inf, 0.0, x.exp().clamp(min=finfo(x.dtype).tiny))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.clamp(min=finfo(y.dtype).tiny).log()


class RelaxedOneHotCategorical(_Relaxed):
    """Shares that sum to 1, the nearer to one of them the lower the positive `temperature` of the row.

    `probs` or `logits` are those of the `OneHotCategorical` that it becomes at 0.

    >>> import lucid
    >>> draw = lucid.distributions.RelaxedOneHotCategorical(0.5, logits=lucid.zeros(3)).rsample()
    >>> lucid.allclose(draw.sum(), lucid.tensor(1.0))
    True
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _before, _transform = ExpRelaxedCategorical, _SharesTransform


class LogisticNormal(TransformedDistribution):
    """Shares that sum to 1, made by `StickBreakingTransform` of normal numbers with `loc` and `scale`, one fewer.

    `scale` is above 0.

    >>> import lucid
    >>> draw = lucid.distributions.LogisticNormal(lucid.zeros(2), lucid.ones(2)).rsample()
    >>> draw.shape, lucid.allclose(draw.sum(), lucid.tensor(1.0))
    (lucid.Size([3]), True)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    loc: Tensor = reading("base_dist.base_dist.loc", "The mean of the normal numbers.")
    scale: Tensor = reading("base_dist.base_dist.scale", "The deviation of the normal numbers.")

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=False)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)
