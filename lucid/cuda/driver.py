"""Kernels on a real device: compiled by NVRTC through CuPy, launched by the driver's own entry point."""

from __future__ import annotations

import ctypes
import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lucid.backend import gpu
from lucid.errors import KernelError

if TYPE_CHECKING:
    from lucid.cuda.kernels import Unit

__all__ = ["CudaDriver"]

_log = logging.getLogger("lucid.cuda")

_OPTIONS = ("--std=c++17",)
_INVALID_CONTEXT = 201
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
# The driver keeps the module of a kernel loaded for as long as CuPy's object of it lives.
_modules: list[Any] = []


class CudaDriver:
    """Launches through ``libcuda``."""

    @cached_property
    def _library(self) -> ctypes.CDLL:
        try:
            return ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise KernelError(f"no CUDA driver: {error}") from error

    @cached_property
    def launch(self) -> Any:
        """``cuLaunchKernel``."""
        function = self._library.cuLaunchKernel
        function.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
        return function

    @cached_property
    def device(self) -> Any:
        """CuPy's function that gives the index of the current device."""
        return gpu.cupy().cuda.runtime.getDevice

    @cached_property
    def _current_stream(self) -> Any:
        return gpu.cupy().cuda.get_current_stream

    def stream(self) -> int:
        """Handle of CuPy's current stream."""
        return self._current_stream().ptr

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
        _modules.append((module, functions))
        arch = cupy.cuda.Device().compute_capability
        _log.info("compiled %s, sm_%s, in %.1f s", unit.name, arch, time.perf_counter() - started)
        return {name: function.ptr for name, function in functions.items()}

    def allow_shared(self, handle: int, nbytes: int) -> None:
        """Raise the kernel's limit of dynamic shared memory."""
        code = self._library.cuFuncSetAttribute(ctypes.c_void_p(handle), _MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes)
        if code:
            raise KernelError(f"{nbytes:,} bytes of shared memory are refused: {self.failure(code)[0]}")

    def failure(self, code: int) -> tuple[str, bool]:
        """The driver's words for an error code."""
        if code == _INVALID_CONTEXT:
            # This thread has not used the device yet; any call of the runtime makes its context current.
            gpu.cupy().cuda.runtime.free(0)
        name, words = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(name))
        self._library.cuGetErrorString(code, ctypes.byref(words))
        told = f"{(name.value or b'?').decode()} ({(words.value or b'?').decode()})"
        return told, code == _INVALID_CONTEXT
