"""Functions of `scipy.linalg`: NumPy's rules and lucid's ops with SciPy's parameters, and banded equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid import numpy as lnp
from lucid.base import gpu
from lucid.errors import LinAlgError
from lucid.numpy.border import plain
from lucid.ops.decomposition import matrix_exp, triangular
from lucid.ops.shape import stacking
from lucid.scipy.rules.equations import banded_solution, turned
from lucid.scipy.rules.rule import (
    Array,
    PerAxis,
    arrays,
    at_least_single,
    by_op,
    counted,
    host,
    host_library,
    in_double,
    in_dtype,
    in_one_dtype,
    put,
    rule,
)
from lucid.tensor.numpy_calls.operands import NumpyCallError


def in_lapacks(*values: Array) -> list[Any]:
    """Return operands in the dtype that LAPACK computes in."""
    return in_one_dtype(*at_least_single(*values))


@rule("linalg.inv", "a overwrite_a check_finite")
def inv(a: Array) -> Any:
    """Return ``scipy.linalg.inv``."""
    return lnp.linalg.inv(*at_least_single(a))


@rule("linalg.det", "a overwrite_a check_finite")
def det(a: Array) -> Any:
    """Return ``scipy.linalg.det``."""
    return lnp.linalg.det(in_double(a)[0])


@rule("linalg.pinv", "a check_finite")
def pinv(a: Array) -> Any:
    """Return ``scipy.linalg.pinv``, with a larger cutoff than NumPy's."""
    (a,) = in_lapacks(a)
    return lnp.linalg.pinv(a, rcond=max(a.shape[-2:]) * float(np.finfo(a.dtype).eps))


@rule("linalg.norm", "a ord axis keepdims check_finite")
def norm(a: Array, ord: Array = None, axis: PerAxis = None, keepdims: bool = False) -> Any:
    """Return ``scipy.linalg.norm``."""
    (a,) = arrays(a)
    is_whole = a.size and a.dtype != np.float16 and axis is None and not keepdims
    if is_whole and (a.ndim, ord) in {(1, None), (1, 2), (2, 1), (2, np.inf)}:
        # SciPy has these of BLAS and LAPACK, as numbers of double precision
        (a,) = in_double(a)
    return lnp.linalg.norm(a, ord, axis, keepdims)


@rule("linalg.expm")
def expm(A: Array) -> Any:
    """Return ``scipy.linalg.expm``."""
    return by_op(matrix_exp.matrix_exp, *in_lapacks(A))


@rule("linalg.solve", "a b lower overwrite_a overwrite_b check_finite assume_a transposed")
def solve(a: Array, b: Array, lower: bool = False, assume_a: str | None = None, transposed: bool = False) -> Any:
    """Return ``scipy.linalg.solve``; the assumed structure of the matrix selects the triangle that is read."""
    a, b = in_lapacks(a, b)
    if assume_a in {"sym", "her", "pos", "symmetric", "hermitian", "positive definite"}:
        a = of_triangle(a, lower=lower, is_hermitian=assume_a not in {"sym", "symmetric"})
    elif assume_a not in {None, "gen", "general"}:
        raise NumpyCallError(f"scipy.linalg.solve: with a Tensor assume_a={assume_a!r} cannot be used: leave it out")
    return lnp.linalg.solve(lnp.swapaxes(a, -1, -2) if transposed else a, b)


def of_triangle(a: Array, *, lower: bool, is_hermitian: bool = True) -> Any:
    """Return the Hermitian or the symmetric matrix that has a triangle of another one."""
    half = lnp.tril(a, -1) if lower else lnp.triu(a, 1)
    other = lnp.swapaxes(half, -1, -2)
    line = lnp.diagonal(a, axis1=-2, axis2=-1)
    if a.dtype.kind == "c" and is_hermitian:
        # the imaginary part of the diagonal is not read either
        other, line = lnp.conj(other), lnp.real(line)
    unit = put(np.eye(a.shape[-1], dtype=plain(line).dtype), a)
    return half + other + line[..., None] * unit


