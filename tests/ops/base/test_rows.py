"""What is done with the rows of a matrix on the CPU, against NumPy over the same dimension."""

from itertools import chain, combinations

import numpy as np
import pytest

import lucid
from lucid.ops.base.core import sum_to_array
from lucid.ops.base.rows import (
    FEW,
    LONG_ROW,
    ROWS_AT_ONCE,
    SUMMED_AT_ONCE,
    about_the_mean,
    array_sum,
    by_rows,
    column_sums,
    row_maxima,
    row_products,
    row_sums,
    running_sums,
)
from tests.device import DEVICE
from tests.gradients import numbers
from tests.stress.rounding import ROWS, worst_of

LARGEST = 2**20 if DEVICE == "cpu" else 2**14


@pytest.mark.parametrize("columns", [1, 7, SUMMED_AT_ONCE, SUMMED_AT_ONCE + 1])
def test_rows_against_numpy(columns, rng):
    """Sums, products and largest numbers of rows, also of rows that do not lie together, are NumPy's, as columns."""
    x, y = rng.standard_normal((2, 5, 2 * columns))[..., ::2]
    np.testing.assert_allclose(row_sums(x), x.sum(1, keepdims=True), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(row_products(x, y), (x * y).sum(1, keepdims=True), rtol=1e-12, atol=1e-12)
    turned = y + 1j * x
    np.testing.assert_allclose(row_products(turned, x), (turned * x).sum(1, keepdims=True), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(row_maxima(x), x.max(1, keepdims=True))


@pytest.mark.parametrize("rows", [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 3 * ROWS_AT_ONCE**2 + 2 * ROWS_AT_ONCE + 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_against_numpy(dtype, rows, rng):
    """Sums of columns are those of float64, also where rows are added in groups, and groups of groups."""
    x = rng.standard_normal((rows, 10)).astype(dtype)[:, ::2]
    total = column_sums(x)
    assert total.dtype == dtype
    allowed = 4 * np.finfo(dtype).eps * max(rows, 1)
    np.testing.assert_allclose(total, x.sum(0, dtype=np.longdouble), rtol=0, atol=min(allowed, 1e-3))
    x[: rows // 2 + 1, 1], x[: rows // 2 + 1, 2] = np.nan, np.inf
    if rows:
        np.testing.assert_array_equal(column_sums(x)[1:3], [np.nan, np.inf])


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((4, 5, 6), (6,)),
        ((4, 5, 6), (5, 6)),
        ((4, 5, 6), (1, 6)),
        ((4, 5, 6), ()),
        ((4, 0, 6), (6,)),
        ((4, 5, 0), (0,)),
    ],
)
def test_sums_that_undo_broadcasting(shape, wanted, rng):
    """They are NumPy's over the dimensions that were broadcast, of arrays in any order in memory."""
    x = rng.standard_normal(shape)
    lead = len(shape) - len(wanted)
    ones = tuple(lead + d for d, size in enumerate(wanted) if size == 1 != shape[lead + d])
    expected = x.sum((*range(lead), *ones)).reshape(wanted)
    for array in (x, x.T.copy().T, x.astype(np.longdouble)):
        np.testing.assert_allclose(sum_to_array(np, array, wanted), expected, rtol=1e-12, atol=1e-12)


LAYOUTS = {
    "in order": lambda x: x,
    "in Fortran's": np.asfortranarray,
    "turned": lambda x: x.transpose(*range(1, x.ndim), 0),
    "with gaps": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: x[::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize("shape", [(FEW + 1,), (70, 40), (5, 7, 80), (3, 1, 700, 2), (65, 65, 3), (2, 4, 5, 5, 17)])
def test_sums_over_any_axes(shape, dtype, layout, rng):
    """They are those of float64, over each choice of axes, with NumPy's shape and dtype."""
    x = LAYOUTS[layout]((10 * rng.standard_normal(shape)).astype(dtype))
    work = np.dtype(np.float32) if dtype is np.float16 else None
    exact = x.astype(np.complex128 if dtype is np.complex64 else np.float64)
    for axes in chain.from_iterable(combinations(range(x.ndim), count) for count in range(x.ndim + 1)):
        for keepdims in (False, True):
            known = np.add.reduce(x, axes, work, None, keepdims)
            for named in (axes, None) if len(axes) == x.ndim else (axes,):
                total = array_sum(x, named, work, keepdims)
                assert (total.shape, total.dtype) == (known.shape, known.dtype)
                expected = np.add.reduce(exact, axes, keepdims=keepdims)
                size = np.add.reduce(np.abs(exact), axes, keepdims=keepdims)
                assert np.all(np.abs(total - expected) <= 40 * np.finfo(np.float32).eps * size + 1e-12)


@pytest.mark.parametrize("layout", ["in order", "turned", "with gaps", "backwards"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("size", [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 2 * ROWS_AT_ONCE, ROWS_AT_ONCE**2 + 70])
def test_running_sums(size, dtype, layout, rng):
    """They are those of float64, along each axis; what is infinite stays so, and minus zeros stay."""
    for shape in ((size,), (size, 3), (2, size, 2), (3, 0, size)):
        x = LAYOUTS[layout](rng.standard_normal(shape).astype(dtype))
        work = np.dtype(np.float32) if dtype is np.float16 else x.dtype
        exact = x.astype(np.complex128 if dtype is np.complex64 else np.float64)
        for axis in range(x.ndim):
            sums = running_sums(x, axis, work)
            assert (sums.shape, sums.dtype) == (x.shape, work)
            np.testing.assert_allclose(sums, np.cumsum(exact, axis), rtol=1e-4, atol=1e-4)
    if size and dtype is not np.complex64:
        assert np.all(np.signbit(running_sums(np.full(size, -0.0, dtype), 0, np.dtype(dtype))))
    if size > 1 and dtype is np.float32:
        x = np.zeros(size, dtype)
        x[:2], x[-1] = 3e38, -3e38
        with np.errstate(over="ignore"):
            assert np.all(running_sums(x, 0, x.dtype)[1:] == np.inf)


def summed_in_groups(x, dtype):
    """Return running sums of the first dimension: within groups, of groups, and of groups of groups."""
    groups = [x[k : k + ROWS_AT_ONCE].astype(dtype) for k in range(0, len(x), ROWS_AT_ONCE)]
    for group in groups:
        for k in range(1, len(group)):
            group[k] += group[k - 1]
    whole = [group[-1] for group in groups if len(group) == ROWS_AT_ONCE]
    if len(groups) > 1:
        for group, end in zip(groups[1:], summed_in_groups(np.array(whole), dtype), strict=False):
            group += end
    return np.concatenate(groups)


@pytest.mark.parametrize("layout", ["in order", "turned", "with gaps", "backwards"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
@pytest.mark.parametrize(
    "shape", [(20_000,), (33_000, 1), (20, 1000), (20, 1024), (900, 32), (900, 33), (64, 300), (2005, 16), (30, 40, 70)]
)
def test_bits_of_running_sums(shape, dtype, layout, rng):
    """Of few and of many elements alike each is added in the same order: groups are summed at once, not otherwise."""
    values = rng.standard_normal(shape).astype(dtype)
    values.reshape(-1)[[3, -1]] = -0.0, np.inf
    x = LAYOUTS[layout](values)
    work = np.dtype(np.float32) if dtype is np.float16 else x.dtype
    for axis in range(x.ndim):
        with np.errstate(invalid="ignore"):
            expected = np.moveaxis(summed_in_groups(np.moveaxis(x, axis, 0), work), 0, axis)
            sums = running_sums(x, axis, work)
        assert np.array_equal(sums, expected, equal_nan=True)
        assert np.array_equal(np.signbit(sums.real), np.signbit(expected.real)) or dtype is np.complex64
        assert sums.flags.c_contiguous


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.sum(0),
        lambda x: x.mean(0),
        lambda x: x.reshape(-1, 4, 2, 2).sum((0, 2)),
        lambda x: x[:, ::2].sum(0),
        lambda x: x.norm(dim=0),
        lambda x: x.norm(1, dim=0),
        lambda x: x.cumsum(0)[-1],
        lambda x: lucid.logsumexp(x, 0),
        lambda x: lucid.softmax(x, 0)[0],
        lambda x: x.sum_to_size(1, 4),
        lambda x: x.var(0),
        lambda x: x.std(0),
    ],
)
def test_many_rows_round_little(op, rng):
    """200,000 rows of float32 near a tenth give the digits of float64; one by one a thousandth is lost."""
    x = lucid.tensor(0.1 + rng.uniform(0, 1e-3, (200_000, 4)), device=DEVICE)
    near = x.to(lucid.float32)
    np.testing.assert_allclose(numbers(op(near)), numbers(op(near.to(lucid.float64))), rtol=1e-5)


def test_one_by_one_a_thousandth_is_lost():
    """What the other tests guard against is there."""
    x = np.full(200_000, 0.1, np.float32)
    assert abs(np.add.accumulate(x)[-1] / 20_000 - 1) > 1e-3


def test_the_largest_of_special_values():
    """NaN is the largest number of its row, and a row of minus infinities has one too."""
    x = np.array([[1.0, np.nan, np.inf], [-np.inf, -np.inf, -np.inf], [-np.inf, 2.0, np.inf]])
    np.testing.assert_array_equal(row_maxima(x), [[np.nan], [-np.inf], [np.inf]])


def test_the_buffer_size_is_put_back(rng):
    """NumPy's buffers have the size that they had, after ops on long rows and after an error within."""
    before = np.getbufsize()
    lucid.softmax(lucid.tensor(rng.standard_normal((3, LONG_ROW))), 1)
    assert np.getbufsize() == before
    with pytest.raises(ZeroDivisionError), by_rows(3, LONG_ROW):
        assert np.getbufsize() == LONG_ROW
        raise ZeroDivisionError
    assert np.getbufsize() == before


@pytest.mark.parametrize("name", ROWS)
def test_roundings(name, rng):
    """Of the cases that ``python -m tests.stress.rounding`` goes through, one in so many."""
    worst, place = worst_of(name, LARGEST, DEVICE, rng, first=list(ROWS).index(name), step=97)
    assert worst <= ROWS[name].allowed, place


def test_squares_about_the_mean_are_never_negative():
    """What is taken from the sum of squares may be larger by a rounding: no root of it is NaN."""
    drift = np.array([1 + 2.0**-26, 3.0])
    squares = np.array([1 + 2.0**-25, 9.0])
    assert (drift * drift > squares).tolist() == [True, False]
    np.testing.assert_array_equal(about_the_mean(np, squares, drift, 1), [0.0, 0.0])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_an_infinite_part_leaves_the_other_one(dtype):
    """A sum of one complex number many times is infinite in the part that is, and counts the other."""
    x = np.array([[complex(np.inf, 1)], [complex(2, -np.inf)], [complex(3, 4)]], dtype)
    found = array_sum(np.broadcast_to(x, (3, 2 * ROWS_AT_ONCE)), (1,))
    many = 2 * ROWS_AT_ONCE
    np.testing.assert_array_equal(found.real, [np.inf, 2 * many, 3 * many])
    np.testing.assert_array_equal(found.imag, [many, -np.inf, 4 * many])
