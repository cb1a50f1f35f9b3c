"""The functions of the simulated cuBLAS beside products compute what NumPy does and touch exactly what they say."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest

from tests.cuda.simulator.libraries.queued import (
    ADJOINT,
    INVALID_VALUE,
    LETTERS,
    PLAIN,
    TRANSPOSED,
    drawn,
    exact,
    matrices,
    number,
    op,
    pointers,
    same,
    stored,
    vector,
)

LOWER, UPPER = 0, 1
LEFT, RIGHT = 0, 1
REAL, COMPLEX = ["S", "D"], ["C", "Z"]
REAL_SCAL = {"C": "cublasCsscal_v2", "Z": "cublasZdscal_v2"}
OPERATIONS = [PLAIN, TRANSPOSED, ADJOINT]
each_letter = pytest.mark.parametrize("letter", LETTERS)


def real_name(letter, name):
    """Return the name of a function that gives a real number."""
    return f"cublas{ {'C': 'Sc', 'Z': 'Dz'}.get(letter, letter) }{name}_v2"


@pytest.mark.parametrize("steps", [(1, 1), (2, 3), (-1, 2), (3, -2), (-2, -2)])
@each_letter
def test_two_vectors(cublas, handle, random, letter, steps):
    """axpy, dot and ger: steps of any sign, from behind where it is negative."""
    dtype = LETTERS[letter]
    for n in [0, 1, 5, 200]:
        x, y = (vector(drawn(random, n, dtype), step) for step in steps)
        alpha, before, wide = drawn(random, 1, dtype), y.values.astype(complex), x.values.astype(complex)
        assert cublas(f"cublas{letter}axpy_v2", handle, n, alpha, x.start, steps[0], y.start, steps[1]) == 0
        same(y.values, alpha[0].astype(complex) * wide + before, abs(alpha * wide) + abs(before))
        exact(cublas, [x.bytes()], [y.bytes()])
        kinds = {"dotu": wide, "dotc": wide.conj()} if letter in COMPLEX else {"dot": wide}
        for name, left in kinds.items():
            result = np.full(1, 9, dtype)
            function = f"cublas{letter}{name}_v2"
            assert cublas(function, handle, n, x.start, steps[0], y.start, steps[1], result) == 0
            same(result, (left * y.values).sum(keepdims=True), abs(left * y.values).sum(keepdims=True))
            exact(cublas, [x.bytes(), y.bytes()], [])
        assert x.untouched()
        assert y.untouched()
    for name in ["geru", "gerc"] if letter in COMPLEX else ["ger"]:
        x, y = vector(drawn(random, 5, dtype), steps[0]), vector(drawn(random, 4, dtype), steps[1])
        a = matrices(drawn(random, (5, 4), dtype), 7)
        right = y.values.astype(complex).conj() if name == "gerc" else y.values.astype(complex)
        before = a.values.astype(complex)
        arguments = [5, 4, alpha, x.start, steps[0], y.start, steps[1], a.at, 7]
        assert cublas(f"cublas{letter}{name}_v2", handle, *arguments) == 0
        added = alpha[0].astype(complex) * np.outer(x.values.astype(complex), right)
        same(a.values, before + added, abs(before) + abs(added))
        exact(cublas, [x.bytes(), y.bytes()], [a.bytes()])
        assert a.untouched()


@pytest.mark.parametrize("step", [1, 3])
@each_letter
def test_one_vector(cublas, handle, random, letter, step):
    """scal, asum, nrm2, amax and amin; 0 for no elements and for steps that are not positive."""
    dtype = LETTERS[letter]
    x = vector(drawn(random, 300, dtype), step)
    real = np.zeros(1, dtype).real.dtype
    sizes = abs(x.values.real) + abs(x.values.imag)
    wide = x.values.astype(np.complex128)
    results = {
        real_name(letter, "asum"): (real, (abs(wide.real) + abs(wide.imag)).sum()),
        real_name(letter, "nrm2"): (real, np.linalg.norm(wide)),
        f"cublasI{letter.lower()}amax_v2": (np.int32, sizes.argmax() + 1),
        f"cublasI{letter.lower()}amin_v2": (np.int32, sizes.argmin() + 1),
    }
    for name, (form, wanted) in results.items():
        result = np.full(1, 77, form)
        assert cublas(name, handle, 300, x.start, step, result) == 0
        np.testing.assert_allclose(result[0], wanted, rtol=8 * np.finfo(real).eps)
        exact(cublas, [x.bytes()], [])
        for n, inc in [(0, 1), (-1, 1), (4, 0), (4, -1)]:
            assert cublas(name, handle, n, x.start, inc, result) == 0
            assert result[0] == 0
            assert not cublas.ranges
    for name, form in {f"cublas{letter}scal_v2": dtype, REAL_SCAL.get(letter, f"cublas{letter}scal_v2"): real}.items():
        before, alpha = x.values.astype(complex), drawn(random, 1, form)
        assert cublas(name, handle, 300, alpha, x.start, step) == 0
        same(x.values, alpha[0].astype(complex) * before, abs(alpha[0] * before))
        exact(cublas, [], [x.bytes()])
    assert x.untouched()


@pytest.mark.parametrize("letter", REAL)
def test_norm_of_extremes(cublas, handle, letter):
    """nrm2 leaves the range only where the result does."""
    limits = np.finfo(LETTERS[letter])
    for size in [limits.max / 4, limits.tiny]:
        x, result = np.full(4, size, LETTERS[letter]), np.zeros(1, LETTERS[letter])
        assert cublas(f"cublas{letter}nrm2_v2", handle, 4, x, 1, result) == 0
        np.testing.assert_allclose(result[0], 2 * size, rtol=1e-6)


@pytest.mark.parametrize("operation", OPERATIONS)
@each_letter
def test_gemv(cublas, handle, random, letter, operation):
    """Products of a matrix and a vector; with a beta of 0 the result is not read."""
    dtype = LETTERS[letter]
    for (m, n), steps in itertools.product([(5, 9), (1, 4), (40, 3)], [(1, 1), (2, -3)]):
        a = matrices(drawn(random, (m, n), dtype), m + 2)
        x = vector(drawn(random, m if operation else n, dtype), steps[0])
        y = vector(drawn(random, n if operation else m, dtype), steps[1])
        for beta in [drawn(random, 1, dtype), number(0, dtype)]:
            if not beta[0]:
                y.values[...] = np.nan
            alpha, before = drawn(random, 1, dtype), np.where(beta, y.values.astype(complex), 0)
            arguments = [operation, m, n, alpha, a.at, m + 2, x.start, steps[0], beta, y.start, steps[1]]
            assert cublas(f"cublas{letter}gemv_v2", handle, *arguments) == 0
            left, right = alpha[0].astype(complex) * op(a.values, operation), x.values.astype(complex)
            added = beta[0].astype(complex) * before
            same(y.values, left @ right + added, abs(left) @ abs(right) + abs(added))
            exact(cublas, [a.bytes(), x.bytes()], [y.bytes()])
    arguments[1] = -1
    assert cublas(f"cublas{letter}gemv_v2", handle, *arguments) == INVALID_VALUE


@pytest.mark.parametrize("fill", [LOWER, UPPER])
@pytest.mark.parametrize("letter", REAL)
def test_sbmv(cublas, handle, random, letter, fill):
    """Products of a symmetric band, of which the corners without diagonals are not read."""
    dtype, n = LETTERS[letter], 6
    for k in [0, 2, 5]:
        full = drawn(random, (n, n), dtype)
        full = np.where(abs(np.subtract.outer(np.arange(n), np.arange(n))) <= k, full + full.T, 0)
        bands, inside = np.full((k + 1, n), np.nan, dtype), np.zeros((k + 1, n), bool)
        for j in range(n):
            for i in range(max(0, j - k), j + 1) if fill == UPPER else range(j, min(n, j + k + 1)):
                row = k + i - j if fill == UPPER else i - j
                bands[row, j], inside[row, j] = full[i, j], True
        a, x, y = matrices(bands, k + 2), vector(drawn(random, n, dtype), 2), vector(drawn(random, n, dtype), -1)
        alpha, beta, before = drawn(random, 1, dtype), drawn(random, 1, dtype), y.values.astype(float)
        arguments = [fill, n, k, alpha, a.at, k + 2, x.start, 2, beta, y.start, -1]
        assert cublas(f"cublas{letter}sbmv_v2", handle, *arguments) == 0
        wanted = alpha[0].astype(float) * (full @ x.values.astype(float)) + beta[0].astype(float) * before
        same(y.values, wanted, abs(alpha[0]) * (abs(full) @ abs(x.values)) + abs(beta[0] * before))
        exact(cublas, [a.bytes(inside), x.bytes()], [y.bytes()])


@pytest.mark.parametrize("operations", list(itertools.product(OPERATIONS, repeat=2)))
@each_letter
def test_geam(cublas, handle, random, letter, operations):
    """Sums of two matrices; a factor of 0 keeps its matrix unread, and the result may be one that is not transposed."""
    dtype, (m, n) = LETTERS[letter], (5, 4)
    name = f"cublas{letter}geam"
    a, b = (matrices(drawn(random, stored((m, n), operation), dtype), 7) for operation in operations)
    c = matrices(np.full((m, n), np.nan, dtype), 6)
    alpha, beta, none = *drawn(random, (2, 1), dtype), number(0, dtype)
    left, right = (factor[0].astype(complex) * op(x.values, operation)
                   for factor, x, operation in zip((alpha, beta), (a, b), operations, strict=True))  # fmt: skip
    assert cublas(name, handle, *operations, m, n, alpha, a.at, 7, beta, b.at, 7, c.at, 6) == 0
    same(c.values, left + right, abs(left) + abs(right))
    exact(cublas, [a.bytes(), b.bytes()], [c.bytes()])
    assert c.untouched()
    assert cublas(name, handle, *operations, m, n, alpha, a.at, 7, none, ctypes.c_void_p(0), 7, c.at, 6) == 0
    same(c.values, left, abs(left))
    assert cublas(name, handle, *operations, m, n, none, ctypes.c_void_p(0), 7, beta, b.at, 7, c.at, 6) == 0
    same(c.values, right, abs(right))
    for place, other in [(a, b), (b, a)]:
        index = 0 if place is a else 1
        arguments = [*operations, m, n, alpha, a.at, 7, beta, b.at, 7, place.at, 7]
        if operations[index]:
            assert cublas(name, handle, *arguments) == INVALID_VALUE
        else:
            before = place.values.copy()
            assert cublas(name, handle, *arguments) == 0
            same(place.values, left + right, abs(left) + abs(right))
            exact(cublas, [other.bytes()], [place.bytes()])
            place.values[...] = before


@pytest.mark.parametrize("side", [LEFT, RIGHT])
@each_letter
def test_dgmm(cublas, handle, random, letter, side):
    """Products with a diagonal, whose step may be negative or 0, also in place."""
    dtype, (m, n) = LETTERS[letter], (4, 6)
    for step in [1, 2, -2, 0]:
        a, c = matrices(drawn(random, (m, n), dtype), 5), matrices(np.full((m, n), np.nan, dtype), 7)
        x = vector(drawn(random, 1 if step == 0 else (n if side else m), dtype), step or 1)
        factors = x.values.astype(complex) if side else x.values.astype(complex)[:, None]
        wanted = op(a.values, 0) * factors
        for out, line in [(c, 7), (a, 5)]:
            assert cublas(f"cublas{letter}dgmm", handle, side, m, n, a.at, 5, x.start, step, out.at, line) == 0
            same(out.values, wanted, abs(wanted))
            exact(cublas, [x.bytes(), *[a.bytes()] * (out is c)], [out.bytes()])
    assert cublas(f"cublas{letter}dgmm", handle, 2, m, n, a.at, 5, x.start, 1, c.at, 7) == INVALID_VALUE


def triangle(n, fill, *, diagonal=True):
    """Return which elements of a matrix are in a triangle."""
    return (np.tri(n, k=0 if diagonal else -1) if fill == LOWER else np.tri(n, k=0 if diagonal else -1).T).astype(bool)


def system(random, n, dtype, fill, ones):
    """Return a triangular matrix that can be solved, with NaN in all that is not to be read."""
    values = drawn(random, (n, n), dtype) / 4 + 2 * np.eye(n, dtype=dtype)
    inside = triangle(n, fill, diagonal=not ones)
    stands_for = np.where(inside, values, 0).astype(complex) + (np.eye(n) if ones else 0)
    return np.where(inside, values, np.nan).astype(dtype), stands_for, inside


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("side", "fill", "ones"), list(itertools.product([0, 1], repeat=3)))
@each_letter
def test_trsm(cublas, handle, random, letter, side, fill, ones, operation):
    """Triangular systems from both sides, of which only the triangle is read; also of addresses on the device."""
    dtype, (m, n) = LETTERS[letter], (5, 7)
    size = n if side else m
    stacks = [system(random, size, dtype, fill, ones) for _ in range(2)]
    inside, a = stacks[0][2], [matrices(values, size + 1) for values, *_ in stacks]
    b = [matrices(drawn(random, (m, n), dtype), 6) for _ in range(2)]
    before, alpha = [x.values.copy() for x in b], drawn(random, 1, dtype)
    arguments = [side, fill, operation, ones, m, n, alpha]

    def check(i):
        shown = op(stacks[i][1], operation)
        solved = b[i].values.astype(complex)
        again = solved @ shown if side else shown @ solved
        scale = abs(solved) @ abs(shown) if side else abs(shown) @ abs(solved)
        same(again, alpha[0].astype(complex) * before[i], scale, dtype)

    assert cublas(f"cublas{letter}trsm_v2", handle, *arguments, a[0].at, size + 1, b[0].at, 6) == 0
    check(0)
    exact(cublas, [a[0].bytes(inside)], [b[0].bytes()])
    assert b[0].untouched()
    b[0].values[...] = before[0]
    places = pointers(a), pointers(b)
    batched = f"cublas{letter}trsmBatched"
    assert cublas(batched, handle, *arguments, places[0], size + 1, places[1], 6, 2) == 0
    for i in range(2):
        check(i)
    own = [set(range(x.ctypes.data, x.ctypes.data + 16)) for x in places]
    exact(cublas, [*own, *(x.bytes(inside) for x in a)], [x.bytes() for x in b])


@pytest.mark.parametrize(("fill", "operation"), list(itertools.product([LOWER, UPPER], OPERATIONS)))
@each_letter
def test_syrk(cublas, handle, random, letter, fill, operation):
    """Symmetric products write one triangle; that of an adjoint is not syrk's for complex numbers."""
    dtype, n, k = LETTERS[letter], 6, 11
    a, c = matrices(drawn(random, stored((n, k), operation), dtype), 12), matrices(drawn(random, (n, n), dtype), 7)
    alpha, beta, before = drawn(random, 1, dtype), drawn(random, 1, dtype), c.values.copy()
    arguments = [fill, operation, n, k, alpha, a.at, 12, beta, c.at, 7]
    if operation == ADJOINT and letter in COMPLEX:
        assert cublas(f"cublas{letter}syrk_v2", handle, *arguments) == INVALID_VALUE
        return
    assert cublas(f"cublas{letter}syrk_v2", handle, *arguments) == 0
    shown, inside = op(a.values, operation), triangle(n, fill)
    wanted = alpha[0].astype(complex) * (shown @ shown.T) + beta[0].astype(complex) * before
    scale = abs(alpha[0]) * (abs(shown) @ abs(shown.T)) + abs(beta[0] * before)
    same(c.values[inside], wanted[inside], scale[inside])
    np.testing.assert_array_equal(c.values[~inside], before[~inside])
    exact(cublas, [a.bytes()], [c.bytes(inside)])


