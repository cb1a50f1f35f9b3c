"""The handle of module hooks, where PyTorch has it."""

from __future__ import annotations

from lucid.nn.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
