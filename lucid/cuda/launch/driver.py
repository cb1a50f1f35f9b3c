"""Kernels on a real device: compiled by NVRTC and launched through CuPy."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, Any

from lucid.backend import gpu
from lucid.backend.log import logger
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.cuda.launch.kernels import Unit

__all__ = ["CudaDriver"]


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
