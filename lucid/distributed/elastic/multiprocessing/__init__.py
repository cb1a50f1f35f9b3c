"""PyTorch's address of what says how a process has ended."""

from __future__ import annotations

from lucid.distributed.elastic.multiprocessing import errors

__all__ = ["errors"]
