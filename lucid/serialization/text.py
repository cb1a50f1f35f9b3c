"""JSON read value by value, each taken from the budget of its file, and none made before it is wanted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from lucid.serialization.bounded import DICT, LEVELS, LIST, SLOT, weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lucid.serialization.bounded import Budget


SPACE = re.compile(r"[ \t\n\r]*")
LEAF = json.JSONDecoder()
# up to the quote that ends it; possessive, as it would else keep each letter to go back to
TREE = re.compile(r'"tree":"[^"\\]*+(?:\\.[^"\\]*+)*+"')
# bytes that each of these letters may stand for, in a list, a dict, an element, an entry, a text
WORST = {"[": 96, "{": 256, ",": 48, ":": 64, '"': 32}


def read_json(text: str, budget: Budget) -> Json | Parsed:
    """Return a JSON text to be read: parsed at once if the budget has room for any such text, as most have."""
    # the tree of a header is one text, whose letters make nothing until it is read itself
    tree = TREE.search(text)
    parts = [(0, tree.start()), (tree.end(), len(text))] if tree else [(0, len(text))]
    # of a text with one wide letter each takes four bytes
    width = 1 if text.isascii() and "\\u" not in text else 4
    most = 3 * width * len(text)  # beside the values it is there as bytes, and in parts
    most += sum(text.count(letter, *part) * size for letter, size in WORST.items() for part in parts)
    if 2 * most > budget.remaining:  # twice, as tensors are still to come
        return Json(text, budget)
    budget.take(most)
    return Parsed(json.loads(text, object_pairs_hook=once_each))


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these names and values; a ValueError if a name stands twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("expected each name once")
    return made


class Parsed:
    """A JSON text that is parsed, read as `Json` is."""

    def __init__(self, whole: Any) -> None:
        self._next = whole

    def next(self) -> str:
        """Return the first letter of the next value, if it is an object or an array."""
        return "{" if type(self._next) is dict else "[" if type(self._next) is list else "?"

    def end(self) -> None:
        """Do nothing: the end was looked at."""

    def items(self) -> Iterator[str]:
        """Yield the names of an object; whoever takes one reads its value before the next."""
        for name, value in self._next.items():
            self._next = value
            yield name

    def elements(self) -> Iterator[None]:
        """Yield before each element of an array; the caller reads the element then."""
        if type(self._next) is not list:
            raise ValueError("expected an array")
        for value in cast("list[Any]", self._next):
            self._next = value
            yield

    def value(self, _level: int = 0) -> Any:
        """Return the next value."""
        return self._next


class Json:
    """A JSON text, and how far it is read.

    Parameters
    ----------
    text : str
    budget : Budget
        What values are taken from.
    """

    def __init__(self, text: str, budget: Budget) -> None:
        self.text = text
        self.budget = budget
        self.at = 0

    def next(self) -> str:
        """Return the next letter that is no space, and leave the text before it; an empty one at the end."""
        self.at = cast("re.Match[str]", SPACE.match(self.text, self.at)).end()
        return self.text[self.at : self.at + 1]

    def end(self) -> None:
        """Raise unless nothing more comes."""
        if self.next():
            raise ValueError(f"expected the end at letter {self.at:,}")

    def items(self) -> Iterator[str]:
        """Yield the names of an object; whoever takes one reads its value before the next."""
        for _ in self._parts("{", "}"):
            if self.next() != '"':
                raise ValueError(f"expected a name at letter {self.at:,}")
            name = cast("str", self.value())
            self._expect(":")
            yield name

    def elements(self) -> Iterator[None]:
        """Yield before each element of an array; the caller reads the element then."""
        return self._parts("[", "]")

    def value(self, level: int = 0) -> Any:
        """Return the next value, with dicts and lists for objects and arrays."""
        if level > LEVELS:
            raise RecursionError
        first, take = self.next(), self.budget.take
        if first == "{":
            made = dict[str, Any]()
            take(DICT)
            for name in self.items():
                if name in made:
                    raise ValueError("expected each name once")
                self.budget.key(name, len(made))
                made[name] = self.value(level + 1)
            return made
        if first == "[":
            listed = list[Any]()
            take(LIST)
            for _ in self.elements():
                take(SLOT)
                listed.append(self.value(level + 1))
            return listed
        value, self.at = LEAF.raw_decode(self.text, self.at)
        take(weight(value))
        return value

    def _parts(self, begin: str, end: str) -> Iterator[None]:
        self._expect(begin)
        if self.next() != end:
            while True:
                yield
                if self.next() == end:
                    break
                self._expect(",")
        self.at += 1

    def _expect(self, letter: str) -> None:
        if self.next() != letter:
            raise ValueError(f"expected {letter!r} at letter {self.at:,}")
        self.at += 1
