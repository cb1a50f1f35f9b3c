"""PyTorch's address of the record of a process's end."""

from __future__ import annotations

from lucid.distributed.elastic.multiprocessing import errors

__all__ = ["errors"]
