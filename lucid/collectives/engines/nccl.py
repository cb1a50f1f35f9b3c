"""Collectives of CUDA arrays through nccl4py: on a stream of their own, behind what writes the arrays."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lucid.collectives.engines.base import Engine
from lucid.errors import DistributedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.collectives.job.watch import Watch

__all__ = ["NcclEngine", "nccl_is_there"]


@functools.cache
def nccl_is_there() -> bool:
    """Return whether nccl4py is installed."""
    return find_spec("nccl") is not None


class NcclEngine(Engine):
    """Collectives of a group of processes, each on the CUDA arrays of one device."""

    name = "nccl"

    def __init__(self, ranks: Sequence[int], watch: Watch, world: Any) -> None:
        if not nccl_is_there():
            raise DistributedError("CUDA tensors go through NCCL: pip install 'lucid[nccl13]', which brings nccl4py")
        raise NotImplementedError
