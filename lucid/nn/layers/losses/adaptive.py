"""A softmax over many classes that spends little on rare ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.errors import IndexOutOfRangeError, SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn.layers.container import ModuleList, Sequential
from lucid.nn.layers.layer import declared
from lucid.nn.layers.linear import Linear
from lucid.nn.module.module import Module
from lucid.ops.creation.filling import zeros_like
from lucid.ops.shape.joining import cat

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import InitVar

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class Outcome(NamedTuple):
    """The result of the loss: the log-probability of each target, and minus their mean."""

    output: Tensor
    loss: Tensor


@declared
class AdaptiveLogSoftmaxWithLoss(Module):
    """Returns the log-probabilities of targets and their mean loss; classes are sorted, frequent ones first.

    The `head` knows the classes below the first of the `cutoffs`, and one class for each cluster of those between the
    others; the cluster i of the `tail` has ``in_features / div_value ** i`` features. Which examples lie in
    it is waited for. (Grave, Joulin, Cisse, Grangier, Jegou, Efficient softmax approximation for GPUs, 2017.)

    >>> import lucid
    >>> from lucid import nn
    >>> loss = nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs=[5, 10])
    >>> loss(lucid.ones(3, 16), lucid.tensor([0, 7, 19])).output.shape
    lucid.Size([3])
    """

    in_features: int
    n_classes: int
    cutoffs: Sequence[int]
    div_value: float = 4.0
    head_bias: bool = False
    device: InitVar[Device] = None
    dtype: InitVar[Dtype | None] = None

    def __post_init__(self, device: Device, dtype: Dtype | None) -> None:
        ends = list(self.cutoffs)
        if not ends:
            raise SettingError("cutoffs should be a sequence of length larger than 0")
        if ends != sorted(set(ends)) or ends[0] <= 0 or ends[-1] > self.n_classes - 1:
            raise SettingError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes-1 = {self.n_classes - 1}, got {ends}"
            )
        self.cutoffs = [*ends, self.n_classes]
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        made: Any = {"device": device, "dtype": dtype}
        self.head = Linear(self.in_features, self.head_size, bias=self.head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            size = int(self.in_features // self.div_value ** (i + 1))
            count = self.cutoffs[i + 1] - self.cutoffs[i]
            projection = Linear(self.in_features, size, bias=False, **made)
            self.tail.append(Sequential(projection, Linear(size, count, bias=False, **made)))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for linear in cluster:
                linear.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> Outcome:
        batched = target.ndim == 1
        if target.ndim > 1 or input.ndim != target.ndim + 1 or (batched and input.shape[0] != target.shape[0]):
            raise ShapeError(
                "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in the batch dimension: "
                f"expected (N, {self.in_features}) and (N,), or ({self.in_features},) and (), got "
                f"{list(input.shape)} and {list(target.shape)}"
            )
        rows, classes = (input, target) if batched else (input.unsqueeze(0), target.unsqueeze(0))
        if classes.numel() and not (int(classes.min()) >= 0 and int(classes.max()) < self.n_classes):
            raise IndexOutOfRangeError(
                f"AdaptiveLogSoftmaxWithLoss: Target values should be in [0, {self.n_classes - 1}], but values in "
                f"range [{int(classes.min())}, {int(classes.max())}] were found."
            )
        head = F.log_softmax(self.head(rows), 1)
        # the class of the head: for a rare one that of its cluster
        entry = classes
        rest = zeros_like(head[:, 0])
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            inside = (classes >= low) & (classes < high)
            places = inside.nonzero()[:, 0]
            if not places.numel():
                continue
            entry = entry.masked_fill(inside, self.shortlist_size + i)
            within = (classes.index_select(0, places) - low).unsqueeze(1)
            own = F.log_softmax(cluster(rows.index_select(0, places)), 1).gather(1, within)[:, 0]
            rest = rest.index_copy(0, places, own)
        output = head.gather(1, entry.unsqueeze(1))[:, 0] + rest
        return Outcome(output if batched else output[0], -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, of shape (N, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            place = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), 1) + head[:, place : place + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the class of the highest probability of each example, of shape (N,)."""
        return self.log_prob(input).argmax(1)
