"""What is shared out over devices, and put together again."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError
from lucid.nn.parallel.scatter_gather import gather, scatter
from tests.device import DEVICE
from tests.gradients import numbers


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_parts_of_a_dimension(dim, rng):
    """A tensor is cut along the dimension into as many parts as there are devices, which `gather` joins."""
    array = rng.standard_normal((4, 6, 2))
    parts = scatter(lucid.tensor(array), [DEVICE, DEVICE], dim)
    for part, expected in zip(parts, np.split(array, 2, dim), strict=True):
        np.testing.assert_array_equal(numbers(part), expected)
    np.testing.assert_array_equal(numbers(gather(parts, DEVICE, dim)), array)


def test_parts_of_structures(rng):
    """Each device gets a structure of its parts; what is no tensor goes to all, and no more parts are than rows."""
    array = rng.standard_normal((3, 2))
    given = {"x": lucid.tensor(array), "more": [lucid.tensor(array), "word"], "none": ()}
    parts = scatter(given, [DEVICE, DEVICE])
    for part, expected in zip(parts, (array[:2], array[2:]), strict=True):
        assert (list(part), type(part["more"]), part["more"][1], part["none"]) == (list(given), list, "word", ())
        np.testing.assert_array_equal(numbers(part["x"]), expected)
        np.testing.assert_array_equal(numbers(part["more"][0]), expected)
    for nothing in ([], {}, ()):
        assert scatter(nothing, [DEVICE, DEVICE]) == [nothing, nothing]
    assert len(scatter((lucid.tensor(array[:1]), 3), [DEVICE] * 3)) == 1
    with pytest.raises(ArgumentError, match="expected at least one device in target_gpus, got none"):
        scatter(given, [])
