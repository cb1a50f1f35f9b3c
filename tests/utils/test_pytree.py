"""Trees of containers: what is walked, in which order, and how they come together again."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pytest

import lucid
from lucid.errors import ArgumentError, ShapeError
from lucid.utils._pytree import (
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_structure,
    tree_unflatten,
)


class Pair(NamedTuple):
    a: object
    b: object


@dataclass
class Record:
    x: int


class Subclass(dict):
    """A type of its own, which is not walked."""


RECORD, OWN = Record(1), Subclass(a=1)
TREES = {
    "leaf": (5, [5]),
    "list": ([1, [2, 3]], [1, 2, 3]),
    "tuple": ((1, (), (2,)), [1, 2]),
    "named": (Pair(1, Pair(2, 3)), [1, 2, 3]),
    "dict": ({"b": 1, "a": [2]}, [1, 2]),
    "ordered": (OrderedDict(b=1, a=2), [1, 2]),
    "default": (defaultdict(list, x=1, y=2), [1, 2]),
    "deque": (deque([1, [2]], maxlen=3), [1, 2]),
    "none": ([None, 1], [None, 1]),
    "leaves": ([RECORD, OWN, "text", {1}], [RECORD, OWN, "text", {1}]),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_comes_apart_and_together(name):
    """Leaves come in order, and with its structure make the tree again, of the same types."""
    tree, leaves = TREES[name]
    found, structure = tree_flatten(tree)
    assert found == leaves == tree_leaves(tree)
    assert structure.num_leaves == len(leaves)
    assert structure.is_leaf() == (name == "leaf")
    again = tree_unflatten(found, structure)
    assert again == tree
    assert type(again) is type(tree)
    assert tree_structure(again) == structure


def test_what_else_makes_a_container_stays():
    """The factory of a default dict and the most that a deque holds stay."""
    tree = tree_map(str, [defaultdict(list, x=1), deque([1], maxlen=3)])
    assert tree[0].default_factory is list
    assert (tree[1], tree[1].maxlen) == (deque(["1"]), 3)


def test_map_makes_new_containers():
    """Containers are new ones where no leaf changes, too."""
    tree = {"a": [1]}
    made = tree_map(lambda leaf: leaf, tree)
    assert made == tree
    assert made is not tree
    assert made["a"] is not tree["a"]


def test_map_takes_several_trees():
    """What stands at a leaf's place in other trees goes to the function with it, by its key in dictionaries."""
    made = tree_map(lambda *leaves: leaves, [1, {"a": 2, "b": 3}], [10, {"b": 30, "a": [20]}], [5, {"a": 6, "b": 7}])
    assert made == [(1, 10, 5), {"a": (2, [20], 6), "b": (3, 30, 7)}]


@pytest.mark.parametrize("kind", [dict, OrderedDict, partial(defaultdict, int)], ids=["dict", "ordered", "default"])
@pytest.mark.parametrize("other", [dict, OrderedDict, partial(defaultdict, list)], ids=["dict", "ordered", "default"])
def test_dictionaries_of_all_kinds_go_together_by_their_keys(kind, other):
    """What stands at a key goes with what stands at it in a dictionary of any kind and order; the first one's stay."""
    tree = kind([("a", 1), ("b", 2)])
    made = tree_map(lambda *leaves: leaves, tree, other([("b", 20), ("a", 10)]))
    assert list(made.items()) == [("a", (1, 10)), ("b", (2, 20))]
    assert type(made) is type(tree)
    with pytest.raises(ArgumentError, match="expected the keys"):
        tree_map(max, tree, other([("a", 1), ("c", 2)]))


def test_what_is_a_leaf_can_be_said():
    """What `is_leaf` says so of is not walked, whichever function is asked."""
    tree, leaves = [(1, 2), [3]], [(1, 2), 3]
    pairs = {"is_leaf": lambda value: isinstance(value, tuple)}
    assert tree_leaves(tree, **pairs) == leaves
    found, structure = tree_flatten(tree, **pairs)
    assert (found, structure) == (leaves, tree_structure(tree, **pairs))
    assert structure.num_leaves == 2
    assert tree_map(str, tree, **pairs) == ["(1, 2)", ["3"]]
    assert tree_map_only(tuple, sum, tree, **pairs) == [3, [3]]


@pytest.mark.parametrize(
    "types", [int, (int, str), lambda leaf: isinstance(leaf, int)], ids=["int", "int or str", "callable"]
)
def test_map_of_some_leaves(types):
    """Only leaves of the types, or of which a callable says so, are replaced."""
    assert tree_map_only(types, lambda leaf: leaf * 2, [1, 2.0, {"a": 3}]) == [2, 2.0, {"a": 6}]


def test_tensors_are_leaves(rng):
    """Gradients reach tensors through a tree that was taken apart."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal(3))
    leaves, structure = tree_flatten({"x": x, "n": 1})
    (tree_unflatten(leaves, structure)["x"] * 3).backward(upstream)
    assert lucid.equal(x.grad, 3 * upstream)


def test_a_type_can_be_added():
    """A registered type is walked by its own functions, and only once."""

    class Box:
        def __init__(self, value):
            self.value = value

    register_pytree_node(Box, lambda box: ([box.value], "context"), lambda entries, context: (entries, context))
    assert tree_map(lambda leaf: leaf + 1, [Box((1, 2))]) == [([(2, 3)], "context")]
    with pytest.raises(ArgumentError, match="Box is walked already"):
        register_pytree_node(Box, lambda box: ([box.value], None), lambda entries, _: entries)


def test_other_structures_are_refused():
    """Trees that do not match, and too few or too many leaves, are named."""
    with pytest.raises(ArgumentError, match="expected a list in each tree, got int 2"):
        tree_map(max, [1], 2)
    with pytest.raises(ArgumentError, match="expected the keys"):
        tree_map(max, {"a": 1}, {"b": 2})
    for one, other in (({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"a": 1}), ({"a": 1}, {})):
        with pytest.raises(ArgumentError, match="expected the keys"):
            tree_map(max, one, other)
    with pytest.raises(ShapeError, match="expected 2 entries in each tree, got 1"):
        tree_map(max, [1, 2], [3])
    with pytest.raises(ShapeError, match="leaves: expected 2, got 1"):
        tree_unflatten([1], tree_structure([1, 2]))


def test_a_tuple_of_another_class_is_a_leaf():
    """What can be made again of its parts is walked: a named tuple, and no other class that derives from tuple."""

    class Own(tuple):
        __slots__ = ()

    own = Own([1, 2])
    assert tree_leaves([own, Pair(3, 4)]) == [own, 3, 4]
    assert tree_map(lambda leaf: leaf, [own])[0] is own


def test_the_module_comes_with_the_package():
    """Code that says `lucid.utils._pytree` need not import it."""
    script = "import lucid; print(lucid.utils._pytree.tree_leaves([1, (2,)]))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[1, 2]"
