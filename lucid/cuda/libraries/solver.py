"""Factors of CuPy arrays of matrices, in the last two dimensions; `lucid.ops.decomposition.host` has NumPy's.

- Elimination of a stack of square matrices is one call of cuBLAS (getrfBatched), of large ones, and of those that are
  not square, a loop over cuSOLVER's getrf; then a stack of systems is getrsBatched, and a single one getrs.
- Triangular systems are one call of cuBLAS (trsmBatched), of a single one trsm.
- Cholesky's factors are one call of cuSOLVER (potrfBatched), of a single matrix potrf.
- QR is a loop in C over cuSOLVER's geqrf and orgqr; singular values of a stack up to 32 by 32 are one gesvdjBatched, of
  larger ones a loop over gesvd; eigenvalues of a stack are one syevjBatched, of a single matrix syevd. These are CuPy's
  own functions, which here raise where an iteration does not converge.

cuBLAS and cuSOLVER read columns, so that a matrix is handed to them transposed. On a stream that captures CuPy refuses
all of it.
"""

from __future__ import annotations

import contextlib
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.libraries.blas import cublas_library
from lucid.errors import LinAlgError

if TYPE_CHECKING:
    from collections.abc import Generator

    from lucid.base.arrays import Array

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# Enumerations of cublas_api.h.
LOWER, UPPER = 0, 1
PLAIN = 0
RIGHT = 1


@functools.cache
def _cusolver() -> Any:
    return gpu.part("cupy_backends.cuda.libs.cusolver")


def _call(library: Any, x: Array, name: str, *arguments: int) -> Any:
    """Return the result of a function of cuBLAS or cuSOLVER, that for the dtype of `x`, on the current device."""
    device = gpu.cupy().cuda.device
    handle = device.get_cublas_handle() if library is cublas_library() else device.get_cusolver_handle()
    return getattr(library, LETTERS[x.dtype.name] + name)(handle, *arguments)


def _columns(x: Array) -> Array:
    """Return matrices as a new array that lies column by column, transposed: a stack of one dimension."""
    rows, columns = x.shape[-2:]
    turned = x.swapaxes(-1, -2).astype(x.dtype, order="C", copy=True)
    return turned.reshape(math.prod(x.shape[:-2]), columns, rows)


def _rows(turned: Array, shape: tuple[int, ...]) -> Array:
    """Return the result of `_columns` as matrices in `shape`."""
    return gpu.cupy().ascontiguousarray(turned.swapaxes(-1, -2)).reshape(shape)


def _addresses(stack: Array) -> Array:
    """Return the addresses of the matrices of a stack, in device memory."""
    first, step = stack.data.ptr, stack.nbytes // len(stack)
    return gpu.cupy().arange(first, first + stack.nbytes, step, dtype=np.uintp)


def lu(a: Array) -> tuple[Array, Array, Array]:
    """Return L without its diagonal and U in one matrix, the row that each was exchanged with, and the first zero in U.

    Rows and zeros are counted from 1; 0 stands for no zero.
    """
    stack, (rows, columns) = a.shape[:-2], a.shape[-2:]
    k = min(rows, columns)
    cp = cupy_functions()
    if not a.size:
        return a.copy(), cp.empty((*stack, k), np.int32), cp.zeros(stack, np.int32)
    turned = _columns(a)
    pivots, info = cp.empty((len(turned), k), np.int32), cp.empty(len(turned), np.int32)
    # where CuPy stops to take the call for stacks
    if rows == columns and len(turned) << 16 >= rows * rows:
        matrices = _addresses(turned)
        places = matrices.data.ptr, rows, pivots.data.ptr, info.data.ptr
        _call(cublas_library(), a, "getrfBatched", rows, *places, len(turned))
    else:
        solver = _cusolver()
        work = cp.empty(_call(solver, a, "getrf_bufferSize", rows, columns, turned.data.ptr, rows), a.dtype)
        for matrix, *outs in zip(turned, pivots, info, strict=True):
            places = [out.data.ptr for out in (work, *outs)]
            _call(solver, a, "getrf", rows, columns, matrix.data.ptr, rows, *places)
    return _rows(turned, a.shape), pivots.reshape(*stack, k), info.reshape(stack)


