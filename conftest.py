"""The examples of a file are those of what is written in it, wherever that is public."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

from lucid.public import written_in

_usual = doctest.DocTestFinder._from_module  # noqa: SLF001  doctest asks `__module__`, and offers no other way


def _from_module(self: doctest.DocTestFinder, module: Any, thing: object) -> bool:
    if module is not None and (inspect.isfunction(thing) or inspect.isclass(thing)):
        return written_in(thing) == module.__name__
    return _usual(self, module, thing)


doctest.DocTestFinder._from_module = _from_module  # noqa: SLF001
