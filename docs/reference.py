"""The pages of the reference, from what each public module exports.

A module has a page, a class one of its own. Functions stand on the page of their module; those of a module with many,
on a page for each folder that they are written in, behind the rules that hold for all of them.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from lucid.public import written_in

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import ModuleType

# Public modules that `lucid` does not export, beside itself.
MODULES = ("lucid", "lucid.hooks", "lucid.viz", "lucid.numpy", "lucid.scipy", "lucid.array_api")
# More functions than these go to pages by folder.
MOST = 60
# The order in the navigation; other modules are reached from these.
FIRST = (
    *("lucid", "lucid.nn", "lucid.nn.functional", "lucid.nn.init", "lucid.nn.utils"),
    *("lucid.optim", "lucid.optim.lr_scheduler", "lucid.hooks", "lucid.autograd", "lucid.autograd.graph"),
    *("lucid.numpy", "lucid.scipy", "lucid.func", "lucid.distributions", "lucid.linalg", "lucid.fft"),
    *("lucid.special", "lucid.utils.data", "lucid.amp", "lucid.cuda", "lucid.distributed", "lucid.viz", "lucid.errors"),
)


def write(folder: Path) -> None:
    """Write the pages into a folder, those that have changed, and remove others."""
    pages: dict[str, str] = {}
    modules: list[str] = []
    for name in MODULES:
        add_pages(importlib.import_module(name), pages, modules)
    for name in modules:
        if name not in FIRST:
            pages[name] = ORPHAN + pages[name]
    pages["index"] = (
        heading("Reference")
        + toctree(FIRST)
        + of_rows((f":doc:`{name}`", importlib.import_module(name)) for name in FIRST)
        + heading("Further modules", "-")
        + listed(
            f":doc:`{name}`: {first_sentence(importlib.import_module(name))}"
            for name in sorted(set(modules) - set(FIRST))
        )
    )
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()


def add_pages(module: ModuleType, pages: dict[str, str], modules: list[str]) -> None:
    """Add the pages of a module, and of the modules that it exports, by name."""
    name = module.__name__
    modules.append(name)
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for own in sorted(getattr(module, "__all__", ()), key=str.lower):
        value = getattr(module, own)
        kind = kind_of(value, name, own)
        kinds[kind].append(own)
        if kind == "module" and value.__name__ == f"{name}.{own}":
            add_pages(value, pages, modules)
    text = f"{heading(name)}.. py:module:: {name}\n\n{docstring(module)}"
    for own in kinds["class"]:
        pages[f"{name}.{own}"] = f"{ORPHAN}{heading(f'{name}.{own}')}.. autoclass:: {name}.{own}\n"
    if kinds["class"]:
        text += heading("Classes", "-") + table(module, kinds["class"], "class")
    if len(kinds["function"]) > MOST:
        for family, members in by(kinds["function"], lambda own: family_of(getattr(module, own))).items():
            pages[f"{name}-{family}"] = ORPHAN + family_page(module, family, members, pages)
            title = f":doc:`{family.replace('_', ' ').capitalize()} <{name}-{family}>`"
            text += heading(title, "-") + table(module, members, "func")
    elif kinds["function"]:
        text += heading("Functions", "-") + functions(name, kinds["function"])
    if kinds["alias"]:
        text += heading("Under a second name", "-") + listed(
            f"``{name}.{own}`` is :py:obj:`{value.__module__}.{value.__name__}`"
            for own in kinds["alias"]
            if (value := getattr(module, own))
        )
    if kinds["foreign"]:
        text += heading("As they are in NumPy or Python", "-") + listed(f"``{name}.{own}``" for own in kinds["foreign"])
    if kinds["data"]:
        text += heading("Data", "-") + listed(
            f"``{name}.{own}``, {shown(getattr(module, own))}" for own in kinds["data"]
        )
    pages[name] = text


def kind_of(value: Any, module: str, name: str) -> str:
    """Return the kind of an export: module, class, function, alias, foreign, or data."""
    if inspect.ismodule(value):
        return "module"
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "data"
    if not str(value.__module__).startswith("lucid"):
        return "foreign"
    if value.__module__ != module or value.__name__ != name:
        return "alias"
    return "class" if inspect.isclass(value) else "function"


def family_of(function: Any) -> str:
    """Return the folder of `lucid.ops`, or of lucid, in which a function is written."""
    _, *parts = written_in(inspect.unwrap(function)).split(".")
    return parts[1] if parts[0] == "ops" else parts[0]


def family_page(module: ModuleType, family: str, members: list[str], pages: dict[str, str]) -> str:
    """Return the page of functions that are written in one folder, behind their rules; these get pages of their own."""
    text = heading(f"{module.__name__}: {family.replace('_', ' ')}")
    files = by(members, lambda own: written_in(inspect.unwrap(getattr(module, own))))
    docs = {file: importlib.import_module(file).__doc__ or file for file in files}
    rules = dict.fromkeys(rule for doc in docs.values() for rule in re.findall(r"`(lucid\.ops\.[a-z_.]+)`", doc))
    for rule in rules:
        words = docstring(importlib.import_module(rule))
        pages[rule] = f"{ORPHAN}{heading(rule)}.. py:module:: {rule}\n\n{words}"
        text += words
    for file, names in files.items():
        title = re.split(r"\. |; |: |, elementwise", docs[file].splitlines()[0])[0].rstrip(".")
        text += heading(title, "-") + functions(module.__name__, names)
    return text


ORPHAN = ":orphan:\n\n"


def by(names: Iterable[str], key: Any) -> dict[str, list[str]]:
    """Return names by their key, in the order in which keys come."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[key(name)].append(name)
    return groups


