"""What stands for batch normalisation over several processes, which lucid has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from lucid.backend.device import Device
    from lucid.backend.dtype import dtype as Dtype
    from lucid.nn.module.module import Module


class SyncBatchNorm:
    """Raises a NotImplementedError: statistics over several processes are not there, take BatchNorm1d, 2d or 3d."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: object = None,
        device: Device = None,
        dtype: Dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        _refuse()

    @classmethod
    def convert_sync_batchnorm(
        cls,
        module: Module,  # noqa: ARG003  PyTorch's signature
        process_group: object = None,  # noqa: ARG003  PyTorch's signature
    ) -> Module:
        """Raise a NotImplementedError."""
        _refuse()


def _refuse() -> NoReturn:
    raise NotImplementedError(
        "SyncBatchNorm: lucid trains in one process, and has no statistics over several: take BatchNorm1d, BatchNorm2d "
        "or BatchNorm3d"
    )
