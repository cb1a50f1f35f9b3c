"""What numbers from a file can be a shape, and what looking up a key may cost."""

from __future__ import annotations

import pytest

from lucid.serialization.bounded import ENTRY, FIRST, LEVELS, PRIME, Budget, is_shape
from lucid.serialization.refusals import TooMuch


@pytest.mark.parametrize(
    ("sizes", "itemsize", "is_one"),
    [
        ((), 8, True), ((1,) * 64, 8, True), ((1,) * 65, 8, False), ((0,), 8, True), ((-1,), 8, False),
        ((2**60 - 1,), 8, True), ((2**60,), 8, False), ((2**30, 2**30), 8, False), ((2**63 - 1,), 1, True),
        ((2**63,), 1, False), ((0, 2**60), 8, False), ((0, 2**63), 1, False), ((2.0,), 8, False), ((True,), 8, False),
        ((None,), 8, False), (("1",), 8, False),
    ],
)  # fmt: skip
def test_what_is_a_shape(sizes, itemsize, is_one):
    """Up to 64 whole numbers from 0 on, of which those that are not 0 multiply to fewer than 2^63 bytes."""
    assert is_shape(sizes, itemsize) is is_one


@pytest.mark.parametrize(
    ("key", "alone", "each"),
    [
        ("a", 0, 0), (b"a", 0, 0), (None, 0, 0), (True, 0, 0), (7, 0, 0), (0, 0, 0), (-7, 2003, 0.5), (1.5, 2000, 0.5),
        (2j, 2000, 60), (PRIME, 2061, 60), ((7,), 4003, 150), ((PRIME, 7), 6064, 150), (((7,), 7), 8006, 150),
        ((), 2000, 0), (("a",), 4000, 0), (("a", 7), 6003, 150),
    ],
)  # fmt: skip
def test_what_a_key_costs(key, alone, each):
    """Its parts are hashed, and those of numbers, which somebody may choose, may stand in the way of all others."""
    for count in (7, 1000):
        budget = Budget(1000)
        before = budget.time
        budget.key(key, count)
        assert before - budget.time == alone + each * count


def test_the_room_of_a_key():
    """A dict begins with room for some, and takes more for each from its sixth on."""
    for count, room in ((0, FIRST), (1, 0), (4, 0), (5, ENTRY), (6, ENTRY)):
        budget = Budget(1000)
        before = budget.remaining
        budget.key("a", count)
        assert before - budget.remaining == room


def test_how_deep_a_key_may_be():
    """Tuples within tuples, as many as a tree may have levels."""
    key = ()
    for _ in range(LEVELS - 1):
        key = (key,)
    Budget(1000).key(key, 0)
    with pytest.raises(TooMuch, match=f"nested deeper than {LEVELS} levels"):
        Budget(1000).key((key,), 0)
