"""PyTorch's address of a mode for tensors with parts on several processes."""

from __future__ import annotations

from typing import NoReturn

from lucid.distributed.whole import refuse

__all__ = ["implicit_replication"]


def implicit_replication() -> NoReturn:
    """Raise a NotImplementedError that names the alternative."""
    refuse("implicit_replication")
