"""The stand-in's cuBLAS: NumPy's products, behind the checks that keep a wrong call from reading foreign memory."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from lucid.cuda.simulator.counting import counters
from lucid.cuda.simulator.places import current_device
from lucid.cuda.simulator.pool import pool

__all__ = ["CUBLASError", "gemmStridedBatchedEx", "get_cublas_handle"]

DTYPES: dict[int, Any] = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}
COMPUTE_32F, COMPUTE_64F, COMPUTE_32F_FAST_TF32 = 68, 70, 77


class CUBLASError(RuntimeError):
    """What CuPy raises where cuBLAS refuses."""


class Stack(NamedTuple):
    """One stack of column-major matrices, as a call describes it."""

    name: str
    pointer: int
    kind: int
    rows: int
    columns: int
    leading: int
    step: int
    batch: int

    def values(self) -> np.ndarray[Any, Any]:
        """Return the host's view of it.

        Raises
        ------
        CUBLASError
            If it does not lie in memory of the current device.
        """
        dtype = np.dtype(DTYPES[self.kind])
        if self.leading < max(1, self.rows):
            raise CUBLASError(
                f"CUBLAS_STATUS_INVALID_VALUE: ld{self.name} is {self.leading}, the matrix has {self.rows} rows"
            )
        memory = pool.holding(self.pointer)
        if memory is None or memory.device_id != current_device():
            raise CUBLASError(f"{self.name} points at no memory of device {current_device()}")
        offset = self.pointer - memory.ptr
        last = (self.batch - 1) * self.step + (self.columns - 1) * self.leading + self.rows
        if self.step < 0 or offset + last * dtype.itemsize > memory.size:
            raise CUBLASError(
                f"{self.name} reaches element {last} after its pointer, which is {offset} bytes into memory of "
                f"{memory.size} bytes: {self}"
            )
        size = dtype.itemsize
        return np.ndarray(
            (self.batch, self.rows, self.columns), dtype, memory.bytes, offset,
            (self.step * size, size, self.leading * size),
        )  # fmt: skip


def gemmStridedBatchedEx(
    handle: int, transa: int, transb: int, m: int, n: int, k: int,
    alpha: int, A: int, Atype: int, lda: int, strideA: int, B: int, Btype: int, ldb: int, strideB: int,
    beta: int, C: int, Ctype: int, ldc: int, strideC: int, batchCount: int, computeType: int, algo: int,
) -> None:  # fmt: skip
    """``C = alpha * op(A) @ op(B) + beta * C`` for each matrix of a stack, in column-major order."""
    if handle != get_cublas_handle():
        raise CUBLASError("CUBLAS_STATUS_NOT_INITIALIZED: the handle is of another device")
    wide = Ctype == 1
    if (
        Atype != Btype
        or Ctype not in {Atype, 1 if wide else 0}
        or computeType not in ({COMPUTE_64F} if wide else {COMPUTE_32F, COMPUTE_32F_FAST_TF32})
    ):
        raise CUBLASError(f"CUBLAS_STATUS_NOT_SUPPORTED: types {Atype}, {Btype}, {Ctype}, computed in {computeType}")
    a = Stack("A", A, Atype, k if transa else m, m if transa else k, lda, strideA, batchCount).values()
    b = Stack("B", B, Btype, n if transb else k, k if transb else n, ldb, strideB, batchCount).values()
    c = Stack("C", C, Ctype, m, n, ldc, strideC, batchCount).values()
    if batchCount > 1 and strideC < (n - 1) * ldc + m:
        raise CUBLASError(f"the matrices of C overlap: strideC is {strideC}, for {m} x {n} matrices with ldc {ldc}")
    number, form = (ctypes.c_double, np.float64) if wide else (ctypes.c_float, np.float32)
    factor, share = form(number.from_address(alpha).value), form(number.from_address(beta).value)
    read = [x if x.strides[0] else x[:1] for x in (a, b, *[c] * bool(share))]
    counters.library_call(sum(x.nbytes for x in read), c.nbytes)
    with np.errstate(all="ignore"):
        left = np.ascontiguousarray((a.swapaxes(1, 2) if transa else a).astype(form, copy=False))
        right = np.ascontiguousarray((b.swapaxes(1, 2) if transb else b).astype(form, copy=False))
        product = factor * np.matmul(left, right)
        c[...] = product + share * c.astype(form) if share else product


def get_cublas_handle() -> int:
    """Return the handle of the current device."""
    return 1 + current_device()
