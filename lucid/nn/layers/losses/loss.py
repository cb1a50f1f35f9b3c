"""Losses as layers: each calls the function of its name; see `lucid.ops.loss` for the meaning of the settings.

`size_average` and `reduce` are PyTorch's older form of `reduction`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.nn import functional as F
from lucid.nn.layers.layer import declared
from lucid.nn.module.module import Module
from lucid.ops.loss.older_reduction import reduction_of
from lucid.settings.checks import ranged
from lucid.settings.ranges import NOT_NEGATIVE, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import InitVar

    from lucid.tensor import Tensor


class Loss(Module):
    """The base of losses."""

    @ranged
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)


class WeightedLoss(Loss):
    """The base of losses with weights, a factor for each class or element; a buffer."""

    weight: Tensor | None

    @ranged
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(Loss):
    """Returns ``(input - target)**2``, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MSELoss()(lucid.tensor([0.0, 3.0]), lucid.ones(2))
    tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """Returns ``abs(input - target)``, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.L1Loss()(lucid.tensor([0.0, 3.0]), lucid.ones(2))
    tensor(1.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


@declared
class SmoothL1Loss(Loss):
    """Returns ``d**2 / (2 * beta)`` if ``d = abs(input - target)`` is below beta, else ``d - beta / 2``, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.SmoothL1Loss()(lucid.tensor([0.5, 3.0]), lucid.zeros(2))
    tensor(1.3125)
    """

    _ranges: ClassVar = {"beta": NOT_NEGATIVE}
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    beta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


@declared
class HuberLoss(Loss):
    """Returns ``d**2 / 2`` if ``d = abs(input - target)`` is below delta, else ``delta * (d - delta / 2)``, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.HuberLoss()(lucid.tensor([0.0, 3.0]), lucid.zeros(2))
    tensor(1.2500)
    """

    reduction: str = "mean"
    delta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


@declared
class NLLLoss(WeightedLoss):
    """Returns ``-weight[target] * input[target]`` of log-probabilities, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.NLLLoss()(lucid.tensor([[-0.5, -1.0], [-2.0, -0.1]]), lucid.tensor([0, 1]))
    tensor(0.3000)
    """

    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


@declared
class CrossEntropyLoss(WeightedLoss):
    """Returns the cross-entropy of logits and targets, a share `label_smoothing` spread over all classes, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CrossEntropyLoss()(lucid.zeros(2, 4), lucid.tensor([0, 3]))
    tensor(1.3863)
    """

    weight: Tensor | None = None
    size_average: InitVar[bool | None] = None
    ignore_index: int = -100
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    label_smoothing: float = 0.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(WeightedLoss):
    """Returns ``-(target * log(input) + (1 - target) * log(1 - input))`` of probabilities, reduced.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.BCELoss()(lucid.tensor([0.5, 0.8]), lucid.tensor([0.0, 1.0]))
    tensor(0.4581)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """Returns the binary cross-entropy of ``sigmoid(input)``, reduced, computed without overflow.

    `pos_weight`, a buffer, is a factor for the part of positive targets.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.BCEWithLogitsLoss()(lucid.tensor([0.0, 2.0]), lucid.tensor([0.0, 1.0]))
    tensor(0.4100)
    """

    pos_weight: Tensor | None

    @ranged
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


@declared
class KLDivLoss(Loss):
    """Returns ``target * (log(target) - input)`` of log-probabilities, reduced; with `log_target` of both.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.KLDivLoss(reduction="batchmean")(lucid.tensor([[0.5, 0.5]]).log(), lucid.tensor([[0.2, 0.8]]))
    tensor(0.1927)
    """

    _ranges: ClassVar = {"reduction": words("none", "batchmean", "mean", "sum")}
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    log_target: bool = False

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


@declared
class PoissonNLLLoss(Loss):
    """Returns ``exp(input) - target * input``, or of rates ``input - target * log(input + eps)``, reduced.

    With `full` the part without the input is added, by Stirling's formula.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.PoissonNLLLoss()(lucid.tensor([0.0, 1.0]), lucid.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    log_input: bool = True
    full: bool = False
    size_average: InitVar[bool | None] = None
    eps: float = 1e-8
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(Loss):
    """Returns ``(log(var) + (input - target)**2 / var) / 2``, reduced; with `full` ``log(2 * pi) / 2`` more.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.GaussianNLLLoss()(lucid.tensor([1.0]), lucid.tensor([3.0]), lucid.tensor([4.0]))
    tensor(1.1931)
    """

    @ranged
    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


@declared
class CTCLoss(Loss):
    """Returns ``-log`` of the probability that a sequence gives labels, whenever, reduced; see `F.ctc_loss`.

    `blank` is the class of nothing; with `zero_infinity` labels that are too long cost nothing.

    >>> import lucid
    >>> from lucid import nn
    >>> log_probs = nn.functional.log_softmax(lucid.zeros(5, 2, 4), -1)
    >>> nn.CTCLoss()(log_probs, lucid.tensor([[1, 2], [3, 3]]), [5, 5], [2, 2])
    tensor(1.8999)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
