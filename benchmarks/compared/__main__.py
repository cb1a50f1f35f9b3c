"""Twelve things that people do with hooks, with lucid and other libraries: lines, names, time, and what goes wrong.

python -m benchmarks.compared [--write docs/users/hooks-compared.md]

Libraries that are not installed are left out; they are captum, baukit, nnsight, pyvene and transformer-lens.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.metadata
import inspect
import os
import statistics
import sys
import textwrap
import time
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.compared import model

ROUNDS = 60
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # of a pair both run on one
TASKS = {
    "capture": "keep the output of every attention, by a pattern of paths",
    "gradients": "keep the gradients of these outputs",
    "patch": "put the output of a block on another input in the place of this one",
    "ablate": "set the output of one module to zero",
    "stop": "end the forward after the second block",
    "nan": "stop at the first module that gives NaN, and name it",
    "sweep": "take off every hook that another library has left behind",
    "scoped": "take off what is registered in a block, and nothing else",
    "times": "take the time of each module",
    "clip": "clip the gradients of one module's parameters",
    "inside": "keep a value inside of forward that no module returns",
    "flops": "count the operations of all products",
}
LIBRARIES = {
    "lucid": "lucid", "PyTorch by hand": "pytorch", "baukit": "baukit", "nnsight": "nnsight", "captum": "captum",
    "pyvene": "pyvene", "TransformerLens": "transformer_lens",
}  # fmt: skip


class Cell(NamedTuple):
    """What one library takes for one task: statements, names to know, time over a bare run."""

    lines: int
    names: int
    ratio: float

    def __str__(self) -> str:
        return f"{self.lines} / {self.names} / {self.ratio:.2f}"


def statements(function: Any) -> int:
    """Return how many statements a program consists of, beside the calls of the model that it would make anyway."""
    body = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0].body  # pyright: ignore[reportAttributeAccessIssue]
    nodes = [node for each in body for node in ast.walk(each) if isinstance(node, ast.stmt)]
    return sum(not calls_model(node) and not (isinstance(node, ast.Return) and node is body[-1]) for node in nodes)


def calls_model(statement: ast.stmt) -> bool:
    """Tell whether a statement is a call of the model and nothing more, such as ``net(x).sum().backward()``."""
    value: Any = getattr(statement, "value", None) if isinstance(statement, ast.Expr | ast.Return) else None
    while isinstance(value, ast.Call | ast.Attribute):
        value = value.func if isinstance(value, ast.Call) else value.value
        if isinstance(value, ast.Attribute) and value.attr not in {"sum", "backward"}:
            return False
    return isinstance(value, ast.Name) and value.id == "net"


def names(function: Any) -> int:
    """Return how many names of libraries a program uses: attributes, keywords, and what its file imports."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    imported = {name for name, value in function.__globals__.items() if isinstance(value, ModuleType | type)}
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & imported
    return len(used - {"blocks", "attn", "out", "weight", "flip", "sum", "items", "append", "update", "model", "Any"})


