"""Pooling layers; what their settings mean says `lucid.ops.pooling.pooling`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer, per_axis
from lucid.nn.layers.ranges import number, ranged
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class MaxPool(Layer):
    """What the max-pooling layers share; with `return_indices` the indices of the maxima are returned too."""

    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    @ranged
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments of the pooling function after the input."""
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices


class MaxPool1d(MaxPool):
    """Returns the maximum of each window of sequences, shape (batch, channels, length) or (channels, length)."""

    axes = 1

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, *self.settings())


class MaxPool2d(MaxPool):
    """Returns the maximum of each window of images, shape (batch, channels, height, width) or without batch.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MaxPool2d(2)(lucid.ones(1, 3, 4, 4)).shape
    lucid.Size([1, 3, 2, 2])
    """

    axes = 2

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(input, *self.settings())


class MaxPool3d(MaxPool):
    """Returns the maximum of each window of volumes, shape (batch, channels, depth, height, width) or without batch."""

    axes = 3

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, *self.settings())


class AvgPool(Layer):
    """What the layers share that return means of windows."""

    _shown = ("kernel_size", "stride", "padding")


class AvgPool1d(AvgPool):
    """Returns the mean of each window of sequences, shape (batch, channels, length) or (channels, length)."""

    axes = 1

    @ranged
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = per_axis(kernel_size)
        self.stride = self.kernel_size if stride is None else per_axis(stride)
        self.padding = per_axis(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPoolWithDivisor(AvgPool):
    """What those share that can divide the sums of windows by `divisor_override`."""

    @ranged
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments of the pooling function after the input."""
        return (
            self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(AvgPoolWithDivisor):
    """Returns the mean of each window of images, shape (batch, channels, height, width) or without batch."""

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self.settings())


class AvgPool3d(AvgPoolWithDivisor):
    """Returns the mean of each window of volumes, shape (batch, channels, depth, height, width) or without batch."""

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self.settings())


class AdaptiveAvgPool(Layer):
    """What the layers share that return means of `output_size` parts."""

    _shown = ("output_size",)

    @ranged
    def __init__(self, output_size: int | Sequence[Any] | None) -> None:
        super().__init__()
        self.output_size = output_size


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """Returns the means of `output_size` parts of sequences, shape (batch, channels, length) or (channels, length)."""

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """Returns the means of a grid of `output_size` parts of images, shape (batch, channels, height, width).

    None stands for as many parts as there are elements.
    """

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """Returns the means of parts of volumes, `output_size` along each dimension, shape (batch, channels, *sizes)."""

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool(Layer):
    """What the layers share that return the largest of each of `output_size` parts, with `return_indices` where too."""

    _shown = ("output_size",)

    @ranged
    def __init__(self, output_size: int | Sequence[Any] | None, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """Returns the maxima of `output_size` parts of sequences, shape (batch, channels, length) or (channels, length)."""

    axes = 1

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """Returns the maxima of a grid of `output_size` parts of images, shape (batch, channels, height, width)."""

    axes = 2

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """Returns the maxima of parts of volumes, `output_size` along each dimension, shape (batch, channels, *sizes)."""

    axes = 3

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class MaxUnpool(Layer):
    """What the layers share that put the largest elements back where they were, with zeros around them.

    A call takes `output_size` too, where several sizes give as many windows.
    """

    _shown = ("kernel_size", "stride", "padding")
    axes = 0

    @ranged
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        self.kernel_size = per_axis(kernel_size, self.axes)
        self.stride = self.kernel_size if stride is None else per_axis(stride, self.axes)
        self.padding = per_axis(padding, self.axes)


class MaxUnpool1d(MaxUnpool):
    """Returns sequences of zeros with the maxima of windows at `indices`, shape (batch, channels, length)."""

    axes = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(MaxUnpool):
    """Returns images of zeros with the maxima of windows at `indices`, shape (batch, channels, height, width)."""

    axes = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(MaxUnpool):
    """Returns volumes of zeros with the maxima of windows at `indices`, shape (batch, channels, *sizes)."""

    axes = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class LPPool(Layer):
    """What the layers share that return the norm of each window."""

    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _ranges: ClassVar = {"norm_type": number("a number other than 0", lambda value: abs(value) > 0)}

    @ranged
    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments of the pooling function after the input."""
        return float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode


class LPPool1d(LPPool):
    """Returns the norm of each window of sequences, shape (batch, channels, length) or without batch."""

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, *self.settings())


class LPPool2d(LPPool):
    """Returns the norm of each window of images, shape (batch, channels, height, width) or without batch."""

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, *self.settings())


class LPPool3d(LPPool):
    """Returns the norm of each window of volumes, shape (batch, channels, depth, height, width) or without batch."""

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, *self.settings())


class FractionalMaxPool(Module):
    """What the layers share that return the maxima of windows that lie at random.

    Of `output_size` and `output_ratio` one is given.
    """

    axes = 0

    @ranged
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise SettingError(f"{name}: expected one of output_size and output_ratio, and only one")
        self.kernel_size = per_axis(kernel_size, self.axes)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else per_axis(output_size, self.axes)
        ratios: Any = output_ratio
        self.output_ratio = None if ratios is None else tuple(per_axis(ratios, self.axes))
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise SettingError(f"{name}: output_ratio must be between 0 and 1, got {output_ratio}")

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments of the pooling function after the input."""
        return self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples


class FractionalMaxPool2d(FractionalMaxPool):
    """Returns the maxima of windows that lie at random in images, shape (batch, channels, height, width)."""

    axes = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(input, *self.settings())


class FractionalMaxPool3d(FractionalMaxPool):
    """Returns the maxima of windows that lie at random in volumes, shape (batch, channels, depth, height, width)."""

    axes = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(input, *self.settings())
