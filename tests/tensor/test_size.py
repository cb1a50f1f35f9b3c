"""Size: a tuple of integers in all that a tuple does, and of its own class in what gives a shape."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError

EQUALS = {
    "sum": (lambda s: operator.add(s, (4, 5)), (2, 3, 4, 5)),
    "sum of a tuple and it": (lambda s: operator.add((4, 5), s), (4, 5, 2, 3)),
    "sum of two": (lambda s: s + s, (2, 3, 2, 3)),
    "slice": (lambda s: s[1:], (3,)),
    "reversed": (lambda s: s[::-1], (3, 2)),
    "repeated": (lambda s: s * 2, (2, 3, 2, 3)),
    "times it": (lambda s: 2 * s, (2, 3, 2, 3)),
    "copy": (copy.copy, (2, 3)),
    "deep copy": (copy.deepcopy, (2, 3)),
    "pickled": (lambda s: pickle.loads(pickle.dumps(s)), (2, 3)),
    "made of it": (lucid.Size, (2, 3)),
    "of a tensor": (lambda s: lucid.zeros(s).shape, (2, 3)),
    "of size()": (lambda s: lucid.zeros(*s).size(), (2, 3)),
    "of a view": (lambda s: lucid.zeros(s).t().unsqueeze(0).shape, (1, 3, 2)),
    "of no dimension": (lambda s: lucid.tensor(1.0).shape, ()),
}


@pytest.mark.parametrize("name", EQUALS)
def test_what_gives_a_size(name):
    """Shapes, and what is made of one, are sizes, and equal the tuples that tuples would give."""
    make, expected = EQUALS[name]
    got = make(lucid.Size([2, 3]))
    assert type(got) is lucid.Size
    assert got == expected
    assert hash(got) == hash(expected)
    assert repr(got) == str(got) == f"lucid.Size({list(expected)})"
    assert got.numel() == np.prod(expected, dtype=int)


def test_what_gives_an_integer():
    """An index gives an int, of any integer that was given; unpacking gives ints, too."""
    size = lucid.Size([np.int64(2), lucid.tensor(3), True])
    assert [type(n) for n in (size[0], size[-2], *size)] == [int] * 5
    assert size == (2, 3, 1)
    assert isinstance(size, tuple)
    assert size.index(3) == 1
    with pytest.raises(IndexError):
        size[3]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([2, 1.5], r"Size: sizes\[1\]: expected an int, got float 1.5"),
        (["2"], r"Size: sizes\[0\]: expected an int, got str '2'"),
        (3, "Size: sizes: expected an iterable of int, got int 3"),
    ],
)
def test_bad_input(given, match):
    """What is no integer is named by its place."""
    with pytest.raises(ArgumentError, match=match):
        lucid.Size(given)


def test_sums_with_others():
    """As a tuple, it is added to tuples only, and to tuples of integers."""
    with pytest.raises(TypeError):
        operator.add(lucid.Size([1]), [2])
    with pytest.raises(TypeError):
        operator.add(lucid.Size([1]), ("2",))
