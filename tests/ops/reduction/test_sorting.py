"""Sorting and choosing: what rows of the sample table are too short to show."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from tests.gradients import numbers


@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_rows(largest, rng):
    """The few largest or smallest of many elements, of which each occurs once, come in order and with their places."""
    values = rng.permuted(np.arange(2 * 3000).reshape(2, 3000), axis=1).astype(np.float32)
    found = lucid.tensor(values).topk(7, largest=largest)
    order = np.argsort(-values if largest else values, axis=1)[:, :7]
    np.testing.assert_array_equal(numbers(found.indices), order)
    np.testing.assert_array_equal(numbers(found.values), np.take_along_axis(values, order, 1))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("shape", [(60, 5), (3, 70, 4), (80, 2, 3)])
def test_topk_across_rows(shape, largest, rng):
    """Along dimensions that lie across in memory values and places are those of a sort, and so are gradients."""
    values = rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float64)
    for dim, size in enumerate(shape):
        for k in (1, 2, size // 4, size):
            x = lucid.tensor(values, requires_grad=True)
            found = x.topk(k, dim, largest)
            order = np.argsort(-values if largest else values, dim).take(range(k), dim)
            np.testing.assert_array_equal(numbers(found.indices), order)
            np.testing.assert_array_equal(numbers(found.values), np.take_along_axis(values, order, dim))
            upstream = rng.standard_normal(order.shape)
            found.values.backward(lucid.tensor(upstream))
            expected = np.zeros(shape)
            np.put_along_axis(expected, order, upstream, dim)
            np.testing.assert_array_equal(numbers(x.grad), expected)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6, 7, 49, 50])
def test_kthvalue_from_either_end(k, rng):
    """Of different elements it is the one at that place of the sorted ones; NaN is greater than all."""
    values = rng.permuted(np.arange(3 * 50).reshape(3, 50), axis=1).astype(np.float64)
    values[0, 7] = np.nan
    for dim, array in ((1, values), (0, values.T.copy())):
        found = lucid.tensor(array).kthvalue(k, dim)
        order = np.argsort(array, dim).take(k - 1, dim)
        np.testing.assert_array_equal(numbers(found.indices), order)
        np.testing.assert_array_equal(numbers(found.values), np.sort(array, dim).take(k - 1, dim))


def test_stable_orders_of_equal_elements(rng):
    """Equal elements keep their order upwards and downwards alike, NaN counts as the largest, and so in long rows."""
    values = rng.integers(0, 5, (3, 1500)).astype(np.float64)
    values[values == 4] = np.nan
    number = np.nan_to_num(values, nan=4)
    for descending in (False, True):
        order = np.argsort(-number if descending else number, axis=1, kind="stable")
        found = lucid.sort(lucid.tensor(values), descending=descending, stable=True)
        np.testing.assert_array_equal(numbers(found.indices), order)
        np.testing.assert_array_equal(numbers(found.values), np.take_along_axis(values, order, 1))
        places = lucid.argsort(lucid.tensor(values), 1, descending, stable=True)
        np.testing.assert_array_equal(numbers(places), order)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_the_side_of_equal_elements(side, right):
    """`right` and `side` are two names of one thing: NumPy's places, or a refusal where left and right are meant."""
    row, values = [1.0, 2.0, 2.0, 3.0], [0.0, 2.0, 3.0, 4.0]
    given = lucid.tensor(row), lucid.tensor(values)
    if side == "left" and right:
        with pytest.raises(ValueError, match="expected side 'left' or 'right' that agrees with right=True, got 'left'"):
            lucid.searchsorted(*given, side=side, right=right)
        return
    found = lucid.searchsorted(*given, side=side, right=right)
    assert found.tolist() == np.searchsorted(row, values, "right" if right or side == "right" else "left").tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
