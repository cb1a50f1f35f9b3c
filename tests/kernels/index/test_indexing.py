"""Picking, writing and adding by index on a CUDA device: against NumPy, with repetitions and with indices outside."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.errors import IndexOutOfRangeError
from lucid.ops.index import select_cuda as select
from tests.kernels.near import FLOATS, assert_near, assert_same, device, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)
ANY = ("bool", "uint8", "int8", "int16", "int32", "int64", "complex64", "complex128", *FLOATS)


def drawn(rng, shape, dtype):
    """Return numbers that the dtype holds, as an array of NumPy's."""
    values = rng.integers(-100, 100, shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.integers(-100, 100, shape)
    return values.astype(getattr(lucid, dtype).numpy)


def spread(array, layout):
    """Return a CUDA array of these values that lies in memory as `layout` says."""
    xp = gpu.cupy()
    if layout == "backwards":
        turned = (slice(None, None, -1),) * array.ndim
        return device(np.ascontiguousarray(array[turned]))[turned]
    if layout == "transposed":
        return xp.ascontiguousarray(device(array).T).T
    if layout == "unaligned":
        flat = device(np.concatenate([array.reshape(-1)[:1], array.reshape(-1)]))
        return flat[1:].reshape(array.shape)
    return device(array)


LAYOUTS = ("plain", "transposed", "backwards", "unaligned")
# Shape of the table, indexed dimensions, shapes of the indices.
PICKS = {
    "one row": ((5, 7), (0,), [(9,)]),
    "packs": ((5, 32), (0,), [(33,)]),
    "inner": ((3, 6, 16), (1,), [(4,)]),
    "last": ((4, 9), (1,), [(2, 3)]),
    "flat": ((1025,), (0,), [(1023,)]),
    "two": ((4, 5, 6), (0, 1), [(7,), (7,)]),
    "two that broadcast": ((4, 5, 6), (1, 2), [(3, 1), (4,)]),
    "apart": ((3, 4, 5), (0, 2), [(6,), (6,)]),
    "three": ((3, 4, 5, 8), (0, 1, 3), [(2, 1), (1, 3), (2, 3)]),
    "none": ((4, 5), (0,), [(0,)]),
    "no columns": ((4, 0), (0,), [(3,)]),
}


def places(rng, case, kind):
    """Return indices of a case, from both ends."""
    shape, dims, shapes = PICKS[case]
    return [rng.integers(-shape[d], shape[d], s).astype(kind) for d, s in zip(dims, shapes, strict=True)]


def key(ndim, dims, indices):
    """Return NumPy's key for indices along some dimensions."""
    parts = [slice(None)] * ndim
    for d, index in zip(dims, indices, strict=True):
        parts[d] = index
    return tuple(parts)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", PICKS)
def test_index(case, layout, kind, rng):
    """``x[index]`` picks what NumPy picks, whatever the layout and the dtype of the index."""
    shape, dims, _ = PICKS[case]
    x = drawn(rng, shape, "float32")
    # 1023 needs more than eight bits
    indices = places(rng, case, "int64" if kind == "int8" and max(shape) > 127 else kind)
    got = select.index(spread(x, layout) if x.size else device(x), *map(device, indices), dims=dims)
    assert_same(got, x[key(x.ndim, dims, indices)])


def assert_put(x, index, new):
    """Fail unless rows are put where NumPy puts them."""
    expected = x.copy()
    expected[index] = new
    got = select.index_put(device(x), device(new), device(index), dims=(0,), accumulate=False)
    assert (got.get() == expected).all()


@pytest.mark.parametrize("dtype", ANY)
def test_dtypes(dtype, rng):
    """Elements of any size move unchanged, one by one and in packs of 16 bytes."""
    for columns in (1, 3, 16, 32):
        x, index = drawn(rng, (6, columns), dtype), rng.integers(0, 6, 5)
        assert (select.index(device(x), device(index), dims=(0,)).get() == x[index]).all()
        new = drawn(rng, (5, columns), dtype)
        index = rng.permutation(6)[:5]
        assert_put(x, index, new)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", PICKS)
def test_index_grad(case, layout, way, rng):
    """The gradient of ``x[index]`` adds up all uses of a place."""
    shape, dims, _ = PICKS[case]
    indices = places(rng, case, "int64")
    where = key(len(shape), dims, indices)
    grad = rng.integers(-9, 9, np.empty(shape)[where].shape).astype(np.float32)
    expected = np.zeros(shape, np.float32)
    np.add.at(expected, where, grad)
    raw = spread(grad, layout) if grad.size else device(grad)
    got = select.index_grad(raw, *map(device, indices), shape=shape, dims=dims)
    # whole numbers: any order of additions gives the same bits
    assert (got.get() == expected).all()


@every_float
def test_sums_accumulate_in_float32(dtype, way, rng):
    """A thousand uses of few places are added up without the rounding of half types."""
    grad, index = rounded(rng.standard_normal((1000, 5)), dtype), rng.integers(0, 3, 1000)
    expected = np.zeros((4, 5))
    np.add.at(expected, index, grad)
    got = select.index_grad(on_device(grad, dtype).array, device(index), shape=(4, 5), dims=(0,))
    assert_near(got, expected, dtype)


@pytest.mark.parametrize("uses", [1, 63, 64, 65, 128, 1000])
@pytest.mark.parametrize("high", [1, 2, 40])
def test_sums_in_order(uses, high, rng):
    """In a fixed order, runs of equal places may begin and end anywhere in the windows of 64, and bits repeat."""
    lucid.use_deterministic_algorithms(True)
    try:
        grad, index = rng.standard_normal((uses, 3)).astype(np.float32), rng.integers(0, high, uses)
        first, second = (
            select.index_grad(device(grad), device(index), shape=(high + 1, 3), dims=(0,)).get() for _ in range(2)
        )
    finally:
        lucid.use_deterministic_algorithms(False)
    expected = np.zeros((high + 1, 3))
    np.add.at(expected, index, grad.astype(np.float64))
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-4)
    assert (first == second).all()


