"""Activations that are smooth, as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.errors import ShapeError
from lucid.nn import functional as F
from lucid.nn.layers.activation.rectifiers import MaybeInPlace
from lucid.nn.layers.layer import Layer, declared
from lucid.nn.module.module import Module
from lucid.settings.ranges import NOT_ZERO

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class SiLU(MaybeInPlace):
    """Returns ``x * sigmoid(x)``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.SiLU()(lucid.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(MaybeInPlace):
    """Returns ``x * tanh(softplus(x))``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Mish()(lucid.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


@declared
class GELU(Layer):
    """Returns ``x * Phi(x)``, Phi the normal distribution function, or `approximate`, ``"none"``, by ``"tanh"``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.GELU()(lucid.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    approximate: str = "none"

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


@declared
class Softplus(Layer):
    """Returns ``log(1 + exp(beta * x)) / beta``, or ``x`` itself if ``beta * x > threshold``, element by element.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Softplus()(lucid.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """

    _ranges: ClassVar = {"beta": NOT_ZERO}
    beta: float = 1.0
    threshold: float = 20.0

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Sigmoid(Module):
    """Returns ``1 / (1 + exp(-x))``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Sigmoid()(lucid.tensor([-1.0, 2.0]))
    tensor([0.2689, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """Returns ``log(sigmoid(x))``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LogSigmoid()(lucid.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """Returns ``tanh(x)``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Tanh()(lucid.tensor([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Softsign(Module):
    """Returns ``x / (1 + abs(x))``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Softsign()(lucid.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Returns ``x - tanh(x)``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Tanhshrink()(lucid.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


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
