"""Linear layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.nn.layers.layer import Layer, draw_uniform, draw_within, empty_parameter
from lucid.nn.module.module import Module
from lucid.ops.layers.linear import bilinear, linear
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class Identity(Module):
    """Returns its input; the arguments are ignored, so that it can stand in for any layer.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Identity(54, unused=True)(lucid.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Layer):
    """Returns ``y = x @ weight.T + bias``, over the last dimension of the input.

    `weight`, shape (out_features, in_features), and `bias`, shape (out_features,) or None, are parameters, uniform in
    [-k, k), k = 1 / sqrt(in_features), at first.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Linear(2, 3)(lucid.ones(5, 2)).shape
    lucid.Size([5, 3])
    """

    _shown = ("in_features", "out_features")

    bias: Parameter | None

    @ranged
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool | None = True,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), device, dtype)
        self.register_parameter("bias", empty_parameter((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        draw_uniform(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.bias is not None}"


class Bilinear(Layer):
    """Returns ``out[..., o] = sum_ij x1[..., i] * weight[o, i, j] * x2[..., j] + bias[o]`` of two inputs.

    `weight`, shape (out_features, in1_features, in2_features), and `bias`, shape (out_features,) or None, are
    parameters, uniform in [-k, k), k = 1 / sqrt(in1_features), at first. An `in1_features` below 1 raises a
    SettingError.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Bilinear(2, 3, 4)(lucid.ones(5, 2), lucid.ones(5, 3)).shape
    lucid.Size([5, 4])
    """

    _shown = ("in1_features", "in2_features", "out_features")

    bias: Parameter | None

    @ranged
    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool | None = True,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", empty_parameter((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        draw_within(self, self.in1_features)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, bias={self.bias is not None}"
