"""The driver: kernels compiled by NVRTC and launched through CuPy, and the parameters of a launch as it reads them."""

from __future__ import annotations

import ctypes
import re
import struct
import time
from array import array
from functools import cache
from typing import TYPE_CHECKING, Any

from lucid.backend import gpu
from lucid.backend.log import logger
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.cuda.launch.kernels import Unit

__all__ = ["CudaDriver", "Parameters", "last_packer"]


_OPTIONS = ("--std=c++17",)
_INVALID_CONTEXT = 201
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class CudaDriver:
    """Launches through ``libcuda``, on CuPy's current device and stream.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """

    def __init__(self) -> None:
        cuda = gpu.cupy().cuda
        self._library = ctypes.CDLL("libcuda.so.1")
        # a third of the time of the same call by ctypes
        self.launch: Callable[..., None] = gpu.part("cupy_backends.cuda.api.driver").launchKernel
        self.device: Callable[[], int] = cuda.runtime.getDevice
        self.stream: Callable[[], Any] = cuda.get_current_stream
        # Bytes of dynamic shared memory that a kernel has been allowed, by its handle.
        self._allowed: dict[int, int] = {}
        # A kernel stays loaded for as long as CuPy's object of it lives.
        self._loaded: list[dict[str, Any]] = []

    def load(self, unit: Unit) -> dict[str, int]:
        """Compile, or take from CuPy's disk cache, and load on the current device."""
        cupy = gpu.cupy()
        started = time.perf_counter()
        module = cupy.RawModule(code=unit.source, options=_OPTIONS, name_expressions=tuple(unit.signatures))
        try:
            module.compile()
            functions = {name: module.get_function(name).kernel for name in unit.signatures}
        except cupy.cuda.compiler.CompileException as error:
            raise KernelError(f"NVRTC cannot compile {unit.name}:\n{error}") from error
        self._loaded.append(functions)
        arch = cupy.cuda.Device().compute_capability
        logger().info(
            "compiled %s, sm_%s, or found in CuPy's cache, in %.1f s", unit.name, arch, time.perf_counter() - started
        )
        return {name: int(function.ptr) for name, function in functions.items()}

    def allow_shared(self, handle: int, nbytes: int) -> None:
        """Raise the kernel's limit of dynamic shared memory, unless it is high enough."""
        if self._allowed.get(handle, 0) >= nbytes:
            return
        request = ctypes.c_void_p(handle), _MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes
        code = self._library.cuFuncSetAttribute(*request)
        if code and self.recovers(code):
            code = self._library.cuFuncSetAttribute(*request)
        if code:
            raise KernelError(f"{nbytes:,} bytes of shared memory are refused: {self.failure(code)}")
        self._allowed[handle] = nbytes

    def recovers(self, code: int) -> bool:
        """Make the device's context current in a thread that has not used the device yet."""
        if code != _INVALID_CONTEXT:
            return False
        gpu.cupy().cuda.runtime.free(0)
        return True

    def failure(self, code: int) -> str:
        """Return the driver's words for an error code."""
        name, words = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(name))
        self._library.cuGetErrorString(code, ctypes.byref(words))
        return f"{(name.value or b'?').decode()} ({(words.value or b'?').decode()})"


# Of cuLaunchKernel: the parameters lie in one buffer.
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0
# Words in front of the parameters: what tells the driver of them, and their size, to which one of these points.
_HEAD = 6


class Parameters:
    """The parameters of a launch as they lie in memory, which the driver reads before a launch returns.

    Attributes
    ----------
    words : array of unsigned integers of eight bytes
        The memory, never resized: what tells the driver of the parameters, and these from `start` on, in bytes.
    extra : int
        The address of what tells the driver of it.
    places : dict of int to int
        Which words the pointers are, by their position among the values.
    """

    __slots__ = ("extra", "pack", "places", "words")

    start = 8 * _HEAD

    def __init__(self, codes: str) -> None:
        packer = packer_of(codes)
        self.words = words = array("Q", bytes(self.start + max(-(-packer.size // 8) * 8, 8)))
        self.extra, _ = words.buffer_info()
        words[:_HEAD] = array(
            "Q",
            [_BUFFER_POINTER, self.extra + self.start, _BUFFER_SIZE, self.extra + 8 * (_HEAD - 1), _END, packer.size],
        )
        self.pack = packer.pack_into
        self.places = places_of_pointers(codes)


@cache
def packer_of(codes: str) -> struct.Struct:
    """Return what packs values as the C ABI places them."""
    return struct.Struct(f"@{codes}")


@cache
def places_in(codes: str) -> list[tuple[str, int]]:
    """Return the code and the place in memory of each of the values of a signature."""
    found: list[tuple[str, int]] = []
    before = "@"
    for count, kind in re.findall(r"(\d*)([A-Za-z?])", codes):
        for code in [f"{count}{kind}"] if kind in "sx" else [kind] * int(count or 1):
            before += code
            if kind != "x":
                found.append((code, struct.calcsize(before) - struct.calcsize(f"@{code}")))
    return found


@cache
def places_of_pointers(codes: str) -> dict[int, int]:
    """Return which words of `Parameters` are pointers, by their position among the values."""
    return {position: _HEAD + place // 8 for position, (code, place) in enumerate(places_in(codes)) if code == "P"}


@cache
def last_packer(codes: str, count: int) -> Callable[..., None]:
    """Return what packs the last so many values of a signature where they lie: ``pack(words, *values)``."""
    places = places_in(codes)[len(places_in(codes)) - count :]
    start = end = places[0][1] if places else 0
    form = "="
    for code, place in places:
        form += f"{place - end}x{code}"
        end = place + struct.calcsize(f"={code}")
    packer = struct.Struct(form)

    def pack(words: array[int], *values: float) -> None:
        packer.pack_into(words, Parameters.start + start, *values)

    return pack
