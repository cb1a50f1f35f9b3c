"""The functions of the simulated cuSPARSE touch exactly what they say, in each format, index and base."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
import scipy.sparse

from tests.cuda.simulator.libraries.queued import (
    LETTERS,
    PLAIN,
    Library,
    drawn,
    exact,
    handle_of,
    matrices,
    op,
    same,
    stored,
    vector,
)

TYPES = {np.float32: 0, np.float64: 1, np.complex64: 4, np.complex128: 5}
INDICES = {np.int32: 2, np.int64: 3}
INVALID, EXECUTION_FAILED, NOT_SUPPORTED = 3, 6, 10
LONG = ctypes.c_longlong
FILES = "calls", *(f"sparse/cusparse{part}" for part in ("", "_conversion", "_products", "_absent"))


@pytest.fixture(scope="module")
def cusparse():
    """Return the simulated cuSPARSE by itself."""
    return Library(*(f"{name}.cpp" for name in FILES))


@pytest.fixture
def handle(cusparse):
    """Make a handle of it, on a stream of its own."""
    yield from handle_of(cusparse, "cusparse")


def described(cusparse, kind, *arguments):
    """Return a description that cuSPARSE makes."""
    made = ctypes.c_void_p()
    assert cusparse(f"cusparseCreate{kind}", ctypes.byref(made), *arguments) == 0
    return made


def sparse_of(cusparse, matrix, base, index):
    """Return a description of SciPy's matrix, and the memory of its parts."""
    names = ("row", "col") if matrix.format == "coo" else ("indptr", "indices")
    parts = [vector((getattr(matrix, name) + base).astype(index)) for name in names]
    values = vector(matrix.data)
    kinds = [INDICES[index]] * (1 if matrix.format == "coo" else 2)
    sizes = map(LONG, (*matrix.shape, matrix.nnz))
    made = described(
        cusparse, matrix.format.capitalize(), *sizes, *[x.start for x in (*parts, values)], *kinds, base,
        TYPES[matrix.dtype.type],
    )  # fmt: skip
    return made, (*parts, values)


def dense_of(cusparse, memory):
    """Return a description of a dense matrix by columns."""
    rows, columns = memory.values.shape
    line = memory.values.strides[1] // memory.values.itemsize
    kind = TYPES[memory.values.dtype.type]
    return described(cusparse, "DnMat", LONG(rows), LONG(columns), LONG(line), memory.at, kind, 1)


def buffer(cusparse, handle, name, *arguments):
    """Return a buffer of the size that is asked for."""
    size = ctypes.c_size_t()
    assert cusparse(f"{name}_bufferSize", handle, *arguments, ctypes.byref(size)) == 0
    return vector(np.zeros(size.value, np.int8))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("letter", LETTERS)
