"""The functions of the simulated cuSOLVER compute factors, touch exactly what they say, and refuse the rest by name."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.cuda.simulator.libraries.queued import (
    ADJOINT,
    LETTERS,
    PLAIN,
    TRANSPOSED,
    Library,
    drawn,
    exact,
    handle_of,
    matrices,
    op,
    pointers,
    vector,
)

LOWER, UPPER = 0, 1
INVALID, NOT_SUPPORTED, EXECUTION_FAILED = 3, 9, 6
NOTHING = ctypes.c_void_p(0)
each_letter = pytest.mark.parametrize("letter", LETTERS)
REAL = {"S": np.float32, "D": np.float64, "C": np.float32, "Z": np.float64}


@pytest.fixture(scope="module")
def cusolver():
    """Return the simulated cuSOLVER by itself."""
    return Library("calls.cpp", "cusolver.cpp", "cusolver_absent.cpp")


@pytest.fixture
def handle(cusolver):
    """Make a handle of it, on a stream of its own."""
    yield from handle_of(cusolver, "cusolverDn")


def near(found, wanted, dtype):
    """Hold values against others within some hundred roundings of the largest."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    error = 300 * np.finfo(dtype).eps * np.abs(wanted).max(initial=1)
    np.testing.assert_allclose(found.astype(np.complex128), wanted, rtol=0, atol=error)


def sized(cusolver, name, *arguments):
    """Return a workspace of the size that is asked for."""
    size = ctypes.c_int(-1)
    *before, dtype, after = arguments
    assert cusolver(f"{name}_bufferSize", *before, ctypes.byref(size), *after) == 0
    return vector(np.zeros(size.value, dtype))


def codes(count=1):
    """Return memory for what went wrong, with something in it."""
    return vector(np.full(count, 77, np.int32))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@each_letter
def test_elimination(cusolver, handle, random, letter, shape):
    """Getrf gives P L U and counts the first zero of U; getrs solves by it, plain, transposed and adjoint."""
    dtype, (m, n), k = LETTERS[letter], shape, min(shape)
    before = drawn(random, shape, dtype)
    a, pivots, info = matrices(before, m + 2), vector(np.zeros(k, np.int32)), codes()
    name = f"cusolverDn{letter}getrf"
    work = sized(cusolver, name, handle, m, n, a.at, m + 2, dtype, [])
    assert cusolver(name, handle, m, n, a.at, m + 2, work.start, pivots.start, info.start) == 0
    assert cusolver.stream == 1234
    exact(cusolver, [], [a.bytes(), pivots.bytes(), work.bytes(), info.bytes()])
    lower = np.tril(a.values, -1)[:, :k] + np.eye(m, k)
    order = np.arange(m)
    for i, other in enumerate(pivots.values):
        order[[i, other - 1]] = order[[other - 1, i]]
    near(lower @ np.triu(a.values)[:k], before[order], dtype)
    assert info.values[0] == 0
    assert a.untouched()
    if m != n:
        return
    for operation in (PLAIN, TRANSPOSED, ADJOINT):
        right = drawn(random, (n, 2), dtype)
        b, info = matrices(right, n + 1), codes()
        arguments = [operation, n, 2, a.at, m + 2, pivots.start, b.at, n + 1, info.start]
        assert cusolver(f"cusolverDn{letter}getrs", handle, *arguments) == 0
        near(b.values, np.linalg.solve(op(before, operation), right), dtype)
        exact(cusolver, [a.bytes(), pivots.bytes()], [b.bytes(), info.bytes()])
    a = matrices(np.ones((n, n), dtype))
    assert cusolver(name, handle, n, n, a.at, n, work.start, NOTHING, info.start) == 0
    assert info.values[0] == 2


