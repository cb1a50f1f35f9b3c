"""The answers of a single process to code that may run in several: there is one, and its number is 0.

lucid has no communication between processes. `lucid.utils.data.DistributedSampler` divides data all the same.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "destroy_process_group", "get_rank", "get_world_size", "init_process_group", "is_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
]  # fmt: skip


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
    raise _alone("init_process_group")


def destroy_process_group(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Raise a NotImplementedError that says what there is instead."""
    raise _alone("destroy_process_group")


def _alone(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: lucid trains in one process, on one device: start the script without torchrun, and let "
        "lucid.distributed.is_available(), which is False, decide what it calls"
    )
