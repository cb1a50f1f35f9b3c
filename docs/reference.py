"""The pages of the reference, from what each public module exports.

A module has a page; a class has one of its own; the functions of a module stand on it, or where it has many, on a page
for each folder that they are written in, behind the rules that hold for all of them.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lucid.public import written_in

if TYPE_CHECKING:
    from types import ModuleType

# Beside what `lucid` exports.
MODULES = ("lucid.hooks", "lucid.viz", "lucid.numpy", "lucid.scipy", "lucid.array_api")
# Functions of a module that stand on its page; more go to pages by folder.
MOST = 60


def write(folder: Path) -> None:
    """Write the pages into a folder, those that have changed, and remove others."""
    pages = dict(pages_of(importlib.import_module("lucid")))
    for name in MODULES:
        pages.update(pages_of(importlib.import_module(name)))
    modules = sorted(name for name in pages if name in MODULES or inspect.ismodule(_at(name)))
    pages["index"] = _heading("Reference") + _toctree(modules)
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()


def _at(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        module, _, own = name.rpartition(".")
        return getattr(importlib.import_module(module), own, None) if module else None


def pages_of(module: ModuleType) -> dict[str, str]:
    """Return the pages of a module and of the modules that it exports, by name."""
    name = module.__name__
    pages: dict[str, str] = {}
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for own in sorted(getattr(module, "__all__", ()), key=str.lower):
        if own.startswith("_"):
            continue
        value = getattr(module, own)
        kind = _kind(value)
        if kind == "module":
            if value.__name__ == f"{name}.{own}":
                pages.update(pages_of(value))
            continue
        own_place = getattr(value, "__module__", name) == name and getattr(value, "__name__", own) == own
        if kind in {"class", "function"} and not str(value.__module__).startswith("lucid"):
            kind = "foreign"
        elif kind in {"class", "function"} and not own_place:
            kind = "alias"
        kinds[kind].append(own)
    text = f"{_heading(name)}.. py:module:: {name}\n\n{_docstring(module)}"
    for own in kinds["class"]:
        pages[f"{name}.{own}"] = ":orphan:\n\n" + _heading(f"{name}.{own}") + f".. autoclass:: {name}.{own}\n"
    if kinds["class"]:
        text += _heading("Classes", "-") + _table(module, kinds["class"], "class")
    functions = kinds["function"]
    if len(functions) > MOST:
        families: defaultdict[str, list[str]] = defaultdict(list)
        for own in functions:
            families[_family(getattr(module, own), name)].append(own)
        for family, members in families.items():
            pages[f"{name}-{family}"] = _family_page(module, family, members)
            text += _heading(family.replace("_", " ").capitalize(), "-") + _table(module, members, "func")
        text += _toctree([f"{name}-{family}" for family in families], hidden=True)
    elif functions:
        text += _heading("Functions", "-") + "".join(f".. autofunction:: {name}.{own}\n\n" for own in functions)
    if kinds["alias"]:
        text += (
            _heading("Under a second name", "-")
            + "".join(
                f"* ``{name}.{own}``: :{'class' if inspect.isclass(getattr(module, own)) else 'func'}:`~{getattr(module, own).__module__}.{getattr(module, own).__name__}`\n"
                for own in kinds["alias"]
            )
            + "\n"
        )
    if kinds["foreign"]:
        text += _heading("As they are", "-") + "".join(f"* ``{name}.{own}``\n" for own in kinds["foreign"]) + "\n"
    if kinds["data"]:
        text += (
            _heading("Data", "-")
            + "".join(f"* ``{name}.{own}``, {_article(getattr(module, own))}\n" for own in kinds["data"])
            + "\n"
        )
    pages[name] = text
    return pages


def _article(value: Any) -> str:
    """Return a constant as it prints, or the class of what has no short form."""
    text = repr(value)
    return (
        f"``{text}``"
        if len(text) < 60 and "`" not in text and " at 0x" not in text
        else f"a ``{type(value).__name__}``"
    )


def _kind(value: Any) -> str:
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if inspect.isroutine(value) else "data"


def _family(function: Any, name: str) -> str:
    """Return the folder of ops in which a function is written, or of other functions their package."""
    parts = written_in(function).split(".")
    if parts[:2] == ["lucid", "ops"]:
        return parts[2]
    return parts[1] if written_in(function) != name else "other"


def _family_page(module: ModuleType, family: str, members: list[str]) -> str:
    text = _heading(f"{module.__name__}: {family.replace('_', ' ')}")
    files: defaultdict[str, list[str]] = defaultdict(list)
    for own in members:
        files[written_in(getattr(module, own))].append(own)
    rules: list[str] = []
    for file in files:
        for rule in re.findall(r"`(lucid\.ops\.[a-z_.]+)`", importlib.import_module(file).__doc__ or ""):
            if rule not in rules:
                rules.append(rule)
    for rule in rules:
        text += _docstring(importlib.import_module(rule))
    for file, names in files.items():
        title = (importlib.import_module(file).__doc__ or file).splitlines()[0].split(". ")[0].rstrip(".:")
        text += _heading(title, "-") + "".join(f".. autofunction:: {module.__name__}.{own}\n\n" for own in names)
    return text


def _heading(text: str, mark: str = "=") -> str:
    return f"{text}\n{mark * len(text)}\n\n"


def _docstring(module: ModuleType) -> str:
    return with_escaped_stars(inspect.cleandoc(module.__doc__ or "")) + "\n\n"


def _table(module: ModuleType, names: list[str], role: str) -> str:
    rows = "".join(
        f"   * - :{role}:`~{module.__name__}.{own}`\n     - {_first_line(getattr(module, own))}\n" for own in names
    )
    return f".. list-table::\n   :widths: 30 70\n\n{rows}\n"


def _first_line(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    return with_escaped_stars(" ".join(text.split("\n\n")[0].split()))


def with_escaped_stars(text: str) -> str:
    """Return a text with the stars of shapes escaped, as in (batch, *sizes), and labels of NumPy's pages as words."""
    text = re.sub(r":ref:`([^`<]*?)(?: <[^>]*>)?`", r"\1", text)
    return re.sub(r"(?<=[ (,])\*(?=[\w),])", r"\\*", text)


def _toctree(names: list[str], *, hidden: bool = False) -> str:
    return (
        ".. toctree::\n"
        + ("   :hidden:\n" if hidden else "")
        + "   :maxdepth: 1\n\n"
        + "".join(f"   {name}\n" for name in names)
        + "\n"
    )
