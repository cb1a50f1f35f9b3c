"""Layers that change shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.nn.layers.layer import Layer, declared
from lucid.ops.shape.reshape import flatten, unflatten
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


@declared
class Flatten(Layer):
    """Returns the input with the dimensions `start_dim` to `end_dim` made one.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Flatten()(lucid.ones(2, 3, 4)).shape
    lucid.Size([2, 12])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(Layer):
    """Returns the input with the dimension `dim` made several, of the sizes `unflattened_size`; one may be -1.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Unflatten(1, (2, -1))(lucid.ones(3, 8)).shape
    lucid.Size([3, 2, 4])
    """

    _shown = ("dim", "unflattened_size")

    @ranged
    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return unflatten(input, self.dim, self.unflattened_size)