def heading(text: str, mark: str = "=") -> str:
    """Return a heading."""
    return f"{text}\n{mark * len(text)}\n\n"


def docstring(module: ModuleType) -> str:
    """Return what a module says of itself."""
    return with_plain_text(inspect.cleandoc(module.__doc__ or "")) + "\n\n"


def functions(module: str, names: Iterable[str]) -> str:
    """Return the documentation of functions."""
    return "".join(f".. autofunction:: {module}.{name}\n\n" for name in names)


def listed(lines: Iterable[str]) -> str:
    """Return a list."""
    return "".join(f"* {line}\n" for line in lines) + "\n"


def shown(value: Any) -> str:
    """Return a constant as it prints, or the class of what has no short form."""
    text = repr(value)
    short = len(text) < 60 and not any(mark in text for mark in ("`", "\n", " at 0x"))
    return f"``{text}``" if short else f"a ``{type(value).__name__}``"


def table(module: ModuleType, names: Iterable[str], role: str) -> str:
    """Return a table of names, each with the first sentence of its docstring."""
    return of_rows((f":{role}:`~{module.__name__}.{name}`", getattr(module, name)) for name in names)


def of_rows(values: Iterable[tuple[str, Any]]) -> str:
    """Return a table of values, each with what stands for it and the first sentence of its docstring."""
    rows = "".join(f"   * - {cell}\n     - {first_sentence(value)}\n" for cell, value in values)
    return f".. list-table::\n   :widths: 30 70\n\n{rows}\n"


def first_sentence(value: Any) -> str:
    """Return the first sentence of the docstring of a value."""
    first = (inspect.getdoc(value) or "").partition("\n\n")[0]
    (sentence,) = marked([with_plain_text(" ".join(first.split()))], value)
    return sentence


def toctree(names: Iterable[str]) -> str:
    """Return the entries of the navigation."""
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in names) + "\n"


def marked(lines: list[str], value: Any) -> list[str]:
    """Return lines of the docstring of a value: its parameters and texts that are defaults as code, pages as links."""
    try:
        names = "|".join(inspect.signature(value).parameters) if callable(value) else ""
    except (TypeError, ValueError):  # what has none
        names = ""
    text = "\n".join(lines)
    if names:
        text = re.sub(rf"(?<![`:\w])`({names})`(?!`)", r"``\1``", text)
    text = re.sub(r"(?<=, default )('[^'\n]*')", r"``\1``", text)
    return re.sub(r"(?<!`)`{1,2}docs/((?:users|dev|tutorials)/[\w-]+)\.md`{1,2}(?!`)", r":doc:`/\1`", text).split("\n")


def of_this_tensor(lines: list[str]) -> list[str]:
    """Return the docstring of a function as that of a method of Tensor, whose first parameter is the tensor itself."""
    return re.sub(r"(?m)^(input : .*\n)(?:    .*\n?)+", r"\1    This tensor.\n", "\n".join(lines)).split("\n")


def with_plain_text(text: str) -> str:
    """Return a text with the stars of shapes escaped, as in (batch, *sizes), and labels of NumPy's pages as words."""
    text = re.sub(r":ref:`([^`<]*?)(?: <[^>]*>)?`", r"\1", text)
    return re.sub(r"(?<=[ (,])\*(?=[\w),])", r"\\*", text)
