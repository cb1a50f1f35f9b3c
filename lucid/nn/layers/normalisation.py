"""Normalisation layers; what holds for all normalisation says `lucid.ops.layers.normalisation`.

`weight` is ones and `bias` zeros at first. `affine`, and `elementwise_affine`, say whether there are parameters, `bias`
whether it is among them; the names of those that are left out hold None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import checked
from lucid.autograd.base import describe, wrap
from lucid.autograd.modes.state import no_grad
from lucid.backend.arrays import to_device
from lucid.backend.device import as_device, get_default_device
from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn import init
from lucid.nn.layers.layer import per_axis
from lucid.nn.module.module import Module
from lucid.nn.module.parameters import empty_parameter, empty_tensor
from lucid.ops.layers.batch_normalisation import MeanOfBatches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.backend.device import Device
    from lucid.backend.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class Affine(Module):
    """The base of layers whose result is scaled and shifted by parameters of one shape."""

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


class BatchNorm(Affine):
    """What the batch-normalisation layers share: each of `num_features` channels, dimension 1, is normalised.

    In training mean and variance are the batch's, and the running ones follow them; in evaluation they are the running
    ones.

    Parameters
    ----------
    num_features, eps, affine, bias, device, dtype
        As above.
    momentum : float, optional
        The share of a new batch in the running statistics; None makes them the mean over all batches.
    track_running_stats : bool
        Whether there are running statistics; without them the batch's are used in evaluation too.

    Attributes
    ----------
    running_mean, running_var : Tensor, shape (num_features,), or None
        Zeros and ones at first.
    num_batches_tracked : Tensor of int64, or None
        How many batches have been seen in training.
    """

    # 2: num_batches_tracked is part of the state dict
    _version = 2
    dimensions: tuple[int, ...] = ()
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Any

    @checked
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.register_affine(shape, affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", empty_tensor(shape, device, dtype) if tracked else None)
        self.register_buffer("running_var", empty_tensor(shape, device, dtype, 1.0) if tracked else None)
        target = get_default_device() if device is None else as_device(device)
        self.register_buffer(
            "num_batches_tracked", wrap(to_device(np.zeros((), np.int64), target)) if tracked else None
        )

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the running statistics and set the parameters to ones and zeros again."""
        self.reset_running_stats()
        super().reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.dimensions:
            expected = " or ".join(f"{count}D" for count in self.dimensions)
            raise ShapeError(f"{type(self).__name__}: expected {expected} input, got {describe(input)}")
        momentum = 0.0 if self.momentum is None else self.momentum
        seen = self.num_batches_tracked if self.training and self.track_running_stats else None
        if seen is not None and self.momentum is None:
            momentum = MeanOfBatches(seen)
        used = not self.training or self.track_running_stats
        out = F.batch_norm(
            input,
            self.running_mean if used else None,
            self.running_var if used else None,
            self.weight,
            self.bias,
            self.training or (self.running_mean is None and self.running_var is None),
            momentum,
            self.eps,
        )
        # last, so that an input that is refused is not counted
        if seen is not None:
            with no_grad():
                seen.add_(1)
        return out

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        key = f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """Normalises each channel over the batch, and over the length of sequences (Ioffe and Szegedy, 2015).

    Takes inputs of shape (batch, channels) or (batch, channels, length).
    """

    dimensions = (2, 3)


class BatchNorm2d(BatchNorm):
    """Normalises each channel of images, shape (batch, channels, height, width), over batch, height and width.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.BatchNorm2d(3)(lucid.ones(2, 3, 4, 4)).shape
    lucid.Size([2, 3, 4, 4])
    """

    dimensions = (4,)


class LayerNorm(Affine):
    """Normalises the last dimensions, of sizes `normalized_shape` (Ba, Kiros and Hinton, 2016)."""

    @checked
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
    """

    weight: Parameter | None

    @checked
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
    """

    @checked
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
