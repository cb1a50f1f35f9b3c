"""lucid under PyTorch's name: an import of `torch` gives lucid's modules, with nothing else exchanged."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from multiprocessing import spawn
from pathlib import Path
from typing import TYPE_CHECKING

from lucid.compat.addresses import SecondName
from lucid.errors import LucidError
from lucid.version import Version

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType


PYTORCH = "2.13.0"
# Packages of PyTorch's with an underscore that libraries import from all the same, and where their modules are here.
SECOND = {
    "torch.distributed._composable": "torch.distributed",
    "torch.distributed._tensor": "torch.distributed.tensor",
    "torch.utils.data._utils": "torch.utils.data",
}


def lucids(name: str) -> str:
    """Return the name of lucid's module that stands for PyTorch's."""
    for second, first in SECOND.items():
        if name == second or name.startswith(f"{second}."):
            name = first + name.removeprefix(second)
    return f"lucid{name.removeprefix('torch')}"


_preparation = spawn.get_preparation_data


class _Distribution(Distribution):
    """Distribution under the name `torch`, for requests of its version: the PyTorch of lucid's names."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {PYTORCH}\n" if filename == "METADATA" else None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return Path(__file__).parents[2] / path


class _Finder(DistributionFinder):
    """Find `torch` and its submodules in lucid."""

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[Distribution]:
        return [_Distribution()] if context.name == "torch" else []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "torch":
            return None
        try:
            importlib.import_module(lucids(fullname))
        except ModuleNotFoundError:
            return None
        return ModuleSpec(fullname, SecondName(lucids), is_package=True)


class _StandsIn:
    """Lets lucid stand for PyTorch in the process that reads it from a pickle."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return stand_in, ()


def _prepared(name: str) -> dict[str, object]:
    """Return the first orders to a new process: to stand in, before it imports the script that started it."""
    return {"stand_in": _StandsIn(), **_preparation(name)}


def stand_in() -> None:
    """Let lucid stand for PyTorch in this process: ``import torch`` gives lucid, and ``import torch.nn`` its `nn`.

    It has to be called before PyTorch is imported, or a LucidError is raised. For scripts `python -m lucid.compat --run
    script.py` does it; `docs/users/tools.md` lists libraries that run so. Processes that Python's `multiprocessing`
    starts from here, workers of a `DataLoader` among them, do the same. `lucid.__version__` is then PyTorch's, with
    lucid's own behind a ``+``: libraries ask it for what they may use.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if "torch" in sys.modules:
        raise LucidError("stand_in: expected a process without PyTorch, which is imported already; call it first")
    sys.meta_path.insert(0, _Finder())
    names = vars(importlib.import_module(lucids("torch")))
    names["__version__"] = Version(f"{PYTORCH}+lucid{names['__version__']}")
    spawn.get_preparation_data = _prepared
