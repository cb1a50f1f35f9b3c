"""Bags of rows on a CUDA device: sums, greatest rows and numbers of bags, of tables of any layout."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.base import gpu
from lucid.ops.embedding.embedding_bag import _bag_most_cuda, _bag_numbers_cuda, _bag_sums_cuda
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
INDEX = np.array([3, 1, 1, 4, 0, 8, 1, 7, 7, 5])
STARTS = np.array([0, 0, 4, 4, 5])
BAGS = [INDEX[:0], INDEX[:4], INDEX[:0], INDEX[4:5], INDEX[5:]]


def layouts(array):
    """Return the array with its elements in several orders of memory."""
    xp = gpu.cupy()
    return array, xp.ascontiguousarray(array.T).T, xp.ascontiguousarray(array[::-1])[::-1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [1, 33])
@pytest.mark.parametrize("padding", [None, 1])
def test_bags(padding, columns, dtype, rng):
    """Each bag has the sum of its rows times their shares, and the greatest of them; of none zero, and no row."""
    xp = gpu.cupy()
    table, shares = rounded(rng.standard_normal((9, columns)), dtype), rng.uniform(0.5, 2, INDEX.size)
    work = np.float64 if dtype == "float64" else np.float32
    shares = shares.astype(work).astype(np.float64)
    counted = np.where(padding == INDEX, 0, shares)
    expected = np.stack([(table[INDEX] * counted[:, None])[a:b].sum(0) for a, b in zip(STARTS, [*STARTS[1:], 10])])
    plain = np.stack([table[bag[bag != padding]].sum(0) for bag in BAGS])
    index, starts = xp.asarray(INDEX), xp.asarray(STARTS)
    for weight in layouts(on_device(table, dtype).array):
        for given, wanted in ((xp.asarray(shares, work), expected), (None, plain)):
            got = _bag_sums_cuda(weight, given, index, starts, None, padding=padding, by_frequency=False)
            assert_near(got, wanted, dtype)
        most = _bag_most_cuda(weight, index, starts, padding=padding).get()
        for bag, rows in zip(BAGS, most, strict=True):
            kept = bag[bag != padding]
            assert (rows == (kept[table[kept].argmax(0)] if kept.size else -1)).all()


def test_numbers_of_bags():
    """Each place has the last bag that begins there or before, so that bags without places have none."""
    xp = gpu.cupy()
    got = _bag_numbers_cuda(xp.asarray(STARTS), places=INDEX.size)
    assert got.tolist() == [1, 1, 1, 1, 3, 4, 4, 4, 4, 4]
    assert _bag_numbers_cuda(xp.asarray(STARTS), places=0).size == 0


def test_numbers_that_name_no_row_are_left_out():
    """On the device nobody looks at them: they count for nothing, and bags end where the places do."""
    xp = gpu.cupy()
    table = xp.asarray(np.array([[2.0], [np.nan], [np.nan]], np.float32))
    index, starts = xp.asarray(np.array([-1, 0, 9, 2, 1])), xp.asarray(np.array([-3, 3, 99]))
    assert _bag_sums_cuda(table, None, index, starts, None, padding=None, by_frequency=False)[0, 0] == 2
    assert _bag_most_cuda(table, index, starts, padding=None).tolist() == [[0], [2], [-1]]
