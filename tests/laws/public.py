"""The public names of lucid with their parameters, and those of the last release.

`python -m tests.laws.public` prints a line for each, as it goes into the file of the last release.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lucid

if TYPE_CHECKING:
    from types import ModuleType

RELEASED = Path(__file__).with_name("released_names.txt")
# Public modules that their package does not export, as in PyTorch.
BESIDE = ("lucid.nn.modules.module", "lucid.optim.optimizer")
# Classes whose methods are what users work with; of others the name is enough.
CLASSES = (
    "lucid.Tensor",
    "lucid.nn.Module",
    "lucid.nn.parallel.DistributedDataParallel",
    "lucid.optim.Optimizer",
    "lucid.autograd.SavedTensor",
    "lucid.autograd.graph.Node",
)


def public_names() -> set[str]:
    """Return the full name of everything public: what modules export, and the methods of `CLASSES`."""
    found = names_in("lucid", lucid).union(*(names_in(path, importlib.import_module(path)) for path in BESIDE))
    kinds = {path: _at(path) for path in CLASSES}
    for path, kind in kinds.items():
        inherited = {
            name for each in kinds.values() if each is not kind and issubclass(kind, each) for name in dir(each)
        }
        found |= {f"{path}.{member}" for member in dir(kind) if not member.startswith("_") and member not in inherited}
    return found


def _at(path: str) -> type:
    """Return the class of this full name."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def names_in(path: str, module: ModuleType) -> set[str]:
    """Return the names that a module exports, and those of the modules among them."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == path]
    exported = {f"{path}.{name}": getattr(module, name) for name in getattr(module, "__all__", own)}
    inner = [names_in(name, value) for name, value in exported.items() if inspect.ismodule(value)]
    return {name for name in exported if not name.rpartition(".")[2].startswith("_")}.union(*inner)


def parameters_of(name: str) -> list[str]:
    """Return the names of the parameters of something public; none of what has no signature, or is no callable."""
    parent, _, own = name.rpartition(".")
    held: Any = getattr(sys.modules[parent], own) if parent in sys.modules else inspect.getattr_static(_at(parent), own)
    try:
        return list(inspect.signature(held).parameters)
    except (TypeError, ValueError):
        return []


def released() -> dict[str, list[str]]:
    """Return the public names of the last release, with their parameters."""
    lines = RELEASED.read_text(encoding="utf-8").splitlines()
    return {name: parameters for name, *parameters in map(str.split, lines)}


if __name__ == "__main__":
    for each in sorted(public_names()):
        print(each, *parameters_of(each))
