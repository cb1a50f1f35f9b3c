"""Communication hooks, to be handed to `DistributedDataParallel.register_comm_hook`."""

from __future__ import annotations

from lucid.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
