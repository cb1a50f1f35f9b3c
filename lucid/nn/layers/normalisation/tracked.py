"""Running statistics of channels: the common base of batch and instance normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import describe
from lucid.base.dtype import int64
from lucid.errors import ShapeError
from lucid.nn.layers.layer import empty_tensor
from lucid.nn.layers.normalisation.features import Affine

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class Tracked(Affine):
    """The base of layers that normalise each of `num_features` channels, and may keep running statistics of them.

    Parameters
    ----------
    num_features, eps, affine, bias, device, dtype
        As above.
    momentum : float, optional
        The share of a new batch in the running statistics.
    track_running_stats : bool
        Whether there are running statistics.

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

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Device,
        dtype: Dtype | None,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.register_affine(shape, affine, affine and bias, device, dtype)
        # made in any case, so that settings that are wrong are refused
        mean = empty_tensor(shape, device, dtype)
        self.register_buffer("running_mean", mean if track_running_stats else None)
        self.register_buffer("running_var", empty_tensor(shape, device, dtype, 1.0) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", empty_tensor((), device, int64) if track_running_stats else None)

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

    def check_dimensions(self, input: Tensor) -> None:
        """Raise a ShapeError unless the layer takes inputs of that many dimensions."""
        if input.ndim not in self.dimensions:
            expected = " or ".join(f"{count}D" for count in self.dimensions)
            raise ShapeError(f"{type(self).__name__}: expected {expected} input, got {describe(input)}")

    def channels_of(self, input: Tensor) -> int:
        """Return how many channels an input has."""
        return input.shape[1]

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *args: Any, **kwargs: Any
    ) -> None:
        key = f"{prefix}num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )
