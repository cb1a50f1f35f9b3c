"""What a module exports, and what stands in it of the names of ops.

`python -m tests.namespaces.exports` writes the sections of `FILES` that follow from `ops.txt`; then, from the imports,
`__all__` and the table of what is imported when it is first asked for, `_LATER`: the imports that type checkers see.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

from tests.namespaces.sections import TABLE, in_order, table, with_sections

LUCID = Path(__file__).parents[2] / "lucid"
PACKAGES = (
    ".", "autograd", "compat", "cuda", "distributed", "distributions", "fft", "func", "hooks", "linalg", "nn",
    "nn/utils", "numpy/autograd", "optim", "optim/lr_scheduler", "special", "utils/data",
)  # fmt: skip
FILES = (
    *(LUCID / package / "__init__.py" for package in PACKAGES),
    *(LUCID / name for name in ("cuda/amp.py", "distributions/transforms.py", "nn/functional.py")),
    *(LUCID / "tensor" / name for name in ("methods.py", "inplace_methods.py", "numpy_calls/ufuncs.py")),
)
# What a module needs for itself.
INNER = {"functional": {"OLDER_PLACES", "clone", "live_edge", "with_inplace", "with_older_reduction"}}
VERSION = "__version__"


def imported(statements):
    """Yield the module and the name of what is imported from lucid, and of Python's numbers."""
    for each in statements:
        if isinstance(each, ast.ImportFrom) and each.module.partition(".")[0] in {"lucid", "math"}:
            yield from ((each.module, one) for one in each.names)


def for_type_checkers(tree):
    """Return the statements that only type checkers see."""
    conditions = [each for each in tree.body if isinstance(each, ast.If)]
    return [each for one in conditions if ast.unparse(one.test).endswith("TYPE_CHECKING") for each in one.body]


def exported(tree):
    """Return the names that a module is for: what it imports, but for `x as x`, and what it makes of that."""
    statements = [*tree.body, *for_type_checkers(tree)]
    names = {one.asname or one.name for _, one in imported(statements) if one.asname != one.name}
    for each in statements:
        if isinstance(each, ast.Assign):
            targets = [one for target in each.targets for one in getattr(target, "elts", [target])]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(each, ast.FunctionDef | ast.ClassDef):
            names.add(each.name)
    return {name for name in names if not name.startswith("_") or name == VERSION}


def imported_later(tree, package):
    """Return where each name is that is imported when it is first asked for."""
    places = {}
    for module, one in imported(for_type_checkers(tree)):
        path = f"{module}.{one.name}" if module == package else module
        places[one.asname or one.name] = path if one.asname in {None, one.name} else f"{path}:{one.name}"
    return places


def packed(head, entries, end, indent):
    """Return the lines of a list or a dictionary, filled."""
    text = " ".join(entry.replace(" ", "\0") for entry in entries)
    filled = textwrap.fill(text, 120 - indent - 4, break_long_words=False, break_on_hyphens=False).replace("\0", " ")
    lines = [f"{head}{filled.removesuffix(',')}{end}"]
    if "\n" in filled or len(lines[0]) + indent > 120:
        lines = [head, *textwrap.indent(filled, "    ").split("\n"), f"{end}  # fmt: skip"]
    return [" " * indent + line for line in lines]


def written(path):
    """Return the text of a file with what follows from its imports."""
    source = with_sections(path, path.read_text(encoding="utf-8"), table(TABLE.read_text(encoding="utf-8")))
    tree, lines = ast.parse(source), source.split("\n")
    package = ".".join(["lucid", *path.relative_to(LUCID).with_suffix("").parts]).removesuffix(".__init__")
    places = [each for each in ast.walk(tree) if isinstance(each, ast.Assign)]
    places = {each.targets[0].id: each for each in places if isinstance(each.targets[0], ast.Name)}
    names = sorted(exported(tree) - INNER.get(path.stem, set()), key=in_order)
    later = [f'"{name}": "{place}",' for name, place in imported_later(tree, package).items()]
    made = {
        "__all__": packed("__all__ = [", [f'"{name}",' for name in names], "]", 0),
        "_LATER": packed("_LATER = {", later, "}", 4),
    }
    for name in sorted(made.keys() & places.keys(), key=lambda name: -places[name].lineno):
        lines[places[name].lineno - 1 : places[name].end_lineno] = made[name]
    return "\n".join(lines)


if __name__ == "__main__":
    for each in FILES:
        each.write_text(written(each), encoding="utf-8")
