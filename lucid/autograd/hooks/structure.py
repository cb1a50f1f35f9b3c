"""Nested arguments and outputs: tuples, lists, dictionaries and dataclasses, walked leaf by leaf."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable


def map_leaves(value: Any, function: Callable[[Any], Any], *, fresh: bool = False) -> Any:
    """Return `value` with each leaf replaced by ``function(leaf)``; `value` itself if no leaf changes.

    Parameters
    ----------
    value : object
        Tuples (named ones too), lists, dictionaries and dataclass instances are walked; everything else is a leaf.
    function : callable
        Called with the leaves in order.
    fresh : bool
        Whether all that holds leaves is made anew, so that later changes of one are not seen in the other.
    """
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        changed = {key: map_leaves(entry, function, fresh=fresh) for key, entry in entries.items()}
        if not fresh and all(changed[key] is entry for key, entry in entries.items()):
            return entries
        if type(value) is dict:  # pyright: ignore[reportUnknownArgumentType]
            return changed
        made = copy.copy(entries)
        for key, entry in changed.items():
            made[key] = entry
        return made
    if isinstance(value, tuple | list):
        before = cast("tuple[Any, ...] | list[Any]", value)
        after = [map_leaves(entry, function, fresh=fresh) for entry in before]
        same = not fresh and all(new is old for new, old in zip(after, before, strict=True))
        return before if same else rebuilt(before, after)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        news = {name: map_leaves(entry, function, fresh=fresh) for name, entry in fields.items()}
        if not fresh and all(news[name] is entry for name, entry in fields.items()):
            return value
        made = copy.copy(value)
        for name, entry in news.items():
            # frozen dataclasses refuse plain assignment
            object.__setattr__(made, name, entry)
        return made
    return function(value)


def rebuilt(like: tuple[Any, ...] | list[Any], entries: list[Any]) -> Any:
    """Return `entries` in a sequence of the type of `like`; a named tuple keeps its names."""
    kind: Any = type(like)
    if kind is list:
        return entries
    if hasattr(kind, "_make"):
        return kind._make(entries)
    if isinstance(like, list):
        made = copy.copy(like)
        made[:] = entries
        return made
    return kind(entries)


class StructureError(Exception):
    """One structure does not match another.

    Attributes
    ----------
    other_type : bool
        Whether something of another type stands there, rather than one of another length.
    """

    def __init__(self, message: str, *, other_type: bool) -> None:
        super().__init__(message)
        self.other_type = other_type


def paired(pattern: Any, value: Any) -> list[tuple[Any, Any]]:
    """Return each leaf of `pattern` with the value at its position in `value`.

    Raises
    ------
    StructureError
        If `value` is of another structure; a list may stand for a tuple.
    """
    keys: Any
    if isinstance(pattern, dict):
        keys = list(cast("dict[Any, Any]", pattern))
        if not isinstance(value, dict):
            raise StructureError(f"expected a dict, got {type(value).__name__}", other_type=True)
        others = list(cast("dict[Any, Any]", value))
        if set(keys) != set(others):
            raise StructureError(f"expected the keys {keys}, got {others}", other_type=False)
    elif isinstance(pattern, tuple | list):
        keys = range(len(cast("tuple[Any, ...]", pattern)))
        if not isinstance(value, tuple | list):
            raise StructureError(f"expected None or a tuple, got {type(value).__name__}", other_type=True)
        length = len(cast("tuple[Any, ...]", value))
        if length != len(keys):
            raise StructureError(f"expected {len(keys)} entries, got {length}", other_type=False)
    elif dataclasses.is_dataclass(pattern):
        keys = [field.name for field in dataclasses.fields(pattern)]
        if type(value) is not type(pattern):
            raise StructureError(f"expected a {type(pattern).__name__}, got {type(value).__name__}", other_type=True)
        pattern, value = vars(pattern), vars(value)
    else:
        return [(pattern, value)]
    leaves, values = cast("Any", pattern), cast("Any", value)
    return [pair for key in keys for pair in paired(leaves[key], values[key])]
