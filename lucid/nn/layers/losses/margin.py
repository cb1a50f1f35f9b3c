"""Losses with a margin as layers; see `lucid.ops.loss.margin` for the meaning of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.layers.distance import PairwiseDistance
from lucid.nn.layers.layer import declared
from lucid.nn.layers.losses.loss import Loss, WeightedLoss
from lucid.ops.loss.margin import as_distance
from lucid.settings.checks import ranged
from lucid.settings.ranges import POSITIVE, number

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import InitVar

    from lucid.tensor import Tensor


@declared
class HingeEmbeddingLoss(Loss):
    """Returns ``input`` if the target is 1 and ``max(margin - input, 0)`` if it is -1, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.HingeEmbeddingLoss()(lucid.tensor([0.5, 0.2]), lucid.tensor([1.0, -1.0]))
    tensor(0.6500)
    """

    margin: float = 1.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


@declared
class CosineEmbeddingLoss(Loss):
    """Returns ``1 - cos`` if the target is 1 and ``max(cos - margin, 0)`` if it is -1, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CosineEmbeddingLoss()(lucid.tensor([1.0, 0.0]), lucid.tensor([1.0, 1.0]), lucid.tensor(1))
    tensor(0.2929)
    """

    _ranges: ClassVar = {"margin": number("a number in [-1, 1]", lambda value: -1 <= value <= 1)}
    margin: float = 0.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


@declared
class MarginRankingLoss(Loss):
    """Returns ``max(-target * (input1 - input2) + margin, 0)``, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MarginRankingLoss(1.0)(lucid.tensor([2.0]), lucid.tensor([1.5]), lucid.tensor([1.0]))
    tensor(0.5000)
    """

    margin: float = 0.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(Loss):
    """Returns ``log(1 + exp(-target * input))``, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.SoftMarginLoss()(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, -1.0]))
    tensor(1.2201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(Loss):
    """Returns ``max(1 - input[t] + input[c], 0)`` summed over targets t and others c, by the classes, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MultiLabelMarginLoss()(lucid.tensor([0.1, 0.2, 0.4]), lucid.tensor([2, -1, 0]))
    tensor(0.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """Returns the binary cross-entropy of ``sigmoid(input)``, averaged over the classes, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MultiLabelSoftMarginLoss()(lucid.tensor([[0.0, 2.0]]), lucid.tensor([[0.0, 1.0]]))
    tensor(0.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


@declared
class MultiMarginLoss(WeightedLoss):
    """Returns ``max(margin - input[target] + input[c], 0)**p`` summed over other classes c, by the classes, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MultiMarginLoss()(lucid.tensor([0.1, 0.2, 0.4]), lucid.tensor(2))
    tensor(0.5000)
    """

    _ranges: ClassVar = {"p": number("1 or 2", lambda value: value in {1, 2})}
    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def __post_init__(self, *_: bool | None) -> None:
        weight = self.weight
        if weight is not None and weight.ndim != 1:
            raise SettingError(f"expected weight to be None or of one dimension, got shape {list(weight.shape)}")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


@declared
class TripletMarginLoss(Loss):
    """Returns ``max(d(anchor, positive) - d(anchor, negative) + margin, 0)``, d a distance of order `p`, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.TripletMarginLoss()(lucid.zeros(1, 2), lucid.zeros(1, 2), lucid.tensor([[0.3, 0.4]]))
    tensor(0.5000)
    """

    _ranges: ClassVar = {"margin": POSITIVE}
    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(Loss):
    """Returns the loss of `TripletMarginLoss` under `distance_function`, None for `F.pairwise_distance`, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.TripletMarginWithDistanceLoss()(lucid.zeros(1, 2), lucid.zeros(1, 2), lucid.tensor([[0.3, 0.4]]))
    tensor(0.5000)
    """

    _ranges: ClassVar = {"margin": POSITIVE}

    @ranged
    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function = PairwiseDistance() if distance_function is None else as_distance(distance_function)
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