@rule("linalg.solve_triangular", "a b trans lower unit_diagonal overwrite_b check_finite")
def solve_triangular(a: Array, b: Array, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """Return ``scipy.linalg.solve_triangular``."""
    a, b = in_lapacks(a, b)
    zeros = np.argwhere(host(plain(a).diagonal(axis1=-2, axis2=-1)) == 0)
    if zeros.size and not unit_diagonal:
        raise LinAlgError(
            f"scipy.linalg.solve_triangular: the matrix is singular: element {zeros[0, -1]} of its diagonal is zero"
        )
    right = b if b.ndim > 1 else b[:, None]
    solution = triangular_solution(a, right, trans, lower=lower, unit_diagonal=unit_diagonal)
    return solution if b.ndim > 1 else solution[..., 0]


def triangular_solution(a: Array, b: Array, trans: int | str, *, lower: bool, unit_diagonal: bool = False) -> Any:
    """Return the solutions, as columns, for a triangular matrix, its transpose (1, "T") or its adjoint (2, "C")."""
    if trans not in {0, "N"}:
        a, lower = lnp.swapaxes(a, -1, -2), not lower
        a = lnp.conj(a) if trans in {2, "C"} and a.dtype.kind == "c" else a
    return by_op(triangular.solve_triangular, a, b, upper=not lower, unitriangular=unit_diagonal)


@rule("linalg.cholesky", "a lower overwrite_a check_finite")
def cholesky(a: Array, lower: bool = False) -> Any:
    """Return ``scipy.linalg.cholesky``: the upper factor, unless the lower one is asked for."""
    return lnp.linalg.cholesky(*at_least_single(a), upper=not lower)


@rule("linalg.cho_factor", "a lower overwrite_a check_finite")
def cho_factor(a: Array, lower: bool = False) -> tuple[Any, bool]:
    """Return ``scipy.linalg.cho_factor``, with zeros for SciPy's arbitrary numbers in the other triangle."""
    return cholesky(a, lower), lower


@rule("linalg.cho_solve", "c_and_lower b overwrite_b check_finite")
def cho_solve(c_and_lower: tuple[Array, bool], b: Array) -> Any:
    """Return ``scipy.linalg.cho_solve``."""
    c, lower = c_and_lower
    # SciPy's `cho_factor` of a batch says it once for each matrix
    lower = bool(np.all(lower))
    c, b = in_lapacks(c, b)
    # of a batch of matrices both steps take the vector as a column
    right = b if b.ndim > 1 else b[:, None]
    half = triangular_solution(c, right, 0 if lower else 2, lower=lower)
    solution = triangular_solution(c, half, 2 if lower else 0, lower=lower)
    return solution if b.ndim > 1 else solution[..., 0]


@rule("linalg.eigh", "a b lower eigvals_only overwrite_a overwrite_b check_finite")
def eigh(a: Array, b: Array = None, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    """Return ``scipy.linalg.eigh``, of one matrix or of the problem ``a v = w b v``."""
    a, b = (*at_least_single(a), None) if b is None else in_lapacks(a, b)
    if b is None:
        values, vectors = lnp.linalg.eigh(a, "L" if lower else "U")
    else:
        # with b = f f^H, those of f^-1 a f^-H and f^H v
        f = lnp.linalg.cholesky(of_triangle(b, lower=lower))
        half = triangular_solution(f, of_triangle(a, lower=lower), 0, lower=True)
        values, columns = lnp.linalg.eigh(triangular_solution(f, turned(half), 0, lower=True))
        vectors = triangular_solution(f, columns, 2, lower=True)
    if eigvals_only:
        return values
    if not gpu.is_gpu_array(plain(a)):
        # of each vector's signs, or phases, SciPy's driver chooses another one than NumPy's
        chosen = host_library("linalg").eigh(plain(a), plain(b), lower=lower)[1]
        along = np.sum(np.conj(plain(vectors)) * chosen, axis=-2, keepdims=True)
        size = np.abs(along)
        vectors = vectors * np.divide(along, size, out=np.ones_like(along), where=size > 0)
    return values, vectors


@rule("linalg.eigvalsh", "a b lower overwrite_a overwrite_b check_finite")
def eigvalsh(a: Array, b: Array = None, *, lower: bool = True) -> Any:
    """Return ``scipy.linalg.eigvalsh``, of one matrix or of the problem ``a v = w b v``."""
    if b is not None:
        return eigh(a, b, lower=lower, eigvals_only=True)
    return lnp.linalg.eigvalsh(*at_least_single(a), "L" if lower else "U")


@rule("linalg.qr", "a overwrite_a lwork mode check_finite")
def qr(a: Array, mode: str = "full") -> tuple[Any, ...]:
    """Return ``scipy.linalg.qr``; of more rows than columns ``mode="full"`` has no derivative."""
    (a,) = at_least_single(a)
    if mode not in {"full", "economic", "r"}:
        raise NumpyCallError(f"scipy.linalg.qr: with a Tensor the mode can be 'full', 'economic' or 'r', got {mode!r}")
    if mode != "r":
        return tuple(lnp.linalg.qr(a, "complete" if mode == "full" else "reduced"))
    r = lnp.linalg.qr(a, "r")
    # SciPy has the zeros below it, too
    return (lnp.pad(r, [*[(0, 0)] * (r.ndim - 2), (0, a.shape[-2] - r.shape[-2]), (0, 0)]),)


@rule("linalg.lstsq", "a b cond overwrite_a overwrite_b check_finite lapack_driver")
def lstsq(a: Array, b: Array, cond: float | None = None) -> tuple[Any, Any, int, Any]:
    """Return ``scipy.linalg.lstsq``, by the singular values whatever the driver."""
    a, b = in_lapacks(a, b)
    x, residues, rank, s = lnp.linalg.lstsq(a, b, float(np.finfo(a.dtype).eps) if cond is None else cond)
    return x, residues[0] if b.ndim == 1 and residues.shape[0] else residues, int(rank), s


@rule("linalg.svd", "a full_matrices compute_uv overwrite_a check_finite lapack_driver")
def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return ``scipy.linalg.svd``."""
    result = lnp.linalg.svd(*at_least_single(a), full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(result) if compute_uv else result


@rule("linalg.svdvals", "a overwrite_a check_finite")
def svdvals(a: Array) -> Any:
    """Return ``scipy.linalg.svdvals``."""
    return lnp.linalg.svdvals(*at_least_single(a))


@rule("linalg.block_diag")
def block_diag(arrs: tuple[Array, ...]) -> Any:
    """Return ``scipy.linalg.block_diag``."""
    parts = [lnp.atleast_2d(each) for each in arrays(*arrs)]
    dtype = np.result_type(*[part.dtype for part in parts])
    if any(part.ndim > 2 for part in parts):
        return diagonal_of_batches([in_dtype(part, dtype) for part in parts])
    return by_op(stacking.block_diag, *[part.astype(dtype) for part in parts])


def diagonal_of_batches(parts: list[Any]) -> Any:
    """Return batches of matrices along the diagonals of larger ones."""
    batch = np.broadcast_shapes(*[part.shape[:-2] for part in parts])
    width = sum(part.shape[-1] for part in parts)
    rows: list[Any] = []
    before = 0
    for part in parts:
        whole = lnp.broadcast_to(part, (*batch, *part.shape[-2:]))
        behind = width - before - part.shape[-1]
        rows.append(lnp.pad(whole, [(0, 0)] * (whole.ndim - 1) + [(before, behind)]))
        before += part.shape[-1]
    return lnp.concatenate(rows, -2)


def vectors(name: str, c: Array, r: Array) -> list[Any]:
    """Return a first column and a last or first row, or None; refuse matrices, as SciPy's versions differ in these."""
    for each in arrays(*[each for each in (c, r) if each is not None]):
        if each.ndim != 1:
            raise ValueError(
                f"scipy.linalg.{name}: expected vectors, got shape {each.shape}: give x.ravel(), or each row"
            )
    return in_one_dtype(c, r)


@rule("linalg.toeplitz")
def toeplitz(c: Array, r: Array = None) -> Any:
    """Return ``scipy.linalg.toeplitz``, of vectors."""
    c, r = vectors("toeplitz", c, r)
    if r is None:
        r = lnp.conj(c) if c.dtype.kind == "c" else c
    line = lnp.concatenate([lnp.flip(c, 0), r[1:]])
    places = counted(c.shape[0])[::-1, None] + counted(r.shape[0])
    return lnp.take(line, put(places, line))


@rule("linalg.hankel")
def hankel(c: Array, r: Array = None) -> Any:
    """Return ``scipy.linalg.hankel``, of vectors; without a last row, zeros follow the first column."""
    c, r = vectors("hankel", c, r)
    line = lnp.concatenate([c, lnp.zeros_like(plain(c))[1:] if r is None else r[1:]])
    places = counted(c.shape[0])[:, None] + counted((c if r is None else r).shape[0])
    return lnp.take(line, put(places, line))


@rule("linalg.circulant")
def circulant(c: Array) -> Any:
    """Return ``scipy.linalg.circulant``, of vectors along the last axis."""
    c = lnp.atleast_1d(in_one_dtype(c)[0])
    size = c.shape[-1]
    return lnp.take(c, put((counted(size)[:, None] - counted(size)) % size, c), -1)


@rule("linalg.khatri_rao")
def khatri_rao(a: Array, b: Array) -> Any:
    """Return ``scipy.linalg.khatri_rao``, of two matrices."""
    a, b = in_one_dtype(a, b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"expected two matrices of as many columns, got shapes {a.shape} and {b.shape}")
    return lnp.reshape(a[:, None] * b, (a.shape[0] * b.shape[0], a.shape[1]))


@rule("linalg.solve_banded", "l_and_u ab b overwrite_ab overwrite_b check_finite")
def solve_banded(l_and_u: tuple[int, int], ab: Array, b: Array) -> Any:
    """Return ``scipy.linalg.solve_banded``."""
    ab, b = in_one_dtype(ab, b)
    below, above = l_and_u
    rows = b.shape[0] if b.ndim < 2 else b.shape[-2]
    if ab.shape[-2:] != (below + above + 1, rows):
        raise ValueError(f"expected ab of shape ({below + above + 1}, {rows}), got {ab.shape}")
    if ab.ndim == 2:
        axis = max(b.ndim - 2, 0)
        return lnp.moveaxis(banded_solution(ab, lnp.moveaxis(b, axis, 0), below, above), 0, axis)
    core = b.shape[-2:]
    batch = np.broadcast_shapes(ab.shape[:-2], b.shape[:-2])
    pairs = zip(
        lnp.reshape(lnp.broadcast_to(ab, (*batch, *ab.shape[-2:])), (-1, *ab.shape[-2:])),
        lnp.reshape(lnp.broadcast_to(b, (*batch, *core)), (-1, *core)),
        strict=True,
    )
    return lnp.reshape(lnp.stack([banded_solution(*pair, below, above) for pair in pairs]), (*batch, *core))
