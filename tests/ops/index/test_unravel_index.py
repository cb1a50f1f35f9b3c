"""Places in the order of memory, and their indices along each dimension."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, LucidError, ShapeError
from tests.gradients import numbers


@pytest.mark.parametrize("dtype", [lucid.int64, lucid.int32, lucid.uint8])
@pytest.mark.parametrize("shape", [(2, 3, 4), (24,), (1, 24, 1)])
def test_indices_of_places(shape, dtype, rng):
    """Each dimension has NumPy's indices, in the shape of the places, and of int64."""
    places = rng.integers(0, 24, (2, 5))
    got = lucid.unravel_index(lucid.tensor(places, dtype=dtype), shape)
    assert [part.dtype for part in got] == [lucid.int64] * len(shape)
    np.testing.assert_array_equal([numbers(part) for part in got], np.unravel_index(places, shape))


def test_ends():
    """A number is a shape of one dimension; an empty shape has places of no tensor; no places fit no elements."""
    assert lucid.unravel_index(lucid.tensor([3]), 5)[0].tolist() == [3]
    assert lucid.unravel_index(lucid.tensor(0), ()) == ()
    none = lucid.unravel_index(lucid.zeros(0, dtype=lucid.int64), (0, 2))
    assert [tuple(part.shape) for part in none] == [(0,), (0,)]


BAD = {
    "floats": (lambda: lucid.unravel_index(lucid.ones(1), (2,)), DtypeError, "expected integers"),
    "negative": (lambda: lucid.unravel_index(lucid.tensor([1]), (2, -1)), ShapeError, "negative size"),
    "no places": (lambda: lucid.unravel_index(lucid.tensor([1]), (2, 0)), ShapeError, "no places"),
    "a list": (lambda: lucid.unravel_index([1], (2,)), LucidError, "expected a Tensor"),
    "positive of bools": (lambda: lucid.positive(lucid.tensor([True])), DtypeError, "positive"),
    "get_device of a list": (lambda: lucid.get_device([1.0]), LucidError, "Tensor"),
    "is_signed of a number": (lambda: lucid.is_signed(1.0), LucidError, "Tensor"),
    "is_same_size of a number": (lambda: lucid.is_same_size(1.0, lucid.ones(1)), LucidError, "Tensor"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    """What is no place, no size, or no tensor is refused."""
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_questions_about_tensors():
    """Functions of `lucid` answer as the methods do, and `positive` is the tensor itself."""
    x = lucid.ones(2, 3)
    assert lucid.positive(x) is x
    assert lucid.get_device(x) == x.get_device()
    assert (lucid.is_signed(x), lucid.is_signed(lucid.ones(1, dtype=lucid.uint8))) == (True, False)
    assert (lucid.is_same_size(x, lucid.zeros(2, 3)), lucid.is_same_size(x, lucid.zeros(3, 2))) == (True, False)
