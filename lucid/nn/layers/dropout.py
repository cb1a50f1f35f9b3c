"""Dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class Dropout(Layer):
    """Returns the input with each element zero with probability `p`, the others divided by ``1 - p``, in training only.

    With `inplace` the input is changed and returned. A `p` that is not in [0, 1] raises a SettingError.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Dropout(0.9).eval()(lucid.ones(2))
    tensor([1., 1.])
    """

    _shown = ("p", "inplace")

    @checked
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise SettingError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)
