"""The layers of docs/design.md: who may import whom, read from the sources without running them."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import NamedTuple

import pytest

import lucid

PACKAGE = Path(lucid.__file__).parent
# Lowest first. A module imports from lower layers and from its own part of its layer.
LAYERS = (
    {"errors", "version"},
    {"arguments"},
    {"backend", "backends"},
    {"cuda"},
    {"autograd"},
    {"ops"},
    {"tensor"},
    {"nn", "data"},
    {"optim"},
    {
        "hooks",
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
        "_C",
        "_utils",
    },
    {
        "accelerator",
        "compiler",
        "distributed",
        "futures",
        "fx",
        "jit",
        "multiprocessing",
        "onnx",
        "overrides",
        "profiler",
        "testing",
        "types",
    },
    {"lucid"},
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
# Heavy or optional packages, loaded where they are first needed so that `import lucid` stays light; what only Unix has.
LAZY = {
    "concurrent",
    "grp",
    "logging",
    "multiprocessing",
    "pathlib",
    "pwd",
    "tempfile",
    "cupy",
    "cupyx",
    "cupy_backends",
    "rich",
    "safetensors",
    "tensorboardX",
    "opt_einsum",
    "matplotlib",
    "tensorboardX",
    "nvtx",
    "nvmath",
    "cudnn",
}
ONLY_IMPORTER_OF_CUPY = "backend/gpu.py"
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
every_module = pytest.mark.parametrize(
    ("name", "source", "is_package"), [m[1:] for m in MODULES], ids=[m[0] for m in MODULES]
)


@every_module
def test_imports_point_downwards(name, source, is_package):
    """A module of lucid imports only from lower layers and from its own part; a new part must be given a layer."""
    own = part(name)
    assert own in RANK, f"{own} has no layer: add it to LAYERS here and to docs/design.md"
    for found in imports(source, name, is_package=is_package):
        if found.name.split(".")[0] != "lucid":
            continue
        other = part(found.name)
        assert other in RANK, f"{name}:{found.line} imports {found.name}, which has no layer"
        assert other == own or RANK[other] < RANK[own], f"{name}:{found.line} imports {found.name} from a layer above"


@every_module
def test_no_import_inside_a_function(name, source, is_package):
    """Imports stand at the top: a cycle is broken by layers; only packages that take long to load may wait."""
    late = [found for found in imports(source, name, is_package=is_package) if found.inside_function]
    wrong = [f"{name}:{found.line} {found.name}" for found in late if found.name.split(".")[0] not in LAZY]
    assert not wrong


@pytest.mark.parametrize(("path", "name", "source", "is_package"), MODULES, ids=[m[0] for m in MODULES])
def test_cupy_has_one_door_and_torch_none(path, name, source, is_package):
    """Only the CuPy backend and the simulator import CuPy: everything else runs without it; nothing imports PyTorch."""
    tops = {found.name.split(".")[0] for found in imports(source, name, is_package=is_package)}
    assert "torch" not in tops
    if path != ONLY_IMPORTER_OF_CUPY and not path.startswith("cuda/simulator/"):
        assert not tops & {"cupy", "cupyx", "cupy_backends"}


@every_module
def test_a_file_is_read_in_one_sitting(name, source, is_package):
    """Files stay near 400 lines; one that outgrows the limit has more than one concern."""
    assert len(source.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", lucid.__all__)
def test_every_public_name_says_what_it_is(name):
    """Every name that `lucid` exports exists and has a docstring whose first line is not empty."""
    text = inspect.getdoc(getattr(lucid, name))
    assert text
    assert text.splitlines()[0].strip()


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
