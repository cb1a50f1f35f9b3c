"""The scale of a loss on a device, updated there without asking the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.base import gpu
from lucid.cuda.launch.kernels import Kernel, address_of

if TYPE_CHECKING:
    from lucid.base.arrays import Array


# Scales between which float32 has the reciprocal too: 140 overflows in a row would make it infinite.
LEAST, MOST = 2.0**-126, 2.0**127

_update_scale = Kernel("gradients", "lucid::update_scale", [()])


def following_scale(
    scale: float, tracker: int, growth: float, backoff: float, interval: int, *, bad: bool
) -> tuple[float, int]:
    """Return scale and tracker after a step, on the host."""
    if bad:
        return max(scale * backoff, LEAST), 0
    if tracker + 1 < interval:
        return scale, tracker + 1
    grown = scale * growth
    return (grown if grown <= MOST else scale), 0


def update_scale(
    scale: Array, narrow: Array, tracker: Array, overflow: Array | None,
    growth: float, backoff: float, interval: int, *, bad: bool,
) -> None:  # fmt: skip
    """Let a scale shrink after an overflow, and grow after an interval of steps without one.

    Parameters
    ----------
    scale, narrow, tracker : Array
        The scale in float64 and in float32, and how many steps without overflow came last, in float64.
    overflow : Array or None
        A float32 flag on the same device.
    bad : bool
        Whether an overflow was found elsewhere.
    """
    addresses = (scale.data.ptr, narrow.data.ptr, tracker.data.ptr, address_of(overflow))
    numbers = bad, growth, backoff, interval, LEAST, MOST
    gpu.run_on(gpu.device_index(scale), _update_scale[()], 1, 1, *addresses, *numbers)
