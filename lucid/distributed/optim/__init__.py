"""Optimizers of several processes."""

from __future__ import annotations

from lucid.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from lucid.public import publish as _publish

__all__ = ["ZeroRedundancyOptimizer"]

_publish(globals())
