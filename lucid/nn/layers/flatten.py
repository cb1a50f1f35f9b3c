"""Layers that change shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.nn.module.module import Module
from lucid.ops.shape.reshape import flatten, unflatten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class Flatten(Module):
    """Returns the input with a range of dimensions made one.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last of them.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> nn.Flatten()(lucid.ones(2, 3, 4)).shape
    (2, 12)
    """

    @checked
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` flattened."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the range."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Returns the input with one dimension made several.

    Parameters
    ----------
    dim : int
        Which.
    unflattened_size : tuple of int
        The sizes of the new ones; one may be -1.
    """

    @checked
    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Return `input` unflattened."""
        return unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
