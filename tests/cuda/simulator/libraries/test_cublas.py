"""The simulated cuBLAS computes what NumPy does, touches exactly what it says, and refuses what cuBLAS refuses."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import re
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.cuda.simulator.libraries.queued import (
    ADJOINT,
    EXECUTION_FAILED,
    INVALID_VALUE,
    LETTERS,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    PLAIN,
    SOURCES,
    TRANSPOSED,
    VERSION,
    drawn,
    exact,
    matrices,
    number,
    op,
    pointers,
    same,
    stored,
)

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
TYPES = {np.float32: 0, np.float64: 1, np.float16: 2, np.complex64: 4, np.complex128: 5, BFLOAT16.type: 14}
STEPS = ctypes.c_longlong


@pytest.mark.parametrize("operations", list(itertools.product([PLAIN, TRANSPOSED, ADJOINT], repeat=2)))
@pytest.mark.parametrize("letter", LETTERS)
def test_gemm(cublas, handle, random, letter, operations):
    """Products of random shapes, with lines longer than columns: values, bytes, and nothing in between."""
    dtype = LETTERS[letter]
    for m, n, k in [(1, 1, 1), (5, 3, 7), (9, 10, 2), (20, 1, 33)]:
        shapes = stored((m, k), operations[0]), stored((k, n), operations[1]), (m, n)
        a, b, c = (matrices(drawn(random, x, dtype), x[0] + random.integers(3)) for x in shapes)
        alpha, beta = drawn(random, (2, 1), dtype)
        before = c.values.copy()
        lines = [x.values.strides[1] // x.values.itemsize for x in (a, b, c)]
        arguments = [*operations, m, n, k, alpha, a.at, lines[0], b.at, lines[1], beta, c.at, lines[2]]
        assert cublas(f"cublas{letter}gemm_v2", handle, *arguments) == 0
        left, right = op(a.values, operations[0]), op(b.values, operations[1])
        scale = abs(alpha[0]) * (abs(left) @ abs(right)) + abs(beta[0] * before)
        same(c.values, alpha[0].astype(complex) * (left @ right) + beta[0].astype(complex) * before, scale)
        exact(cublas, [a.bytes(), b.bytes(), c.bytes()], [c.bytes()])
        assert all(x.untouched() for x in (a, b, c))
        assert (cublas.name, cublas.stream, cublas.calls) == (f"cublas{letter}gemm", 1234, 1)


@pytest.mark.parametrize("letter", LETTERS)
def test_large_gemm(cublas, handle, random, letter):
    """Products of several blocks along each dimension."""
    m, n, k = 300, 261, 517
    a, b = drawn(random, (m, k), LETTERS[letter]), drawn(random, (k, n), LETTERS[letter])
    stacks = [matrices(x) for x in (a, b, np.zeros((m, n), a.dtype))]
    one, none = number(1, a.dtype), number(0, a.dtype)
    arguments = [0, 0, m, n, k, one, stacks[0].at, m, stacks[1].at, k, none, stacks[2].at, m]
    assert cublas(f"cublas{letter}gemm_v2", handle, *arguments) == 0
    same(stacks[2].values, op(a, 0) @ op(b, 0), abs(op(a, 0)) @ abs(op(b, 0)))
    assert len(cublas.ranges) == 3


@pytest.mark.parametrize("letter", LETTERS)
def test_factors_of_zero(cublas, handle, random, letter):
    """With a beta of 0 the result is not read, with an alpha of 0 the operands are not: NaN stays away."""
    dtype = LETTERS[letter]
    bad = matrices(np.full((4, 4), np.nan, dtype))
    a, b, c = (matrices(drawn(random, (4, 4), dtype)) for _ in range(3))
    one, none = number(1, dtype), number(0, dtype)
    name, before = f"cublas{letter}gemm_v2", c.values.copy()
    assert cublas(name, handle, 0, 0, 4, 4, 4, one, a.at, 4, b.at, 4, none, bad.at, 4) == 0
    same(bad.values, op(a.values, 0) @ op(b.values, 0), abs(op(a.values, 0)) @ abs(op(b.values, 0)))
    bad.values[...] = np.nan
    assert cublas(name, handle, 0, 0, 4, 4, 4, none, bad.at, 4, bad.at, 4, one, c.at, 4) == 0
    exact(cublas, [c.bytes()], [c.bytes()])
    np.testing.assert_array_equal(c.values, before)
    assert cublas(name, handle, 0, 0, 4, 4, 0, one, bad.at, 4, bad.at, 4, none, c.at, 4) == 0
    np.testing.assert_array_equal(c.values, 0)


SINGLE, FAST, DOUBLE, HALF = [68, 69], [74, 75, 77], [70, 71], [64, 65]
LISTED = [
    (np.float16, np.float16, HALF, np.float16),
    (np.float16, np.float16, SINGLE, np.float32),
    (np.float16, np.float32, SINGLE, np.float32),
    (BFLOAT16.type, BFLOAT16.type, SINGLE, np.float32),
    (BFLOAT16.type, np.float32, SINGLE, np.float32),
    (np.float32, np.float32, SINGLE + FAST, np.float32),
    (np.complex64, np.complex64, SINGLE + FAST, np.complex64),
    (np.float64, np.float64, DOUBLE, np.float64),
    (np.complex128, np.complex128, DOUBLE, np.complex128),
]


@pytest.mark.parametrize(("own", "made", "computes", "factor"), LISTED)
def test_types(cublas, handle, random, own, made, computes, factor):
    """Stacks in each combination of types: interleaved, repeated by a step of 0, and one after the other."""
    count, m, n, k = 3, 6, 5, 20
    alpha, beta = number(0.5, factor), number(-2, factor)
    for compute, transposed in itertools.product(computes, [PLAIN, ADJOINT]):
        # heads of one matrix, as lucid has them: the next matrix begins within the columns of this one
        a = matrices(drawn(random, (count, k, m) if transposed else (count, m, k), own), 70, 22)
        b = matrices(drawn(random, (k, n), own), k + 1)
        c = matrices(drawn(random, (count, m, n), made), m + 2, (m + 2) * n + 1)
        before = c.values.astype(complex)
        arguments = [transposed, 0, m, n, k, alpha, a.at, TYPES[own], 70, STEPS(22), b.at, TYPES[own], k + 1, STEPS(0),
                     beta, c.at, TYPES[made], m + 2, STEPS((m + 2) * n + 1), count, compute, -1]  # fmt: skip
        assert cublas("cublasGemmStridedBatchedEx", handle, *arguments) == 0
        left, right = op(a.values, transposed), op(b.values, 0)
        sums = np.float16 if compute in HALF else np.float64 if compute in DOUBLE else np.float32
        same(c.values, 0.5 * (left @ right) - 2 * before, abs(left) @ abs(right) + 2 * abs(before), sums)
        exact(cublas, [a.bytes(), b.bytes(), c.bytes()], [c.bytes()])
        assert c.untouched()


@pytest.mark.parametrize(("function", "last"), [("cublasGemmEx", [68, 99]), ("cublasSgemmEx", [])])
@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16.type, np.float32])
def test_one_product(cublas, handle, random, dtype, function, last):
    """One product of other types: the sums are rounded once."""
    m, n, k = 8, 9, 300
    a, b, c = (matrices(drawn(random, shape, dtype)) for shape in [(m, k), (n, k), (m, n)])
    own = TYPES[dtype]
    arguments = [0, 1, m, n, k, number(3, np.float32), a.at, own, m, b.at, own, n, number(0, np.float32), c.at, own, m]
    assert cublas(function, handle, *arguments, *last) == 0
    left, right = 3 * op(a.values, 0), op(b.values, 1)
    same(c.values, left @ right, abs(left) @ abs(right), np.float32)
    exact(cublas, [a.bytes(), b.bytes()], [c.bytes()])


def test_other_types_are_not_supported(cublas, handle):
    """All combinations that the documentation of cublasGemmEx does not list: CUBLAS_STATUS_NOT_SUPPORTED."""
    listed = {(TYPES[own], TYPES[made], compute) for own, made, computes, _ in LISTED for compute in computes}
    x = np.ones(4)
    some = [*TYPES.values(), 3, 10], [0, 2, 3], [0, 2, 10, 14], range(62, 80)
    for own, other, made, compute in itertools.product(*some):
        if own != other or (own, made, compute) not in listed:
            arguments = [0, 0, 1, 1, 1, x, x, own, 1, x, other, 1, x, x, made, 1, compute, -1]
            assert cublas("cublasGemmEx", handle, *arguments) == NOT_SUPPORTED
            assert not cublas.calls
    assert cublas("cublasGemmEx", handle, 0, 0, 1, 1, 1, x, x, 1, 1, x, 1, 1, x, x, 1, 1, 70, 50) == NOT_SUPPORTED


def test_sums_in_half(cublas, handle):
    """CUBLAS_COMPUTE_16F loses small terms beside a large sum; CUBLAS_COMPUTE_32F does not."""
    k = 40_000
    a, out = np.ones(k, np.float16), np.zeros(1, np.float16)
    for compute, factor, wanted in [(64, np.float16, 32768), (68, np.float32, np.float16(k))]:
        one, none = number(1, factor), number(0, factor)
        arguments = [0, 0, 1, 1, k, one, a, 2, 1, a, 2, k, none, out, 2, 1, compute, -1]
        assert cublas("cublasGemmEx", handle, *arguments) == 0
        assert out[0] == wanted


@pytest.mark.parametrize("letter", LETTERS)
def test_gemm_batched(cublas, handle, random, letter):
    """Matrices anywhere in memory: their addresses are read when the work runs, which then says what it touches."""
    dtype = LETTERS[letter]
    shapes = [(7, 4), (6, 7), (4, 6)]
    a, b, c = ([matrices(drawn(random, shape, dtype), 9) for _ in range(3)] for shape in shapes)
    alpha, beta = drawn(random, (2, 1), dtype)
    before = [x.values.astype(complex) for x in c]
    places = [np.zeros(3, np.uint64) for _ in range(3)]
    arguments = [TRANSPOSED, TRANSPOSED, 4, 6, 7, alpha, places[0], 9, places[1], 9, beta, places[2], 9, 3]
    assert cublas(f"cublas{letter}gemmBatched", handle, *arguments, late=True) == 0
    for place, stack in zip(places, (a, b, c), strict=True):
        place[...] = pointers(stack)
    cublas.run()
    for x, y, z, was in zip(a, b, c, before, strict=True):
        product, scale = op(x.values, 1) @ op(y.values, 1), abs(op(x.values, 1)) @ abs(op(y.values, 1))
        same(z.values, alpha[0].astype(complex) * product + beta[0].astype(complex) * was,
             abs(alpha[0]) * scale + abs(beta[0] * was))  # fmt: skip
    own = [{x.ctypes.data + i for i in range(24)} for x in places]
    exact(cublas, [*own, *(x.bytes() for x in (*a, *b, *c))], [x.bytes() for x in c])
    kept = c[0].values.copy()
    assert cublas(f"cublas{letter}gemmBatched", handle, *arguments, refuse=True) == 0
    np.testing.assert_array_equal(c[0].values, kept)


def test_bad_values_of_gemm(cublas, handle):
    """Sizes below zero, short lines, unknown operations, missing factors and results that overlap."""
    x = np.ones(64, np.float32)
    good = {"ta": 0, "tb": 0, "m": 4, "n": 2, "k": 3, "alpha": x, "a": x, "lda": 4, "sa": STEPS(12), "b": x, "ldb": 3,
            "sb": STEPS(6), "beta": x, "c": x, "ldc": 4, "sc": STEPS(8), "count": 2}  # fmt: skip
    name = "cublasSgemmStridedBatched"
    assert cublas(name, handle, *good.values()) == 0
    missing = ctypes.c_void_p(0)
    for change in [{"ta": 3}, {"tb": -1}, {"m": -1}, {"n": -1}, {"k": -1}, {"lda": 3}, {"ta": 1, "lda": 2}, {"ldb": 2},
                   {"tb": 2, "ldb": 1}, {"ldc": 3}, {"alpha": missing}, {"beta": missing}, {"count": -1},
                   {"sc": STEPS(7)}, {"sc": STEPS(0)}]:  # fmt: skip
        assert cublas(name, handle, *{**good, **change}.values()) == INVALID_VALUE, change
        assert not cublas.calls
    for change in [{"m": 0, "lda": 1, "ldc": 1}, {"n": 0}, {"count": 0}]:
        assert cublas(name, handle, *{**good, **change}.values()) == 0
        assert not cublas.calls


def test_pointer_modes(cublas, handle):
    """Factors of the host are read by the call, those of the device by its work; results go where they should."""
    x, y = np.arange(4.0), np.ones(4)
    alpha = number(2, float)
    assert cublas("cublasDaxpy_v2", handle, 4, alpha, x, 1, y, 1, late=True) == 0
    alpha[0] = 100
    cublas.run()
    np.testing.assert_array_equal(y, [1, 3, 5, 7])
    result = np.zeros(1)
    assert cublas("cublasDdot_v2", handle, 4, x, 1, y, 1, result, late=True) == 0
    assert (result[0], cublas.waits) == (34, 1)
    assert cublas("cublasSetPointerMode_v2", handle, 1) == 0
    assert cublas("cublasDaxpy_v2", handle, 4, alpha, x, 1, y, 1, late=True) == 0
    alpha[0] = 10
    cublas.run()
    np.testing.assert_array_equal(y, [1, 13, 25, 37])
    exact(cublas, [set(range(v.ctypes.data, v.ctypes.data + v.nbytes)) for v in (alpha, x)],
          [set(range(y.ctypes.data, y.ctypes.data + y.nbytes))])  # fmt: skip
    assert cublas("cublasDdot_v2", handle, 4, x, 1, y, 1, result, late=True) == 0
    assert (result[0], cublas.waits) == (34, 0)
    cublas.run()
    assert result[0] == 13 + 50 + 111
    assert (result.ctypes.data, 8, True) in cublas.ranges


def test_handles(cublas, handle):
    """Settings of a handle are kept; what is no setting is refused."""
    place, found = ctypes.c_void_p(), ctypes.c_int()
    assert cublas("cublasGetStream_v2", handle, ctypes.byref(place)) == 0
    assert place.value == 1234
    for name, good, bad in [("PointerMode_v2", [0, 1], [2, -1]), ("MathMode", [0, 1, 2, 3, 16, 19], [4, 32, -1])]:
        for mode in good:
            assert cublas(f"cublasSet{name}", handle, mode) == 0
            assert cublas(f"cublasGet{name}", handle, ctypes.byref(found)) == 0
            assert found.value == mode
        for mode in bad:
            assert cublas(f"cublasSet{name}", handle, mode) == INVALID_VALUE
    assert cublas("cublasGetVersion_v2", handle, ctypes.byref(found)) == 0
    assert found.value == VERSION


def names():
    """Return the functions of the cublas."""
    found = set()
    for letters, body in [("SDCZ", r"cublas##X##(\w+?)\("), ("", r"int (cublas\w+)\(")]:
        for file in SOURCES.glob("cublas*.cpp"):
            for name in re.findall(body, file.read_text()):
                found |= {f"cublas{letter}{name}" for letter in letters} if letters else {name}
    return sorted(found)


def test_destroyed_handle(cublas):
    """Every function answers CUBLAS_STATUS_NOT_INITIALIZED for a handle that was destroyed, and for none at all."""
    gone = ctypes.c_void_p()
    assert cublas("cublasCreate_v2", ctypes.byref(gone)) == 0
    assert cublas("cublasDestroy_v2", gone) == 0
    functions = [name for name in names() if name != "cublasCreate_v2" and hasattr(cublas.c, name)]
    assert len(functions) > 70
    for name, handle in itertools.product(functions, [gone, ctypes.c_void_p(0)]):
        assert cublas(name, handle, *[ctypes.c_longlong(0)] * 24) == NOT_INITIALIZED, name


def test_failure_of_the_queue(cublas, handle):
    """What the device refuses is CUBLAS_STATUS_EXECUTION_FAILED."""
    x, result = np.ones(4), np.zeros(1)
    assert cublas("cublasDaxpy_v2", handle, 4, x, x, 1, x, 1, code=700) == EXECUTION_FAILED
    assert cublas("cublasDdot_v2", handle, 4, x, 1, x, 1, result, code=700) == EXECUTION_FAILED
    assert not cublas.waits


@pytest.mark.skipif(importlib.util.find_spec("cupy_backends") is None, reason="needs the wheel of CuPy")
def test_names_that_cupy_binds(cublas):
    """The wheel of CuPy finds all functions of cuBLAS that it is linked to."""
    where = importlib.util.find_spec("cupy_backends").submodule_search_locations[0]
    (module,) = Path(where, "cuda", "libs").glob("cublas.*.so")
    told = subprocess.run(["nm", "-D", "--undefined-only", module], capture_output=True, text=True, check=True).stdout
    wanted = re.findall(r" (cublas\w+)@libcublas\.so\.\d+", told)
    assert len(wanted) >= 100
    assert not [name for name in wanted if not hasattr(cublas.c, name)]
