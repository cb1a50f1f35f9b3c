"""PyTorch's addresses of what concerns the modules of a whole process, and of lazy layers."""

from __future__ import annotations

from lucid.nn.modules import lazy, module, utils

__all__ = ["lazy", "module", "utils"]
