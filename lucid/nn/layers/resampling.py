"""Layers that give images and sequences another size; their settings are those of the functions of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer

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

    @checked
    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Layer):
    """Returns images of a `downscale_factor`-th of height and width, of which pixels have become channels."""

    _shown = ("downscale_factor",)

    @checked
    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Layer):
    """Returns the input with the channels of `groups` groups taken in turns."""

    _shown = ("groups",)

    @checked
    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
