"""Matrix products of CUDA arrays in one function, by cuBLAS if possible: ``out = alpha * a @ b + beta * out``.

Each product of float16, bfloat16, float32 or float64 is one call of cublasGemmStridedBatchedEx. It sums half types in
float32 and rounds once, reads rows and columns where they are, transposed or a slice of something wider, and repeats
a broadcast matrix by a stride of 0. A stack times one matrix is a single product of taller matrices.

What the call cannot read are matrices of which neither rows nor columns lie densely, and stacks whose steps are not one
number, such as those of (batch, heads) in a tensor that was (batch, time, heads, size). Small products of these take
one launch of a kernel of our own, `lucid.cuda.launch.product`, and no copy.
For others the operands are copied first: one pass
over an operand costs less than a call for each of its parts. Stacks that are broadcast against each other in several
dimensions, (b, 1) with (1, h), have no single step even then; these take one call for each index but the longest.

cuBLAS gives the same bits each time as long as one stream multiplies at a time. Where several do, set
CUBLAS_WORKSPACE_CONFIG=:4096:8 before the first product.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np

from lucid.backends.cuda import matmul as settings
from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread
from lucid.base.functions import cupy_functions
from lucid.cuda.launch import product
from lucid.cuda.launch.elementwise import converted
from lucid.cuda.launch.layout import dense_strides, merged, strides_in
from lucid.cuda.launch.plans import empty, not_planned, note, planned, recordings
from lucid.errors import CaptureError, KernelError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.cuda.launch.plans import Slot

Array = Any

# cudaDataType, the compute type and the type of alpha and beta; the numbers are those of NVIDIA's headers.
COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_64F = 68, 77, 70
FORMS: dict[np.dtype[Any], tuple[int, int, type[np.floating[Any]]]] = {
    np.dtype(np.float16): (2, COMPUTE_32F, np.float32),
    np.dtype(ml_dtypes.bfloat16): (14, COMPUTE_32F, np.float32),
    np.dtype(np.float32): (0, COMPUTE_32F, np.float32),
    np.dtype(np.float64): (1, COMPUTE_64F, np.float64),
}
HALVES = {FORMS[dtype][0] for dtype in FORMS if dtype.itemsize == 2}
DEFAULT_ALGORITHM = -1
# A flag of the math mode: parts of a sum are added in the compute type, not in that of the output.
FULL_SUMS = 16
LARGEST = 2**31 - 1


class Factor(NamedTuple):
    """A number in host memory, with its address: NumPy takes a microsecond to return it."""

    number: np.ndarray[Any, Any]
    address: int


@planned
def matmul(a: Array, b: Array, out: Array = None, *, alpha: float = 1.0, beta: float = 0.0) -> Array:
    """Return ``alpha * a @ b + beta * out`` of CuPy arrays, by the rules of ``numpy.matmul``.

    Parameters
    ----------
    a, b : Array
        Of one dtype and on the current device, of one or more dimensions; leading dimensions broadcast.
    out : Array, optional
        What the product is written to, or added to: of its shape, C-contiguous, of its dtype or of float32, to which
        products of half types are not rounded. Without it a new array.
    alpha, beta : float
        The factors; with a `beta` of 0, `out` is not read.

    Returns
    -------
    Array
        `out`, or an array of the common dtype. Other dtypes than those of `FORMS` are multiplied by CuPy, without `out`
        and factors.

    Raises
    ------
    ShapeError
        If a matrix has more than 2^31 - 1 rows or columns, or a stack so many matrices: cuBLAS counts them in 32 bits.
    """
    if a.dtype not in FORMS or a.dtype != b.dtype:
        not_planned()
        return gpu.cupy().matmul(a, b)
    left = a if a.ndim > 1 else a[None]
    right = b if b.ndim > 1 else b[:, None]
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    if inner != right.shape[-2]:
        raise ValueError(f"inner sizes differ: shapes {a.shape} and {b.shape}")
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2]) if a.ndim > 2 or b.ndim > 2 else ()
    if out is None:
        shape = (*stack, *((rows,) if a.ndim > 1 else ()), *((columns,) if b.ndim > 1 else ()))
        out = empty(shape, a.dtype)
    if not out.size:
        return out
    if inner:
        loops = _loops(left, right, stack, rows * columns)
        dense = len(loops) == 1 and _lines(left) is not None and _lines(right) is not None
        if dense or not product.multiply(left, right, out, loops, alpha, beta):
            _multiply(_readable(left), _readable(right), out, stack, (rows, inner, columns), alpha, beta)
    else:
        not_planned()
        if beta:
            out *= beta
        else:
            out.fill(0)
    return out


@planned
def added_product(x: Array | None, a: Array, b: Array, *, alpha: float = 1.0, beta: float = 1.0) -> Array:
    """Return ``beta * x + alpha * a @ b`` with `x` broadcast to the product: one call, so each sum is rounded once.

    Parameters
    ----------
    x : Array or None
        Of the dtype of the product; not read if `beta` is 0. None stands for zeros.
    a, b : Array
        As for :func:`matmul`, of a dtype in `FORMS`.
    alpha, beta : float
        The factors.

    Returns
    -------
    Array
        Of the common dtype; NotImplemented for dtypes that are not in `FORMS`, or not the same.
    """
    if a.dtype not in FORMS or a.dtype != b.dtype or (x is not None and x.dtype != a.dtype):
        return NotImplemented
    if x is None or not beta:
        return matmul(a, b, alpha=alpha)
    out = empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:-1], b.shape[-1]), a.dtype)
    if converted(x, a.dtype, out) is NotImplemented:
        not_planned()
        out[...] = x
    return matmul(a, b, out, alpha=alpha, beta=beta)


def _readable(x: Array) -> Array:
    """Return `x`, or a copy of it if cuBLAS cannot read its matrices in place."""
    return gpu.cupy().ascontiguousarray(x) if _lines(x) is None else x


def _lines(x: Array) -> tuple[bool, int] | None:
    """Return whether columns, and not rows, lie densely, and the step from one to the next; None if neither does."""
    rows, columns = x.shape[-2:]
    down, along = x.strides[-2] // x.itemsize, x.strides[-1] // x.itemsize
    if (along == 1 or columns == 1) and (rows == 1 or columns <= down <= LARGEST):
        return False, columns if rows == 1 else down
    if (down == 1 or rows == 1) and (columns == 1 or rows <= along <= LARGEST):
        return True, rows if columns == 1 else along
    return None


def _multiply(
    a: Array, b: Array, out: Array, stack: tuple[int, ...], sizes: tuple[int, int, int], alpha: float, beta: float
) -> None:
    """Write the product of stacks of readable matrices."""
    rows, inner, columns = sizes
    loops = _loops(a, b, stack, rows * columns)
    if len(loops) > 1:
        a, b = gpu.cupy().ascontiguousarray(a), gpu.cupy().ascontiguousarray(b)
        loops = _loops(a, b, stack, rows * columns)
    # readable operands have lines, and copies have rows
    a_by_columns, a_line = _lines(a) or (False, inner)
    b_by_columns, b_line = _lines(b) or (False, columns)
    count, a_step, b_step, out_step = loops.pop(max(range(len(loops)), key=lambda k: loops[k][0]))
    if count > 1 and not b_step and not a_by_columns and out_step == rows * columns:
        if rows == 1 and inner <= a_step <= LARGEST:
            a_line = a_step
        if a_step == rows * a_line and rows * count <= LARGEST:
            rows, count = rows * count, 1
    if max(rows, inner, columns, count) > LARGEST:
        raise ShapeError(
            f"matmul: cuBLAS takes sides and stacks of at most {LARGEST:,}, got {count:,} products of matrices of "
            f"{rows:,} x {inner:,} and {inner:,} x {columns:,}; multiply parts of them"
        )
    number, compute, factor = FORMS[a.dtype]
    made = FORMS[out.dtype][0]
    if compute == COMPUTE_32F and settings.allow_tf32 and a.dtype == np.float32:
        compute = COMPUTE_32F_FAST_TF32
    alpha_at, beta_at = _factor(alpha, factor), _factor(beta, factor)
    a_at, b_at, out_at = a.data.ptr, b.data.ptr, out.data.ptr
    for indices in itertools.product(*[range(loop[0]) for loop in loops]):
        a_skip, b_skip, out_skip = (
            x.itemsize * sum(index * loop[k] for index, loop in zip(indices, loops, strict=True))
            for k, x in enumerate((a, b, out), 1)
        )
        # cuBLAS counts by columns: its matrices are the transposes of ours, and the product's is b.T @ a.T
        _call(
            b_at + b_skip, a_at + a_skip, out_at + out_skip, alpha_at, beta_at,
            (int(b_by_columns), int(a_by_columns), columns, rows, inner),
            (number, b_line, b_step), (number, a_line, a_step),
            (made, columns, out_step, count, compute, DEFAULT_ALGORITHM),
        )  # fmt: skip


def _call(
    b: int, a: int, out: int, alpha: Factor, beta: Factor, problem: tuple[int, ...], form_b: tuple[int, ...],
    form_a: tuple[int, ...], rest: tuple[int, ...],
) -> None:  # fmt: skip
    """Call cuBLAS on the current device and stream, with the addresses first."""
    if recordings:
        note((b, a, out, alpha, beta, problem, form_b, form_a, rest), (0, 1, 2), _bind)
    cublas = cublas_library()
    handle = gpu.cupy().cuda.device.get_cublas_handle()
    # of half types alone are parts of a sum added in their own precision, unless the mode says otherwise
    mode = cublas.getMathMode(handle) if rest[0] in HALVES else FULL_SUMS
    values = *problem, alpha.address, b, *form_b, a, *form_a, beta.address, out, *rest
    if mode & FULL_SUMS:
        _product(cublas, handle, values)
        return
    cublas.setMathMode(handle, mode | FULL_SUMS)
    try:
        _product(cublas, handle, values)
    finally:
        # the handle is CuPy's, too
        cublas.setMathMode(handle, mode)


def _product(cublas: Any, handle: int, values: tuple[int, ...]) -> None:
    try:
        cublas.gemmStridedBatchedEx(handle, *values)
    except NotImplementedError:
        # CuPy refuses it on a stream that captures
        captured_product(cublas.getMathMode(handle), values)


def _bind(values: tuple[Any, ...], slots: Sequence[Slot]) -> Callable[[Sequence[int]], None]:
    """Return the same call with other addresses."""
    (_, b, b_skip), (_, a, a_skip), (_, out, out_skip) = slots
    alpha, beta, problem, form_b, form_a, rest = values[3:]
    if rest[0] in HALVES:
        return lambda addresses: _call(
            addresses[b] + b_skip, addresses[a] + a_skip, addresses[out] + out_skip, *values[3:]
        )
    cublas, device_of = cublas_library(), gpu.cupy().cuda.runtime.getDevice

    def again(addresses: Sequence[int]) -> None:
        values = (
            *problem, alpha.address, addresses[b] + b_skip, *form_b, addresses[a] + a_skip, *form_a, beta.address,
            addresses[out] + out_skip, *rest,
        )  # fmt: skip
        device = device_of()
        handle = _handles.of_device.get(device)
        if handle is None:
            handle = _handles.of_device[device] = gpu.cupy().cuda.device.get_cublas_handle()
        _product(cublas, handle, values)

    return again


class _Handles(threading.local):
    """The handles that CuPy keeps for this thread, by device: to ask it takes as long as half of a product's launch."""

    def __init__(self) -> None:
        self.of_device: dict[int, int] = {}


