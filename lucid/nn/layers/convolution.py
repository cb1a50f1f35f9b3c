"""Convolution layers; see `lucid.ops.layers.convolution` for the meaning of their settings.

`weight` and `bias` are uniform in [-k, k), k = 1 / sqrt(in_channels / groups * prod(kernel_size)), at first. Numbers of
channels that are no multiples of `groups`, and an unknown padding, raise a SettingError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn.layers.layer import draw_uniform, empty_parameter, per_axis
from lucid.nn.module.module import Module
from lucid.settings.checks import ranged
from lucid.settings.ranges import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class Convolution(Module):
    """The base of convolution layers.

    `bias` says whether there is one, `padding_mode` what is added at the edges: ``"zeros"``, or elements of the input,
    ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / groups, *kernel_size)
        The kernels.
    bias : Parameter, shape (out_channels,), or None
        What is added to each output channel.
    """

    axes = 0
    transposed = False
    bias: Parameter | None

    @ranged
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool | None = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise SettingError(f"{name} must be divisible by groups: got {channels} and {groups}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_axis(kernel_size, self.axes)
        self.stride = per_axis(stride, self.axes)
        if isinstance(padding, str):
            if padding not in {"same", "valid"}:
                raise SettingError(
                    f"{type(self).__name__}: padding: expected 'valid', 'same' or whole numbers, got {padding!r}"
                )
            if padding == "same" and any(step != 1 for step in self.stride):
                raise SettingError("padding='same' is not supported for strided convolutions: use padding=int")
        self.padding: Any = padding if isinstance(padding, str) else per_axis(padding, self.axes)
        self.dilation = per_axis(dilation, self.axes)
        self.output_padding = (0,) * self.axes
        self.groups = groups
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = empty_parameter((channels[0], channels[1] // groups, *self.kernel_size), device, dtype)
        self.register_parameter("bias", empty_parameter((out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        draw_uniform(self.weight, self.bias)

    def padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """Return the input, its edges filled as the mode says, and the zeros that are still to be added."""
        if self.padding_mode == "zeros":
            return input, self.padding
        # from the last axis to the first, as `pad` counts
        edges: list[int] = []
        for axis in reversed(range(self.axes)):
            if self.padding == "valid":
                edges += (0, 0)
            elif self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                edges += (total // 2, total - total // 2)
            else:
                edges += (self.padding[axis],) * 2
        return F.pad(input, tuple(edges), mode=self.padding_mode), 0

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}",
            f"padding={self.padding}" if self.padding != (0,) * len(self.padding) else "",
            f"dilation={self.dilation}" if self.dilation != (1,) * self.axes else "",
            f"output_padding={self.output_padding}" if self.output_padding != (0,) * self.axes else "",
            f"groups={self.groups}" if self.groups != 1 else "",
            "bias=False" if self.bias is None else "",
            f"padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "",
        ]
        return ", ".join(part for part in parts if part)


class Conv1d(Convolution):
    """Returns the cross-correlation of sequences, shape (batch, in_channels, length), with each kernel.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Conv1d(3, 8, 3, stride=2)(lucid.ones(2, 3, 9)).shape
    lucid.Size([2, 8, 4])
    """

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # layers that compute their weights inherit this under its name in PyTorch
        input, padding = self.padded(input)
        return F.conv1d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(Convolution):
    """Returns the cross-correlation of images, shape (batch, in_channels, height, width), with each kernel.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Conv2d(3, 8, 3, padding=1)(lucid.ones(2, 3, 5, 5)).shape
    lucid.Size([2, 8, 5, 5])
    """

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # layers that compute their weights inherit this under its name in PyTorch
        input, padding = self.padded(input)
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(Convolution):
    """Returns the cross-correlation of volumes, shape (batch, in_channels, depth, height, width), with each kernel.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Conv3d(3, 8, (1, 3, 3))(lucid.ones(2, 3, 4, 5, 5)).shape
    lucid.Size([2, 8, 4, 3, 3])
    """

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # layers that compute their weights inherit this under its name in PyTorch
        input, padding = self.padded(input)
        return F.conv3d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class TransposedConvolution(Convolution):
    """The base of transposed convolution layers: the gradient of a convolution as a layer of its own.

    `weight` has the shape (in_channels, out_channels / groups, *kernel_size), `padding_mode` is ``"zeros"``. A call
    takes `output_size` too, which `output_padding` must allow: the inputs of one stride have several.
    """

    transposed = True
    _ranges: ClassVar = {"padding_mode": words("zeros")}

    @ranged
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool | None = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self.output_padding = per_axis(output_padding, self.axes)

    def output_padding_for(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """Return the output padding that gives an output of `output_size`; a ShapeError if none does."""
        if output_size is None:
            return self.output_padding
        if len(output_size) not in {self.axes, input.ndim}:
            raise ShapeError(
                f"{type(self).__name__}: for {input.ndim}D input, output_size must have {self.axes} or {input.ndim} "
                f"elements (got {len(output_size)})"
            )
        wanted = tuple(output_size)[-self.axes :]
        sizes = input.shape[-self.axes :]
        least = tuple(
            (sizes[axis] - 1) * self.stride[axis]
            - 2 * self.padding[axis]
            + self.dilation[axis] * (self.kernel_size[axis] - 1)
            + 1
            for axis in range(self.axes)
        )
        if any(not low <= size < low + step for low, size, step in zip(least, wanted, self.stride, strict=True)):
            most = tuple(low + step - 1 for low, step in zip(least, self.stride, strict=True))
            raise ShapeError(
                f"requested an output size of {tuple(output_size)}, but valid sizes range from {least} to {most} (for "
                f"an input of {tuple(sizes)})"
            )
        return tuple(size - low for low, size in zip(least, wanted, strict=True))


class ConvTranspose1d(TransposedConvolution):
    """Returns the transposed convolution of sequences, shape (batch, in_channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ConvTranspose1d(3, 8, 2, stride=2)(lucid.ones(2, 3, 5)).shape
    lucid.Size([2, 8, 10])
    """

    axes = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding_for(input, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose2d(TransposedConvolution):
    """Returns the transposed convolution of images, shape (batch, in_channels, height, width).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ConvTranspose2d(3, 8, 2, stride=2)(lucid.ones(2, 3, 5, 5)).shape
    lucid.Size([2, 8, 10, 10])
    """

    axes = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding_for(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose3d(TransposedConvolution):
    """Returns the transposed convolution of volumes, shape (batch, in_channels, depth, height, width).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.ConvTranspose3d(3, 8, 2, stride=2)(lucid.ones(2, 3, 4, 5, 5)).shape
    lucid.Size([2, 8, 8, 10, 10])
    """

    axes = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding_for(input, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
