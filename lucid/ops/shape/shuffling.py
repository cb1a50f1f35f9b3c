"""Channels and pixels in another order. Common rules: `lucid.ops.shape`.

The last dimensions are (channels, height, width); any number of dimensions may come before them. The result is a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.errors import ShapeError
from lucid.ops.base.core import clone
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.shape.axes import permute
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def rearranged(input: Tensor, inner: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return a copy with the last three dimensions, seen as `inner`, put in another order, and then in `shape`."""
    lead = input.array.shape[:-3]
    axes = (*range(len(lead)), *[len(lead) + axis for axis in order])
    return reshape(clone(permute(reshape(input, (*lead, *inner)), axes)), (*lead, *shape))


def factor_and_sizes(name: str, input: Tensor, factor: int, argument: str) -> tuple[int, int, int, int]:
    """Return the factor, channels, height and width."""
    shape = array_of(input).shape
    factor = as_int(factor, argument)
    if len(shape) < 3:
        raise ShapeError(f"{name}: expected input of at least 3 dimensions (channels, height, width), got {shape}")
    if factor < 1:
        raise ShapeError(f"{name}: expected {argument} to be at least 1, got {factor}")
    return (factor, *shape[-3:])


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return images `upscale_factor` (r) times as high and wide: r * r channels become the pixels of one.

    ``out[..., c, h * r + i, w * r + j] = input[..., (c * r + i) * r + j, h, w]``

    >>> import lucid
    >>> lucid.pixel_shuffle(lucid.tensor([[[1]], [[2]], [[3]], [[4]]]), 2)
    tensor([[[1, 2],
             [3, 4]]])
    """
    r, c, h, w = factor_and_sizes("pixel_shuffle", input, upscale_factor, "upscale_factor")
    if c % (r * r):
        raise ShapeError(
            f"pixel_shuffle: expected channels that are a multiple of upscale_factor squared, {r * r}, got {c}"
        )
    c //= r * r
    return rearranged(input, (c, r, r, h, w), (0, 3, 1, 4, 2), (c, h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return images of a `downscale_factor` (r)-th of height and width: the pixels of r * r become channels.

    ``out[..., (c * r + i) * r + j, h, w] = input[..., c, h * r + i, w * r + j]``

    >>> import lucid
    >>> lucid.pixel_unshuffle(lucid.tensor([[[1, 2], [3, 4]]]), 2).flatten()
    tensor([1, 2, 3, 4])
    """
    r, c, h, w = factor_and_sizes("pixel_unshuffle", input, downscale_factor, "downscale_factor")
    if h % r or w % r:
        raise ShapeError(
            f"pixel_unshuffle: expected height and width that are multiples of downscale_factor, {r}, got {(h, w)}"
        )
    return rearranged(input, (c, h // r, r, w // r, r), (0, 2, 4, 1, 3), (c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return `input`, shape (batch, channels, ...), with the channels of `groups` groups taken in turns.

    ``out[:, i * groups + g] = input[:, g * (channels / groups) + i]``

    >>> import lucid
    >>> lucid.channel_shuffle(lucid.tensor([[[1], [2], [3], [4]]]), 2).flatten()
    tensor([1, 3, 2, 4])
    """
    shape = array_of(input).shape
    groups = as_int(groups, "groups")
    if len(shape) < 3:
        raise ShapeError(
            f"channel_shuffle: expected input of at least 3 dimensions (batch, channels, ...), got {shape}"
        )
    if groups < 1 or shape[1] % groups:
        raise ShapeError(
            f"channel_shuffle: expected groups to be at least 1 and to divide the {shape[1]} channels, got {groups}"
        )
    apart = reshape(input, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return reshape(clone(permute(apart, (0, 2, 1, *range(3, len(shape) + 1)))), shape)
