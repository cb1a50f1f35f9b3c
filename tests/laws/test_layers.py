"""The layers of docs/dev/design.md: who may import whom, read from the sources without running them."""

from __future__ import annotations

import ast
import functools
import graphlib
import inspect
import re
import subprocess
import sys
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
    {"cpu"},
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
    assert not parts - RANK.keys(), "they have no layer: add them to LAYERS here and to docs/dev/design.md"
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


# ---- the simulator's C++ ----

SIMULATOR = PACKAGE / "cuda" / "simulator"
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE
)
NAMESPACE = re.compile(r'(?:\bnamespace \w+|\bextern "")\s*$')
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)")


def statements(code):
    """Yield the statements of C++ that other files can see, with ``{}`` for a body."""
    hidden, opened, head = 0, [], ""
    for piece in re.findall(r"[{};]|[^{};]+", code):
        if piece == "{":
            opened.append(bool(hidden) or NAMESPACE.search(head) is None)
            if opened[-1] and not hidden:
                yield head + "{}"
            hidden += opened[-1]
        elif piece == "}":
            hidden -= opened.pop()
        elif piece == ";" and not hidden:
            yield head + ";"
        head = "" if piece in "{};" else piece


def names_of(code):
    """Return the names that C++ declares for other files, and those that it defines for them."""
    declared, defined = set(), set()
    for statement in statements(code):
        text = " ".join(ATTRIBUTE.sub(" ", statement).split())
        if re.match(r"(static|using|typedef|template|constexpr|namespace|enum)\b", text):
            continue
        if kind := re.match(r"(?:struct|class) (\w+).*\{\}$", text):
            declared.add(kind[1])
        elif function := re.search(r"(?:(\w+)::)?~?(\w+) ?\(", text.partition("=")[0]):
            name = function[2] if function[1] in {None, "lucid_simulator"} else function[1]
            (defined if text.endswith("{}") else declared).add(name)
        elif variable := re.match(r"[\w:<>,*& ]* [*&]?(\w+)(?:\[.*?\])?(?: ?=.*| ?\{\})?;?$", text):
            (declared if text.startswith("extern ") else defined).add(variable[1])
    return declared, defined


def needs_of(texts):
    """Return the units that each unit, a source and its header, needs: by includes, and by names that others define."""
    codes = {path: NO_CODE.sub(lambda part: '""' if '"' in part[0][:2] else " ", text) for path, text in texts.items()}
    names = {path: names_of(code) for path, code in codes.items()}
    home = {name: path for path, (_, defined) in names.items() if path.endswith(".cpp") for name in defined}
    included = {path: [*re.findall(r'^#include "(.*?)"', text, re.MULTILINE)] for path, text in texts.items()}
    needs: dict[str, set[str]] = {}
    for path, code in codes.items():
        seen = [path]
        for each in seen:
            seen += [other for other in included[each] if other in texts and other not in seen]
        known = set().union(*[names[each][0] for each in seen])
        used = known & home.keys() & set(re.findall(r"\w+", code)) if path.endswith(".cpp") else set()
        others = {*included[path], *[home[name] for name in used]} & texts.keys()
        unit = path.rpartition(".")[0]
        needs.setdefault(unit, set()).update({other.rpartition(".")[0] for other in others} - {unit})
    return needs


def circle_in(needs):
    """Return units of which each needs the one before it and the first is the last, or none."""
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_the_simulators_files_need_each_other_in_one_direction():
    """No file of the simulator's C++ needs one that needs it: by an include, or by a function, variable or class."""
    paths = [path for part in ("execution", "host", "libraries", "device") for path in (SIMULATOR / part).rglob("*.*")]
    texts = {path.relative_to(SIMULATOR).as_posix(): path.read_text(encoding="utf-8") for path in paths
             if path.suffix in {".h", ".cpp"}}  # fmt: skip
    circle = circle_in(needs_of(texts))
    assert not circle, f"{' <- '.join(circle)}: what both ends need goes into a file below, or is handed over in a call"


def test_a_circle_of_calls_is_seen():
    """Headers may all point one way while the sources call each other, also past any header."""
    texts = {
        "low.h": "namespace lucid_simulator {\nstruct Low;\nextern int most;\nint low(int x);\n}",
        "low.cpp": '#include "low.h"\nnamespace lucid_simulator {\nint most = 3;\nint low(int x) { return x; }\n}',
        "high.h": '#include "low.h"\nnamespace lucid_simulator { class High { int x; public: High(); }; }',
        "high.cpp": '#include "high.h"\nnamespace lucid_simulator { High::High() : x(low(most)) {} }',
    }
    assert needs_of(texts) == {"low": set(), "high": {"low"}}
    assert not circle_in(needs_of(texts))
    for line in ('extern "C" int high();\nint f() { return high(); }', '#include "high.h"\nvoid f() { High(); }'):
        exported = {"high.cpp": texts["high.cpp"] + '\nextern "C" { int high() { return 1; } }'}
        assert circle_in(needs_of({**texts, **exported, "low.cpp": f"{line}\n{texts['low.cpp']}"})), line


def test_what_takes_long_to_load_waits():
    """`import lucid`, and its layers and optimizers, load none of the packages that may wait for their first use."""
    code = "import sys, lucid, lucid.nn, lucid.optim; print(*sys.modules)"
    numpys = set(
        subprocess.run(
            [sys.executable, "-c", "import sys, numpy, ml_dtypes; print(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert not sorted((LAZY - numpys) & set(child.stdout.split())), "they are loaded: import them where they are needed"
