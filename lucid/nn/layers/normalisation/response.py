"""Normalisation of each channel by its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd.base import describe
from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn.layers.layer import declared
from lucid.nn.module.module import Module
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.tensor import Tensor


@declared
class LocalResponseNorm(Module):
    """Returns ``x / (k + alpha * mean(x**2)) ** beta``, the mean over `size` neighbouring channels, dimension 1.

    A size below 1 raises a SettingError.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LocalResponseNorm(5)(lucid.ones(2, 8, 3)).shape
    lucid.Size([2, 8, 3])
    """

    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    k: float = 1.0

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images, shape (batch, channels, height, width), under an older name; `size` is odd.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CrossMapLRN2d(3)(lucid.ones(1, 4, 2, 2)).shape
    lucid.Size([1, 4, 2, 2])
    """

    @ranged
    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)
        if size % 2 == 0:
            raise SettingError(
                f"CrossMapLRN2d: expected an odd size, as many channels before as after each, got {size}: take "
                "LocalResponseNorm for even ones"
            )

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ShapeError(f"CrossMapLRN2d: expected 4D input, got {describe(input)}")
        return super().forward(input)
