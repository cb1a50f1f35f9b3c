"""Gives the Python processes that a simulated one starts their devices, once they import CuPy.

Python imports this file when it starts, since `bootstrap` puts its folder into PYTHONPATH: workers of pytest and of
multiprocessing may import CuPy long before lucid, or without it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_FOLDER = os.path.dirname(__file__)  # noqa: PTH120 - pathlib would be imported by every process


class _Starting:
    """Finds CuPy as Python does, and has the devices started behind it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "cupy" or os.environ.get("LUCID_CUDA_SIMULATOR", "0") in {"", "0"}:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        # another environment, without lucid, is left alone
        if spec is not None and spec.loader is not None and find_spec("lucid") is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                import_module("lucid.cuda")

            loader.exec_module = exec_module
        return spec


def _next() -> None:
    """Run the file of this name that Python would have imported, such as that of a tool that measures coverage."""
    places = [place for place in sys.path if os.path.abspath(place) != _FOLDER]  # noqa: PTH100 - as above
    spec = PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


sys.meta_path.insert(0, _Starting())
_next()
