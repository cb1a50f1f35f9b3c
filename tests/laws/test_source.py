"""Texts of a source: first lines and identifiers are in the terms of the field, and type hints mean something."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

LUCID = Path(__file__).resolve().parents[2] / "lucid"

HINGE = re.compile(r"\b(what|which|where|who|whom|whose)\b", re.IGNORECASE)
CODE = re.compile(r"(`+).+?\1")
VAGUE = {"there", "found", "left", "given", "alike", "begun"}
MOST_ANY = 0.10

# parameters of public functions and classes, by file
PUBLIC = {
    "autograd/hooks/context.py": {"given"},
    **{f"ops/decomposition/{file}.py": {"left"} for file in ("inverses", "lu", "orthogonal", "triangular")},
}


@functools.cache
def nodes(path):
    """Return the nodes of the syntax tree of a file of lucid."""
    return tuple(ast.walk(ast.parse((LUCID / path).read_text(encoding="utf-8"))))


@functools.cache
def files():
    """Return the paths of lucid's files, below its folder."""
    return [file.relative_to(LUCID).as_posix() for file in sorted(LUCID.rglob("*.py"))]


def hinging(path):
    """Yield (line number, text) of the first lines of docstrings that hinge on a question word outside of code."""
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = (ast.get_docstring(node) or "").partition("\n")[0]
            if HINGE.search(CODE.sub("", text)):
                yield node.body[0].lineno, text


def names(node):
    """Yield the names that a node of a syntax tree makes or uses, without underscores at their ends."""
    for field in ("id", "arg", "attr", "name"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield name.strip("_")


def is_side(path, line):
    """Return whether a function around a line has `right`, too."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= node.end_lineno:
            if any("right" in names(part) for part in ast.walk(node)):
                return True
    return False


def vague(path):
    """Yield (line number, name) of the identifiers that could stand for anything; `left` beside `right` is a side."""
    for node in nodes(path):
        for name in VAGUE.intersection(names(node)) - PUBLIC.get(path, set()):
            if name != "left" or not is_side(path, node.lineno):
                yield node.lineno, name


def test_a_first_line_names_what_comes_out():
    """No first line hinges on what, which, where or who: it names the result, or the thing itself."""
    wrong = [f"lucid/{path}:{line}: {text}" for path in files() for line, text in hinging(path)]
    assert not wrong, "noun or verb of the field first, as in NumPy's documentation:\n" + "\n".join(wrong)


def test_an_identifier_names_what_it_holds():
    """No identifier is a word that could stand for anything."""
    wrong = [f"lucid/{path}:{line}: {name}" for path in files() for line, name in vague(path)]
    assert not wrong, "device, overflow, remaining, arguments, equal, started, match ...:\n" + "\n".join(wrong)


def parameters(tree, public=True):
    """Yield whether each parameter of the functions of a tree is plainly `Any`, and whether its function is public."""
    for node in ast.iter_child_nodes(tree):
        here = public and not getattr(node, "name", "").removeprefix("__").startswith("_")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            of = node.args
            for each in (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg):
                if each is not None and each.arg not in {"self", "cls"}:
                    yield each.annotation is not None and ast.unparse(each.annotation) == "Any", here
            yield from parameters(node, public=False)
        else:
            yield from parameters(node, here)


def test_few_parameters_are_any():
    """At most one parameter in ten says nothing of what it takes, and of public functions too."""
    found = [each for path in LUCID.rglob("*.py") for each in parameters(ast.parse(path.read_text(encoding="utf-8")))]
    for some in (found, [each for each in found if each[1]]):
        share = sum(is_any for is_any, _ in some) / len(some)
        assert share <= MOST_ANY, (
            f"{share:.1%} of {len(some)} parameters are Any; Array is for arrays, object for anything"
        )
