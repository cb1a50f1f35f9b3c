"""PyTorch's places for checkpointing and for the handle of module hooks."""

from __future__ import annotations

from lucid.utils import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
