"""Optimizers of several processes."""

from __future__ import annotations

from lucid.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
