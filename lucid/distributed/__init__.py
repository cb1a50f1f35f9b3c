"""The answers of a single process to code that may run in several: there is one, and its number is 0.

lucid has no communication between processes. `lucid.utils.data.DistributedSampler` divides data all the same.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

from lucid.distributed import fsdp, tensor
from lucid.distributed.one_process import refuse

__all__ = [
    "ReduceOp", "destroy_process_group", "fsdp", "get_rank", "get_world_size", "init_process_group", "is_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "tensor",
]  # fmt: skip


class ReduceOp(Enum):
    """How values of several processes become one; only names here, which functions of scripts have as defaults."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


def is_available() -> bool:
    """Return False: there is no communication between processes.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.is_available()
    False
    """
    return False


is_gloo_available = is_initialized = is_mpi_available = is_nccl_available = is_torchelastic_launched = is_available


def get_rank(group: None = None) -> int:  # noqa: ARG001  there is one
    """Return 0, the number of this process.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_rank()
    0
    """
    return 0


def get_world_size(group: None = None) -> int:  # noqa: ARG001  there is one
    """Return 1, the number of processes.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_world_size()
    1
    """
    return 1


def init_process_group(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Raise a NotImplementedError that says what there is instead."""
    refuse("init_process_group")


def destroy_process_group(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Raise a NotImplementedError that says what there is instead."""
    refuse("destroy_process_group")
