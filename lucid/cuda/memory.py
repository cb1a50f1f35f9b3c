"""How much device memory is in use, and how much was at most.

The figures are of CuPy's default memory pool, which rounds every allocation up to a multiple of 512 bytes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from lucid.backend import gpu
from lucid.cuda.devices import cuda_index

if TYPE_CHECKING:
    from lucid.cuda.devices import CudaDevice

__all__ = ["empty_cache", "max_memory_allocated", "memory_allocated", "memory_reserved", "reset_peak_memory_stats"]


class PeakMemory:
    """Running and highest number of allocated bytes of each device, fed by what CuPy tells memory hooks."""

    def __init__(self) -> None:
        self._allocated: dict[int, int] = {}
        self._peak: dict[int, int] = {}
        # Reentrant: the garbage collector may free an array, and so call a hook, while this thread holds the lock.
        self._lock = threading.RLock()

    def restart(self, index: int, allocated: int) -> None:
        """Forget the peak of one device; ``allocated`` bytes are in use there now."""
        with self._lock:
            self._allocated[index] = self._peak[index] = allocated

    def peak(self, index: int, allocated: int) -> int:
        """Highest number of bytes since `restart`; ``allocated`` bytes are in use on that device now."""
        with self._lock:
            self._peak[index] = max(self._peak.get(index, 0), allocated)
            return self._peak[index]

    def malloc_postprocess(self, **event: int) -> None:
        """Count an allocation; one that failed has no pointer."""
        if event["mem_ptr"]:
            self._add(event["device_id"], event["mem_size"])

    def free_postprocess(self, **event: int) -> None:
        """Count a release."""
        self._add(event["device_id"], -event["mem_size"])

    def _add(self, index: int, size: int) -> None:
        with self._lock:
            allocated = self._allocated.get(index, 0) + size
            self._allocated[index] = allocated
            if allocated > self._peak.get(index, 0):
                self._peak[index] = allocated


_watch = PeakMemory()
_watched: set[int] = set()
_watching = threading.local()


def _watch_peak(index: int) -> None:
    """Let CuPy report this thread's allocations, and start counting on one device if that has not begun."""
    if not getattr(_watching, "installed", False):
        hook = gpu.cupy().cuda.MemoryHook()
        hook.name = "lucid peak memory"
        hook.malloc_postprocess = _watch.malloc_postprocess
        hook.free_postprocess = _watch.free_postprocess
        # CuPy keeps its hooks per thread; this one stays for as long as the thread.
        hook.__enter__()
        _watching.installed = True
    if index not in _watched:
        _watched.add(index)
        _watch.restart(index, _pool().used_bytes())


def _pool() -> Any:
    return gpu.cupy().get_default_memory_pool()


def memory_allocated(device: CudaDevice = None) -> int:
    """Bytes of a CUDA device that arrays hold now; 0 where there is no CUDA device.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.

    Returns
    -------
    int

    Raises
    ------
    DeviceError
        If there are CUDA devices and ``device`` is none of them.
    """
    if not gpu.is_available():
        return 0
    with gpu.use_device(cuda_index(device)):
        return int(_pool().used_bytes())


def memory_reserved(device: CudaDevice = None) -> int:
    """Bytes of a CUDA device that the memory pool holds, in use or kept for reuse; 0 where there is no CUDA device.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.

    Returns
    -------
    int

    Raises
    ------
    DeviceError
        If there are CUDA devices and ``device`` is none of them.
    """
    if not gpu.is_available():
        return 0
    with gpu.use_device(cuda_index(device)):
        return int(_pool().total_bytes())


def max_memory_allocated(device: CudaDevice = None) -> int:
    """Most bytes that arrays held on a CUDA device since counting began; 0 where there is no CUDA device.

    Counting costs about a microsecond per allocation, so it begins only with the first call of this function or of
    `reset_peak_memory_stats` for that device: call the latter before the code to be measured. It sees allocations of
    the threads in which one of the two was called.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.

    Returns
    -------
    int

    Raises
    ------
    DeviceError
        If there are CUDA devices and ``device`` is none of them.
    """
    if not gpu.is_available():
        return 0
    index = cuda_index(device)
    with gpu.use_device(index):
        _watch_peak(index)
        return _watch.peak(index, int(_pool().used_bytes()))


def reset_peak_memory_stats(device: CudaDevice = None) -> None:
    """Begin to measure the peak of a CUDA device anew, from what is allocated now.

    Parameters
    ----------
    device : device, int, str or None
        None means the current CUDA device.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    DeviceError
        If ``device`` is not a CUDA device, or no device of that index exists.
    """
    index = cuda_index(device)
    with gpu.use_device(index):
        _watch_peak(index)
        _watch.restart(index, int(_pool().used_bytes()))


def empty_cache() -> None:
    """Give memory that the pool keeps for reuse back to the driver, on every device; nothing where there is none."""
    for index in range(gpu.device_count()):
        with gpu.use_device(index):
            _pool().free_all_blocks()
