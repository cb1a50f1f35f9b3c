"""Running sums, products and extremes, and sums at indices by loops in C++, beside NumPy's passes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cpu
from lucid.cpu import running
from lucid.cpu.functions import BUILD
from lucid.nn import functional as F
from lucid.ops.index.accumulation import add_at

SIZES = [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 127, 128, 129, 1000, 1023, 1024, 1025, 32_768, 32_769, 70_000]
FLOATS = [np.float32, np.float64]
OPS = {"cumsum": lucid.cumsum, "cumprod": lucid.cumprod, "cummax": lucid.cummax, "cummin": lucid.cummin}


@pytest.fixture(autouse=True)
def _loaded(_compiler):
    """Have the library compiled, which few numbers would not be worth."""
    assert running._SUMS(BUILD, "float") is not None


def both(compute):
    """Return the bytes of the arrays that are computed by loops and by NumPy."""
    results = []
    for compiled in (True, False):
        before, cpu.compiled = cpu.compiled, compiled
        try:
            results.append([(array.dtype, array.shape, array.flags.forc, array.tobytes()) for array in compute()])
        finally:
            cpu.compiled = before
    return results


def results_of(name, x, dim):
    """Return the results of an op of running values, and the gradient of the first."""
    x = lucid.tensor(x, device="cpu", requires_grad=x.dtype.kind == "f")
    out = OPS[name](x, dim)
    values, *indices = out if isinstance(out, tuple) else (out,)
    if not x.requires_grad:
        return [values.array, *[each.array for each in indices]]
    upstream = np.random.default_rng(3).standard_normal(x.shape).astype(x.array.dtype)
    values.backward(lucid.tensor(upstream, device="cpu"))
    return [values.array, *[each.array for each in indices], x.grad.array]


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", OPS)
def test_lines_of_any_length(name, size, dtype, rng):
    """Results and gradients are NumPy's, bit for bit."""
    x = rng.standard_normal(size).astype(dtype)
    loop, numpy = both(lambda: results_of(name, x, 0))
    assert loop == numpy
    few = (x * 3).round()
    few[rng.random(size) < 0.3] = -0.0
    loop, numpy = both(lambda: results_of(name, few, 0))
    assert loop == numpy


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("shape", [(3, 1000), (1000, 3), (40, 50), (2, 3, 70), (5, 0), (0, 5), (4, 1), (600, 65)])
@pytest.mark.parametrize("name", OPS)
def test_several_lines(name, shape, rng):
    """Each line by itself, in any layout of the operand, and along any dimension."""
    for dtype in (*FLOATS, np.int64, np.int32):
        x = (rng.standard_normal(shape) * 3).astype(dtype)
        for each in (x, np.asfortranarray(x), x[..., ::-1], x[::2], x[..., ::2], np.broadcast_to(x[..., :1], shape)):
            for dim in range(x.ndim):
                loop, numpy = both(lambda each=each, dim=dim: results_of(name, each, dim))
                assert loop == numpy


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPS)
def test_numbers_of_every_kind(name, dtype):
    """NaN, infinities, zeros of both signs, and numbers that leave the range and come back."""
    huge, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    parts = [[1, np.nan, 2, np.nan, 3], [-0.0, 0.0, -0.0], [np.inf, 1, -np.inf, 2], [huge, huge, 0.5], [-0.0] * 300,
             [least] * 40, [1e-30, 1e-30, 1e30, 1e30], [2, 2, 1, 2, 3, 3], [-np.inf, -np.inf, 0]]  # fmt: skip
    for part in parts:
        for x in (np.array(part, dtype), np.array(part * 30, dtype)):
            loop, numpy = both(lambda x=x: results_of(name, x, 0))
            assert loop == numpy, part


