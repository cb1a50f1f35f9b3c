"""Samples of classes that can be differentiated. Common rules: `lucid.ops.activation.softmax`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import SettingError, ShapeError, warn
from lucid.ops.activation.softmax import softmax
from lucid.ops.base.dims import dim_in
from lucid.ops.base.operands import floating
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.creation.filling import zeros_like
from lucid.ops.creation.random import rand_like
from lucid.ops.elementwise.exponential import log
from lucid.ops.index.scatter import scatter
from lucid.ops.reduction.extremes import argmax

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return ``softmax((logits + g) / tau)`` along `dim`, g drawn from Gumbel's distribution, of `logits`.

    With `hard` the result is one-hot, while its gradient is that of the softmax. The largest entries are at a class as
    often as its softmax says; the lower the temperature `tau`, above 0, the nearer the result is to one-hot. `eps` does
    nothing, as in PyTorch. (Jang, Gu, Poole, 2017; Maddison, Mnih, Teh, 2017.)

    >>> import lucid
    >>> lucid.nn.functional.gumbel_softmax(lucid.zeros(3, 4), hard=True).sum(1)
    tensor([1., 1., 1.])
    """
    x = floating("gumbel_softmax", logits)
    tau, hard, place = as_number(tau, "tau"), as_bool(hard, "hard"), dim_in(dim, x.array.ndim)
    if not tau > 0:
        raise SettingError(f"gumbel_softmax: expected a temperature tau > 0, got {tau}")
    if hard and not x.array.ndim:
        raise ShapeError("gumbel_softmax: expected logits with a dimension of classes for hard=True, got a 0-dim one")
    if as_number(eps, "eps") != 1e-10:
        warn("gumbel_softmax: `eps` parameter is deprecated and has no effect.")
    # of a draw of 0 the noise is minus infinity, which softmax takes; a draw is never 1
    noise = -log(-log(rand_like(x)))
    soft = softmax((x + noise) / tau, place)
    if not hard:
        return soft
    known = soft.detach()
    ones = scatter(zeros_like(known), place, argmax(known, place, True), 1.0)
    return ones - known + soft