def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return the numbers of a result."""
    if isinstance(value, list | tuple):
        return [array for each in value for array in arrays(each)]
    if hasattr(value, "detach"):
        return [np.asarray(value.detach().numpy())]
    return [np.asarray(value, dtype=float)] if isinstance(value, int | float) else []


def ready(library: Any, **settings: Any) -> Any:
    """Return the model of a library with the weights that all have, so that all have to give the same numbers."""
    net = library.net(**settings)
    if library.LIB.__name__ == "lucid":
        import torch

        state = model.gpt(torch, **settings).state_dict()
        net.load_state_dict({name: library.LIB.tensor(value.numpy()) for name, value in state.items()})
    return net


def batch(library: Any) -> Any:
    """Return the tokens that all are given."""
    return library.LIB.tensor(np.random.default_rng(0).integers(0, model.VOCABULARY, (model.BATCH, model.CONTEXT)))


def bare(net: Any, x: Any, *, backward: bool) -> None:
    """Run what a task runs, without hooks."""
    result = net(x)
    if backward:
        result.sum().backward()


def ratio(library: Any, key: str) -> float:
    """Return the processor's time of a task over that of the same runs without hooks: the median of pairs in turn.

    What else the machine does slows both of a pair alike; the shortest of either would be of different moments.
    """
    function = getattr(library, key)
    net, x = ready(library), batch(library)
    ratios: list[float] = []
    backward = key in {"gradients", "clip"}

    def plain() -> None:
        for _ in range(2 if key == "patch" else 1):
            bare(net, x, backward=backward)

    runs = [lambda: function(net, x), plain]
    for number in range(ROUNDS):
        if key == "sweep":
            model.forgetful(net)
        took = [0.0, 0.0]
        for which in (0, 1) if key == "sweep" or number % 2 else (1, 0):
            begin = time.process_time()
            runs[which]()
            took[which] = time.process_time() - begin
        ratios.append(took[0] / took[1])
    return statistics.median(ratios)


def trouble(library: Any) -> str:
    """Return what goes wrong where outputs are kept: with a module that runs twice, a later change, an error."""
    said: list[str] = []
    with library.LIB.no_grad():
        kept = attempt(lambda: arrays(library.capture(ready(library, trouble="twice"), batch(library))))
        said.append(kept if isinstance(kept, str) else f"{len(kept)} of 4 calls")
        kept = attempt(lambda: arrays(library.capture(ready(library, trouble="overwrites"), batch(library))))
        said.append(kept if isinstance(kept, str) else "kept" if all(array.any() for array in kept) else "overwritten")
        net = ready(library, trouble="raises")
        attempt(lambda: library.capture(net, batch(library)))
        said.append(f"{model.hooks_on(getattr(net, '_module', net))} left")
    return " | ".join(said)


def attempt(function: Any) -> Any:
    """Return what a function gives, or the class of what it raises."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__


def main() -> None:
    """Measure, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the tables go, between its two marks")
    options = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in THREADS):  # the libraries of linear algebra read them once
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **dict.fromkeys(THREADS, "1")})
    libraries: dict[str, Any] = {}
    for title, name in LIBRARIES.items():
        try:
            libraries[title] = importlib.import_module(f"benchmarks.compared.with_{name}")
        except ImportError as error:
            print(f"{title} is left out: {error}")
    expected: dict[str, Any] = {}
    rows: list[str] = [f"| task | {' | '.join(libraries)} |", "|---" * (len(libraries) + 1) + "|"]
    for key, task in TASKS.items():
        cells: list[str] = []
        for title, library in libraries.items():
            function = getattr(library, key, None)
            if function is None:
                cells.append("")
                continue
            if key not in {"times", "sweep", "scoped", "flops"} and title != "TransformerLens":
                got = arrays(function(ready(library), batch(library)))
                if key not in expected:
                    expected[key] = got
                for one, other in zip(got, expected[key], strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, err_msg=f"{title}: {key}")
            cells.append(str(Cell(statements(function), names(function), ratio(library, key))))
            print(f"{task} with {title}: {cells[-1]}", flush=True)
        rows.append(f"| {task} | {' | '.join(cells)} |")
    rows += ["", "| keeping outputs with | a module that runs twice | changed in place later | hooks after an error |"]
    rows += ["|---" * 4 + "|"]
    rows += [f"| {title} | {trouble(library)} |" for title, library in libraries.items() if title != "TransformerLens"]
    packages = {title: "torch" if name == "pytorch" else name.replace("_", "-") for title, name in LIBRARIES.items()}
    installed = [title for title in libraries if title not in {"baukit", "lucid"}]
    versions = [f"{title} {importlib.metadata.version(packages[title])}" for title in installed]
    rows += ["", f"{', '.join(versions)}."]
    text = "\n".join(rows)
    if options.write is None:
        print(text)
    else:
        page = options.write.read_text(encoding="utf-8")
        mark = "<!-- python -m benchmarks.compared -->\n"
        head, _, rest = page.partition(mark)
        options.write.write_text(f"{head}{mark}\n{text}\n\n{mark}{rest.partition(mark)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
