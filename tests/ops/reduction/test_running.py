"""Extremes of all elements up to each one, against a loop over them."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from tests.device import DEVICE
from tests.gradients import numbers


def looked_through(line, largest):
    """Return for each element the index of the extreme so far: the last of equal ones, and of NaN if there is one."""
    places, best = [], 0
    for k, value in enumerate(line):
        reached = np.isnan(value) or (
            not np.isnan(line[best]) and (value >= line[best] if largest else value <= line[best])
        )
        best = k if reached else best
        places.append(best)
    return places


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("largest", [True, False])
def test_extremes_so_far(dtype, largest, rng):
    """Values and places are those of a loop along any dimension, with equal elements, NaN, infinities, both zeros."""
    for shape in ((1,), (40,), (7, 9), (3, 8, 5), (0, 4), (4, 0)):
        values = rng.integers(0, 5, shape).astype(np.float32)
        if dtype in {"float16", "bfloat16", "float32", "float64"} and values.size > 20:
            odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, -3.0], np.float32)
            values.reshape(-1)[rng.permutation(values.size)[:6]] = odd
        x = lucid.tensor(values).to(getattr(lucid, dtype))
        for turned in (x, x.mT if x.ndim > 1 else x.flip(0)):
            for dim in range(x.ndim):
                found = (turned.cummax if largest else turned.cummin)(dim)
                plain = numbers(turned.to(lucid.float64))
                expected = np.apply_along_axis(looked_through, dim, plain, largest) if plain.size else plain.astype(int)
                np.testing.assert_array_equal(numbers(found.indices), expected)
                np.testing.assert_array_equal(
                    numbers(found.values.to(lucid.float64)), np.take_along_axis(plain, expected, dim)
                )
                assert found.indices.is_contiguous() or DEVICE != "cpu"
