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


def names(node):
    """Yield the names that a node of a syntax tree makes or uses, without underscores at their ends."""
    for field in ("id", "arg", "attr", "name"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield name.strip("_")


def hinging(nodes):
    """Yield (line number, text) of the first lines of docstrings that hinge on a question word outside of code."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = (ast.get_docstring(node) or "").partition("\n")[0]
            if HINGE.search(CODE.sub("", text)):
                yield node.body[0].lineno, text


def is_side(nodes, line):
    """Return whether a function around a line has `right`, too."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= node.end_lineno:
            if any("right" in names(part) for part in ast.walk(node)):
                return True
    return False


def vague(nodes, public):
    """Yield (line number, name) of the identifiers that could stand for anything, or a part of which could.

    `left` beside `right` is a side, and so it is in a name of several words.
    """
    for node in nodes:
        for name in set(names(node)) - public:
            part = VAGUE.intersection({name} if "left" in name else name.lower().split("_"))
            if part and not (name == "left" and is_side(nodes, node.lineno)):
                yield node.lineno, name


@functools.cache
def findings():
    """Return the lines against the first law and against the second, of all files of lucid."""
    texts, words = [], []
    for file in sorted(LUCID.rglob("*.py")):
        path = file.relative_to(LUCID).as_posix()
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        texts += [f"lucid/{path}:{line}: {text}" for line, text in hinging(nodes)]
        words += [f"lucid/{path}:{line}: {name}" for line, name in vague(nodes, PUBLIC.get(path, set()))]
    return texts, words


def test_a_first_line_names_what_comes_out():
    """No first line hinges on what, which, where or who: it names the result, or the thing itself."""
    texts, _ = findings()
    assert not texts, "noun or verb of the field first, as in NumPy's documentation:\n" + "\n".join(texts)


def test_an_identifier_names_what_it_holds():
    """No identifier is a word that could stand for anything, nor made of one."""
    _, words = findings()
    assert not words, "device, overflow, remaining, arguments, equal, started, match ...:\n" + "\n".join(words)


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


def test_the_default_generator_is_asked_for():
    """`default_generator_for("cpu")` is that of a sample or worker where there is one, the constant never is."""
    home = {"base/random/draws.py", "base/random/generator.py", "ops/creation/generators.py"}
    uses = [
        f"lucid/{file.relative_to(LUCID).as_posix()}:{node.lineno}"
        for file in sorted(LUCID.rglob("*.py"))
        if file.relative_to(LUCID).as_posix() not in home
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if "default_generator" in (getattr(node, "attr", None), getattr(node, "id", None))
    ]
    assert not uses, 'default_generator_for("cpu") in its place:\n' + "\n".join(uses)
