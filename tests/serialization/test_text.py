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
