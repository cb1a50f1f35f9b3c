"""PyTorch's address of the functions called by a process of torchrun; a launcher of MPI restarts none."""

from __future__ import annotations

from lucid.distributed.elastic import multiprocessing

__all__ = ["multiprocessing"]
