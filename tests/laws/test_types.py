"""Type hints mean something: few parameters are `Any`."""

from __future__ import annotations

import ast
from pathlib import Path

import lucid

PACKAGE = Path(lucid.__file__).parent
MOST = 0.10


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
    found = [each for path in PACKAGE.rglob("*.py") for each in parameters(ast.parse(path.read_text(encoding="utf-8")))]
    for some in (found, [each for each in found if each[1]]):
        share = sum(is_any for is_any, _ in some) / len(some)
        assert share <= MOST, f"{share:.1%} of {len(some)} parameters are Any; Array is for arrays, object for anything"