def solve(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the solution of ``a @ x = b`` and the first zero in U of each matrix."""
    cp = cupy_functions()
    packed, pivots, info = lu(a)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    wide = cp.broadcast_to(b, (*stack, *b.shape[-2:]))
    if not wide.size:
        return cp.array(wide), info
    n = a.shape[-1]
    factors = _columns(cp.broadcast_to(packed, (*stack, n, n)))
    pivots = cp.ascontiguousarray(cp.broadcast_to(pivots, (*stack, n)))
    x = _columns(wide)
    if len(x) == 1:
        code = cp.empty(1, np.int32)
        places = factors.data.ptr, n, pivots.data.ptr, x.data.ptr, n, code.data.ptr
        _call(_cusolver(), a, "getrs", PLAIN, n, b.shape[-1], *places)
    else:
        answer, matrices, sides = np.zeros(1, np.int32), _addresses(factors), _addresses(x)
        places = matrices.data.ptr, n, pivots.data.ptr, sides.data.ptr, n, answer.ctypes.data
        _call(cublas_library(), a, "getrsBatched", PLAIN, n, b.shape[-1], *places, len(x))
    return _rows(x, wide.shape), info


def inverse(a: Array) -> tuple[Array, Array]:
    """Return the inverse and the first zero in U of each matrix."""
    return solve(a, gpu.cupy().eye(a.shape[-1], dtype=a.dtype))


def triangular(a: Array, b: Array, *, upper: bool, unitriangular: bool) -> Array:
    """Return the solution of a triangular system, infinite or NaN if the diagonal holds zeros."""
    cp = cupy_functions()
    n, columns = b.shape[-2:]
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    # rows that are read as columns are the transposed equation, x.T @ a.T = b.T
    x = cp.array(cp.broadcast_to(b, (*stack, n, columns)), order="C")
    if not x.size:
        return x
    factors = cp.ascontiguousarray(cp.broadcast_to(a, (*stack, n, n)))
    cublas, one = cublas_library(), np.ones(1, a.dtype)
    form = (RIGHT, LOWER if upper else UPPER, PLAIN, int(unitriangular), columns, n, one.ctypes.data)
    if math.prod(stack) == 1:
        _call(cublas, a, "trsm", *form, factors.data.ptr, n, x.data.ptr, columns)
        return x
    matrices = _addresses(factors.reshape(-1, n, n))
    sides = _addresses(x.reshape(-1, n, columns))
    _call(cublas, a, "trsmBatched", *form, matrices.data.ptr, n, sides.data.ptr, columns, len(matrices))
    return x


def cholesky(a: Array) -> tuple[Array, Array]:
    """Return L of ``a = L @ L.mH`` and the first leading minor that is not positive, counted from 1, or 0."""
    cp = cupy_functions()
    stack, n = a.shape[:-2], a.shape[-1]
    if not a.size:
        return a.copy(), cp.zeros(stack, np.int32)
    # rows that are read as columns are the conjugate of the matrix, of which the upper triangle is the lower one
    out = cp.array(a, order="C").reshape(-1, n, n)
    info = cp.empty(len(out), np.int32)
    solver = _cusolver()
    if len(out) == 1:
        size = _call(solver, a, "potrf_bufferSize", UPPER, n, out.data.ptr, n)
        work = cp.empty(size, a.dtype)
        _call(solver, a, "potrf", UPPER, n, out.data.ptr, n, work.data.ptr, size, info.data.ptr)
    else:
        matrices = _addresses(out)
        _call(solver, a, "potrfBatched", UPPER, n, matrices.data.ptr, n, info.data.ptr, len(out))
    return cp.tril(out).reshape(a.shape), info.reshape(stack)


def slogdet(a: Array) -> tuple[Array, Array]:
    """Return the sign of each determinant, of size 1 or 0, and the logarithm of its size."""
    sign, size = gpu.cupy().linalg.slogdet(a)
    return sign, size


def det(a: Array) -> Array:
    """Return the determinants."""
    return gpu.cupy().linalg.det(a)


def qr(a: Array, *, complete: bool) -> tuple[Array, Array]:
    """Return Q and R; with `complete` Q is square."""
    with _looked_at():
        return _contiguous(*gpu.cupy().linalg.qr(a, "complete" if complete else "reduced"))


def reflectors(a: Array) -> tuple[Array, Array]:
    """Return R with Householder's vectors below its diagonal, and their factors tau."""
    turned, tau = gpu.cupy().linalg.qr(a, "raw")
    return _contiguous(turned.swapaxes(-1, -2), tau)


def svd(a: Array, *, full: bool) -> tuple[Array, Array, Array]:
    """Return U, the singular values and Vh; with `full` U and Vh are square."""
    with _converging(a):
        return _contiguous(*gpu.cupy().linalg.svd(a, full))


def singular_values(a: Array) -> Array:
    """Return the singular values."""
    with _converging(a):
        return gpu.cupy().linalg.svd(a, compute_uv=False)


def eigh(a: Array, *, upper: bool) -> tuple[Array, Array]:
    """Return the eigenvalues and eigenvectors of Hermitian matrices, reading one triangle."""
    with _converging((gpu.cupy().triu if upper else gpu.cupy().tril)(a)):
        return _contiguous(*gpu.cupy().linalg.eigh(a, "U" if upper else "L"))


def eigenvalues(a: Array, *, upper: bool) -> Array:
    """Return the eigenvalues of Hermitian matrices, reading one triangle."""
    with _converging((gpu.cupy().triu if upper else gpu.cupy().tril)(a)):
        return gpu.cupy().linalg.eigvalsh(a, "U" if upper else "L")


def _contiguous(*arrays: Array) -> Any:
    return tuple([gpu.cupy().ascontiguousarray(x) for x in arrays])


def no_convergence() -> LinAlgError:
    """Return the error of an iteration that came to no end."""
    return LinAlgError("the algorithm does not converge: the input is ill-conditioned")


def check_finite(a: Array) -> None:
    """Raise a LinAlgError for NaN and infinity, as iterations would return meaningless numbers."""
    finite: Any = np.isfinite(a).all((-2, -1))
    if not finite.all():
        place = np.unravel_index(int(finite.argmin()), finite.shape)
        where = f"(batch element {', '.join(map(str, place))}): " if place else ""
        raise LinAlgError(f"{where}the algorithm cannot converge: the input holds NaN or infinity")


@contextlib.contextmanager
def _looked_at() -> Generator[None]:
    """Let CuPy check the status of the libraries, and raise its error as lucid's."""
    try:
        with gpu.part("cupyx").errstate(linalg="raise"):
            yield
    except np.linalg.LinAlgError as error:
        raise no_convergence() from error


def _converging(a: Array) -> contextlib.AbstractContextManager[None]:
    """Check the input of an iteration, and in the context the status that the library returns."""
    check_finite(a)
    return _looked_at()
