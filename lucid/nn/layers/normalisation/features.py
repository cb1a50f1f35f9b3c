"""Normalisation over the last dimensions, over groups of channels, and of each channel by its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd.base import describe
from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn import init
from lucid.nn.layers.layer import declared, empty_parameter, per_axis
from lucid.nn.module.module import Module
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class Affine(Module):
    """The base of layers that scale and shift their result by parameters of one shape."""

    weight: Parameter | None
    bias: Parameter | None

    def register_affine(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: Device, dtype: Dtype | None
    ) -> None:
        """Register the parameters, or the names of those that are left out."""
        self.register_parameter("weight", empty_parameter(shape, device, dtype, 1.0) if weight else None)
        self.register_parameter("bias", empty_parameter(shape, device, dtype) if bias else None)

    def reset_parameters(self) -> None:
        """Set the parameters to ones and zeros again."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(Affine):
    """Normalises the last dimensions, of sizes `normalized_shape` (Ba, Kiros and Hinton, 2016).

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LayerNorm(2, elementwise_affine=False)(lucid.tensor([[1.0, 3.0]]))
    tensor([[-1.0000,  1.0000]])
    """

    @ranged
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-05,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = per_axis(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Returns ``x / sqrt(mean(x**2) + eps) * weight``, the mean over the last dimensions, of sizes `normalized_shape`.

    Without `eps` it is the smallest step of the dtype. (Zhang and Sennrich, 2019.)

    >>> import lucid
    >>> from lucid import nn
    >>> nn.RMSNorm(2, elementwise_affine=False)(lucid.tensor([3.0, 4.0]))
    tensor([0.8485, 1.1314])
    """

    weight: Parameter | None

    @ranged
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = per_axis(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.register_parameter("weight", empty_parameter(shape, device, dtype, 1.0) if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Set the weight to ones again."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Affine):
    """Normalises each of `num_groups` groups of the `num_channels` channels, dimension 1 (Wu and He, 2018).

    A number of channels that is no multiple of that of groups raises a SettingError.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.GroupNorm(2, 6)(lucid.ones(1, 6, 4, 4)).shape
    lucid.Size([1, 6, 4, 4])
    """

    @ranged
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-05,
        affine: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise SettingError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_affine((num_channels,), affine, affine and bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


@declared
class LocalResponseNorm(Module):
    """Returns ``x / (k + alpha * mean(x**2)) ** beta``, the mean over `size` neighbouring channels, dimension 1.

    A size below 1 raises a SettingError.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.LocalResponseNorm(5)(lucid.ones(2, 8, 3)).shape
    lucid.Size([2, 8, 3])
    """

    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    k: float = 1.0

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images, shape (batch, channels, height, width), under an older name; `size` is odd.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.CrossMapLRN2d(3)(lucid.ones(1, 4, 2, 2)).shape
    lucid.Size([1, 4, 2, 2])
    """

    @ranged
    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)
        if size % 2 == 0:
            raise SettingError(
                f"CrossMapLRN2d: expected an odd size, as many channels before as after each, got {size}: take "
                "LocalResponseNorm for even ones"
            )

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ShapeError(f"CrossMapLRN2d: expected 4D input, got {describe(input)}")
        return super().forward(input)
