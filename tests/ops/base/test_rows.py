"""What is done with the rows of a matrix on the CPU, against NumPy over the same dimension."""

import numpy as np
import pytest

import lucid
from lucid.ops.base.rows import LONG_ROW, SUMMED_AT_ONCE, by_rows, row_maxima, row_products, row_sums


@pytest.mark.parametrize("columns", [1, 7, SUMMED_AT_ONCE, SUMMED_AT_ONCE + 1])
def test_rows_against_numpy(columns, rng):
    """Sums, products and largest numbers of rows, also of rows that do not lie together, are NumPy's, as columns."""
    x, y = rng.standard_normal((2, 5, 2 * columns))[..., ::2]
    np.testing.assert_allclose(row_sums(x), x.sum(1, keepdims=True), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(row_products(x, y), (x * y).sum(1, keepdims=True), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(row_maxima(x), x.max(1, keepdims=True))


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