@pytest.mark.parametrize("fill", [LOWER, UPPER])
@pytest.mark.parametrize("letter", REAL)
def test_packed_triangles(cublas, handle, random, letter, fill):
    """Triangles to columns without gaps and back."""
    n = 5
    a, back = (matrices(drawn(random, (n, n), LETTERS[letter]), 7) for _ in range(2))
    packed, inside, before = np.zeros(15, LETTERS[letter]), triangle(n, fill), back.values.copy()
    own = set(range(packed.ctypes.data, packed.ctypes.data + packed.nbytes))
    assert cublas(f"cublas{letter}trttp", handle, fill, n, a.at, 7, packed) == 0
    np.testing.assert_array_equal(packed, a.values.T[inside.T])
    exact(cublas, [a.bytes(inside)], [own])
    assert cublas(f"cublas{letter}tpttr", handle, fill, n, packed, back.at, 7) == 0
    np.testing.assert_array_equal(back.values, np.where(inside, a.values, before))
    exact(cublas, [own], [back.bytes(inside)])


@pytest.mark.parametrize("pivoting", [True, False])
@each_letter
def test_elimination(cublas, handle, random, letter, pivoting):
    """Factors, solutions and inverses of a stack; a singular matrix is reported by its place."""
    dtype, n, count, columns, growth = LETTERS[letter], 6, 3, 2, 8
    full = drawn(random, (count, n, n), dtype) + (0 if pivoting else 4 * np.eye(n, dtype=dtype))
    full[1, :, 2] = full[1, :, 0] = 0
    a, b, c = ([matrices(x, 8) for x in stack] for stack in (full, drawn(random, (count, n, columns), dtype), full))
    places = [pointers(x) for x in (a, b, c)]
    pivots = np.zeros((count, n), np.int32) if pivoting else ctypes.c_void_p(0)
    info, status = np.full(count, 99, np.int32), np.full(1, 99, np.int32)
    own = [set(range(x.ctypes.data, x.ctypes.data + x.nbytes)) for x in (*places, info)]
    swapped = [set(range(pivots.ctypes.data, pivots.ctypes.data + pivots.nbytes))] if pivoting else []
    assert cublas(f"cublas{letter}getrfBatched", handle, n, places[0], 8, pivots, info, count) == 0
    np.testing.assert_array_equal(info, [0, 1, 0])
    exact(cublas, [own[0]], [*swapped, own[3], *(x.bytes() for x in a)])
    for operation in OPERATIONS:
        before = [x.values.copy() for x in b]
        arguments = [operation, n, columns, places[0], 8, pivots, places[1], 8, status, count]
        assert cublas(f"cublas{letter}getrsBatched", handle, *arguments) == 0
        assert status[0] == 0
        exact(cublas, [own[0], own[1], *swapped, *(x.bytes() for x in a)], [x.bytes() for x in b])
        for i in [0, 2]:
            shown, solved = op(full[i], operation), b[i].values.astype(complex)
            same(shown @ solved, before[i], growth * (abs(shown) @ abs(solved)), dtype)
        for x, was in zip(b, before, strict=True):
            x.values[...] = was
    assert cublas(f"cublas{letter}getriBatched", handle, n, places[0], 8, pivots, places[2], 8, info, count) == 0
    np.testing.assert_array_equal(info, [0, 1, 0])
    exact(cublas, [own[0], own[2], *swapped, *(x.bytes() for x in a)], [own[3], *(x.bytes() for x in c)])
    for i in [0, 2]:
        shown, inverse = op(full[i], PLAIN), c[i].values.astype(complex)
        same(shown @ inverse, np.eye(n), growth * (abs(shown) @ abs(inverse)), dtype)
    assert cublas(f"cublas{letter}getrsBatched", handle, 0, n, columns, places[0], n - 1, pivots, places[1], 8, status,
                  count) == INVALID_VALUE  # fmt: skip
    assert status[0] == -5
