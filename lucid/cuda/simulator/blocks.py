"""Tells the simulated device which parts of its allocations CuPy's pool has handed out."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Blocks"]


class Blocks:
    """Memory hook of CuPy's, which it keeps by thread: `watch` is for each thread, before it allocates.

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

    def watch(self, hooks: ModuleType) -> None:
        """Be told of the calling thread's allocations; `hooks` is ``cupy.cuda.memory_hook``."""
        hook = hooks.MemoryHook()
        hook.name = "lucid simulator"
        hook.alloc_postprocess = self._allocated
        hook.malloc_postprocess = self._handed_out
        hook.free_preprocess = self._taken_back
        hook.__enter__()

    def _allocated(self, **event: int) -> None:
        if event["mem_ptr"]:
            self._divide(event["mem_ptr"])

    def _handed_out(self, **event: int) -> None:
        if event["mem_ptr"]:
            self._hand_out(event["mem_ptr"], event["size"])

    def _taken_back(self, **event: int) -> None:
        self._take_back(event["mem_ptr"])
