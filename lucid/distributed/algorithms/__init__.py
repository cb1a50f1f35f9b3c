"""What processes may compute together in the place of a mean, under PyTorch's address."""

from __future__ import annotations

from lucid.distributed.algorithms import ddp_comm_hooks

__all__ = ["ddp_comm_hooks"]