@pytest.mark.parametrize("fill", [LOWER, UPPER])
@each_letter
def test_cholesky(cusolver, handle, random, letter, fill):
    """Potrf and potrfBatched give one triangle, do not look at the other, and count the first minor that fails."""
    dtype, n = LETTERS[letter], 4
    raw = drawn(random, (2, n, n), dtype)
    whole = raw @ raw.conj().swapaxes(-1, -2) + np.eye(n, dtype=dtype)
    whole[1, 2, 2] = -1
    triangle = np.tril(np.ones((n, n), bool))
    triangle = triangle if fill == LOWER else triangle.T
    factor = np.linalg.cholesky(whole[0])
    factor = factor if fill == LOWER else factor.conj().T
    a, info = matrices(np.where(triangle, whole[0], np.nan).astype(dtype), n + 1), codes()
    name = f"cusolverDn{letter}potrf"
    work = sized(cusolver, name, handle, fill, n, a.at, n + 1, dtype, [])
    assert cusolver(name, handle, fill, n, a.at, n + 1, work.start, len(work.values), info.start) == 0
    exact(cusolver, [], [a.bytes(triangle), work.bytes(), info.bytes()])
    near(a.values[triangle], factor[triangle], dtype)
    assert info.values[0] == 0
    both = [matrices(np.where(triangle, one, np.nan).astype(dtype), n + 1) for one in whole]
    places, info = pointers(both), codes(2)
    assert cusolver(f"{name}Batched", handle, fill, n, places, n + 1, info.start, 2) == 0
    assert info.values.tolist() == [0, 3]
    near(both[0].values[triangle], factor[triangle], dtype)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@each_letter
def test_reflections(cusolver, handle, random, letter, shape):
    """Geqrf gives R above its vectors, and orgqr, or ungqr, as many columns of Q as are asked for."""
    dtype, (m, n), k = LETTERS[letter], shape, min(shape)
    before = drawn(random, shape, dtype)
    a, tau, info = matrices(before, m + 2), vector(np.zeros(k, dtype)), codes()
    name = f"cusolverDn{letter}geqrf"
    work = sized(cusolver, name, handle, m, n, a.at, m + 2, dtype, [])
    arguments = [m, n, a.at, m + 2, tau.start, work.start, len(work.values), info.start]
    assert cusolver(name, handle, *arguments) == 0
    exact(cusolver, [], [a.bytes(), tau.bytes(), work.bytes(), info.bytes()])
    name = f"cusolverDn{letter}{'orgqr' if letter in 'SD' else 'ungqr'}"
    for columns in {k, m}:
        held = np.full((m, columns), np.nan, dtype)
        held[:, :k] = a.values[:, :k]
        q, info = matrices(held, m + 1), codes()
        work = sized(cusolver, name, handle, m, columns, k, q.at, m + 1, tau.start, dtype, [])
        arguments = [m, columns, k, q.at, m + 1, tau.start, work.start, len(work.values), info.start]
        assert cusolver(name, handle, *arguments) == 0
        near(q.values.conj().T @ q.values, np.eye(columns), dtype)
        near(q.values[:, :k] @ np.triu(a.values)[:k], before, dtype)
        assert cusolver.touched(stores=True) == q.bytes() | work.bytes() | info.bytes()
        assert q.untouched()
    assert a.untouched()


@pytest.mark.parametrize("jobs", ["NN", "SS", "OS", "AO", "AA"])
@each_letter
def test_singular_values(cusolver, handle, random, letter, jobs):
    """Gesvd gives descending values and, as the jobs say, all vectors, the first ones, or these in place of A."""
    dtype, m, n = LETTERS[letter], 5, 3
    for before in (drawn(random, (m, n), dtype), np.ones((m, n), dtype)):
        a, values, info = matrices(before, m + 2), vector(np.zeros(n, REAL[letter])), codes()
        u, v = matrices(np.zeros((m, m if jobs[0] == "A" else n), dtype)), matrices(np.zeros((n, n), dtype))
        name = f"cusolverDn{letter}gesvd"
        work = sized(cusolver, name, handle, m, n, dtype, [])
        arguments = [ord(jobs[0]), ord(jobs[1]), m, n, a.at, m + 2, values.start, u.at, m, v.at, n, work.start,
                     len(work.values), NOTHING, info.start]  # fmt: skip
        assert cusolver(name, handle, *arguments) == 0
        written = [a.bytes(), values.bytes(), work.bytes(), info.bytes()]
        written += [x.bytes() for job, x in zip(jobs, (u, v), strict=True) if job in "AS"]
        exact(cusolver, [], written)
        near(values.values, np.linalg.svd(before, compute_uv=False), dtype)
        assert info.values[0] == 0
        if jobs == "NN":
            continue
        left = a.values if jobs[0] == "O" else u.values
        right = a.values[:n] if jobs[1] == "O" else v.values
        near(left.conj().T @ left, np.eye(left.shape[1]), dtype)
        near((left[:, :n] * values.values) @ right, before, dtype)
        assert a.untouched()


