"""Layers that give images and sequences another size; their settings are those of the functions of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer
from lucid.ops.resampling.interpolation import MODES
from lucid.settings.checks import ranged
from lucid.settings.ranges import words

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class PixelShuffle(Layer):
    """Returns images `upscale_factor` times as high and wide, of which channels have become pixels.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.PixelShuffle(2)(lucid.ones(1, 8, 3, 3)).shape
    lucid.Size([1, 2, 6, 6])
    """

    _shown = ("upscale_factor",)

    @ranged
    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Layer):
    """Returns images of a `downscale_factor`-th of height and width, of which pixels have become channels.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.PixelUnshuffle(2)(lucid.ones(1, 3, 4, 6)).shape
    lucid.Size([1, 12, 2, 3])
    """

    _shown = ("downscale_factor",)

    @ranged
    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Layer):
    """Returns the input with the channels of `groups` groups taken in turns.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ChannelShuffle(2)(lucid.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    _shown = ("groups",)

    @ranged
    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class Upsample(Layer):
    """Returns sequences, images or volumes of the size `size`, or of their own times `scale_factor`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Upsample(scale_factor=2, mode="bilinear")(lucid.ones(1, 3, 4, 4)).shape
    lucid.Size([1, 3, 8, 8])
    """

    _ranges: ClassVar = {"mode": words(*MODES)}

    @ranged
    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor: Any = scale_factor
        if isinstance(scale_factor, Sequence):
            self.scale_factor = tuple(map(float, scale_factor))
        elif scale_factor is not None:
            self.scale_factor = float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        given = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{given}, mode={self.mode!r}"


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
    """Returns images of another size by bilinear interpolation, with the pixels at the corners where they were.

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


class Unfold(Layer):
    """Returns the windows of images, shape (batch, channels, height, width), as columns.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Unfold(2)(lucid.ones(1, 3, 4, 4)).shape
    lucid.Size([1, 12, 9])
    """

    _shown = ("kernel_size", "dilation", "padding", "stride")
    axes = 2

    @ranged
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Layer):
    """Returns images of the size `output_size`, of which each element is the sum of what the columns have there.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Fold(output_size=3, kernel_size=2)(lucid.ones(1, 4, 4))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """

    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")
    axes = 2

    @ranged
    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
