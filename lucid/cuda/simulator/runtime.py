"""The libraries of the simulated CUDA, built on first use and loaded under CUDA's names."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.base.locks import new_lock
from lucid.cuda.simulator.builder import build
from lucid.cuda.simulator.settings import whole_number
from lucid.cuda.simulator.wheels import installed
from lucid.errors import CudaUnavailableError

if TYPE_CHECKING:
    from collections.abc import Generator


FOLDER = Path(__file__).parent
# The driver holds the CUDA runtime, NVRTC, and what runs kernels.
DRIVER = "libcuda.so.1"
SOURCES = tuple(
    sorted(
        path.relative_to(FOLDER).as_posix() for part in ("execution", "host") for path in (FOLDER / part).rglob("*.cpp")
    )
)
_OPTIONS = ("-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-fvisibility=hidden", "-I.")

_lock = new_lock()


def runtime() -> ctypes.CDLL:
    """Return the simulated driver; its functions have their types set."""
    with _lock:
        return _driver()


@cache
def library(soname: str, *sources: str, options: tuple[str, ...] = ()) -> ctypes.CDLL:
    """Return a library that is found by its name from now on, by whoever loads it.

    Parameters
    ----------
    soname : str
        Its name.
    *sources : str
        Files of C++, relative to this folder.
    options : tuple of str
        For g++, beside the usual ones.

    Raises
    ------
    CudaUnavailableError
        If the process has loaded NVIDIA's library of that name: whoever asks for it would get that one.
    """
    with suppress(OSError):
        ctypes.CDLL(soname, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        raise CudaUnavailableError(
            f"this process uses a real CUDA: it has loaded {soname}, which CuPy would go on using; import lucid before "
            "anything that uses the GPU, or unset LUCID_CUDA_SIMULATOR"
        )
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("**/*")) if path.suffix == ".h")
    text += "".join((FOLDER / source).read_text(encoding="utf-8") for source in sources)
    arguments = [*_OPTIONS, f"-Wl,-soname,{soname}", *options, *sources]
    path = build(soname.split(".", maxsplit=1)[0], text, arguments, folder=FOLDER, what=soname)
    # Global, because the libraries of kernels find in the driver what the sanitizers call.
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


@cache
def _driver() -> ctypes.CDLL:
    seed = whole_number("LUCID_SIMULATOR_SEED", 0, 2**64 - 1)
    executing = whole_number("LUCID_SIMULATOR_EXECUTE", 1, 1)
    _, cuda = installed()
    made = library(DRIVER, *SOURCES, options=(f"-DLUCID_VERSION={cuda.version}",))
    address, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, *parameters in (
        ("lucid_load", None, address, ctypes.c_char_p, ctypes.c_uint, address, address),
        ("lucid_declare", None, address, ctypes.c_uint, address, address, address),
        ("lucid_set_seed", None, ctypes.c_uint64),
        ("lucid_seed", ctypes.c_uint64),
        ("lucid_set_executes", None, ctypes.c_int),
        ("lucid_executes", ctypes.c_int),
        ("lucid_set_blocks", None, ctypes.c_uint64, ctypes.c_uint64),
        ("lucid_answer", None, ctypes.c_int, ctypes.c_char_p),
        ("lucid_set_python", None, address),
        ("lucid_counts", address),
        ("lucid_each_kernel", None, address, ctypes.c_int),
        ("lucid_parameters", ctypes.c_char_p, address, address),
        ("lucid_path", ctypes.c_char_p, address),
        ("lucid_name", ctypes.c_char_p, address),
        ("lucid_hand_out", None, size, size),
        ("lucid_set_capacity", size, size),
    ):
        function = getattr(made, name)
        function.restype, function.argtypes = result, parameters
    made.lucid_set_seed(seed)
    made.lucid_set_executes(executing)
    if memory := whole_number("LUCID_SIMULATOR_MEMORY", 0, 2**63):
        made.lucid_set_capacity(memory)
    return made


def set_seed(value: int) -> None:
    """Choose the order of execution of threads: 0 for their own, any other for a permutation of it.

    The environment variable LUCID_SIMULATOR_SEED says it at the start of the process. A kernel whose results depend on
    it lacks a barrier, or adds floating-point numbers atomically.
    """
    runtime().lucid_set_seed(value)


@contextmanager
def capacity(nbytes: int) -> Generator[None]:
    """Let each device have so many bytes inside; memory that is not written to takes none of the host's.

    The environment variable LUCID_SIMULATOR_MEMORY says it at the start of the process.
    """
    driver = runtime()
    before = driver.lucid_set_capacity(nbytes)
    try:
        yield
    finally:
        driver.lucid_set_capacity(before)


def executes() -> bool:
    """Whether the devices execute their work; under LUCID_SIMULATOR_EXECUTE=0 it is only counted."""
    return bool(runtime().lucid_executes())


def seed() -> int:
    """Return the seed in force."""
    return int(runtime().lucid_seed())


@contextmanager
def only_blocks(first: int, last: int) -> Generator[None]:
    """Run only the first and last blocks along each dimension of every launch inside: for tests of huge grids.

    Memory that is handed out meanwhile begins as zeros: what the other blocks would write stays as it is.
    """
    driver = runtime()
    driver.lucid_set_blocks(first, last)
    try:
        yield
    finally:
        driver.lucid_set_blocks(2**64 - 1, 0)
