"""Reading data, and PyTorch's addresses of checkpointing and of the handle of module hooks."""

from __future__ import annotations

from lucid.utils import _pytree as _pytree
from lucid.utils import checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
