"""Matrix products on a stream that captures: CuPy refuses all of cuBLAS there, so that it is called past CuPy."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from threading import get_ident
from typing import Any

from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread
from lucid.base.functions import cupy_functions
from lucid.errors import CaptureError, KernelError

# What cuBLAS works in unless it is told otherwise, by the device's major version: other sizes may sum in another order.
_WORKSPACE_BYTES = {9: 32 << 20, 10: 32 << 20, 12: 12 << 20}
_OTHER_WORKSPACE_BYTES = 4 << 20

_POINTER, _INT, _STEP = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_MATRIX = [_POINTER, _INT, _INT, _STEP]
_TYPES = [_POINTER, *[_INT] * 5, _POINTER, *_MATRIX, *_MATRIX, _POINTER, *_MATRIX, *[_INT] * 3]

# A handle of our own for each device and thread: with a workspace it must not go on with CuPy's.
_handles: dict[tuple[int, int], ctypes.c_void_p] = {}


@cache
def _library() -> ctypes.CDLL:
    """Return the library that CuPy has loaded."""
    major = gpu.cupy().cuda.runtime.runtimeGetVersion() // 1000
    library = ctypes.CDLL(f"libcublas.so.{major}", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    library.cublasGemmStridedBatchedEx.argtypes = _TYPES
    library.cublasSetWorkspace_v2.argtypes = [_POINTER, _POINTER, ctypes.c_size_t]
    return library


def _check(status: int, what: str) -> None:
    if status:
        raise KernelError(f"{what} in a capture: cuBLAS returned status {status}")


def prepare() -> None:
    """Create this thread's handle for the current device, as a capture cannot."""
    key = gpu.current_device(), get_ident()
    if key not in _handles:
        gpu.cupy().cuda.device.get_cublas_handle()
        made = ctypes.c_void_p()
        _check(_library().cublasCreate_v2(ctypes.byref(made)), "cublasCreate")
        _handles[key] = made


def captured_product(mode: int, values: tuple[int, ...]) -> None:
    """Let the current stream record a product, given as ``cublasGemmStridedBatchedEx`` takes it, in a math mode."""
    capture = capture_of_this_thread()
    if capture is None:
        raise CaptureError(
            "matrix products can be captured only by lucid.cuda.graph() or graphed_step(), which give cuBLAS memory to "
            "work in; this stream captures for somebody else"
        )
    stream, handle, library = gpu.current_stream().ptr, _handles[capture.device, get_ident()], _library()
    workspace: Any = capture.pool.workspaces.get(stream)
    if workspace is None:
        major = int(gpu.cupy().cuda.Device().compute_capability[:-1])
        workspace = cupy_functions().empty(_WORKSPACE_BYTES.get(major, _OTHER_WORKSPACE_BYTES), "u1")
        capture.pool.workspaces[stream] = workspace
    if not any(each is workspace for each in capture.kept):
        capture.kept.append(workspace)
    _check(library.cublasSetMathMode(handle, mode), "cublasSetMathMode")
    _check(library.cublasSetStream_v2(handle, _POINTER(stream)), "cublasSetStream")
    _check(library.cublasSetWorkspace_v2(handle, workspace.data.ptr, workspace.nbytes), "cublasSetWorkspace")
    _check(library.cublasGemmStridedBatchedEx(handle, *values), "cublasGemmStridedBatchedEx")
    capture.addresses.update((values[6], values[10], values[15]))
