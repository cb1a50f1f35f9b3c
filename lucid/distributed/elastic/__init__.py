"""PyTorch's address of what a process of torchrun calls; a launcher of MPI starts none again."""

from __future__ import annotations

from lucid.distributed.elastic import multiprocessing

__all__ = ["multiprocessing"]
