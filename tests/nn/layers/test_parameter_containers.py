"""Containers as dictionaries and lists: the order of what is added, and what they refuse."""

from __future__ import annotations

import collections
import operator
import types

import pytest

import lucid
from lucid import nn


def test_order_in_a_parameter_dict():
    """A plain mapping is taken in the order of its sorted keys; what has an order of its own keeps it."""
    entries = {"z": lucid.ones(1), "a": lucid.ones(1), "m": 3}
    own = ["z", "a", "m"]
    ordered = collections.OrderedDict(entries)
    for given, expected in (
        (entries, sorted(own)),
        (types.MappingProxyType(entries), sorted(own)),
        (collections.UserDict(entries), sorted(own)),
        (ordered, own),
        (list(entries.items()), own),
        (nn.ParameterDict(ordered), own),
    ):
        made = nn.ParameterDict({"first": 0})
        made.update(given)
        assert list(made) == ["first", *expected]
        assert list(nn.ParameterDict(given)) == expected


def test_a_parameter_dict_is_a_dictionary():
    """It copies, joins, reverses, pops, and gives defaults as a dictionary does, and tensors become parameters."""
    given = nn.ParameterDict([("b", lucid.zeros(1)), ("a", 3)])
    twin = given.copy()
    assert (type(twin), list(twin), twin["b"] is given["b"]) == (nn.ParameterDict, ["b", "a"], True)
    assert list(reversed(given)) == ["a", "b"]
    joined = given | nn.ParameterDict({"a": lucid.ones(1), "c": 4})
    assert (list(joined), list(given), list(dict(joined.named_parameters()))) == (
        ["b", "a", "c"],
        ["b", "a"],
        ["b", "a"],
    )
    assert list(given | {"z": 1, "y": 2}) == ["b", "a", "y", "z"]
    assert {"a": 1, "q": 2} | given == {"a": 3, "q": 2, "b": given["b"]}
    same = given
    same |= {"d": lucid.ones(2)}
    assert same is given
    assert isinstance(given["d"], nn.Parameter)
    assert given.setdefault("d", 5) is given["d"]
    assert given.setdefault("e") is None
    assert isinstance(given.setdefault("f", lucid.ones(1)), nn.Parameter)
    assert given.popitem()[0] == "f"
    assert list(given.state_dict()) == ["b", "d"]
    filled = given.fromkeys(["x", "y"], lucid.ones(1))
    assert (type(filled), list(filled), isinstance(filled["x"], nn.Parameter)) == (nn.ParameterDict, ["x", "y"], True)
    for use, kinds in (
        (lambda: given["nothing"], (KeyError, AttributeError)),
        (lambda: given.pop("nothing"), (KeyError, AttributeError)),
        (lambda: nn.ParameterDict().popitem(), (KeyError,)),
        (lambda: given | 3, (TypeError,)),
        (lambda: given.update([("a",)]), (ValueError,)),
    ):
        for kind in kinds:
            with pytest.raises(kind):
                use()


def test_a_parameter_list_takes_no_tensor_for_a_list():
    """A tensor is not taken apart into rows by `+=`, `extend` and the constructor."""
    listed = nn.ParameterList([lucid.ones(1)])
    for value in (nn.Parameter(lucid.ones(2)), lucid.ones(2)):
        for use in (listed.extend, listed.__iadd__, nn.ParameterList):
            with pytest.raises(TypeError, match="iterable"):
                use(value)
    assert len(listed) == 1
    listed += (lucid.zeros(2), "x")
    assert [type(value) for value in listed] == [nn.Parameter, nn.Parameter, str]


def test_multiplied_sequential():
    """A product repeats the same modules in a new container, `*=` in its own, a positive number of times."""
    layers = same = nn.Sequential(nn.ReLU(), nn.Tanh())
    for product in (layers * 2, 2 * layers):
        assert [*product] == [*layers, *layers]
        assert product is not layers
    first = [*layers]
    layers *= 3
    assert layers is same
    assert [*layers] == first * 3
    for factor, kind in ((0, ValueError), (-1, ValueError), (1.5, TypeError)):
        with pytest.raises(kind):
            layers *= factor
    assert len(layers) == 6