@pytest.mark.parametrize("power", [-70, 62, 120])
@each_letter
def test_singular_values_of_any_size(cusolver, handle, random, letter, power):
    """Matrices whose elements have squares beyond the largest number, or below the smallest, have singular values."""
    dtype, m, n = LETTERS[letter], 5, 3
    usual = drawn(random, (m, n), dtype)
    scale = REAL[letter](2.0**power)
    a, values, info = matrices((usual * scale).astype(dtype), m), vector(np.zeros(n, REAL[letter])), codes()
    work = sized(cusolver, f"cusolverDn{letter}gesvd", handle, m, n, dtype, [])
    arguments = [ord("N"), ord("N"), m, n, a.at, m, values.start, NOTHING, m, NOTHING, n, work.start,
                 len(work.values), NOTHING, info.start]  # fmt: skip
    assert cusolver(f"cusolverDn{letter}gesvd", handle, *arguments) == 0
    exact(cusolver, [], [a.bytes(), values.bytes(), work.bytes(), info.bytes()])
    near(values.values / scale, np.linalg.svd(usual, compute_uv=False), dtype)
    assert info.values[0] == 0


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@each_letter
def test_singular_values_of_a_stack(cusolver, handle, random, letter, shape):
    """GesvdjBatched gives all vectors, V and not its adjoint, of matrices up to 32 by 32."""
    dtype, (m, n), k, count = LETTERS[letter], shape, min(shape), 3
    before = drawn(random, (count, m, n), dtype)
    before[1] = 1  # of rank 1
    a, values, info = matrices(before), vector(np.zeros(count * k, REAL[letter])), codes(count)
    u, v = matrices(np.zeros((count, m, m), dtype)), matrices(np.zeros((count, n, n), dtype))
    name, size = f"cusolverDn{letter}gesvdjBatched", ctypes.c_int()
    forms = [m, n, a.at, m, values.start, u.at, m, v.at, n]
    assert cusolver(f"{name}_bufferSize", handle, 1, *forms, ctypes.byref(size), NOTHING, count) == 0
    work = vector(np.zeros(size.value, dtype))
    assert cusolver(name, handle, 1, *forms, work.start, size, info.start, NOTHING, count) == 0
    exact(cusolver, [], [x.bytes() for x in (a, values, u, v, work, info)])
    assert info.values.tolist() == [0] * count
    s = values.values.reshape(count, k)
    near(s, np.linalg.svd(before, compute_uv=False), dtype)
    near((u.values[..., :k] * s[:, None]) @ v.values[..., :k].conj().swapaxes(-1, -2), before, dtype)
    forms = [33, 33, a.at, 33, values.start, u.at, 33, v.at, 33]
    assert cusolver(name, handle, 1, *forms, work.start, 2000, info.start, NOTHING, 1) == INVALID


@pytest.mark.parametrize("fill", [LOWER, UPPER])
@each_letter
def test_eigenvalues(cusolver, handle, random, letter, fill):
    """syevjBatched, or heevjBatched, and Xsyevd give ascending values and vectors, of one triangle."""
    dtype, n, count = LETTERS[letter], 4, 2
    raw = drawn(random, (count, n, n), dtype)
    whole = (raw + raw.conj().swapaxes(-1, -2)).astype(dtype)
    triangle = np.tril(np.ones((n, n), bool))
    triangle = triangle if fill == LOWER else triangle.T
    for vectors in (0, 1):
        a, values = matrices(np.where(triangle, whole, np.nan).astype(dtype)), vector(np.zeros(count * n, REAL[letter]))
        name, info = f"cusolverDn{letter}{'syevj' if letter in 'SD' else 'heevj'}Batched", codes(count)
        work = sized(cusolver, name, handle, vectors, fill, n, a.at, n, values.start, dtype, [NOTHING, count])
        arguments = [vectors, fill, n, a.at, n, values.start, work.start, len(work.values), info.start, NOTHING, count]
        assert cusolver(name, handle, *arguments) == 0
        exact(cusolver, [], [x.bytes() for x in (a, values, work, info)])
        check_eigenvalues(values.values.reshape(count, n), a.values, whole, dtype, vectors)
        of_one = check_64_bit(cusolver, handle, whole[0], triangle, fill, vectors)
        near(of_one, values.values[:n], dtype)


