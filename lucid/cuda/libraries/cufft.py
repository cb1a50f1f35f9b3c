"""Fourier transforms of CUDA arrays: CuPy's calls of cuFFT, in turn.

CuPy keeps one plan for each form, thread and device, whatever the stream, and with the plan the workspace in which all
its transforms compute.
So a transform waits for the one before where that was queued on another stream; and none can be part of a CUDA graph,
as CuPy may drop plan and workspace before a replay.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.arrays import Array


class _Last(threading.local):
    """By the device, the stream of this thread's last transform and the event at its end."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[Any, Any]] = {}


_last = _Last()


def in_turn(transform: Callable[..., Array], x: Array, **settings: Any) -> Array:
    """Return ``transform(cupy, x, **settings)``, behind the transform before.

    Raises
    ------
    CaptureError
        If the current stream captures a CUDA graph.
    """
    if gpu.is_capturing():
        raise CaptureError(
            "a Fourier transform cannot be captured in a CUDA graph: CuPy may drop its plan and workspace before the "
            "graph is replayed; transform outside of what is captured"
        )
    device, stream = gpu.current_device(), gpu.current_stream()
    before, end = _last.places.get(device, (stream, None))
    if before.ptr != stream.ptr:
        stream.wait_event(end)
    out = transform(gpu.cupy(), x, **settings)
    _last.places[device] = stream, gpu.mark(stream)
    return out
