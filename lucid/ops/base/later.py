"""Methods with a late import of their module, at first use: `import lucid` is shorter by it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lucid.ops.base.keywords import as_method


class LaterModule:
    """A module of a class's methods, not imported yet: its attributes are `LaterMethod`s."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> LaterMethod:
        return LaterMethod(self._path, name)


class LaterMethod:
    """A function of a module, imported when it is first asked for; the class then has it in the place of this."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        self.places: list[tuple[type, str]] = []

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.places.append((owner, attribute))

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        function = getattr(import_module(self.path), self.name)
        for kind, attribute in self.places:
            setattr(kind, attribute, as_method(function, attribute))
        # not by the instance, whose class may have one of its own that has called this one
        kind, attribute = self.places[0]
        return vars(kind)[attribute].__get__(instance, owner)
