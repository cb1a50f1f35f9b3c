"""Nested arguments and outputs: what is walked, what is made anew, and what stands beside what."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import NamedTuple

import pytest

from lucid.autograd.hooks.structure import StructureError, map_leaves, paired


class Pair(NamedTuple):
    first: object
    second: object


class Named(list):
    """A list of the user's, with an attribute."""

    name = "mine"


@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    y: object


# by kind, how a structure of that kind is made of two leaves
KINDS = {
    "tuple": lambda x, y: (x, y),
    "list": lambda x, y: [x, y],
    "dict": lambda x, y: {"x": x, "y": y},
    "ordered dict": lambda x, y: OrderedDict(x=x, y=y),
    "named tuple": Pair,
    "dataclass": Point,
    "list of the user's": lambda x, y: Named([x, y]),
    "nested": lambda x, y: {"a": [x, Point((y,), {})], "b": ()},
}
each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@each_kind
def test_leaves_are_replaced_where_they_stand(make):
    """Of the same types, in order, while the structure that was walked stays as it was; one leaf is enough."""
    seen = []
    for old, new in (((1, 2), (10, 20)), ((1, 2), (1, 20)), ((1, 2), (10, 2))):
        value = make(*old)
        changed = map_leaves(value, lambda leaf, to=dict(zip(old, new, strict=True)): seen.append(leaf) or to[leaf])
        assert (changed, type(changed)) == (make(*new), type(value))
        assert value == make(*old)
    assert seen == [1, 2] * 3


@each_kind
def test_what_does_not_change_is_the_same_object_unless_it_is_to_be_fresh(make):
    """Fresh ones are equal, and none of what holds leaves is shared."""
    value = make(1, 2)
    assert map_leaves(value, lambda leaf: leaf) is value
    fresh = map_leaves(value, lambda leaf: leaf, fresh=True)
    assert fresh == value
    assert type(fresh) is type(value)
    assert fresh is not value
    if isinstance(value, dict) and "a" in value:
        assert fresh["a"] is not value["a"]


@each_kind
def test_pairs(make):
    """Each leaf of a pattern comes with what stands in its place, in the pattern's order."""
    assert paired(make(1, 2), make("one", "two")) == [(1, "one"), (2, "two")]
    assert paired(3, make(1, 2)) == [(3, make(1, 2))]


@pytest.mark.parametrize(
    ("pattern", "value", "text", "other_type"),
    [
        ((1, 2), 3, "expected None or a tuple, got int", True),
        ((1, 2), [3], "expected 2 entries, got 1", False),
        ({"a": 1}, [1], "expected a dict, got list", True),
        ({"a": 1, "b": 2}, {"a": 1}, r"expected the keys \['a', 'b'\], got \['a'\]", False),
        ({"a": 1}, {"a": 1, "b": 2}, r"expected the keys \['a'\], got \['a', 'b'\]", False),
        (Point(1, 2), (1, 2), "expected a Point, got tuple", True),
        ([(1, 2)], [(1,)], "expected 2 entries, got 1", False),
    ],
)
def test_what_is_no_pair(pattern, value, text, other_type):
    """The error says what stands there instead, and whether that is of another type."""
    with pytest.raises(StructureError, match=text) as error:
        paired(pattern, value)
    assert error.value.other_type is other_type


def test_a_list_may_stand_for_a_tuple_and_entries_in_another_order():
    assert paired((1, {"a": 2, "b": 3}), ["x", {"b": "z", "a": "y"}]) == [(1, "x"), (2, "y"), (3, "z")]
