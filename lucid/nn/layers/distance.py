"""Distances and angles between vectors as layers; see `lucid.ops.linalg.distances` for their formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.nn import functional as F
from lucid.nn.layers.layer import declared
from lucid.nn.module.module import Module
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.tensor import Tensor


@declared
class CosineSimilarity(Module):
    """Returns the cosine of the angle between vectors along `dim`; their lengths count as `eps` at least.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CosineSimilarity(dim=0)(lucid.tensor([1.0, 0.0]), lucid.tensor([1.0, 1.0]))
    tensor(0.7071)
    """

    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Returns the norm of order `p` of ``x1 - x2 + eps`` along the last dimension, kept with `keepdim`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.PairwiseDistance(eps=0.0)(lucid.tensor([0.0, 0.0]), lucid.tensor([3.0, 4.0]))
    tensor(5.)
    """

    @ranged
    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