@pytest.mark.parametrize("dtype", ANY)
def test_accumulating_put(dtype, way, rng):
    """`index_put` with accumulate, and so `index_add`, counts every repetition, in every dtype."""
    x, new, index = drawn(rng, (4, 6), dtype), drawn(rng, (9, 6), dtype), rng.integers(-4, 4, 9)
    expected = x.copy()
    np.add.at(expected, index, new)
    got = select.index_put(device(x), device(new), device(index), dims=(0,), accumulate=True)
    assert got is not NotImplemented
    assert got.dtype == x.dtype
    tolerance = {"float16": 2**-8, "bfloat16": 2**-5}.get(dtype, 0)
    kind = "c16" if dtype.startswith("complex") else "f8"
    np.testing.assert_allclose(got.get().astype(kind), expected.astype(kind), rtol=tolerance, atol=200 * tolerance)


def test_put_broadcasts_and_fills(rng):
    """A value of fewer dimensions is repeated, and a number fills; the table itself stays as it was."""
    x, index, row = drawn(rng, (5, 8), "float32"), np.array([3, 0]), drawn(rng, (8,), "float32")
    table = device(x)
    expected = x.copy()
    expected[index] = row
    assert (select.index_put(table, device(row), device(index), dims=(0,), accumulate=False).get() == expected).all()
    expected[index] = -2.5
    assert (select.index_put(table, -2.5, device(index), dims=(0,), accumulate=False).get() == expected).all()
    assert (table.get() == x).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_that_are_put_lie_anywhere(layout, rng):
    """What is written is read from where it lies, by packs that fit into the table's rows too, whatever the op."""
    x, index = drawn(rng, (5, 8), "float32"), np.array([3, 0])
    new, along = drawn(rng, (2, 8), "float32"), np.repeat(index[:, None], 8, 1)
    expected = x.copy()
    expected[index] = new
    for table in (device(x), spread(x, "unaligned")):
        put = select.index_put(table, spread(new, layout), device(index), dims=(0,), accumulate=False)
        scattered = select.scatter(table, device(along), spread(new, layout), dim=0)
        assert (put.get() == expected).all()
        assert (scattered.get() == expected).all()
    expected = x.copy()
    np.add.at(expected, index, new)
    got = select.index_put(device(x), spread(new, layout), device(index), dims=(0,), accumulate=True)
    assert (got.get() == expected).all()