def test_sums_of_weights_at_places(dtype):
    """Weights of float32 are summed in it, all others in float64; without weights places are counted."""
    places = lucid.tensor([0, 2, 2])
    found = lucid.bincount(places, lucid.tensor([1.0, 2.0, 3.0]).to(getattr(lucid, dtype)), 4)
    assert found.tolist() == [1, 0, 5, 0]
    assert found.dtype is (lucid.float32 if dtype == "float32" else lucid.float64)
    assert lucid.bincount(places).tolist() == [1, 0, 2]


@pytest.mark.parametrize("equal_nan", [False, True])
def test_infinities_are_close_to_themselves_alone(equal_nan):
    """No tolerance reaches from a number to an infinity, or from one infinity to the other."""
    values = [1.0, np.inf, -np.inf, np.nan]
    a, b = np.meshgrid(values, values)
    for rtol, atol in ((1e-5, 1e-8), (10.0, 1e300), (0.0, 0.0)):
        found = lucid.isclose(lucid.tensor(a), lucid.tensor(b), rtol, atol, equal_nan)
        expected = np.equal(a, b) | (equal_nan & np.isnan(a) & np.isnan(b))
        np.testing.assert_array_equal(numbers(found), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_nan_is_distinct(dtype):
    """It equals nothing, not even the NaN beside it, whether all elements are compared or neighbours only."""
    x = lucid.tensor([np.nan, 1.0, 1.0, np.nan, np.nan], dtype=getattr(lucid, dtype))
    for function, expected, counts in (
        (lucid.unique, [1, np.nan, np.nan, np.nan], [2, 1, 1, 1]),
        (lucid.unique_consecutive, [np.nan, 1, np.nan, np.nan], [1, 2, 1, 1]),
    ):
        values, often = function(x, return_counts=True)
        np.testing.assert_array_equal(numbers(values).astype(float), expected)
        assert often.tolist() == counts


@pytest.mark.parametrize("function", [lucid.unique, lucid.unique_consecutive])
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_the_inverse_makes_the_input_again(function, dim, rng):
    """Without a dimension it has the shape of the input, along one that of its places; counts are how often each is."""
    array = rng.integers(0, 2, (6, 5, 4))
    for d in (0, 1, 2):  # some lines beside each other are equal
        array = array.take([0, 0, *range(1, array.shape[d])], d)
    values, inverse, counts = function(lucid.tensor(array), return_inverse=True, return_counts=True, dim=dim)
    found, places = numbers(values), numbers(inverse)
    assert places.shape == (array.shape if dim is None else array.shape[dim : dim + 1 or None])
    np.testing.assert_array_equal(found[places] if dim is None else found.take(places, dim), array)
    np.testing.assert_array_equal(numbers(counts), np.bincount(places.ravel()))
    assert len(counts) == found.shape[dim or 0] < places.size


@pytest.mark.parametrize("shape", [(6,), (2, 3, 6)])
def test_a_sorter_orders_rows(shape, rng):
    """Rows in no order are searched through the indices that sort them, as sorted rows are."""
    rows, values = lucid.tensor(rng.uniform(size=shape)), lucid.tensor(rng.uniform(size=(*shape[:-1], 4)))
    found = lucid.searchsorted(rows, values, sorter=lucid.argsort(rows))
    assert found.tolist() == lucid.searchsorted(lucid.sort(rows).values, values).tolist()


def test_what_is_no_sorter_is_refused():
    """It holds int64 indices of the shape of the rows, on the CPU of elements that are there."""
    rows = lucid.ones(3)
    with pytest.raises(DtypeError, match="sorter: expected indices of int64, got int32"):
        lucid.searchsorted(rows, rows, sorter=lucid.zeros(3, dtype=lucid.int32))
    with pytest.raises(ShapeError, match=r"sorter: expected the shape of the rows, \[3\], got \[2\]"):
        lucid.searchsorted(rows, rows, sorter=lucid.zeros(2, dtype=lucid.int64))
    with pytest.raises(IndexError, match="sorter: index out of range of rows of 3"):
        lucid.searchsorted(lucid.ones(3, device="cpu"), 1.0, sorter=lucid.tensor([0, 1, 3], device="cpu"))
