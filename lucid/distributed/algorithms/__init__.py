"""What processes may compute together in the place of a mean, and for how long, under PyTorch's address."""

from __future__ import annotations

from lucid.distributed.algorithms import ddp_comm_hooks, join
from lucid.distributed.algorithms.join import Join, Joinable, JoinHook
from lucid.public import publish as _publish

__all__ = ["Join", "JoinHook", "Joinable", "ddp_comm_hooks", "join"]

_publish(globals())