def test_products(cusparse, handle, random, letter, form):
    """Of random matrices, plain, transposed and adjoint, with lines longer than columns: values, bytes and gaps."""
    dtype = LETTERS[letter]
    for left, right in itertools.product(range(3), range(3)):
        base, index = int(random.integers(2)), (np.int32, np.int64)[random.integers(2)]
        matrix = scipy.sparse.random(*stored((5, 4), left), 0.5, format=form, rng=random)
        matrix.data = drawn(random, matrix.nnz, dtype)
        a, parts = sparse_of(cusparse, matrix, base, index)
        x = matrices(drawn(random, stored((4, 3), right), dtype), 6)
        y = matrices(drawn(random, (5, 3), dtype), 7)
        alpha, beta = drawn(random, (2, 1), dtype)
        before, (b, c) = y.values.copy(), (dense_of(cusparse, memory) for memory in (x, y))
        arguments = [left, right, alpha, a, b, beta, c, TYPES[dtype], 0]
        work = buffer(cusparse, handle, "cusparseSpMM", *arguments)
        assert cusparse("cusparseSpMM", handle, *arguments, work.start) == 0
        exact(cusparse, [*(part.bytes() for part in parts), x.bytes(), y.bytes()], [y.bytes(), work.bytes()])
        one, other = op(matrix.toarray(), left), op(x.values, right)
        wanted = alpha[0].astype(complex) * (one @ other) + beta[0].astype(complex) * before
        same(y.values, wanted, abs(alpha[0]) * (abs(one) @ abs(other)) + abs(beta[0] * before))
        assert x.untouched()
        assert y.untouched()
        assert (cusparse.name, cusparse.stream, cusparse.calls) == ("cusparseSpMM", 1234, 1)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_dense_matrices(cusparse, handle, random, form):
    """To a dense matrix and back: elements and their number, in order; nothing between columns is written."""
    matrix = scipy.sparse.random(5, 4, 0.4, format=form, rng=random)
    matrix.sum_duplicates()
    a, parts = sparse_of(cusparse, matrix, 1, np.int32)
    y = matrices(np.full((5, 4), 7.0), 8)
    dense = dense_of(cusparse, y)
    work = buffer(cusparse, handle, "cusparseSparseToDense", a, dense, 0)
    assert cusparse("cusparseSparseToDense", handle, a, dense, 0, work.start) == 0
    exact(cusparse, [part.bytes() for part in parts], [y.bytes(), work.bytes()])
    np.testing.assert_array_equal(y.values, matrix.toarray())
    assert y.untouched()
    wanted = [part.values.copy() for part in parts]
    for part in parts:
        part.values[...] = 0
    assert cusparse("cusparseDenseToSparse_analysis", handle, dense, a, 0, work.start) == 0
    sizes = [LONG() for _ in range(3)]
    assert cusparse("cusparseSpMatGetSize", a, *map(ctypes.byref, sizes)) == 0
    assert [size.value for size in sizes] == [5, 4, matrix.nnz]
    assert cusparse("cusparseDenseToSparse_convert", handle, dense, a, 0, work.start) == 0
    for part, one in zip(parts, wanted, strict=True):
        np.testing.assert_array_equal(part.values, one)


def about(cusparse, base):
    """Return a description of a matrix whose indices begin at a base."""
    made = described(cusparse, "MatDescr")
    assert cusparse("cusparseSetMatIndexBase", made, base) == 0
    return made


def work_for(cusparse, handle, name, *arguments):
    """Return a buffer of the size that a function of before the descriptions asks for."""
    size = ctypes.c_size_t()
    assert cusparse(f"{name}_bufferSizeExt", handle, *arguments, ctypes.byref(size)) == 0
    return vector(np.zeros(size.value, np.int8))


