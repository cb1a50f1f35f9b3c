"""Dropout, of elements and of channels; in training only."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer, declared
from lucid.settings.ranges import SHARE

if TYPE_CHECKING:
    from lucid.tensor import Tensor


@declared
class RandomDrop(Layer):
    """The base of dropout layers, with a probability in [0, 1]; others raise a SettingError."""

    _ranges: ClassVar = {"p": SHARE}
    p: float = 0.5
    inplace: bool = False


class Dropout(RandomDrop):
    """Returns the input with each element zero with probability `p`, the others divided by ``1 - p``, in training only.

    With `inplace` the input is changed and returned. A `p` that is not in [0, 1] raises a SettingError.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Dropout(0.9).eval()(lucid.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(RandomDrop):
    """Returns sequences, shape ([batch,] channels, length), with each channel zero with probability `p`, else scaled.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Dropout1d(1.0)(lucid.ones(1, 2))
    tensor([[0., 0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(RandomDrop):
    """Returns images, shape (batch, channels, height, width), with each channel zero with probability `p`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Dropout2d(1.0)(lucid.ones(1, 1, 2, 2))
    tensor([[[[0., 0.],
              [0., 0.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(RandomDrop):
    """Returns volumes, shape ([batch,] channels, depth, height, width), with each channel zero with probability `p`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Dropout3d(0.5)(lucid.ones(1, 3, 2, 2, 2)).shape
    lucid.Size([1, 3, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(RandomDrop):
    """Returns the input with dropped elements at the least value of SELU, scaled to the mean and variance of before.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Sequential(nn.SELU(), nn.AlphaDropout(0.1))(lucid.ones(2, 3)).shape
    lucid.Size([2, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(RandomDrop):
    """Returns the input, shape (batch, channels, ...), with whole channels dropped as by :class:`AlphaDropout`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.FeatureAlphaDropout(0.5)(lucid.ones(1, 3, 2, 2)).shape
    lucid.Size([1, 3, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