def test_what_containers_leave_as_it_is():
    """A buffer stays one; a list keeps its length where what extends it fails, or an index is too small."""
    kept = nn.Buffer(lucid.ones(1))
    listed = nn.ParameterList([kept])
    assert listed[0] is kept
    assert not list(listed.parameters())

    def failing():
        yield lucid.ones(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        listed.extend(failing())
    for index in (-2, 1):
        with pytest.raises(IndexError):
            listed[index]
    assert len(listed) == 1


def test_a_key_that_cannot_be_taken():
    """It is not listed, and no attribute of the module is lost to it."""
    given = nn.ParameterDict({"a": 1})
    for key in ("training", "x.y", ""):
        with pytest.raises(KeyError):
            given[key] = lucid.ones(1)
    assert (list(given), given.training) == (["a"], True)


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_every_position_of_a_sequential(size):
    """By their order and not by their names, from both ends: also of names that are numbers of other positions."""
    modules = [nn.Identity() for _ in range(size)]
    names = [str(size - 1 - k) for k in range(size)]
    for layers in (nn.Sequential(*modules), nn.Sequential(collections.OrderedDict(zip(names, modules, strict=True)))):
        for k in range(-size, size):
            assert layers[k] is modules[k]
        for k in (size, -size - 1):
            with pytest.raises(IndexError, match=f"index {k} is out of range"):
                layers[k]
        if size > 2:
            del layers._modules[next(iter(layers._modules))]
            layers.add_module("last", modules[0])
            assert [layers[k] for k in range(size)] == [*modules[1:], modules[0]]


@pytest.mark.parametrize("kind", [lambda modules: nn.Sequential(*modules), nn.ModuleList])
def test_lists_of_modules_are_lists(kind):
    """Inserting, taking out, joining and slicing give at each position what they give of a list; others are refused."""
    modules = [nn.Linear(1, size) for size in (1, 2, 3)]
    new = nn.ReLU()
    for position in range(-3, 4):
        expected = [*modules]
        expected.insert(position, new)
        made = kind(modules).insert(position, new)
        assert [*made] == expected
        assert [name for name, _ in made.named_children()] == ["0", "1", "2", "3"]
    for position in (-4, 4):
        made = kind(modules)
        with pytest.raises(IndexError, match="expected one from -3 to 3"):
            made.insert(position, new)
        assert [*made] == modules
    for position in (-3, -1, 0, 2, slice(1, None), slice(None, None, -1)):
        expected, made = [*modules], kind(modules)
        taken = made.pop(position)
        assert (taken if isinstance(position, int) else [*taken]) == expected[position]
        del expected[position]
        assert [*made] == expected
    assert [*kind(modules) + kind([new])] == [*modules, new]
    assert [*kind([new]) + kind(modules)] == [new, *modules]
    assert [*kind(modules).extend([new, new])] == [*modules, new, new]


@pytest.mark.parametrize("kind", [lambda entries: nn.Sequential(*entries), nn.ModuleList, nn.ParameterList])
@pytest.mark.parametrize("extend", [lambda made, more: made.extend(more), operator.iadd], ids=["extend", "iadd"])
def test_a_list_is_extended_by_itself(kind, extend):
    """It then has twice what it had, as a list of Python's; so has one that an iterator over it extends."""
    entries = [nn.Linear(1, 1), nn.ReLU()]
    for more in (lambda made: made, iter):
        made = kind(entries)
        assert extend(made, more(made)) is made
        assert [*made] == entries * 2


def test_positions_of_a_list_whose_names_have_a_gap():
    """A position that is no name is counted in the order of the modules."""
    modules = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
    last = modules[2]
    del modules._modules["1"]
    assert modules[1] is last
