"""Layers that give images and sequences another size; their settings are those of the functions of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer, declared
from lucid.ops.resampling.interpolation import MODES
from lucid.settings.checks import ranged
from lucid.settings.ranges import words

if TYPE_CHECKING:
    from lucid.tensor import Tensor


@declared
class PixelShuffle(Layer):
    """Returns images `upscale_factor` times as high and wide, with channels rearranged into pixels.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.PixelShuffle(2)(lucid.ones(1, 8, 3, 3)).shape
    lucid.Size([1, 2, 6, 6])
    """

    upscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


@declared
class PixelUnshuffle(Layer):
    """Returns images of a `downscale_factor`-th of height and width, with pixels rearranged into channels.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.PixelUnshuffle(2)(lucid.ones(1, 3, 4, 6)).shape
    lucid.Size([1, 12, 2, 3])
    """

    downscale_factor: int

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


@declared
class ChannelShuffle(Layer):
    """Returns the input with the channels of `groups` groups taken in turns.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ChannelShuffle(2)(lucid.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    groups: int

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


@declared
class Upsample(Layer):
    """Returns sequences, images or volumes of the size `size`, or of their own times `scale_factor`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Upsample(scale_factor=2, mode="bilinear")(lucid.ones(1, 3, 4, 4)).shape
    lucid.Size([1, 3, 8, 8])
    """

    _ranges: ClassVar = {"mode": words(*MODES)}
    size: int | Sequence[int] | None = None
    scale_factor: float | Sequence[float] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.scale_factor, Sequence):
            self.scale_factor = tuple(map(float, self.scale_factor))
        elif self.scale_factor is not None:
            self.scale_factor = float(self.scale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Returns images of another size, each pixel the nearest one.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.UpsamplingNearest2d(size=(6, 8))(lucid.ones(1, 3, 4, 4)).shape
    lucid.Size([1, 3, 6, 8])
    """

    @ranged
    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Returns images of another size by bilinear interpolation that keeps the pixels at the corners.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.UpsamplingBilinear2d(scale_factor=2)(lucid.ones(1, 3, 4, 4)).shape
    lucid.Size([1, 3, 8, 8])
    """

    @ranged
    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


@declared
class Unfold(Layer):
    """Returns the windows of images, shape (batch, channels, height, width), as columns.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Unfold(2)(lucid.ones(1, 3, 4, 4)).shape
    lucid.Size([1, 12, 9])
    """

    axes = 2
    kernel_size: int | Sequence[int]
    dilation: int | Sequence[int] = 1
    padding: int | Sequence[int] = 0
    stride: int | Sequence[int] = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


@declared
class Fold(Layer):
    """Returns images of the size `output_size`: each element is the sum of the columns' elements at its place.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Fold(output_size=3, kernel_size=2)(lucid.ones(1, 4, 4))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """

    axes = 2
    output_size: int | Sequence[int]
    kernel_size: int | Sequence[int]
    dilation: int | Sequence[int] = 1
    padding: int | Sequence[int] = 0
    stride: int | Sequence[int] = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
