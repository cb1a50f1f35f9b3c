"""Sorting and choosing: what rows of the sample table are too short to show."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from tests.gradients import numbers


@pytest.mark.parametrize("largest", [True, False])
def test_topk_of_long_rows(largest, rng):
    """The few largest or smallest of many elements, of which each occurs once, come in order and with their places."""
    values = rng.permuted(np.arange(2 * 3000).reshape(2, 3000), axis=1).astype(np.float32)
    found = lucid.tensor(values).topk(7, largest=largest)
    order = np.argsort(-values if largest else values, axis=1)[:, :7]
    np.testing.assert_array_equal(numbers(found.indices), order)
    np.testing.assert_array_equal(numbers(found.values), np.take_along_axis(values, order, 1))


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
