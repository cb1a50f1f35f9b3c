"""Activations that are pieces, joined at zero or at other bounds, as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer, declared, empty_parameter
from lucid.nn.module.module import Module
from lucid.ops.activation.prelu import check_bounds
from lucid.settings.checks import ranged
from lucid.settings.ranges import NOT_ZERO, number

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
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


@declared
class LeakyReLU(MaybeInPlace):
    """Returns ``x`` if ``x > 0``, else ``negative_slope * x``, element by element.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LeakyReLU(0.1)(lucid.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, inplace=self.inplace)


@declared
class ELU(MaybeInPlace):
    """Returns ``x`` if ``x > 0``, else ``alpha * (exp(x) - 1)``, element by element.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ELU(alpha=0.5)(lucid.tensor([-1.0, 2.0]))
    tensor([-0.3161,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, inplace=self.inplace)


class SELU(MaybeInPlace):
    """Returns ``1.0507 * elu(x, 1.6733)``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.SELU()(lucid.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, inplace=self.inplace)


@declared
class CELU(MaybeInPlace):
    """Returns ``x`` if ``x > 0``, else ``alpha * (exp(x / alpha) - 1)``, element by element.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CELU()(lucid.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    _ranges: ClassVar = {"alpha": NOT_ZERO}
    alpha: float = 1.0
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, inplace=self.inplace)


@declared
class RReLU(MaybeInPlace):
    """Returns ``x`` if ``x > 0``, else ``slope * x``, element by element.

    The slope of each element is drawn between `lower` and `upper`, and their mean in evaluation.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.RReLU(0.1, 0.3).eval()(lucid.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False

    def __post_init__(self) -> None:
        check_bounds(self.lower, self.upper)

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, inplace=self.inplace)


class PReLU(Layer):
    """Returns ``x`` if ``x > 0``, else ``weight * x``, element by element; the slope is a parameter, `init` at first.

    `num_parameters` is 1 for one slope, or the number of channels, which are dimension 1 of the input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.PReLU()(lucid.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    _shown = ("num_parameters",)

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


@declared
class Threshold(MaybeInPlace):
    """Returns ``x`` if ``x > threshold``, else `value`, element by element.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Threshold(0.5, 0.0)(lucid.tensor([0.2, 2.0]))
    tensor([0., 2.])
    """

    threshold: float
    value: float
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, inplace=self.inplace)


class ReLU6(MaybeInPlace):
    """Returns ``min(max(x, 0), 6)``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ReLU6()(lucid.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, inplace=self.inplace)


@declared
class Hardtanh(MaybeInPlace):
    """Returns ``min(max(x, min_val), max_val)``; bounds that are not in order raise a SettingError.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Hardtanh()(lucid.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def __post_init__(self) -> None:
        if not self.min_val < self.max_val:
            raise SettingError(f"Hardtanh: expected min_val < max_val, got {self.min_val} and {self.max_val}")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, inplace=self.inplace)


@declared
class Hardsigmoid(Module):
    """Returns ``min(max(x + 3, 0), 6) / 6``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Hardsigmoid()(lucid.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, inplace=self.inplace)


@declared
class Hardswish(Module):
    """Returns ``x * min(max(x + 3, 0), 6) / 6``.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Hardswish()(lucid.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, inplace=self.inplace)


@declared
class Shrink(Module):
    """The base of layers that set elements within `lambd` of zero to zero."""

    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(Shrink):
    """Returns ``x`` if ``x < -lambd`` or ``x > lambd``, else 0, element by element.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Hardshrink()(lucid.tensor([-1.0, 0.5, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(Shrink):
    """Returns ``x`` moved towards zero by `lambd`, and 0 for elements nearer to zero.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Softshrink()(lucid.tensor([-1.0, 0.25, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    _ranges: ClassVar = {"lambd": number("a number of at least 0", lambda value: value >= 0)}

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)
