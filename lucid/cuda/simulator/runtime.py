"""The library that runs CUDA threads on the host, built on first use."""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.cuda.simulator.builder import build

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["in_part", "only_blocks", "runtime", "seed", "set_seed"]

FOLDER = Path(__file__).parent
SOURCES = ("runtime.cpp", "memory.cpp", "races.cpp", "undefined.cpp")
HEADERS = ("runtime.h", "memory.h", "races.h", "fiber.h")

_lock = threading.Lock()
_part = False


def runtime() -> ctypes.CDLL:
    """Return the library; its functions have their types set."""
    with _lock:
        return _loaded()


@cache
def _loaded() -> ctypes.CDLL:
    text = "".join((FOLDER / name).read_text() for name in (*HEADERS, *SOURCES))
    options = ["-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden"]
    path = build("runtime", text, [*options, *SOURCES], folder=FOLDER, what="the runtime of the simulated device")
    # Global, because the libraries of kernels find in it what the sanitizers call.
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    address, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, *parameters in (
        ("lucid_allocate", ctypes.c_size_t, size, ctypes.c_int),
        ("lucid_free", ctypes.c_int, address),
        ("lucid_lend", None, address, size),
        ("lucid_forget", ctypes.c_int, address),
        ("lucid_load", None, address, ctypes.c_uint, address, address),
        ("lucid_bytes", ctypes.c_uint64, ctypes.c_int),
        ("lucid_report", ctypes.c_char_p),
        ("lucid_fault_library", ctypes.c_char_p),
        ("lucid_set_seed", None, ctypes.c_uint64),
        ("lucid_seed", ctypes.c_uint64),
        ("lucid_set_blocks", None, ctypes.c_uint64, ctypes.c_uint64),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    library.lucid_set_seed(int(os.environ.get("LUCID_SIMULATOR_SEED", "0")))
    return library


def set_seed(value: int) -> None:
    """Choose the order in which threads run: 0 for theirs, any other for a permutation of it.

    The environment variable LUCID_SIMULATOR_SEED says it at the start of the process. A kernel whose results depend on
    it lacks a barrier, or adds floating-point numbers atomically.
    """
    runtime().lucid_set_seed(value)


def seed() -> int:
    """Return the seed in force."""
    return int(runtime().lucid_seed())


@contextmanager
def only_blocks(first: int, last: int) -> Generator[None]:
    """Run only the first and last blocks along each dimension of every launch inside: for tests of huge grids."""
    global _part
    library = runtime()
    library.lucid_set_blocks(first, last)
    _part = True
    try:
        yield
    finally:
        _part = False
        library.lucid_set_blocks(2**64 - 1, 0)


def in_part() -> bool:
    """Whether `only_blocks` is in force."""
    return _part