def test_last_write_stays(rng):
    """In a fixed order the last of several writes to one place stays, as on the CPU."""
    lucid.use_deterministic_algorithms(True)
    try:
        for columns in (1, 3, 16):
            x, new, index = (
                drawn(rng, (4, columns), "float32"),
                drawn(rng, (200, columns), "float32"),
                rng.integers(-4, 3, 200),
            )
            assert_put(x, index, new)
        x, src, index = drawn(rng, (3, 4), "int64"), drawn(rng, (3, 50), "int64"), rng.integers(0, 4, (3, 50))
        expected = x.copy()
        for r, c in itertools.product(range(3), range(50)):
            expected[r, index[r, c]] = src[r, c]
        assert (select.scatter(device(x), device(index), device(src), dim=1).get() == expected).all()
    finally:
        lucid.use_deterministic_algorithms(False)


# Shape of the table, of the index, dimension.
ALONG = {
    "rows": ((5, 7), (3, 7), 0),
    "columns": ((5, 7), (5, 33), 1),
    "smaller": ((4, 3, 2), (5, 2, 1), 0),
    "middle": ((3, 6, 8), (3, 2, 8), 1),
    "flat": ((1025,), (1023,), 0),
    "none": ((3, 4), (3, 0), 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", ALONG)
def test_along(case, layout, way, rng):
    """Gather, its gradient, scatter and scatter_add, of any layout, against loops."""
    shape, many, dim = ALONG[case]
    x, index = drawn(rng, shape, "float32"), rng.integers(0, shape[dim], many)
    src = rng.integers(-9, 9, many).astype(np.float32)
    picked, summed, total = np.empty(many, np.float32), np.zeros(shape, np.float32), x.copy()
    for at in np.ndindex(*many):
        place = (*at[:dim], index[at], *at[dim + 1 :])
        picked[at] = x[place]
        summed[place] += src[at]
        total[place] += src[at]
    raw_src = spread(src, layout) if src.size else device(src)
    raw_index = spread(index, layout) if index.size else device(index)
    assert (select.gather(spread(x, layout), raw_index, dim=dim).get() == picked).all()
    assert (select.gather_grad(raw_src, raw_index, shape=shape, dim=dim, unique=False).get() == summed).all()
    assert (select.scatter_add(spread(x, layout), raw_index, raw_src, dim=dim).get() == total).all()
    filled = x.copy()
    for at in np.ndindex(*many):
        filled[(*at[:dim], index[at], *at[dim + 1 :])] = 7
    assert (select.scatter(spread(x, layout), raw_index, 7.0, dim=dim).get() == filled).all()
    added = np.zeros(shape, np.float32)
    np.add.at(added.reshape(-1), np.ravel_multi_index(np.nonzero(np.ones(many)), many)[:0], 0)
    got = select.scatter_add(device(added), raw_index, 2.0, dim=dim).get()
    assert got.sum() == 2 * index.size


def test_expanded_index_and_table(rng):
    """`take_along_dim` broadcasts table and index without copies."""
    x, index = drawn(rng, (1, 6), "float32"), rng.integers(0, 6, (4, 1))
    got = lucid.take_along_dim(lucid.tensor(x, device="cuda"), lucid.tensor(index, device="cuda"), 1)
    assert (got.cpu().numpy() == np.take_along_axis(np.broadcast_to(x, (4, 6)), index, 1)).all()


# ---- outside ----

OUTSIDE = {
    "getitem": (lambda x, i: x[i], (4, 3), -5),
    "index_select": (lambda x, i: lucid.index_select(x, 0, i), (4, 3), -5),
    "take": (lucid.take, (12,), -13),
    "gather": (lambda x, i: lucid.gather(x, 0, i), (4,), -1),
    "embedding": (lambda x, i: lucid.nn.functional.embedding(i, x), (4, 3), -1),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_reads_zero(name, way, rng):
    """An index that names no place picks zero, its gradient goes nowhere; in debug mode it raises, with its size."""
    op, shape, low = OUTSIDE[name]
    values = rng.standard_normal(shape).astype(np.float32)
    size = shape[0]
    for outside in (low, size, 2**40, -(2**40)):
        x = lucid.tensor(values, device="cuda", requires_grad=True)
        good = rng.integers(0, size, 3)
        index = np.concatenate([good[:1], [outside], good[1:]])
        out = op(x, lucid.tensor(index, device="cuda"))
        expected = values[index * (index == np.clip(index, 0, size - 1))]
        expected[1] = 0
        assert (out.detach().cpu().numpy() == expected).all()
        grad = rng.integers(-9, 9, expected.shape).astype(np.float32)
        out.backward(lucid.tensor(grad, device="cuda"))
        back = np.zeros(shape, np.float32)
        np.add.at(back, good, grad[[0, 2, 3]])
        assert (x.grad.cpu().numpy() == back).all()
        lucid.cuda.set_debug(True)
        try:
            with pytest.raises(IndexOutOfRangeError) as caught:
                op(x, lucid.tensor(index, device="cuda"))
        finally:
            lucid.cuda.set_debug(False)
        assert str(outside) in str(caught.value)
        assert str(size if name != "embedding" else size - 1) in str(caught.value)


def test_outside_writes_nothing(way, rng):
    """What an index that names no place would write or add is left out."""
    x, new = drawn(rng, (4, 3), "float32"), drawn(rng, (5, 3), "float32")
    index = np.array([1, 4, -5, 3, 2**40])
    for accumulate in (False, True):
        expected = x.copy()
        expected[[1, 3]] = new[[0, 3]] + x[[1, 3]] * accumulate
        got = select.index_put(device(x), device(new), device(index), dims=(0,), accumulate=accumulate)
        assert (got.get() == expected).all()
    columns = np.array([[0, 3, -1], [3, 2, 9], [-1, -1, 1], [7, 0, 3]])
    expected = x.copy()
    expected[0, 0], expected[1, 2], expected[2, 1], expected[3, 0] = new[0, 0], new[1, 1], new[2, 2], new[3, 1]
    got = select.scatter(device(x), device(columns), device(new[:4]), dim=1)
    assert (got.get() == expected).all()


def test_one_of_two_outside(rng):
    """Of several indices, one that is outside makes the place none, also where the sum of both would be inside."""
    x = drawn(rng, (4, 5), "float32")
    rows, columns = np.array([0, 3, 4, 2, 4]), np.array([5, 4, -5, -6, 3])
    got = select.index(device(x), device(rows), device(columns), dims=(0, 1)).get()
    assert (got == [0, x[3, 4], 0, 0, 0]).all()


def test_places_beyond_32_bits():
    """Places are counted in 64 bits: a table of 2^33 elements on the memory of one."""
    table = gpu.cupy().broadcast_to(device(np.float32([7])), (2**33,))
    index = device(np.array([2**33 - 1, -1, -(2**33), 2**33, 2**32]))
    assert (select.index(table, index, dims=(0,)).get() == [7, 7, 7, 0, 7]).all()


def test_switches():
    """The switches say what they were set to; only bools of their own kind change what is enabled."""
    assert not lucid.are_deterministic_algorithms_enabled()
    lucid.use_deterministic_algorithms(True)
    assert lucid.are_deterministic_algorithms_enabled()
    lucid.use_deterministic_algorithms(False)
    lucid.cuda.set_debug(True)
    assert lucid.cuda.is_debug()
    lucid.cuda.set_debug(False)
    assert not lucid.cuda.is_debug()
