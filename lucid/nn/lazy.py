"""Layers that find out at their first call how many features or channels their inputs have.

Until then their parameters and buffers are `lucid.nn.UninitializedParameter` and `UninitializedBuffer`; state dicts of
both kinds are loaded into both. The first call, or a load, makes them ordinary layers of the same parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import describe
from lucid.autograd.modes.state import no_grad
from lucid.errors import SettingError, ShapeError
from lucid.nn.layers.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    Convolution,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    TransposedConvolution,
)
from lucid.nn.layers.linear import Linear
from lucid.nn.layers.normalisation.batch import BatchNorm1d, BatchNorm2d, BatchNorm3d
from lucid.nn.layers.normalisation.instance import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from lucid.nn.layers.normalisation.tracked import Tracked
from lucid.nn.module.module import Module
from lucid.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """A mixin for modules that take the shapes of their parameters from their first input.

    A subclass names the class that it becomes then, `cls_to_become`, and defines `initialize_parameters`, which gets
    the arguments of the call, and materializes what has no elements.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> layer = nn.LazyLinear(3)
    >>> layer
    LazyLinear(in_features=0, out_features=3, bias=True)
    >>> _ = layer(lucid.ones(5, 2))
    >>> layer
    Linear(in_features=2, out_features=3, bias=True)
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize parameters and buffers for these arguments of a call; a subclass defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer of the module itself has no elements yet."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        with no_grad():
            module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise SettingError(
                f"module {type(module).__name__} has not been fully initialized: its initialize_parameters has to "
                "materialize all parameters and buffers"
            )
        hooks = module._forward_pre_hooks  # noqa: SLF001
        del hooks[next(number for number, hook in hooks.items() if hook == module._infer_parameters)]  # noqa: SLF001
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` with the `in_features` of its first input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyLinear(8)(lucid.ones(2, 3)).shape
    lucid.Size([2, 8])
    """

    cls_to_become = Linear

    @ranged
    def __init__(
        self, out_features: int, bias: bool | None = True, device: Device = None, dtype: Dtype | None = None
    ) -> None:
        super().__init__(0, 0, bias, device, dtype)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, if there are any."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Make the parameters for the features of an input, or take those that were loaded."""
        if is_lazy(self.weight):
            self.in_features = input.shape[-1]
            _materialize(self.weight, (self.out_features, self.in_features))
            _materialize(self.bias, (self.out_features,))
            self.reset_parameters()
        self.in_features = self.weight.shape[-1]


def _materialize(tensor: Any, shape: tuple[int, ...]) -> None:
    if is_lazy(tensor):
        tensor.materialize(shape)


class LazyConvolution(LazyModuleMixin, Convolution):
    """The base of lazy convolution layers: `in_channels` are those of the first input."""

    @ranged
    def __init__(
        self,
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
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.leave_open(out_channels, device, dtype)

    def leave_open(self, out_channels: int, device: Device, dtype: Dtype | None) -> None:
        """Put parameters without elements in the place of those for no channels."""
        if out_channels % self.groups:
            raise SettingError(f"out_channels must be divisible by groups: got {out_channels} and {self.groups}")
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if self.bias is not None:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, if there are any."""
        if not self.has_uninitialized_params() and self.in_channels:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Make the parameters for the channels of an input, or take those that were loaded."""
        if is_lazy(self.weight):
            channels = channels_of(self, input, (self.axes + 1, self.axes + 2))
            if channels % self.groups:
                raise SettingError(f"in_channels must be divisible by groups: got {channels} and {self.groups}")
            self.in_channels = channels
            pair = (channels, self.out_channels) if self.transposed else (self.out_channels, channels)
            _materialize(self.weight, (pair[0], pair[1] // self.groups, *self.kernel_size))
            _materialize(self.bias, (self.out_channels,))
            self.reset_parameters()
        shape = self.weight.shape
        self.in_channels = shape[0] if self.transposed else shape[1] * self.groups


def channels_of(module: Module, input: Tensor, dimensions: tuple[int, ...]) -> int:
    """Return the number of channels of an input; the last of `dimensions` is the number of dimensions of a batch."""
    if input.ndim not in dimensions:
        expected = " or ".join(f"{count}D" for count in dimensions)
        raise ShapeError(f"{type(module).__name__}: expected {expected} input, got {describe(input)}")
    return input.shape[0 if input.ndim < dimensions[-1] else 1]


class LazyConv1d(LazyConvolution, Conv1d):
    """A `Conv1d` with the `in_channels` of its first input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyConv1d(8, 3)(lucid.ones(2, 3, 9)).shape
    lucid.Size([2, 8, 7])
    """

    cls_to_become = Conv1d


class LazyConv2d(LazyConvolution, Conv2d):
    """A `Conv2d` with the `in_channels` of its first input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyConv2d(8, 3)(lucid.ones(2, 3, 9, 9)).shape
    lucid.Size([2, 8, 7, 7])
    """

    cls_to_become = Conv2d


class LazyConv3d(LazyConvolution, Conv3d):
    """A `Conv3d` with the `in_channels` of its first input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyConv3d(8, 3)(lucid.ones(2, 3, 4, 5, 5)).shape
    lucid.Size([2, 8, 2, 3, 3])
    """

    cls_to_become = Conv3d


class LazyTransposedConvolution(LazyConvolution, TransposedConvolution):
    """The base of lazy transposed convolution layers."""

    @ranged
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool | None = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        LazyModuleMixin.__init__(
            self, 0, 0, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device,
            dtype,
        )  # fmt: skip
        self.leave_open(out_channels, device, dtype)


class LazyConvTranspose1d(LazyTransposedConvolution, ConvTranspose1d):
    """A `ConvTranspose1d` with the `in_channels` of its first input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyConvTranspose1d(8, 2, stride=2)(lucid.ones(2, 3, 5)).shape
    lucid.Size([2, 8, 10])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(LazyTransposedConvolution, ConvTranspose2d):
    """A `ConvTranspose2d` with the `in_channels` of its first input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyConvTranspose2d(8, 2, stride=2)(lucid.ones(2, 3, 5, 5)).shape
    lucid.Size([2, 8, 10, 10])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(LazyTransposedConvolution, ConvTranspose3d):
    """A `ConvTranspose3d` with the `in_channels` of its first input.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyConvTranspose3d(8, 2, stride=2)(lucid.ones(2, 3, 4, 5, 5)).shape
    lucid.Size([2, 8, 8, 10, 10])
    """

    cls_to_become = ConvTranspose3d


class LazyNorm(LazyModuleMixin, Tracked):
    """The base of lazy normalisation layers: `num_features` are the channels of the first input."""

    @ranged
    def __init__(
        self,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        for name in ("weight", "bias"):
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedParameter(device=device, dtype=dtype))
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Forget the running statistics and set the parameters to ones and zeros again, if there are any."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Make parameters and running statistics for the channels of an input, or take those that were loaded."""
        tensors: list[Any] = [self.weight, self.bias, self.running_mean, self.running_var]
        known = [tensor.shape[0] for tensor in tensors if tensor is not None and not is_lazy(tensor)]
        if known:
            self.num_features = known[0]
            return
        self.check_dimensions(input)
        self.num_features = self.channels_of(input)
        for tensor in tensors:
            _materialize(tensor, (self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(LazyNorm, BatchNorm1d):
    """A `BatchNorm1d` with the channels of its first input as `num_features`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyBatchNorm1d()(lucid.ones(2, 3)).shape
    lucid.Size([2, 3])
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(LazyNorm, BatchNorm2d):
    """A `BatchNorm2d` with the channels of its first input as `num_features`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyBatchNorm2d()(lucid.ones(2, 3, 4, 4)).shape
    lucid.Size([2, 3, 4, 4])
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(LazyNorm, BatchNorm3d):
    """A `BatchNorm3d` with the channels of its first input as `num_features`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyBatchNorm3d()(lucid.ones(2, 3, 4, 4, 4)).shape
    lucid.Size([2, 3, 4, 4, 4])
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(LazyNorm, InstanceNorm1d):
    """An `InstanceNorm1d` with the channels of its first input as `num_features`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyInstanceNorm1d()(lucid.ones(2, 3, 4)).shape
    lucid.Size([2, 3, 4])
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(LazyNorm, InstanceNorm2d):
    """An `InstanceNorm2d` with the channels of its first input as `num_features`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyInstanceNorm2d()(lucid.ones(2, 3, 4, 4)).shape
    lucid.Size([2, 3, 4, 4])
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(LazyNorm, InstanceNorm3d):
    """An `InstanceNorm3d` with the channels of its first input as `num_features`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LazyInstanceNorm3d()(lucid.ones(2, 3, 4, 4, 4)).shape
    lucid.Size([2, 3, 4, 4, 4])
    """

    cls_to_become = InstanceNorm3d
