"""The driver: kernels compiled by NVRTC and launched through CuPy, and the parameters of a launch as it reads them."""

from __future__ import annotations

import ctypes
import re
import struct
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from lucid.backend import gpu
from lucid.backend.locks import new_lock
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


class Parameters:
    """The parameters of a launch as they lie in memory, in one buffer that the driver reads before a launch returns.

    Attributes
    ----------
    pack_into : callable
        ``pack_into(buffer, 0, *values)``.
    buffer : ctypes array
        The memory, of whole words.
    words : memoryview
        The same as integers of eight bytes.
    extra : int
        The address of what tells the driver of it.
    pointers : dict of int to int
        Where in the memory those of the values lie that are pointers, by their position.
    lock : lock
        To be held from packing to the end of the launch.
    """

    __slots__ = ("_held", "buffer", "extra", "lock", "pack_into", "pointers", "words")

    def __init__(self, codes: str) -> None:
        packer = struct.Struct(f"@{codes}")
        self.pack_into = packer.pack_into
        self.buffer = ctypes.create_string_buffer(max(-(-packer.size // 8) * 8, 8))
        self.words = memoryview(self.buffer).cast("B").cast("Q")
        size = ctypes.c_size_t(packer.size)
        told = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(self.buffer), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        self.extra = ctypes.addressof(told)
        # read by the driver at every launch
        self._held = size, told
        self.pointers = pointers_in(codes)
        self.lock = new_lock()


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
def pointers_in(codes: str) -> dict[int, int]:
    """Return where pointers lie among the parameters of a signature, by their position among the values."""
    return {position: place for position, (code, place) in enumerate(places_in(codes)) if code == "P"}


@cache
def last_packer(codes: str, count: int) -> Callable[..., None]:
    """Return what packs the last so many values of a signature where they lie: ``pack(buffer, *values)``."""
    places = places_in(codes)[len(places_in(codes)) - count :]
    start = end = places[0][1] if places else 0
    form = "="
    for code, place in places:
        form += f"{place - end}x{code}"
        end = place + struct.calcsize(f"={code}")
    packer = struct.Struct(form)

    def pack(buffer: ctypes.Array[ctypes.c_char], *values: float) -> None:
        packer.pack_into(buffer, start, *values)

    return pack
