"""Pooling layers; see `lucid.ops.pooling.pooling` for the meaning of their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.nn import functional as F
from lucid.nn.layers.layer import Layer, declared, per_axis
from lucid.settings.checks import ranged
from lucid.settings.ranges import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


@declared
class MaxPool(Layer):
    """The base of max-pooling layers; with `return_indices` the indices of the maxima are returned too."""

    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None = None
    padding: int | Sequence[int] = 0
    dilation: int | Sequence[int] = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments of the pooling function after the input."""
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices


class MaxPool1d(MaxPool):
    """Returns the maximum of each window of sequences, shape (batch, channels, length) or (channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MaxPool1d(2)(lucid.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[2., 4.]])
    """

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
    """Returns the maximum of each window of volumes, shape (batch, channels, depth, height, width) or without batch.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MaxPool3d(2)(lucid.ones(1, 3, 4, 4, 6)).shape
    lucid.Size([1, 3, 2, 2, 3])
    """

    axes = 3

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, *self.settings())


class AvgPool(Layer):
    """The base of layers that return the means of windows."""

    _shown = ("kernel_size", "stride", "padding")


class AvgPool1d(AvgPool):
    """Returns the mean of each window of sequences, shape (batch, channels, length) or (channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AvgPool1d(2)(lucid.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[1.5000, 3.5000]])
    """

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


@declared
class AvgPoolWithDivisor(AvgPool):
    """The base of layers that can divide the sums of windows by `divisor_override`."""

    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None = None
    padding: int | Sequence[int] = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments of the pooling function after the input."""
        return (
            self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(AvgPoolWithDivisor):
    """Returns the mean of each window of images, shape (batch, channels, height, width) or without batch.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AvgPool2d(2)(lucid.ones(1, 3, 4, 6)).shape
    lucid.Size([1, 3, 2, 3])
    """

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self.settings())


class AvgPool3d(AvgPoolWithDivisor):
    """Returns the mean of each window of volumes, shape (batch, channels, depth, height, width) or without batch.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AvgPool3d(2)(lucid.ones(1, 3, 4, 4, 6)).shape
    lucid.Size([1, 3, 2, 2, 3])
    """

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self.settings())


class MaxUnpool(Layer):
    """The base of layers that put the maxima of windows back at their indices, with zeros around them.

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
    """Returns sequences of zeros with the maxima of windows at `indices`, shape (batch, channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.MaxUnpool1d(2)(lucid.tensor([[2.0, 4.0]]), lucid.tensor([[1, 3]]))
    tensor([[0., 2., 0., 4.]])
    """

    axes = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(MaxUnpool):
    """Returns images of zeros with the maxima of windows at `indices`, shape (batch, channels, height, width).

    >>> import lucid
    >>> from lucid import nn
    >>> output, indices = nn.MaxPool2d(2, return_indices=True)(lucid.ones(1, 3, 4, 6))
    >>> nn.MaxUnpool2d(2)(output, indices).shape
    lucid.Size([1, 3, 4, 6])
    """

    axes = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(MaxUnpool):
    """Returns volumes of zeros with the maxima of windows at `indices`, shape (batch, channels, *sizes).

    >>> import lucid
    >>> from lucid import nn
    >>> output, indices = nn.MaxPool3d(2, return_indices=True)(lucid.ones(1, 3, 4, 4, 6))
    >>> nn.MaxUnpool3d(2)(output, indices).shape
    lucid.Size([1, 3, 4, 4, 6])
    """

    axes = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


@declared
class LPPool(Layer):
    """The base of layers that return the norm of each window."""

    _ranges: ClassVar = {"norm_type": number("a number other than 0", lambda value: abs(value) > 0)}
    norm_type: float
    kernel_size: int | Sequence[int]
    stride: int | Sequence[int] | None = None
    ceil_mode: bool = False

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments of the pooling function after the input."""
        return float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode


class LPPool1d(LPPool):
    """Returns the norm of each window of sequences, shape (batch, channels, length) or without batch.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LPPool1d(2, 2)(lucid.tensor([[3.0, 4.0, 6.0, 8.0]]))
    tensor([[ 5., 10.]])
    """

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, *self.settings())


class LPPool2d(LPPool):
    """Returns the norm of each window of images, shape (batch, channels, height, width) or without batch.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LPPool2d(2, 2)(lucid.ones(1, 3, 4, 6)).shape
    lucid.Size([1, 3, 2, 3])
    """

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, *self.settings())


class LPPool3d(LPPool):
    """Returns the norm of each window of volumes, shape (batch, channels, depth, height, width) or without batch.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LPPool3d(2, 2)(lucid.ones(1, 3, 4, 4, 6)).shape
    lucid.Size([1, 3, 2, 2, 3])
    """

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, *self.settings())


@declared
class AdaptiveAvgPool(Layer):
    """The base of layers that return the means of `output_size` parts."""

    output_size: int | Sequence[Any] | None


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """Returns the means of `output_size` parts of sequences, shape (batch, channels, length) or (channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AdaptiveAvgPool1d(2)(lucid.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[1.5000, 3.5000]])
    """

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """Returns the means of a grid of `output_size` parts of images, shape (batch, channels, height, width).

    None stands for as many parts as there are elements.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AdaptiveAvgPool2d((1, None))(lucid.ones(2, 3, 4, 5)).shape
    lucid.Size([2, 3, 1, 5])
    """

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(AdaptiveAvgPool):
    """Returns the means of parts of volumes, `output_size` along each dimension, shape (batch, channels, *sizes).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AdaptiveAvgPool3d(2)(lucid.ones(2, 3, 4, 5, 6)).shape
    lucid.Size([2, 3, 2, 2, 2])
    """

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


@declared
class AdaptiveMaxPool(Layer):
    """The base of layers that return the maxima of `output_size` parts, with `return_indices` their indices too."""

    _shown = ("output_size",)
    output_size: int | Sequence[Any] | None
    return_indices: bool = False


class AdaptiveMaxPool1d(AdaptiveMaxPool):
    """Returns the maxima of `output_size` parts of sequences, shape (batch, channels, length) or (channels, length).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AdaptiveMaxPool1d(2)(lucid.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[2., 4.]])
    """

    axes = 1

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(AdaptiveMaxPool):
    """Returns the maxima of a grid of `output_size` parts of images, shape (batch, channels, height, width).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AdaptiveMaxPool2d((1, None))(lucid.ones(2, 3, 4, 5)).shape
    lucid.Size([2, 3, 1, 5])
    """

    axes = 2

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(AdaptiveMaxPool):
    """Returns the maxima of parts of volumes, `output_size` along each dimension, shape (batch, channels, *sizes).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.AdaptiveMaxPool3d(2)(lucid.ones(2, 3, 4, 5, 6)).shape
    lucid.Size([2, 3, 2, 2, 2])
    """

    axes = 3

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
