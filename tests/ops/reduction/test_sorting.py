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
