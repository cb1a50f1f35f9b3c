"""Memory of the simulated devices: CuPy's pool, its limit, its hooks and its figures, over memory of the host."""

from __future__ import annotations

import bisect
import ctypes
import threading
import weakref
from typing import Any, Self

import numpy as np

from lucid.cuda.simulator.counting import counters
from lucid.cuda.simulator.memory import allocate, forget, free, lend
from lucid.cuda.simulator.places import Device, current_device

__all__ = ["Memory", "MemoryHook", "MemoryPointer", "MemoryPool", "OutOfMemoryError", "pool"]

# CuPy rounds every allocation up to a multiple of this.
UNIT = 512


# Python's own function for a view of memory; ctypes would make a type for every size.
_memory_view: Any = ctypes.pythonapi.PyMemoryView_FromMemory
_memory_view.restype, _memory_view.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
WRITABLE = 0x200


class OutOfMemoryError(MemoryError):
    """A device has no room left."""

    def __init__(self, size: int, total: int, limit: int) -> None:
        super().__init__(
            f"Out of memory allocating {size:,} bytes "
            f"(allocated so far: {total:,} bytes, limit set to: {limit:,} bytes)."
        )


class _Thread(threading.local):
    """The memory hooks of a thread."""

    def __init__(self) -> None:
        self.hooks: dict[str, MemoryHook] = {}


_thread = _Thread()


class MemoryHook:
    """Is told of this thread's allocations while it is entered."""

    name = "MemoryHook"

    def malloc_preprocess(self, **kwargs: int) -> None:
        """Before memory is taken from the pool."""

    def malloc_postprocess(self, **kwargs: int) -> None:
        """After memory was taken from the pool; the pointer is 0 if there was none left."""

    def free_preprocess(self, **kwargs: int) -> None:
        """Before memory goes back to the pool."""

    def free_postprocess(self, **kwargs: int) -> None:
        """After memory went back to the pool."""

    def __enter__(self) -> Self:
        if self.name in _thread.hooks:
            raise KeyError(f"memory hook {self.name} already exists")
        _thread.hooks[self.name] = self
        return self

    def __exit__(self, *_: object) -> None:
        del _thread.hooks[self.name]


def allocated(size: int) -> np.ndarray[Any, Any]:
    """Return the host's view of fresh memory, every bit of it set: NaN in floating-point dtypes."""
    return np.frombuffer(_memory_view(allocate(size), size, WRITABLE), np.uint8) if size else np.empty(0, np.uint8)


class Memory:
    """Memory of an array and of its views; the pool has it back when the last of them is gone.

    Attributes
    ----------
    bytes : numpy.ndarray
        It, as the host sees it.
    """

    __slots__ = ("__weakref__", "_held", "_owner", "_pool", "bytes", "device_id", "ptr", "size")

    def __init__(
        self, pool: MemoryPool, data: np.ndarray[Any, Any], device_id: int, held: int, owner: object = None
    ) -> None:
        self._pool = pool
        self._held = held
        self._owner = owner
        self.bytes = data
        self.device_id = device_id
        self.size = data.nbytes
        self.ptr: int = data.__array_interface__["data"][0] if data.nbytes else 0
        if self.ptr and not held:
            lend(self.ptr, self.size)

    @property
    def device(self) -> Device:
        """The device that it is on."""
        return Device(self.device_id)

    def __del__(self) -> None:
        if self._held:
            self._pool.release(self, self._held)
            free(self.ptr)
        elif self.ptr:
            forget(self.ptr)


class MemoryPointer:
    """An address inside memory."""

    __slots__ = ("mem", "ptr")

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem = mem
        self.ptr = mem.ptr + offset

    @property
    def device_id(self) -> int:
        """Index of the device of the memory."""
        return self.mem.device_id

    @property
    def device(self) -> Device:
        """The device of the memory."""
        return self.mem.device

    def __int__(self) -> int:
        return self.ptr


