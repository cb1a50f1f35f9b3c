"""PyTorch's address of what concerns the modules of a whole process."""

from __future__ import annotations

from lucid.nn.modules import module, utils

__all__ = ["module", "utils"]
