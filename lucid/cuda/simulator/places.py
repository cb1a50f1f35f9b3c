"""Devices, streams and events of the simulator, with CuPy's names and CuPy's rules about which belongs to which.

Work is done at once, so streams only say in which order it was asked for, and every event is reached when recorded.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from typing import Any, ClassVar, Self

from lucid.cuda.simulator.counting import counters

__all__ = [
    "CUDARuntimeError",
    "Device",
    "Event",
    "Stream",
    "current_device",
    "get_current_stream",
    "get_elapsed_time",
    "runtime",
]


class CUDARuntimeError(RuntimeError):
    """What CuPy raises where the driver refuses."""


class _Thread(threading.local):
    """The current device of a thread, and its current stream on each."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, Stream] = {}


_thread = _Thread()


def device_count() -> int:
    """How many devices are simulated: the number in LUCID_CUDA_SIMULATOR."""
    return int(os.environ.get("LUCID_CUDA_SIMULATOR") or 1)


def current_device() -> int:
    """Index of this thread's current device."""
    return _thread.device


def set_device(index: int) -> None:
    """Make a device this thread's current one."""
    if not 0 <= index < device_count():
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
    _thread.device = index


class Device:
    """A simulated device; as a context, the current one inside."""

    __slots__ = ("_before", "id")

    def __init__(self, device: int | Device | None = None) -> None:
        self.id = current_device() if device is None else int(device)
        self._before: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __enter__(self) -> Self:
        self._before.append(_thread.device)
        set_device(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        _thread.device = self._before.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash((Device, self.id))

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> None:
        """Make it the current device."""
        set_device(self.id)

    def synchronize(self) -> None:
        """Wait for everything on it."""
        counters.synchronisations += 1

    @property
    def attributes(self) -> dict[str, int]:
        """The few that kernels choose their launch by, those of the simulator's runtime."""
        return {"MaxThreadsPerBlock": 1024, "MaxSharedMemoryPerBlock": 49152, "MultiProcessorCount": 4, "WarpSize": 32}

    @property
    def compute_capability(self) -> str:
        """That of the smallest device that lucid supports."""
        return "80"


class Event:
    """A mark in a stream. It belongs to the device that was current when it was made."""

    __slots__ = ("_device", "at", "ptr", "timed")

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._device = current_device()
        self.timed = not disable_timing
        self.at = 0.0
        self.ptr = next(_handles)

    @property
    def done(self) -> bool:
        """Whether it is reached."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Move the mark to the end of a stream."""
        target = get_current_stream() if stream is None else stream
        place = current_device() if target.device_id == -1 else target.device_id
        if self._device != place:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until it is reached."""
        counters.synchronisations += 1


_handles = itertools.count(4096, 4096)


class Stream:
    """A queue of work. As a context, the current one of its device inside; the null stream is on every device."""

    __slots__ = ("_before", "device_id", "is_non_blocking", "priority", "ptr")

    null: ClassVar[Stream]

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        self.ptr = 0 if null else next(_handles)
        self.device_id = -1 if null else current_device()
        self.priority = priority or 0
        self.is_non_blocking = non_blocking
        self._before: list[tuple[int, Stream]] = []

    def use(self) -> Stream:
        """Make it the current stream of the current device."""
        if self.device_id not in {-1, current_device()}:
            raise RuntimeError(
                f"This stream belongs to device {self.device_id}, while the current device is {current_device()}"
            )
        _thread.streams[current_device()] = self
        return self

    def __enter__(self) -> Self:
        before = current_device(), get_current_stream()
        self.use()
        self._before.append(before)
        return self

    def __exit__(self, *_: object) -> None:
        device, stream = self._before.pop()
        _thread.streams[device] = stream

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash((Stream, self.ptr))

    def __repr__(self) -> str:
        return f"<Stream {self.ptr} (device {self.device_id})>"

    @property
    def done(self) -> bool:
        """Whether everything queued is done."""
        return True

    def synchronize(self) -> None:
        """Wait until everything queued is done."""
        counters.synchronisations += 1

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one if None, at the end of this stream."""
        mark = Event() if event is None else event
        mark.record(self)
        return mark

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr


Stream.null = Stream(null=True)


def get_current_stream(device_id: int = -1) -> Stream:
    """Return the current stream of a device, of the current one if -1."""
    return _thread.streams.get(current_device() if device_id == -1 else device_id, Stream.null)


def get_elapsed_time(start_event: Any, end_event: Any) -> float:
    """Milliseconds between two events."""
    if not (start_event.timed and end_event.timed):
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return (end_event.at - start_event.at) * 1000


class runtime:
    """The functions of ``cupy.cuda.runtime``."""

    CUDARuntimeError = CUDARuntimeError
    getDeviceCount = staticmethod(device_count)
    getDevice = staticmethod(current_device)
    setDevice = staticmethod(set_device)

    @staticmethod
    def getDeviceProperties(device: int) -> dict[str, Any]:
        """Return what the driver would say of a device."""
        return {"name": f"lucid simulator {device}".encode(), "multiProcessorCount": 4, "major": 8, "minor": 0}

    @staticmethod
    def deviceSynchronize() -> None:
        """Wait for everything on the current device."""
        counters.synchronisations += 1

    @staticmethod
    def driverGetVersion() -> int:
        """No driver."""
        return 0
