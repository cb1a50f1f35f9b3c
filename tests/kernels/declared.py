"""Every kernel that lucid declares: all of its modules are imported, as parts come only when they are asked for."""

from __future__ import annotations

import importlib
import pkgutil

import lucid
from lucid.cuda.launch.kernels import KERNELS

__all__ = ["KERNELS"]

for module in pkgutil.walk_packages(lucid.__path__, "lucid."):
    importlib.import_module(module.name)
