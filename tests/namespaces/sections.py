"""The sections of files that follow from `ops.txt`, the table of the public names of ops.

A section begins below a comment that names the table, and ends before an empty line, or where the block ends that it
stands in. Imports that are written by hand stay in it, but for those from `lucid.ops` that the file does not use.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

TABLE = Path(__file__).with_name("ops.txt")
MARK = re.compile(r"( *)# (.+), of tests/namespaces/ops\.txt by `python -m tests\.namespaces\.exports`")
METHODS = "lucid.tensor.inplace_methods"
# By the end of a file's path, what it imports the functions for.
PLACES = {
    "lucid/__init__.py": "lucid",
    "nn/functional.py": "functional",
    "special/__init__.py": "special",
    "linalg/__init__.py": "linalg",
    "fft/__init__.py": "fft",
}
# So for their modules.
FORMS = {
    "tensor/methods.py": {"method"},
    "tensor/inplace_methods.py": {"in_place", "reshaped", "function_"},
    "numpy_calls/ufuncs.py": {"numpy"},
}
WORDS = {"with_inplace", *PLACES.values(), *set().union(*FORMS.values())}


class Op(NamedTuple):
    """A function of `lucid.ops`, and the names that it has by each word of the table."""

    package: str
    module: str
    alias: str | None
    later: bool
    own: str
    names: dict[str, list[str]]

    @property
    def path(self):
        return f"{self.package}.{self.module}"

    @property
    def called(self):
        return f"{self.alias or self.module}.{self.own}"


def is_ufunc(name):
    """Return whether NumPy has a ufunc of that name, which is not one of its second names."""
    return getattr(getattr(np, name, None), "__name__", None) == name and isinstance(getattr(np, name), np.ufunc)


def names_of(names, words):
    """Return the names of an op by each word of its line."""
    found = {}
    for word, _, given in (each.partition("=") for each in words):
        if word not in WORDS:
            raise ValueError(f"{TABLE.name}: {names[0]}: expected one of {', '.join(sorted(WORDS))}, got {word!r}")
        usual = [name for name in names if is_ufunc(name)] if word == "numpy" else names
        found[word] = given.split("/") if given else usual
        if not found[word]:
            raise ValueError(f"{TABLE.name}: {names[0]}: no ufunc has its name: say numpy=name")
    return found


def table(text):
    """Return the ops of the table, those of a file sorted, and last the one with the file's own name.

    In the body of a class that name is the module's until then.
    """
    found = {}
    module, alias, later = "", None, False
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0] != " ":
            module, *options = line.split()
            later = "later" in options
            alias = options[options.index("as") + 1] if "as" in options else None
            continue
        words, _, listed = line.partition(":")
        for own, *more in (each.split("/") for each in listed.split()):
            if (module, own) in found:
                raise ValueError(f"{TABLE.name}: {own} stands twice below {module}: leave one")
            names = names_of([own, *more], words.split())
            if later and names.keys() & FORMS["tensor/inplace_methods.py"]:
                raise ValueError(f"{TABLE.name}: {own}: {module} is imported later, and can have no in-place forms")
            package, _, last = f"lucid.ops.{module}".rpartition(".")
            found[module, own] = Op(package, last, alias, later, own, names)
    return sorted(found.values(), key=lambda op: (op.path, op.own == op.module, in_order(op.own)))


def in_order(name):
    """Return what sorts constants, classes and the others as ruff does."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    parts = filter(None, re.split(r"(\d+)", name))
    return kind, tuple((part.isdigit(), int(part) if part.isdigit() else part) for part in parts)


# ---- imports ----


def public(ops, place, *, later, assigned):
    """Return what a module imports by the word for it: `lucid` some of it later, and no second names, which it sets.

    A name in the place of the function's own is imported.
    """
    found = set()
    for op in ops:
        if place == "lucid" and op.later != later:
            continue
        names = op.names.get(place, [])
        found |= {(op.path, op.own, name) for name in names if not assigned or name == op.own or op.own not in names}
        if place == "functional" and "with_inplace" in op.names:
            found.add((op.package, op.module, f"_{op.alias or op.module}"))
        if place in op.names or (place == "functional" and "with_inplace" in op.names):
            found |= {(METHODS, f"{name}_", f"{name}_") for name in op.names.get("function_", ())}
    return found


def modules(ops, words, *, later=False):
    """Return the imports of the modules of the ops that have one of some words."""
    kept = [op for op in ops if op.later == later and op.names.keys() & words]
    places = {op.alias or op.module: op.path for op in kept}
    for op in kept:
        if places[op.alias or op.module] != op.path:
            raise ValueError(f"{TABLE.name}: {op.path}: another file has its name: say `as` and one that none has")
    return {(op.package, op.module, op.alias or op.module) for op in kept}


