"""What is done with the rows of a matrix on the CPU, against NumPy over the same dimension."""

import numpy as np
import pytest

import lucid
from lucid.ops.base.core import sum_to_array
from lucid.ops.base.rows import (
    LONG_ROW,
    ROWS_AT_ONCE,
    SUMMED_AT_ONCE,
    by_rows,
    column_sums,
    row_maxima,
    row_products,
    row_sums,
)


@pytest.mark.parametrize("columns", [1, 7, SUMMED_AT_ONCE, SUMMED_AT_ONCE + 1])
def test_rows_against_numpy(columns, rng):
    """Sums, products and largest numbers of rows, also of rows that do not lie together, are NumPy's, as columns."""
    x, y = rng.standard_normal((2, 5, 2 * columns))[..., ::2]
    np.testing.assert_allclose(row_sums(x), x.sum(1, keepdims=True), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(row_products(x, y), (x * y).sum(1, keepdims=True), rtol=1e-12, atol=1e-12)
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


def test_many_rows_round_little():
    """200,000 tenths of float32 add up to within their last bits, where one by one loses a thousandth."""
    x = np.full((200_000, 2), 0.1, np.float32)
    np.testing.assert_allclose(sum_to_array(np, x, (2,)), 200_000 * float(x[0, 0]), rtol=1e-6)
    assert abs(np.add.accumulate(x[:, 0])[-1] / 20_000 - 1) > 1e-3


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
