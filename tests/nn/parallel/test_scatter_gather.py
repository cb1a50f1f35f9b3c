"""What is shared out over devices, and put together again."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, ShapeError
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


class Pair(NamedTuple):
    """A named tuple."""

    x: Any
    y: Any


def test_parts_of_containers_with_a_form_of_their_own(rng):
    """Named tuples stay such, at any depth, and dicts keep their default for what they lack."""
    array = rng.standard_normal((4, 2))
    parts = scatter([Pair(lucid.tensor(array), Pair("word", lucid.tensor(array)))], [DEVICE, DEVICE])
    for (part,), expected in zip(parts, np.split(array, 2), strict=True):
        assert (type(part), type(part.y), part.y.x) == (Pair, Pair, "word")
        np.testing.assert_array_equal(numbers(part.x), expected)
        np.testing.assert_array_equal(numbers(part.y.y), expected)
    by_default = defaultdict(list, x=lucid.tensor(array))
    for part, expected in zip(scatter(by_default, [DEVICE, DEVICE]), np.split(array, 2), strict=True):
        assert (type(part), list(part), part["more"]) == (defaultdict, ["x"], [])
        np.testing.assert_array_equal(numbers(part["x"]), expected)
    assert list(by_default) == ["x"]


def test_numbers_become_a_vector():
    """Tensors without dimensions are gathered into one vector, through which gradients flow, with a warning."""
    losses = [lucid.tensor(value, requires_grad=True) for value in (1.0, 2.0)]
    with pytest.warns(UserWarning, match="without dimensions"):
        joined = gather(losses, DEVICE)
    np.testing.assert_array_equal(numbers(joined), [1, 2])
    (joined * lucid.tensor([3.0, 4.0])).sum().backward()
    assert [loss.grad.item() for loss in losses] == [3, 4]
    with pytest.raises(ShapeError):
        gather([losses[0], lucid.ones(2)], DEVICE)
