"""Kullback and Leibler's divergence of two distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lucid.distributions.bernoulli import Bernoulli
from lucid.distributions.categorical import Categorical
from lucid.distributions.normal import Normal
from lucid.distributions.uniform import Uniform
from lucid.ops.activation.sigmoid import softplus
from lucid.ops.elementwise.selection import where

if TYPE_CHECKING:
    from lucid.distributions.distribution import Distribution
    from lucid.tensor import Tensor

__all__ = ["kl_divergence"]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the mean of ``log(p(x) / q(x))`` over draws x of `p`, in nats, of two distributions of one kind.

    Others raise a NotImplementedError.

    >>> import lucid
    >>> from lucid.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    if isinstance(p, Normal) and isinstance(q, Normal):
        ratio = (p.scale / q.scale).square()
        return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())
    if isinstance(p, Categorical) and isinstance(q, Categorical):
        each = p.probs * (p.logits - q.logits)
        return where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, each)).sum(-1)
    if isinstance(p, Bernoulli) and isinstance(q, Bernoulli):
        one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
        one = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, one))
        zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
        return one + where(p.probs == 1, 0.0, where(q.probs == 1, math.inf, zero))
    if isinstance(p, Uniform) and isinstance(q, Uniform):
        value = ((q.high - q.low) / (p.high - p.low)).log()
        return where((q.low > p.low) | (q.high < p.high), math.inf, value)
    raise NotImplementedError(
        f"kl_divergence: expected two distributions of one kind, got {type(p).__name__} and {type(q).__name__}"
    )
