"""Activations along a dimension, as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import ShapeError
from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer, declared
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    from lucid.tensor import Tensor


@declared
class AlongDim(Layer):
    """The base of layers that work along `dim`; None picks 0 for inputs of 0, 1 or 3 dimensions, else 1, and warns."""

    dim: int | None = None


class Softmax(AlongDim):
    """Returns ``exp(x) / sum(exp(x))`` along `dim`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Softmax(dim=-1)(lucid.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(AlongDim):
    """Returns ``x - log(sum(exp(x)))`` along `dim`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LogSoftmax(dim=-1)(lucid.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(AlongDim):
    """Returns the softmax of ``-x`` along `dim`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Softmin(dim=-1)(lucid.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Returns the softmax over the channels of images, of shape (N, C, H, W) or (C, H, W).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Softmax2d()(lucid.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in {3, 4}:
            raise ShapeError(f"Softmax2d: expected input to be a 3D or 4D tensor, got {input.ndim}D")
        return F.softmax(input, -3)


@declared
class GLU(Layer):
    """Returns ``a * sigmoid(b)``, a and b the halves of ``x`` along `dim`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.GLU()(lucid.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)