def check_eigenvalues(values, a, whole, dtype, vectors):
    """Hold eigenvalues, and vectors if there are any, against NumPy's and the matrices."""
    near(values, np.linalg.eigvalsh(whole), dtype)
    if vectors:
        near((a * values[:, None]) @ a.conj().swapaxes(-1, -2), whole, dtype)
    else:
        assert np.isnan(a).all()


def check_64_bit(cusolver, handle, whole, triangle, fill, vectors):
    """Return the eigenvalues by Xsyevd."""
    dtype, n = whole.dtype, len(whole)
    kinds = {"f": 0, "d": 1, "F": 4, "D": 5}
    kind, real = kinds[dtype.char], kinds[dtype.char.lower()]
    a, values, info = (
        matrices(np.where(triangle, whole, np.nan).astype(dtype)),
        vector(np.zeros(n, dtype.char.lower())),
        codes(),
    )
    wide = ctypes.c_int64(n)
    forms = [NOTHING, vectors, fill, wide, kind, a.at, wide, real, values.start, kind]
    sizes = ctypes.c_size_t(), ctypes.c_size_t()
    assert cusolver("cusolverDnXsyevd_bufferSize", handle, *forms, *map(ctypes.byref, sizes)) == 0
    work = vector(np.zeros(sizes[0].value // dtype.itemsize, dtype))
    arguments = [*forms, work.start, sizes[0], NOTHING, sizes[1], info.start]
    assert cusolver("cusolverDnXsyevd", handle, *arguments) == 0
    check_eigenvalues(values.values[None], a.values[None], whole[None], dtype, vectors)
    wrong = [NOTHING, vectors, fill, wide, kind, a.at, wide, 1 - real, values.start, kind]
    assert cusolver("cusolverDnXsyevd", handle, *wrong, work.start, sizes[0], NOTHING, sizes[1], info.start) == INVALID
    return values.values


def test_what_is_refused(cusolver, handle, capfd):
    """Wrong sizes, fills and workspaces have cuSOLVER's code; a function that is not there is named."""
    a, info, work = matrices(np.eye(3)), codes(), vector(np.zeros(9))
    assert cusolver("cusolverDnDpotrf", handle, 2, 3, a.at, 3, work.start, 9, info.start) == INVALID
    assert cusolver("cusolverDnDpotrf", handle, LOWER, 3, a.at, 2, work.start, 9, info.start) == INVALID
    assert cusolver("cusolverDnDpotrf", handle, LOWER, 3, a.at, 3, work.start, 2, info.start) == INVALID
    assert cusolver("cusolverDnDpotrf", handle, LOWER, 3, a.at, 3, work.start, 9, NOTHING) == INVALID
    assert cusolver("cusolverDnDpotrf", NOTHING, LOWER, 3, a.at, 3, work.start, 9, info.start) == 1
    arguments = [LOWER, 3, a.at, 3, work.start, 9, info.start]
    assert cusolver("cusolverDnDpotrf", handle, *arguments, code=1) == EXECUTION_FAILED
    assert cusolver("cusolverDnDgebrd", handle) == NOT_SUPPORTED
    assert "no cusolverDnDgebrd; docs/users/simulator.md" in capfd.readouterr().err


def test_version(cusolver):
    """CuPy asks for the version in three parts."""
    parts = [ctypes.c_int() for _ in range(3)]
    assert [cusolver("cusolverGetProperty", k, ctypes.byref(part)) for k, part in enumerate(parts)] == [0, 0, 0]
    assert [part.value for part in parts] == [11, 6, 4]
