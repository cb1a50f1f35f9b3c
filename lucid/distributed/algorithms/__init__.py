"""Replacements of the mean of gradients, and training with uneven inputs, under PyTorch's address."""

from __future__ import annotations

from lucid.distributed.algorithms import ddp_comm_hooks, join
from lucid.distributed.algorithms.join import Join, Joinable, JoinHook
from lucid.public import publish as _publish

__all__ = ["Join", "JoinHook", "Joinable", "ddp_comm_hooks", "join"]

_publish(globals())
