"""The layers of docs/design.md: who may import whom, read from the sources without running them."""

from __future__ import annotations

import ast
import functools
import inspect
from pathlib import Path
from typing import NamedTuple

import lucid

PACKAGE = Path(lucid.__file__).parent
# Lowest first. A module imports from lower layers and from its own part of its layer.
LAYERS = (
    {"public"},
    {"errors", "futures", "version"},
    {"arguments"},
    {"backends", "base"},
    {"cuda"},
    {"autograd"},
    {"settings"},
    {"ops"},
    {"tensor"},
    {"collectives"},
    {"nn"},
    {"optim"},
    {
        "amp",
        "fft",
        "func",
        "linalg",
        "special",
        "graphs",
        "serialization",
        "utils",
        "compat",
        "distributions",
    },
    {"array_api", "hooks", "numpy"},
    {"scipy"},
    {
        "distributed",
        "multiprocessing",
        "profiler",
        "testing",
        "viz",
    },
    {"lucid"},
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
# Heavy or optional packages, loaded where they are first needed so that `import lucid` stays light; what only Unix has.
LAZY = {
    "concurrent",
    "cudnn",
    "cupy",
    "grp",
    "logging",
    "mpi4py",
    "multiprocessing",
    "nccl",
    "nvtx",
    "opt_einsum",
    "pathlib",
    "pwd",
    "ray",
    "rich",
    "tempfile",
    "tensorboardX",
}
ONLY_IMPORTER_OF_CUPY = "base/gpu.py"
RUN_BY_PYTHON = "cuda/simulator/children/sitecustomize.py"  # before anything is imported
MOST_LINES = 450


class Import(NamedTuple):
    """One imported module by its absolute name, where it stands, and whether inside a function."""

    name: str
    line: int
    inside_function: bool


def is_type_checking(test):
    """Tell whether an `if` is the one that only type checkers enter."""
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def absolute(node, module, is_package):
    """Return the absolute names that a `from` import reaches: the module, or the submodules named in it."""
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        parts = parts[: len(parts) - node.level + is_package]
        base = ".".join([*parts, base] if base else parts)
    for alias in node.names:
        path = PACKAGE.parent.joinpath(*base.split("."), alias.name)
        yield f"{base}.{alias.name}" if path.is_dir() or path.with_suffix(".py").exists() else base


def imports(source, module, *, is_package=False):
    """Yield every import that can run: those under `if TYPE_CHECKING` cannot."""

    def walk(node, inside):
        if isinstance(node, ast.If) and is_type_checking(node.test):
            children = node.orelse
        else:
            children = list(ast.iter_child_nodes(node))
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in children:
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield from (Import(name, child.lineno, inside) for name in absolute(child, module, is_package))
            elif isinstance(child, ast.Call) and ast.unparse(child.func).split(".")[-1] in {
                "import_module",
                "__import__",
            }:
                if child.args and isinstance(child.args[0], ast.Constant):
                    yield Import(str(child.args[0].value), child.lineno, inside)
            yield from walk(child, inside)

    yield from walk(ast.parse(source), inside=False)


def part(module):
    """Return the part of the house that an absolute module name belongs to."""
    return module.split(".")[1] if "." in module else module


def modules():
    """Return (path inside the package, absolute name, source, whether a package) of every module of lucid."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        inner = path.relative_to(PACKAGE)
        is_package = inner.name == "__init__.py"
        names = inner.parent.parts if is_package else inner.with_suffix("").parts
        found.append((inner.as_posix(), ".".join(["lucid", *names]), path.read_text(encoding="utf-8"), is_package))
    return found


MODULES = modules()


@functools.cache
def every_import():
    """Return (path, own module, import) of every import that can run in lucid."""
    return [
        (path, name, each)
        for path, name, source, is_package in MODULES
        for each in imports(source, name, is_package=is_package)
    ]


def test_imports_point_downwards():
    """A module of lucid imports only from lower layers and from its own part; a new part must be given a layer."""
    parts = {part(name) for _, name, *_ in MODULES}
    parts |= {part(each.name) for _, _, each in every_import() if each.name.split(".")[0] == "lucid"}
    assert not parts - RANK.keys(), "they have no layer: add them to LAYERS here and to docs/design.md"
    upwards = [
        f"{name}:{each.line} imports {each.name}"
        for _, name, each in every_import()
        if each.name.split(".")[0] == "lucid"
        and part(each.name) != part(name)
        and RANK[part(each.name)] >= RANK[part(name)]
    ]
    assert not upwards, "they are imports from a layer above"


def test_no_import_inside_a_function():
    """Imports stand at the top: a cycle is broken by layers; only packages that take long to load may wait."""
    late = [(name, each) for path, name, each in every_import() if each.inside_function and path != RUN_BY_PYTHON]
    assert not [f"{name}:{each.line} {each.name}" for name, each in late if each.name.split(".")[0] not in LAZY]


def test_cupy_has_one_door_and_torch_none():
    """Only the CuPy backend and the simulator import CuPy: everything else runs without it; nothing imports PyTorch."""
    tops = {(path, each.name.split(".")[0]) for path, _, each in every_import()}
    assert not [path for path, top in tops if top == "torch"]
    cupy = [path for path, top in tops if top in {"cupy", "cupyx", "cupy_backends"}]
    assert not [path for path in cupy if path != ONLY_IMPORTER_OF_CUPY and not path.startswith("cuda/simulator/")]


def test_only_parity_needs_pytorch():
    """Whoever has not installed PyTorch runs all other tests: no module of theirs is imported with it."""
    tests = Path(__file__).parents[1]
    others = [path for path in sorted(tests.rglob("*.py")) if path.relative_to(tests).parts[0] != "parity"]
    named = [(path, text) for path in others if "torch" in (text := path.read_text(encoding="utf-8"))]
    found = [(path, each) for path, text in named for each in imports(text, "tests.any")]
    found = [(path, each) for path, each in found if "torch" in each.name.split(".") and not each.inside_function]
    assert not [f"{path.relative_to(tests)}:{each.line}" for path, each in found]


def test_a_file_is_read_in_one_sitting():
    """Files stay near 400 lines; one that outgrows the limit has more than one concern."""
    assert not [path for path, _, source, _ in MODULES if len(source.splitlines()) > MOST_LINES]


def test_every_public_name_says_what_it_is():
    """Every name that `lucid` exports exists and has a docstring whose first line is not empty."""
    assert not [name for name in lucid.__all__ if not (inspect.getdoc(getattr(lucid, name)) or "").split("\n")[0]]


SOURCE = """
from __future__ import annotations
from typing import TYPE_CHECKING
from ..autograd import engine
from . import loss
import cupy.cuda
if TYPE_CHECKING:
    import torch
def late():
    import rich.table
    importlib.import_module("torch")
"""


def test_the_reader_sees_what_runs():
    """Relative and late imports are resolved, string imports are seen, and what only a type checker reads is not."""
    found = [(each.name, each.inside_function) for each in imports(SOURCE, "lucid.ops.relu")]
    names = [name.removesuffix(".engine").removesuffix(".loss") for name, _ in found]
    assert names[2:] == ["lucid.autograd", "lucid.ops", "cupy.cuda", "rich.table", "torch"]
    assert [inside for _, inside in found[2:]] == [False, False, False, True, True]


def test_a_package_resolves_one_level_less():
    """In `__init__.py` one dot is the package itself, elsewhere it is the folder."""
    (found,) = imports("from .node import Node", "lucid.autograd", is_package=True)
    assert found.name == "lucid.autograd.node"
