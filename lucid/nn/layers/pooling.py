"""Pooling layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.nn import functional as F
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class MaxPool(Module):
    """What the max-pooling layers share.

    Parameters
    ----------
    kernel_size : int or tuple of int
        Size of the windows.
    stride : int or tuple of int, optional
        Distance of the windows; `kernel_size` if left out.
    padding : int or tuple of int
        Minus infinities added at each edge.
    dilation : int or tuple of int
        Distance of the elements of a window.
    return_indices : bool
        Whether the places of the maxima are returned too.
    ceil_mode : bool
        Whether windows may reach over the edge.
    """

    @checked
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

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(MaxPool):
    """Returns the maximum of each window of a sequence; the parameters are those of `MaxPool`."""

    def forward(self, input: Tensor) -> Any:
        """Return the maxima of `input`, shape (batch, channels, length) or (channels, length)."""
        return F.max_pool1d(input, *self.settings())


class MaxPool2d(MaxPool):
    """Returns the maximum of each window of an image; the parameters are those of `MaxPool`.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> nn.MaxPool2d(2)(lucid.ones(1, 3, 4, 4)).shape
    (1, 3, 2, 2)
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima of `input`, shape (batch, channels, height, width) or without batch."""
        return F.max_pool2d(input, *self.settings())


class AvgPool1d(Module):
    """Returns the mean of each window of a sequence.

    Parameters
    ----------
    kernel_size : int or tuple of int
        Size of the windows.
    stride : int or tuple of int, optional
        Distance of the windows; `kernel_size` if left out.
    padding : int or tuple of int
        Zeros added at each edge.
    ceil_mode : bool
        Whether windows may reach over the edge.
    count_include_pad : bool
        Whether the zeros count in the means.
    """

    @checked
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = one(kernel_size)
        self.stride = self.kernel_size if stride is None else one(stride)
        self.padding = one(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the means of `input`, shape (batch, channels, length) or (channels, length)."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """Returns the mean of each window of an image.

    Parameters
    ----------
    kernel_size : int or tuple of int
        Size of the windows.
    stride : int or tuple of int, optional
        Distance of the windows; `kernel_size` if left out.
    padding : int or tuple of int
        Zeros added at each edge.
    ceil_mode : bool
        Whether windows may reach over the edge.
    count_include_pad : bool
        Whether the zeros count in the means.
    divisor_override : int, optional
        What to divide the sums by instead.
    """

    @checked
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

    def forward(self, input: Tensor) -> Tensor:
        """Return the means of `input`, shape (batch, channels, height, width) or without batch."""
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool1d(Module):
    """Returns the means of `output_size` parts of a sequence.

    Parameters
    ----------
    output_size : int
        How many.
    """

    @checked
    def __init__(self, output_size: int | Sequence[Any] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the means of `input`, shape (batch, channels, length) or (channels, length)."""
        return F.adaptive_avg_pool1d(input, self.output_size)

    def extra_repr(self) -> str:
        """Return the size."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(Module):
    """Returns the means of a grid of parts of an image.

    Parameters
    ----------
    output_size : int or tuple of (int or None)
        Height and width of the grid; None keeps that of the input.
    """

    @checked
    def __init__(self, output_size: int | Sequence[Any] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the means of `input`, shape (batch, channels, height, width) or without batch."""
        return F.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        """Return the size."""
        return f"output_size={self.output_size}"


def one(size: Any) -> tuple[int, ...]:
    """Return a size as a tuple of one number."""
    return (size,) if isinstance(size, int) else tuple(size)
