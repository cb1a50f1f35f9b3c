"""PyTorch's addresses of checkpointing and of the handle of module hooks."""

from __future__ import annotations

from lucid.utils import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
