"""JSON of any length by two readers: what they read is the same, and what is no JSON is refused."""

from __future__ import annotations

import json

import pytest

from lucid.serialization.bounded import Budget
from lucid.serialization.text import Json, Parsed, read_json

VALUES = ({"a": [1, {"b": []}, "x\n\u00e9"], "c": {}, "": None}, [], [[]], -1.5e-7, 10**30, True, "", [0] * 50)


@pytest.mark.parametrize("space", [None, 2], ids=["short", "with spaces"])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_both_readers_read_the_same(value, space):
    """The one that counts what it makes as it goes, and the quick one, which is taken where there is room for all."""
    text = json.dumps(value, indent=space)
    reader = Json(text, Budget(10**6))
    assert reader.value() == value
    reader.end()
    quick, careful = read_json(text, Budget(10**6)), read_json(text + " " * 10**6, Budget(0))
    assert (type(quick), type(careful)) == (Parsed, Json)
    assert quick.value() == careful.value() == value
    careful.end()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1",
        "[1,]",
        "[,1]",
        "{1: 2}",
        '{"a"}',
        '{"a": 1,}',
        '{"a": 1 "b": 2}',
        "[1 2]",
        "nul",
        "1 2",
        '"a',
        "]",
    ],
)
def test_what_is_no_json_is_refused(text):
    """Wherever it ends or goes on in another way, it is a ValueError, as of Python's reader."""
    with pytest.raises(ValueError):
        json.loads(text)
    with pytest.raises(ValueError):
        reader = Json(text, Budget(10**6))
        reader.value()
        reader.end()


@pytest.mark.parametrize("read", [read_json, Json], ids=["quick", "careful"])
def test_a_name_stands_once(read):
    """In one object; in another one it may stand again."""
    assert read('{"a": {"a": 1}, "b": {"a": 2}}', Budget(10**6)).value() == {"a": {"a": 1}, "b": {"a": 2}}
    for text in ('{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 1}}'):
        with pytest.raises(ValueError, match="expected each name once"):
            read(text, Budget(10**6)).value()


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")], ids=["arrays", "objects"])
def test_a_hundred_levels_are_read(begin, end):
    """As many as a checkpoint has, and a value within; one more is refused before the stack is full."""
    value = Json(begin * 100 + "7" + end * 100, Budget(10**6)).value()
    for _ in range(100):
        value = value["a"] if begin != "[" else value[0]
    assert value == 7
    for levels in (101, 100_000):
        with pytest.raises(RecursionError) as error:
            Json(begin * levels + "7" + end * levels, Budget(10**6)).value()
        assert len(error.traceback) < 500


def quick_from(text):
    """Return the least room, in bytes, with which the text is parsed at once."""
    low, high, budget = 0, 10**9, Budget(0)
    while low < high:
        budget.remaining = middle = (low + high) // 2
        low, high = (low, middle) if type(read_json(text, budget)) is Parsed else (middle + 1, high)
    return low


def test_letters_of_the_tree_make_nothing():
    """The tree of a header is one text: its brackets count as letters, so that many small tensors are read quickly."""
    tree = json.dumps(json.dumps([[0, {"a": "b"}]] * 1000))
    plain = json.dumps("x" * (len(tree) - 2))
    after = ',"b":[[],[]]}'
    with_tree, without = (quick_from('{"tree":' + value + after) for value in (tree, plain))
    assert with_tree == without
    assert quick_from('{"other":' + tree + after) > 4 * without


def test_only_the_tree_is_left_out():
    """What comes after its last quote is counted, however it is written, as a file of a stranger may have it."""
    lists = "[" + "[]," * 1000 + "[]]"
    counted = quick_from('{"a":{"eert":"x"},"b":' + lists + ',"c":["d","e"]}')
    assert quick_from('{"a":{"tree":"x"},"b":' + lists + ',"c":["d","e"]}') > 0.99 * counted


@pytest.mark.parametrize("wide", ["\u00e9", "\\u00e9", "\U0001f600"], ids=["letter", "escape", "past the first plane"])
def test_a_wide_letter_widens_all(wide):
    """Python keeps a text with one wide letter at up to four bytes for each, and so they are counted."""
    assert quick_from('["' + wide + "x" * 10_000 + '"]') > 3.5 * quick_from('["' + "x" * 10_000 + '"]')
