"""Batch normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd.modes.reading import recomputing
from lucid.autograd.modes.state import no_grad
from lucid.nn import functional as F
from lucid.nn.layers.normalisation.tracked import Tracked
from lucid.ops.layers.batch_normalisation import MeanOfBatches
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class BatchNorm(Tracked):
    """The base of batch-normalisation layers: each of `num_features` channels, dimension 1, is normalised.

    In training mean and variance are the batch's, and the running ones follow them; in evaluation they are the running
    ones, or without `track_running_stats` the batch's again. `momentum`, the share of a new batch in the running ones,
    may be None, which makes them the mean over all batches.
    """

    @ranged
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self.check_dimensions(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        seen = self.num_batches_tracked if self.training and self.track_running_stats else None
        if seen is not None and self.momentum is None:
            momentum = MeanOfBatches(seen)
        used = not self.training or self.track_running_stats
        out = self.normalised(input, self.running_mean if used else None, self.running_var if used else None, momentum)
        # last, so that an input that is refused is not counted
        if seen is not None and not recomputing():
            with no_grad():
                seen.add_(1)
        return out

    def normalised(
        self, input: Tensor, mean: Tensor | None, variance: Tensor | None, momentum: float | MeanOfBatches
    ) -> Tensor:
        """Return `input` normalised, with these running statistics."""
        training = self.training or (self.running_mean is None and self.running_var is None)
        return F.batch_norm(input, mean, variance, self.weight, self.bias, training, momentum, self.eps)


class BatchNorm1d(BatchNorm):
    """Normalises each channel over the batch, and over the length of sequences (Ioffe and Szegedy, 2015).

    Takes inputs of shape (batch, channels) or (batch, channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.BatchNorm1d(1, affine=False)(lucid.tensor([[1.0], [3.0]]))
    tensor([[-1.0000],
            [ 1.0000]])
    """

    dimensions = (2, 3)


class BatchNorm2d(BatchNorm):
    """Normalises each channel of images, shape (batch, channels, height, width), over batch, height and width.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.BatchNorm2d(3)(lucid.ones(2, 3, 4, 4)).shape
    lucid.Size([2, 3, 4, 4])
    """

    dimensions = (4,)


class BatchNorm3d(BatchNorm):
    """Normalises each channel of volumes, shape (batch, channels, depth, height, width), over all but the channels.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.BatchNorm3d(3)(lucid.ones(2, 3, 4, 4, 4)).shape
    lucid.Size([2, 3, 4, 4, 4])
    """

    dimensions = (5,)
