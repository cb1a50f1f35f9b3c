"""Activations as layers: each calls the function of its name in `lucid.nn.functional`.

With `inplace` the input is changed and returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer
from lucid.nn.layers.ranges import NOT_ZERO, number, ranged
from lucid.nn.module.module import Module
from lucid.nn.module.parameters import empty_parameter
from lucid.ops.activation.prelu import check_bounds

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class MaybeInPlace(Layer):
    """The base of layers that may write their output over their input."""

    inplace: bool

    @ranged
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return ", ".join(part for part in (super().extra_repr(), "inplace=True" if self.inplace else "") if part)


class ReLU(MaybeInPlace):
    """Returns ``max(x, 0)``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReLU()(lucid.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class LeakyReLU(MaybeInPlace):
    """Returns ``x`` where it is positive and ``negative_slope * x`` elsewhere."""

    _shown = ("negative_slope",)

    @ranged
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, inplace=self.inplace)


class ELU(MaybeInPlace):
    """Returns ``x`` where it is positive and ``alpha * (exp(x) - 1)`` elsewhere."""

    _shown = ("alpha",)

    @ranged
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, inplace=self.inplace)


class SELU(MaybeInPlace):
    """Returns ``1.0507 * elu(x, 1.6733)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, inplace=self.inplace)


class CELU(MaybeInPlace):
    """Returns ``x`` where it is positive and ``alpha * (exp(x / alpha) - 1)`` elsewhere."""

    _shown = ("alpha",)
    _ranges: ClassVar = {"alpha": NOT_ZERO}

    @ranged
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, inplace=self.inplace)


class RReLU(MaybeInPlace):
    """Returns ``x`` where it is positive and ``slope * x`` elsewhere.

    The slope of each element is drawn between `lower` and `upper`, and their mean in evaluation.
    """

    _shown = ("lower", "upper")

    @ranged
    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        check_bounds(lower, upper)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, inplace=self.inplace)


class Threshold(MaybeInPlace):
    """Returns ``x`` where it is above `threshold` and `value` elsewhere."""

    _shown = ("threshold", "value")

    @ranged
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, inplace=self.inplace)


class Hardsigmoid(Module):
    """Returns ``min(max(x + 3, 0), 6) / 6``."""

    @ranged
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, inplace=self.inplace)


class Hardswish(Module):
    """Returns ``x * min(max(x + 3, 0), 6) / 6``."""

    @ranged
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, inplace=self.inplace)


class Shrink(Module):
    """The base of layers that make what is within `lambd` of zero zero."""

    @ranged
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(Shrink):
    """Returns ``x`` where it is below ``-lambd`` or above `lambd`, and 0 elsewhere."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(Shrink):
    """Returns ``x`` moved towards zero by `lambd`, and 0 where it is nearer."""

    _ranges: ClassVar = {"lambd": number("a number of at least 0", lambda value: value >= 0)}

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class SiLU(MaybeInPlace):
    """Returns ``x * sigmoid(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(MaybeInPlace):
    """Returns ``x * tanh(softplus(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class ReLU6(MaybeInPlace):
    """Returns ``min(max(x, 0), 6)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, inplace=self.inplace)


class Hardtanh(MaybeInPlace):
    """Returns ``min(max(x, min_val), max_val)``; bounds that are not in order raise a SettingError."""

    _shown = ("min_val", "max_val")

    @ranged
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        if not min_val < max_val:
            raise SettingError(f"Hardtanh: expected min_val < max_val, got {min_val} and {max_val}")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, inplace=self.inplace)


class GELU(Layer):
    """Returns ``x * Phi(x)``, Phi the normal distribution function, or `approximate`, ``"none"``, by ``"tanh"``."""

    _shown = ("approximate",)

    @ranged
    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class Softplus(Layer):
    """Returns ``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x > threshold``."""

    _shown = ("beta", "threshold")
    _ranges: ClassVar = {"beta": NOT_ZERO}

    @ranged
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Sigmoid(Module):
    """Returns ``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class Tanh(Module):
    """Returns ``tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Softsign(Module):
    """Returns ``x / (1 + abs(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Returns ``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class GLU(Layer):
    """Returns ``a * sigmoid(b)``, a and b the halves of ``x`` along `dim`."""

    _shown = ("dim",)

    @ranged
    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class LogSigmoid(Module):
    """Returns ``log(sigmoid(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class PReLU(Layer):
    """Returns ``x`` where it is positive and ``weight * x`` elsewhere, the slope a parameter, `init` at first.

    `num_parameters` is 1 for one slope, or the number of channels, which are dimension 1 of the input.
    """

    _shown = ("num_parameters",)

    weight: Parameter

    @ranged
    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Device = None, dtype: Dtype | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), device, dtype, init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


class AlongDim(Layer):
    """The base of layers that work along `dim`; None picks 0 for inputs of 0, 1 or 3 dimensions, else 1, and warns."""

    _shown = ("dim",)

    dim: int | None

    @ranged
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(AlongDim):
    """Returns ``exp(x) / sum(exp(x))`` along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(AlongDim):
    """Returns ``x - log(sum(exp(x)))`` along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(AlongDim):
    """Returns the softmax of ``-x`` along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Returns the softmax over the channels of images, of shape (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in {3, 4}:
            raise ShapeError(f"Softmax2d: expected input to be a 3D or 4D tensor, got {input.ndim}D")
        return F.softmax(input, -3)
