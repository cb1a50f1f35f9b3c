"""The accelerator of this machine, whatever its kind: here always CUDA. Names and answers are those of `lucid.cuda`."""

from __future__ import annotations

from lucid.backend.device import device
from lucid.cuda import (
    current_device,
    current_stream,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
    set_device,
    synchronize,
)
from lucid.cuda import device as device_index

__all__ = [
    "current_accelerator", "current_device_index", "current_stream", "device_count", "device_index", "empty_cache",
    "get_memory_info", "is_available", "max_memory_allocated", "memory_allocated", "memory_reserved",
    "reset_peak_memory_stats", "set_device_index", "synchronize",
]  # fmt: skip

current_device_index = current_device
get_memory_info = mem_get_info
set_device_index = set_device


def current_accelerator(check_available: bool = False) -> device | None:  # noqa: ARG001  nothing is known unasked
    """Return the device ``cuda``, without an index; None where there is none.

    Parameters
    ----------
    check_available : bool
        PyTorch's: there the device is also named where it is not available, if PyTorch was built for it.

    Examples
    --------
    >>> import lucid
    >>> found = lucid.accelerator.current_accelerator()
    >>> (found is None) == (not lucid.accelerator.is_available())
    True
    """
    return device("cuda") if is_available() else None