class MemoryPool:
    """CuPy's pool: what is freed is kept for reuse, until `free_all_blocks` or until the limit is reached."""

    def __init__(self) -> None:
        # Reentrant: the garbage collector may free an array while this thread holds the lock.
        self._lock = threading.RLock()
        self._used: dict[int, int] = {}
        self._free: dict[int, int] = {}
        self._limit: dict[int, int] = {}
        self._starts: list[int] = []
        self._lent: dict[int, weakref.ref[Memory]] = {}

    def lend(self, size: int) -> Memory:
        """Return memory of the current device.

        Raises
        ------
        OutOfMemoryError
            If the limit of the device would be passed.
        """
        index, rounded = current_device(), -(-size // UNIT) * UNIT
        for hook in _thread.hooks.values():
            hook.malloc_preprocess(device_id=index, size=size, mem_size=rounded)
        event = {"device_id": index, "size": size, "mem_size": rounded, "mem_ptr": 0, "pmem_id": 0}
        try:
            with self._lock:
                self._take(index, rounded)
            memory = Memory(self, allocated(size), index, rounded)
            event |= {"mem_ptr": memory.ptr, "pmem_id": id(memory)}
            counters.allocations += bool(size)
            if size:
                with self._lock:
                    bisect.insort(self._starts, memory.ptr)
                    self._lent[memory.ptr] = weakref.ref(memory)
        finally:
            for hook in _thread.hooks.values():
                hook.malloc_postprocess(**event)
        return memory

    def _take(self, index: int, size: int) -> None:
        used, free, limit = self._used.get(index, 0), self._free.get(index, 0), self._limit.get(index, 0)
        free -= min(free, size)
        if limit and used + size + free > limit:
            free = 0
            if used + size > limit:
                self._free[index] = 0
                raise OutOfMemoryError(size, used, limit)
        self._used[index], self._free[index] = used + size, free

    def release(self, memory: Memory, held: int) -> None:
        """Take memory back."""
        event = {"device_id": memory.device_id, "mem_size": held, "mem_ptr": memory.ptr, "pmem_id": id(memory)}
        for hook in _thread.hooks.values():
            hook.free_preprocess(**event)
        with self._lock:
            del self._lent[memory.ptr], self._starts[bisect.bisect_left(self._starts, memory.ptr)]
            self._used[memory.device_id] -= held
            self._free[memory.device_id] += held
        for hook in _thread.hooks.values():
            hook.free_postprocess(**event)

    def holding(self, pointer: int) -> Memory | None:
        """Return the memory that an address points into, of any device; None if there is none."""
        with self._lock:
            place = bisect.bisect_right(self._starts, pointer) - 1
            memory = self._lent[self._starts[place]]() if place >= 0 else None
        return memory if memory is not None and pointer < memory.ptr + memory.size else None

    def malloc(self, size: int) -> MemoryPointer:
        """Return the address of new memory."""
        return MemoryPointer(self.lend(size), 0)

    def used_bytes(self) -> int:
        """Bytes in use on the current device."""
        return self._used.get(current_device(), 0)

    def free_bytes(self) -> int:
        """Bytes kept for reuse on the current device."""
        return self._free.get(current_device(), 0)

    def total_bytes(self) -> int:
        """Bytes in use or kept on the current device."""
        return self.used_bytes() + self.free_bytes()

    def free_all_blocks(self, stream: Any = None) -> None:
        """Keep nothing for reuse on the current device."""
        with self._lock:
            self._free[current_device()] = 0

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Let the current device have no more than `size` bytes; 0 means no limit."""
        if size is None or fraction is not None:
            raise ValueError("the stand-in for CuPy takes a limit in bytes")
        self._limit[current_device()] = size

    def get_limit(self) -> int:
        """Limit of the current device, 0 if there is none."""
        return self._limit.get(current_device(), 0)


pool = MemoryPool()
