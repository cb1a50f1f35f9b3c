"""How much device memory is in use, and how much was at most.

The figures are of CuPy's default memory pool and of those of CUDA graphs, which round every allocation up to a multiple
of 512 bytes.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, WeakValueDictionary

from lucid.base import gpu
from lucid.base.locks import new_lock, new_rlock
from lucid.cuda.devices import cuda_index
from lucid.cuda.held import release

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from lucid.cuda.devices import CudaDevice

__all__ = [
    "Pool", "empty_cache", "max_memory_allocated", "memory_allocated", "memory_reserved", "reset_peak_memory_stats",
]  # fmt: skip


class PeakMemory:
    """Running and highest number of allocated bytes of each device, counted by CuPy's memory hooks."""

    def __init__(self) -> None:
        self._allocated: dict[int, int] = {}
        self._peak: dict[int, int] = {}
        # What is still to be counted, oldest first. A collection of garbage may free an array, and so call a hook, at
        # any moment of the counting: it adds to this queue, which is being counted.
        self._events: deque[tuple[int, int]] = deque()
        self._counting = False
        self._lock = new_rlock()

    def restart(self, index: int, allocated: int) -> None:
        """Forget the peak of one device; ``allocated`` bytes are in use there now."""
        self._count()
        with self._lock:
            self._allocated[index] = self._peak[index] = allocated

    def peak(self, index: int, allocated: int) -> int:
        """Highest number of bytes since `restart`; ``allocated`` bytes are in use on that device now."""
        self._count()
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
        self._events.append((index, size))
        self._count()

    def _count(self) -> None:
        with self._lock:
            if self._counting:
                return
            self._counting = True
            try:
                self._count_events()
            finally:
                self._counting = False

    # a function of its own, as the jump back of its loop lies outside of the handlers around it
    def _count_events(self) -> None:
        while self._events:
            index, size = self._events[0]
            allocated = self._allocated.get(index, 0) + size
            peak = max(self._peak.get(index, 0), allocated)
            # stores alone, no calls: an interrupt counts an event neither half nor twice
            self._allocated[index] = allocated
            self._peak[index] = peak
            del self._events[0]


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
        _watch.restart(index, _used_bytes(index))


class Pool:
    """Memory of the device that was current, for CUDA graphs alone.

    Attributes
    ----------
    device : int
        Its index.
    workspaces : mapping of int to Array
        Memory that captured matrix products work in, by the stream's pointer: for all graphs here, which do not run at
        the same time, as long as one of them holds it.
    """

    __slots__ = ("__weakref__", "_addresses", "_raw", "device", "workspaces")

    def __init__(self) -> None:
        self.device = gpu.current_device()
        self._raw: Any = gpu.cupy().cuda.MemoryPool()
        self._addresses: set[int] = set()
        self.workspaces: WeakValueDictionary[int, Any] = WeakValueDictionary()
        _graph_pools.add(self)

    def used(self) -> AbstractContextManager[None]:
        """Context manager that allocates new arrays of this thread from this memory."""
        return gpu.cupy().cuda.using_allocator(self._malloc)

    def _malloc(self, size: int) -> Any:
        pointer = self._raw.malloc(size)
        self._addresses.add(pointer.ptr)
        return pointer

    def holds(self, array: Any) -> bool:
        """Return whether a CUDA array lies in this memory."""
        return getattr(array.data.mem, "ptr", None) in self._addresses

    def live(self) -> list[Any]:
        """Return the memory held by arrays, for a graph to hold too: memory freed meanwhile would be reused."""
        # one thread at a time: each holds the memory of all while it looks
        with _looking:
            return self._live()

    def _live(self) -> list[Any]:
        kind = gpu.array_type()
        # one that another thread is about to make has no memory yet
        pointers = [each.data for each in gc.get_objects() if type(each) is kind and each.data is not None]
        return [at.mem for at in pointers if at.device_id == self.device and at.mem.ptr in self._addresses]

    def used_bytes(self) -> int:
        """Return how many bytes arrays hold."""
        return int(gpu.run_on(self.device, self._raw.used_bytes))

    def total_bytes(self) -> int:
        """Return how many bytes there are, in use or for the next replay."""
        return int(gpu.run_on(self.device, self._raw.total_bytes))

    def __repr__(self) -> str:
        return f"<memory of cuda:{self.device} for CUDA graphs: {self.total_bytes():,} bytes>"


def array_apart(size: int, dtype: Any) -> Any:
    """Return numbers in memory of a pool of their own, so that values written there stay.

    In that of a graph it may have been a temporary's, which replays write again.
    """
    module = gpu.cupy()
    with module.cuda.using_allocator(module.cuda.MemoryPool().malloc):
        return module.empty(size, dtype)


_graph_pools: WeakSet[Pool] = WeakSet()
_looking = new_lock()


def _pool() -> Any:
    return gpu.cupy().get_default_memory_pool()


def _used_bytes(index: int) -> int:
    of_graphs = [pool.used_bytes() for pool in list(_graph_pools) if pool.device == index]
    return int(gpu.run_on(index, _pool().used_bytes)) + sum(of_graphs)


def memory_allocated(device: CudaDevice = None) -> int:
    """Bytes of a CUDA device held by arrays now; 0 without a CUDA device.

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
    return _used_bytes(cuda_index(device))


def memory_reserved(device: CudaDevice = None) -> int:
    """Bytes of a CUDA device held by the memory pool, in use or kept for reuse; 0 without a CUDA device.

    The pool gets pieces from the driver and splits them: what lies beside an array in its piece counts too, also after
    `empty_cache`.

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
    of_graphs = [pool.total_bytes() for pool in list(_graph_pools) if pool.device == index]
    return int(gpu.run_on(index, _pool().total_bytes)) + sum(of_graphs)


def max_memory_allocated(device: CudaDevice = None) -> int:
    """Most bytes held by arrays on a CUDA device since counting began; 0 without a CUDA device.

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
    _watch_peak(index)
    return _watch.peak(index, _used_bytes(index))


def reset_peak_memory_stats(device: CudaDevice = None) -> None:
    """Begin to measure the peak of a CUDA device anew, from the memory allocated now.

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
    _watch_peak(index)
    _watch.restart(index, _used_bytes(index))


def empty_cache() -> None:
    """Return the pool's unused memory to the driver, on every device; nothing without one.

    A piece that the driver gave goes back as a whole, when no array has a part of it. What `Tensor.record_stream` keeps
    for streams that are not done is waited for.
    """
    release(wait=True)
    for index in range(gpu.device_count()):
        gpu.run_on(index, _pool().free_all_blocks)
