"""Instance normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import ShapeError, warn
from lucid.nn import functional as F
from lucid.nn.layers.normalisation.tracked import Tracked
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class InstanceNorm(Tracked):
    """The base of instance-normalisation layers: each channel of each sample is normalised by itself.

    With `track_running_stats` there are running statistics, which follow those of the samples in training with the
    weight `momentum` and are taken in evaluation. There are no parameters unless `affine`; without them an input of
    another number of channels than `num_features` is a warning. An input without a batch is one sample.
    """

    @ranged
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def channels_of(self, input: Tensor) -> int:
        return input.shape[1 - self.dimensions[-1]]

    def forward(self, input: Tensor) -> Tensor:
        self.check_dimensions(input)
        batched = self.dimensions[-1]
        channels = self.channels_of(input)
        if channels != self.num_features:
            text = (
                f"{type(self).__name__}: expected {self.num_features} channels (num_features), got {channels} in an "
                f"input of shape {list(input.shape)}"
            )
            if self.affine or self.track_running_stats:
                raise ShapeError(text)
            warn(f"{text}: nothing depends on num_features because affine=False")
        out = F.instance_norm(
            input if input.ndim == batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out if input.ndim == batched else out.squeeze(0)


class InstanceNorm1d(InstanceNorm):
    """Normalises each channel of each sequence over its length (Ulyanov, Vedaldi and Lempitsky, 2016).

    Takes inputs of shape (batch, channels, length) or (channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.InstanceNorm1d(2)(lucid.tensor([[1.0, 3.0], [0.0, 4.0]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    dimensions = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """Normalises each channel of each image, shape ([batch,] channels, height, width), over height and width.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.InstanceNorm2d(3)(lucid.ones(2, 3, 4, 4)).shape
    lucid.Size([2, 3, 4, 4])
    """

    dimensions = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """Normalises each channel of each volume, shape ([batch,] channels, depth, height, width), over the volume.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.InstanceNorm3d(3)(lucid.ones(2, 3, 4, 4, 4)).shape
    lucid.Size([2, 3, 4, 4, 4])
    """

    dimensions = (4, 5)