def import_lines(wanted, indent):
    """Return import statements as ruff formats and sorts them."""
    statements = defaultdict(list)
    for module, name, shown in wanted:
        alone = () if name == shown else (in_order(name), in_order(shown))
        statements[module, alone].append(name if name == shown else f"{name} as {shown}")
    lines = []
    for (module, _), names in sorted(statements.items(), key=lambda each: (in_order(each[0][0]), each[0][1])):
        names.sort(key=in_order)
        line = f"{indent}from {module} import {', '.join(names)}"
        if len(line) > 120:
            lines += [f"{indent}from {module} import (", *(f"{indent}    {name}," for name in names), f"{indent})"]
        else:
            lines.append(line)
    return lines


def imports(end, old, used, ops, indent, *, later, assigned):
    """Return a section of imports of a file: what it has of the table, and what is written by hand."""
    if end in PLACES:
        wanted = public(ops, PLACES[end], later=later, assigned=assigned and not later)
    else:
        wanted = modules(ops, FORMS[end], later=later)
    shown = {name for *_, name in wanted}
    for each in ast.parse("\n".join(line.removeprefix(indent) for line in old)).body:
        of_table = each.module == METHODS or each.module.startswith("lucid.ops")
        found = {(each.module, one.name, one.asname or one.name) for one in each.names}
        wanted |= {one for one in found if one[2] not in shown and (one[2] in used or not of_table)}
    return import_lines(wanted, indent)


# ---- statements ----


def assignments(ops, word, form="{}", end=""):
    """Return a line for each op with that word, its names set to the op in some form; a heading for each package."""
    lines, package = [], None
    for op in ops:
        if word not in op.names:
            continue
        if package not in {None, op.package} or not lines:
            lines.append(f"# {op.package.removeprefix('lucid.ops.')}")
        package = op.package
        names = "".join(f"{name}{end} = " for name in op.names[word])
        lines.append(names + form.format(op.called))
    return lines


def second_names(ops):
    """Return a line for each file of which `lucid` has second names, which sets those."""
    pairs = defaultdict(list)
    for op in ops:
        names = op.names.get("lucid", ()) if not op.later else ()
        pairs[op.path] += [(name, op.own) for name in names if op.own in names and name != op.own]
    rows = [textwrap.wrap(" ".join(map("=".join, each)), 95) for each in pairs.values()]
    return [" = ".join(map(", ".join, zip(*(one.split("=") for one in row.split())))) for each in rows for row in each]


STATEMENTS = {
    "second names": second_names,
    "methods": lambda ops: assignments(ops, "method"),
    "in-place methods": lambda ops: [
        *assignments(ops, "in_place", "in_place({})", "_"),
        *assignments(ops, "reshaped", "reshaped_in_place({})", "_"),
    ],
    "in-place functions": lambda ops: assignments(ops, "function_", "_function({})", "_"),
    "with a parameter `inplace`": lambda ops: assignments(ops, "with_inplace", "with_inplace(_{})"),
    "later modules": lambda ops: [
        f'{shown} = LaterModule("{package}.{module}")'
        for package, module, shown in sorted(modules(ops, {"method"}, later=True))
    ],
    "ufuncs": lambda ops: [
        f'"{name}": {called},'
        for name, called in sorted((name, op.called) for op in ops for name in op.names.get("numpy", ()))
    ],
}
IMPORTS = {"imports": False, "later imports": True}
"""The kinds of sections that are imports, and whether of what is imported later."""


def sections(lines, kinds):
    """Return the first line, the line after the last, the kind and the indent of each section, the last one first."""
    found = []
    for k, line in enumerate(lines):
        mark = MARK.fullmatch(line)
        if not mark:
            continue
        indent, kind = mark.groups()
        if kind not in {*STATEMENTS, *IMPORTS}:
            raise ValueError(f"line {k + 1}: no section is called {kind!r}: {', '.join([*STATEMENTS, *IMPORTS])}")
        if kind in kinds:
            belongs = [bool(each) and each.startswith(indent) for each in lines[k + 1 :]]
            found.insert(0, (k + 1, k + 1 + belongs.index(False), kind, indent))
    return found


def with_sections(path, text, ops):
    """Return the text of a file with its sections written anew, imports last, as what is used says what stays."""
    lines = text.split("\n")
    for start, end, kind, indent in sections(lines, STATEMENTS):
        lines[start:end] = [indent + line for line in STATEMENTS[kind](ops)]
    assigned = bool(sections(lines, {"second names"}))
    names = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Name)]
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    name = "/".join(path.parts[-2:])
    for start, end, kind, indent in sections(lines, IMPORTS):
        old, later = lines[start:end], IMPORTS[kind]
        lines[start:end] = imports(name, old, used, ops, indent, later=later, assigned=assigned)
    return "\n".join(lines)
