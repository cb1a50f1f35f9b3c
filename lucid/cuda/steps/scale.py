"""The scale of a loss on a device, where it finds its size without asking the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.backend import gpu
from lucid.cuda.launch.kernels import Kernel

if TYPE_CHECKING:
    from lucid.backend.arrays import Array

__all__ = ["update_scale"]

_update_scale = Kernel("gradients", "lucid::update_scale", [()])


def update_scale(
    scale: Array, narrow: Array, tracker: Array, found: Array | None,
    *, bad: bool, growth: float, backoff: float, interval: int, least: float, most: float,
) -> None:  # fmt: skip
    """Let a scale shrink where an overflow was found, and grow after an interval of steps without one.

    Parameters
    ----------
    scale, narrow, tracker : Array
        The scale in float64 and in float32, and how many steps without overflow came last, in float64.
    found : Array or None
        A float32 flag on the same device.
    bad : bool
        Whether an overflow was found elsewhere.
    least, most : float
        How far the scale shrinks and grows.
    """
    with gpu.use_device(gpu.device_index(scale)):
        flag = 0 if found is None else found.data.ptr
        addresses = (scale.data.ptr, narrow.data.ptr, tracker.data.ptr, flag)
        _update_scale[()](1, 1, *addresses, bad, growth, backoff, interval, least, most)
