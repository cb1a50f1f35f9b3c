"""Pooling layers with windows at random places; see `lucid.ops.pooling.fractional`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.layers.layer import per_axis
from lucid.nn.module.module import Module
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class FractionalMaxPool(Module):
    """The base of layers that return the maxima of windows at random places.

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
    """Returns the maxima of windows that lie at random in images, shape (batch, channels, height, width).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.FractionalMaxPool2d(2, output_size=(3, 4))(lucid.ones(1, 2, 6, 8)).shape
    lucid.Size([1, 2, 3, 4])
    """

    axes = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(input, *self.settings())


class FractionalMaxPool3d(FractionalMaxPool):
    """Returns the maxima of windows that lie at random in volumes, shape (batch, channels, depth, height, width).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.FractionalMaxPool3d(2, output_ratio=0.5)(lucid.ones(1, 2, 6, 6, 8)).shape
    lucid.Size([1, 2, 3, 3, 4])
    """

    axes = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(input, *self.settings())
