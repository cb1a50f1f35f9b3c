"""The report of the blocks of CuPy's memory pool to the simulated device, with gaps between them."""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


# What CuPy's pools round sizes up to.
_UNIT = 512


class Blocks:
    """A memory hook of CuPy's, registered by thread: call `watch` in each thread before it allocates.

    Parameters
    ----------
    library : ctypes.CDLL
        The simulated driver.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._divide = library.lucid_divide
        self._hand_out = library.lucid_hand_out
        self._take_back = library.lucid_take_back
        for function in (self._divide, self._take_back):
            function.restype, function.argtypes = None, [ctypes.c_size_t]
        self._hand_out.restype, self._hand_out.argtypes = None, [ctypes.c_size_t, ctypes.c_size_t]
        # by how much what the calling thread asks a pool for is larger than what it wants
        self._added = threading.local()

    def watch(self, hooks: ModuleType) -> None:
        """Be told of the calling thread's allocations; `hooks` is ``cupy.cuda.memory_hook``."""
        hook = hooks.MemoryHook()
        hook.name = "lucid simulator"
        hook.alloc_postprocess = self._allocated
        hook.malloc_postprocess = self._handed_out
        hook.free_preprocess = self._taken_back
        hook.__enter__()

    def keep_apart(self, cupy: ModuleType) -> None:
        """Leave something behind each array that CuPy's default pool gives, unless somebody has chosen an allocator.

        The pool puts another array directly behind one whose size is a multiple of 512: one byte more is asked for.
        """
        take = cupy.get_default_memory_pool().malloc

        def apart(size: int) -> Any:
            more = int(size > 0 and size % _UNIT == 0)
            # a collection of garbage inside of the pool may run code that allocates
            before, self._added.bytes = getattr(self._added, "bytes", 0), more
            try:
                return take(size + more)
            finally:
                self._added.bytes = before

        # inside of CuPy's `using_allocator` nothing can be chosen for all threads
        with suppress(ValueError):
            if cupy.cuda.get_allocator() == take:
                cupy.cuda.set_allocator(apart)

    def _allocated(self, **event: int) -> None:
        if event["mem_ptr"]:
            self._divide(event["mem_ptr"])

    def _handed_out(self, **event: int) -> None:
        if event["mem_ptr"]:
            self._hand_out(event["mem_ptr"], event["size"] - getattr(self._added, "bytes", 0))

    def _taken_back(self, **event: int) -> None:
        self._take_back(event["mem_ptr"])