_handles = _Handles()


@functools.cache
def cublas_library() -> Any:
    """Return CuPy's module of cuBLAS."""
    return gpu.part("cupy_backends.cuda.libs.cublas")


def _loops(a: Array, b: Array, stack: tuple[int, ...], size: int) -> list[product.Loop]:
    """Return the fewest nested loops over a stack, the innermost first."""
    steps = [strides_in(stack, (x.shape[:-2], x.strides[:-2], x.itemsize)) for x in (a, b)]
    return merged(zip(stack, *steps, dense_strides(stack, size), strict=True))[::-1] or [(1, 0, 0, 0)]


@functools.lru_cache
def _factor(value: float, form: type[np.floating[Any]]) -> Factor:
    """Return a factor in host memory, read by cuBLAS at the time of the call."""
    number = np.array(value, form)
    return Factor(number, number.ctypes.data)


# ---- in a capture, where CuPy refuses all of cuBLAS, so that it is called past CuPy ----

# What cuBLAS works in unless it is told otherwise, by the device's major version: other sizes may sum in another order.
_WORKSPACE_BYTES = {9: 32 << 20, 10: 32 << 20, 12: 12 << 20}
_OTHER_WORKSPACE_BYTES = 4 << 20

_POINTER, _INT, _STEP = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_MATRIX = [_POINTER, _INT, _INT, _STEP]
_TYPES = [_POINTER, *[_INT] * 5, _POINTER, *_MATRIX, *_MATRIX, _POINTER, *_MATRIX, *[_INT] * 3]

# A handle of our own for each device and thread: with a workspace it must not go on with CuPy's.
_capturing_handles: dict[tuple[int, int], ctypes.c_void_p] = {}


@functools.cache
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


def prepare_capture() -> None:
    """Create this thread's handle of cuBLAS for the current device, as a capture cannot."""
    key = gpu.current_device(), threading.get_ident()
    if key not in _capturing_handles:
        gpu.cupy().cuda.device.get_cublas_handle()
        made = ctypes.c_void_p()
        _check(_library().cublasCreate_v2(ctypes.byref(made)), "cublasCreate")
        _capturing_handles[key] = made


def captured_product(mode: int, values: tuple[int, ...]) -> None:
    """Let the current stream record a product, given as ``cublasGemmStridedBatchedEx`` takes it, in a math mode."""
    capture = capture_of_this_thread()
    if capture is None:
        raise CaptureError(
            "matrix products can be captured only by lucid.cuda.graph() or graphed_step(), which give cuBLAS memory to "
            "work in; this stream captures for somebody else"
        )
    handle, library = _capturing_handles[capture.device, threading.get_ident()], _library()
    stream = gpu.current_stream().ptr
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