ADDED = {
    "one dimension": ((1000,), (0,), (5000,)), "rows": ((50, 20), (0,), (400,)), "wide rows": ((50, 70), (0,), (400,)),
    "rarely repeated": ((4000, 40), (0,), (200,)), "columns": ((20, 50), (1,), (400,)),
    "two": ((20, 30, 5), (0, 1), (300,)),
    "outer ones": ((20, 5, 30), (0, 2), (300,)), "inner ones": ((5, 20, 30), (1, 2), (300,)),
    "one of a row": ((5, 6), (1,), (1,)),
    "in a table": ((50, 6), (0,), (20, 30)), "one of each": ((7,), (0,), (1,)), "none": ((7, 3), (0,), (0,)),
    "no width": ((7, 0), (0,), (4,)),
}  # fmt: skip


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("dtype", [*FLOATS, np.int64, np.complex64, np.float16])
@pytest.mark.parametrize("name", ADDED)
def test_sums_at_indices(name, dtype, rng):
    """Repetitions are added in their order, whatever the dimensions of the index and the strides of the values."""
    shape, dims, count = ADDED[name]
    indices = [rng.integers(-shape[dim], shape[dim], count) for dim in dims]
    out = (rng.standard_normal(shape) * 100).astype(dtype)
    key = tuple([indices[dims.index(dim)] if dim in dims else slice(None) for dim in range(len(shape))])
    values = (rng.standard_normal(out[key].shape) * 100).astype(dtype)

    def summed(values):
        total = out.copy()
        add_at(np, total, dims, indices, values)
        return [total]

    for each in (values, values[::-1], np.asfortranarray(values), np.broadcast_to(values[..., :1], values.shape)):
        loop, numpy = both(lambda each=each: summed(each))
        assert loop == numpy


@pytest.mark.cpu("compares the two ways of the CPU")
def test_ops_that_add_at_indices(rng):
    """Ops and gradients that end there are NumPy's, bit for bit."""
    x, source = rng.standard_normal((300, 40)).astype("f"), rng.standard_normal((2000, 40)).astype("f")
    at, where = rng.integers(0, 300, 2000), rng.integers(0, 300, (2000, 40))

    def results():
        table, rows = lucid.tensor(x, device="cpu", requires_grad=True), lucid.tensor(source, device="cpu")
        index, places = lucid.tensor(at, device="cpu"), lucid.tensor(where, device="cpu")
        (F.embedding(index, table) * rows).sum().backward()
        (table[index] * rows + table.gather(0, places) * rows).sum().backward()
        return [
            table.grad.array, table.index_add(0, index, rows).array, table.scatter_add(0, places, rows).array,
            table.index_put((index,), rows, accumulate=True).array,
        ]  # fmt: skip

    loop, numpy = both(results)
    assert loop == numpy


@pytest.mark.parametrize("length", [1, 31, 32, 33, 128, 200])
def test_nothing_is_written_beside_the_result(length, rng):
    """A loop fills its lines, from either end, and no element beside them."""
    x = rng.standard_normal((3, length)).astype(np.float32)
    for run, kind, last in (
        (running._SUMS(BUILD, "float"), np.float32, 1), (running._SUMS(BUILD, "float"), np.float32, -1),
        (running._PRODUCTS(BUILD, "float"), np.float32, -1), (running._PLACES(BUILD, "float"), np.int64, True),
    ):  # fmt: skip
        memory = np.full(x.size + 64, 777, kind)
        run(memory[32:].ctypes.data, x.ctypes.data, 3, length, last)
        np.testing.assert_array_equal(memory[:32], 777)
        np.testing.assert_array_equal(memory[32 + x.size :], 777)
        assert (memory[32 : 32 + x.size] != 777).all()


def test_elements_of_memory_that_is_not_aligned(rng):
    """They are selected as those of any other array."""
    x = np.zeros(8 * 100 + 1, np.uint8)[1:].view(np.float64)
    x[...] = rng.standard_normal(100)
    index = rng.integers(0, 100, 300)
    assert running._TAKE(BUILD, "long long") is not None
    np.testing.assert_array_equal(running.take(x, index), x[index])
