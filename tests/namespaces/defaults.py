"""The defaults of parameters that lucid has from PyTorch, written down for the tests that run without it.

`python -m tests.namespaces.defaults torch > tests/namespaces/pytorch_defaults.txt` compares all public names anew.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import lucid
from tests.laws.public import public_names

FILE = Path(__file__).with_name("pytorch_defaults.txt")


def written() -> dict[str, dict[str, str]]:
    """Return of each name in the file what its parameters are by default."""
    lines = (line.partition(": ") for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: dict(pair.split("=", 1) for pair in pairs.split("; ")) for name, _, pairs in lines}


def shared(library: Any) -> dict[str, dict[str, str]]:
    """Return of each public name what its parameters are by default here and in another library."""
    names = sorted(name.removeprefix("lucid.") for name in public_names())
    found = {name: defaults(lucid, name).items() & defaults(library, name).items() for name in names}
    return {name: dict(sorted(pairs)) for name, pairs in found.items() if pairs}


def defaults(library: Any, name: str) -> dict[str, str]:
    """Return the parameters of something that have a default, with what it is; none where that is not told."""
    parent, value = name.rpartition(".")[0], library
    with contextlib.suppress(ImportError):  # of a class, or of a module that the other library has not
        importlib.import_module(f"{library.__name__}.{parent}" if parent else library.__name__)
    for part in name.split("."):
        value = getattr(value, part, None)
    if isinstance(value, enum.EnumMeta):  # which Python calls, each version by parameters of its own
        return {}
    try:
        parameters = inspect.signature(value).parameters.values()  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return {}
    given = {p.name: p.default for p in parameters if p.default is not p.empty}
    return {name: getattr(default, "__name__", repr(default)) for name, default in given.items()}


if __name__ == "__main__":
    for path, pairs in shared(importlib.import_module(sys.argv[1])).items():
        print(f"{path}: {'; '.join('='.join(pair) for pair in pairs.items())}")