@pytest.mark.parametrize("base", [0, 1])
def test_sorting(cusparse, handle, random, base):
    """By rows, or by columns, and what is equal there by the other: pairs, and the lines of a compressed matrix."""
    for by, other in (("Row", "Column"), ("Column", "Row")):
        pair = {
            "Row": vector(random.integers(0, 5, 30, np.int32)),
            "Column": vector(random.integers(0, 7, 30, np.int32)),
        }
        before = {key: memory.values.copy() for key, memory in pair.items()}
        numbers = vector(np.arange(30, dtype=np.int32))
        arguments = 5, 7, 30, pair["Row"].start, pair["Column"].start
        work = work_for(cusparse, handle, "cusparseXcoosort", *arguments)
        assert cusparse(f"cusparseXcoosortBy{by}", handle, *arguments, numbers.start, work.start) == 0
        exact(cusparse, [], [*(x.bytes() for x in (*pair.values(), numbers)), work.bytes()])
        order = np.lexsort((before[other], before[by]))
        np.testing.assert_array_equal(numbers.values, order)
        for key, memory in pair.items():
            np.testing.assert_array_equal(memory.values, before[key][order])
    for name in ("csr", "csc"):
        begins = np.array([0, 4, 4, 13, 20], np.int32)
        indices = np.concatenate([random.permutation(9)[:n] for n in np.diff(begins)]).astype(np.int32)
        offsets, places = vector(begins + np.int32(base)), vector(indices + np.int32(base))
        numbers = vector(np.arange(20, dtype=np.int32))
        sizes = (4, 9, 20) if name == "csr" else (9, 4, 20)
        work = work_for(cusparse, handle, f"cusparseX{name}sort", *sizes, offsets.start, places.start)
        description = about(cusparse, base)
        assert cusparse(
            f"cusparseX{name}sort", handle, *sizes, description, offsets.start, places.start, numbers.start, work.start
        ) == 0  # fmt: skip
        exact(cusparse, [offsets.bytes()], [places.bytes(), numbers.bytes(), work.bytes()])
        order = np.lexsort((indices, np.repeat(np.arange(4), np.diff(begins))))
        np.testing.assert_array_equal(numbers.values, order)
        np.testing.assert_array_equal(places.values, indices[order] + base)


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("letter", ["S", "D"])
def test_compression(cusparse, handle, letter, base):
    """What is no larger than the tolerance is left out, of either sign; NaN is not, as in SciPy's `eliminate_zeros`."""
    dtype, tolerance = LETTERS[letter], 0.5
    begins = np.array([0, 3, 3, 6, 8], np.int32)
    data = np.array([0.5, np.nan, -0.5, 0.75, -0.25, -2.0, 0.0, np.inf], dtype)
    indices = np.array([1, 2, 4, 0, 3, 4, 1, 2], np.int32)
    is_kept = np.array([False, True, False, True, False, True, False, True])
    kept = np.array([1, 0, 2, 1], np.int32)
    values, offsets, places = vector(data), vector(begins + np.int32(base)), vector(indices + np.int32(base))
    of_rows, count = vector(np.full(4, 7, np.int32)), ctypes.c_int()
    limit = (ctypes.c_float if letter == "S" else ctypes.c_double)(tolerance)
    description = about(cusparse, base)
    name = f"cusparse{letter}"
    assert cusparse(
        f"{name}nnz_compress", handle, 4, description, values.start, offsets.start, of_rows.start, ctypes.byref(count),
        limit,
    ) == 0  # fmt: skip
    np.testing.assert_array_equal(of_rows.values, kept)
    assert count.value == 4
    out, out_places, out_offsets = vector(np.zeros(4, dtype)), *(vector(np.zeros(n, np.int32)) for n in (4, 5))
    assert cusparse(
        f"{name}csr2csr_compress", handle, 4, 5, description, values.start, places.start, offsets.start, 8,
        of_rows.start, out.start, out_places.start, out_offsets.start, limit,
    ) == 0  # fmt: skip
    np.testing.assert_array_equal(out.values, data[is_kept])
    np.testing.assert_array_equal(out_places.values, indices[is_kept] + base)
    np.testing.assert_array_equal(out_offsets.values, np.cumsum([base, *kept]))


def test_what_is_refused(cusparse, handle, random):
    """Sizes that do not fit, other types, no buffer, and what is not there, with cuSPARSE's codes and the name."""
    matrix = scipy.sparse.random(5, 4, 0.5, format="csr", rng=random)
    a, _ = sparse_of(cusparse, matrix, 0, np.int32)
    x, y = (vector(np.zeros(size)) for size in (4, 5))
    number, work = np.ones(1), vector(np.zeros(64, np.int8))

    def call(size, kind, start, code=0):
        b, c = (described(cusparse, "DnVec", LONG(n), memory.start, 1) for n, memory in ((size, x), (5, y)))
        return cusparse("cusparseSpMV", handle, PLAIN, number, a, b, number, c, kind, 0, start, code=code)

    assert call(4, 1, work.start) == 0
    assert call(3, 1, work.start) == INVALID
    assert call(4, 0, work.start) == NOT_SUPPORTED
    assert call(4, 1, ctypes.c_void_p(0)) == INVALID
    assert call(4, 1, work.start, code=700) == EXECUTION_FAILED
    assert cusparse("cusparseCreateCsrilu02Info") == NOT_SUPPORTED
    cusparse.c.cusparseGetErrorString.restype = ctypes.c_char_p
    words = cusparse.c.cusparseGetErrorString(NOT_SUPPORTED).decode()
    assert words.startswith("lucid's simulated CUDA devices have no cusparseCreateCsrilu02Info; docs/users/")
    assert cusparse.c.cusparseGetErrorString(INVALID) == b"CUSPARSE_STATUS_INVALID_VALUE"
