"""Factors of NumPy arrays with matrices in their last two dimensions.

`lucid.cuda.libraries.solver` has the same for CuPy's. NumPy calls LAPACK, but does not say which matrix of a stack it
failed at, and has no triangular systems and no pivots: these are computed here, column by column for all of a stack.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, cast

import numpy as np

from lucid.cuda.libraries.solver import check_finite, no_convergence

if TYPE_CHECKING:
    from collections.abc import Generator

    from lucid.base.arrays import Array


@contextlib.contextmanager
def _converging(a: Array) -> Generator[None]:
    """Name NumPy's error by lucid's."""
    check_finite(a)
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise no_convergence() from error


def lu(a: Array) -> tuple[Array, Array, Array]:
    """Return L without its diagonal and U in one matrix, the row that each was exchanged with, and the first zero in U.

    Rows and zeros are counted from 1; 0 stands for no zero.
    """
    *stack, rows, columns = a.shape
    out = a.copy().reshape(math.prod(stack), rows, columns)
    each = np.arange(len(out))
    pivots = np.zeros((len(out), min(rows, columns)), np.int32)
    info = np.zeros(len(out), np.int32)
    for k in range(pivots.shape[1]):
        column = out[:, k:, k]
        # by the size that LAPACK compares
        pivot = k + np.argmax(np.abs(column.real) + np.abs(column.imag), 1)
        pivots[:, k] = pivot + 1
        out[:, k], out[each, pivot] = out[each, pivot], out[:, k].copy()
        zero = out[:, k, k] == 0
        info[zero & (info == 0)] = k + 1
        out[:, k + 1 :, k] /= np.where(zero, 1, out[:, k, k])[:, None]
        out[:, k + 1 :, k + 1 :] -= out[:, k + 1 :, k, None] * out[:, k, None, k + 1 :]
    return out.reshape(a.shape), pivots.reshape(*stack, pivots.shape[-1]), info.reshape(stack)


def permutation(pivots: Array, rows: int) -> Array:
    """Return the source of each row of ``P.T @ A``, for the exchanges of `lu`."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    each = np.arange(len(flat))
    order = np.tile(np.arange(rows), (len(flat), 1))
    for k in range(flat.shape[1]):
        other = flat[:, k] - 1
        order[:, k], order[each, other] = order[each, other], order[:, k].copy()
    return order.reshape(*pivots.shape[:-1], rows)


def triangular(a: Array, b: Array, *, upper: bool, unitriangular: bool) -> Array:
    """Return the solution of a triangular system, infinite or NaN for zeros on the diagonal."""
    n = a.shape[-1]
    x = np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])).copy()
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(i)
        row = x[..., i, :] - np.matmul(a[..., i, None, known], x[..., known, :])[..., 0, :]
        x[..., i, :] = row if unitriangular else row / a[..., i, i, None]
    return x


def no_zeros(a: Array) -> Array:
    """Return 0 for each matrix."""
    return np.zeros(a.shape[:-2], np.int32)


def solve(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the solution of ``a @ x = b`` and the first zero in U of each matrix."""
    try:
        return cast("Array", np.linalg.solve(a, b)), no_zeros(a)
    except np.linalg.LinAlgError:
        factors, pivots, info = lu(a)
    order = permutation(pivots, a.shape[-1])
    wide = np.broadcast_to(b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    order = np.broadcast_to(order, wide.shape[:-1])
    turned = np.take_along_axis(wide, order[..., None], -2)
    x = triangular(factors, turned, upper=False, unitriangular=True)
    return triangular(factors, x, upper=True, unitriangular=False), info


def inverse(a: Array) -> tuple[Array, Array]:
    """Return the inverse and the first zero in U of each matrix."""
    try:
        return cast("Array", np.linalg.inv(a)), no_zeros(a)
    except np.linalg.LinAlgError:
        return solve(a, np.eye(a.shape[-1], dtype=a.dtype))


def cholesky(a: Array) -> tuple[Array, Array]:
    """Return L of ``a = L @ L.mH`` and the first leading minor that is not positive, counted from 1, or 0."""
    with contextlib.suppress(np.linalg.LinAlgError):
        factors = cast("Array", np.linalg.cholesky(a))
        # NumPy says nothing of NaN
        if np.isfinite(factors).all():
            return factors, no_zeros(a)
    out = np.tril(a)
    info = no_zeros(a)
    for k in range(a.shape[-1]):
        known = out[..., k:, :k]
        column = out[..., k:, k] - np.matmul(known, out[..., k, :k, None].conj())[..., 0]
        square = column[..., 0].real
        fails = ~(square > 0) & (info == 0)
        info[fails] = k + 1
        out[..., k:, k] = column / np.sqrt(square)[..., None]
        out[..., k, k] = np.sqrt(square)
    return out, info


def slogdet(a: Array) -> tuple[Array, Array]:
    """Return the sign of each determinant, of size 1 or 0, and the logarithm of its size."""
    sign, size = np.linalg.slogdet(a)
    return np.asarray(sign, a.dtype), np.asarray(size, a.real.dtype)


def det(a: Array) -> Array:
    """Return the determinants."""
    return np.asarray(np.linalg.det(a), a.dtype)


def qr(a: Array, *, complete: bool) -> tuple[Array, Array]:
    """Return Q and R; with `complete` Q is square."""
    q, r = np.linalg.qr(a, "complete" if complete else "reduced")
    return q, r


def reflectors(a: Array) -> tuple[Array, Array]:
    """Return R with Householder's vectors below its diagonal, and their factors tau."""
    turned, tau = np.linalg.qr(a, "raw")
    return np.ascontiguousarray(turned.swapaxes(-1, -2)), tau


def svd(a: Array, *, full: bool) -> tuple[Array, Array, Array]:
    """Return U, the singular values and Vh; with `full` U and Vh are square."""
    with _converging(a):
        u, s, vh = np.linalg.svd(a, full)
        return u, s, vh


def singular_values(a: Array) -> Array:
    """Return the singular values."""
    with _converging(a):
        return np.linalg.svd(a, compute_uv=False)


def eigh(a: Array, *, upper: bool) -> tuple[Array, Array]:
    """Return the eigenvalues of Hermitian matrices, read from one triangle, and their vectors."""
    with _converging(np.triu(a) if upper else np.tril(a)):
        values, vectors = np.linalg.eigh(a, "U" if upper else "L")
        return values, vectors


def eigenvalues(a: Array, *, upper: bool) -> Array:
    """Return the eigenvalues of Hermitian matrices, read from one triangle."""
    with _converging(np.triu(a) if upper else np.tril(a)):
        return np.linalg.eigvalsh(a, "U" if upper else "L")


def eig(a: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of square matrices and their vectors, as complex numbers."""
    with _converging(a):
        values, vectors = np.linalg.eig(a)
    dtype = np.result_type(a.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)
