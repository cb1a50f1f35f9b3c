"""Queries of groups: rank, size, and backend."""

from __future__ import annotations

import functools
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lucid.base.device import device as named
from lucid.collectives.group import ProcessGroup, index_in
from lucid.collectives.job.launch import number_of
from lucid.collectives.work import as_seconds
from lucid.collectives.world import BACKEND_OF, NON_MEMBER, member, world
from lucid.errors import SettingError

if TYPE_CHECKING:
    from datetime import timedelta


_spec_of = functools.cache(find_spec)


class _Members(type):
    """The metaclass with the properties of the groups that always exist."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before `init_process_group`."""
        return world.group


class GroupMember(metaclass=_Members):
    """The group of all processes, and the value of `new_group` in a process outside of the group.

    Attributes
    ----------
    WORLD : ProcessGroup or None
        The group of all processes; None before `init_process_group`.
    NON_GROUP_MEMBER : object
        What `new_group` returns in a process that is not in the group.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.new_group([0]) is lucid.distributed.GroupMember.NON_GROUP_MEMBER
    False
    """

    NON_GROUP_MEMBER = NON_MEMBER


class group(metaclass=_Members):
    """The group of all processes, as `group.WORLD`; None before `init_process_group`."""


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process among those of its machine, LOCAL_RANK in the environment.

    Parameters
    ----------
    fallback_rank : int, optional
        What is returned where no launcher has set it.

    Raises
    ------
    SettingError
        If it is not set, and there is no `fallback_rank`.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_node_local_rank(fallback_rank=0)
    0
    """
    if os.environ.get("LOCAL_RANK"):
        return number_of("LOCAL_RANK")
    if fallback_rank is None:
        raise SettingError(
            "get_node_local_rank: LOCAL_RANK is not in the environment, where python -m lucid.distributed.run and "
            "torchrun set it: set it, or give fallback_rank"
        )
    return int(fallback_rank)


def is_available() -> bool:
    """Return True: there are collectives, in a process that is alone too.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called, and not undone.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.is_initialized()
    False
    """
    return world.group is not None


def is_mpi_available() -> bool:
    """Return whether mpi4py is installed, the backend of CPU tensors.

    Examples
    --------
    >>> import lucid
    >>> backend = "mpi" if lucid.distributed.is_mpi_available() else None
    """
    return _spec_of("mpi4py") is not None


def is_gloo_available() -> bool:
    """Return the value of `is_mpi_available`: backend "gloo" is "mpi" here.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.is_gloo_available() == lucid.distributed.is_mpi_available()
    True
    """
    return is_mpi_available()


def is_nccl_available() -> bool:
    """Return whether nccl4py is installed, the backend of CUDA tensors.

    Examples
    --------
    >>> import lucid
    >>> backend = "nccl" if lucid.distributed.is_nccl_available() else None
    """
    return _spec_of("nccl") is not None


def is_torchelastic_launched() -> bool:
    """Return whether torchrun has started this process.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.is_torchelastic_launched()
    False
    """
    return bool(os.environ.get("TORCHELASTIC_RUN_ID"))


def _asked(group: ProcessGroup | None, what: str) -> ProcessGroup | None:
    """Return the queried group, that of all processes if None; None if this process is not in it."""
    return None if group is NON_MEMBER else member(group, what)


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the rank of this process in a group, or in the job; -1 if it is not in the group.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_rank()
    0
    """
    asked = _asked(group, "get_rank")
    return -1 if asked is None else asked.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of processes in a group, or in the job; -1 if this process is not in the group.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_world_size()
    1
    """
    asked = _asked(group, "get_world_size")
    return -1 if asked is None else asked.size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name of a group's backend: "mpi", "gloo" if it was asked for, "nccl", or "cpu:mpi,cuda:nccl".

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_backend()
    'cpu:mpi,cuda:nccl'
    """
    asked = _asked(group, "get_backend")
    if asked is None:
        raise SettingError("get_backend: this process is not in the group")
    if len(asked.backends) == 1:
        return asked.names[asked.backends[0]]
    return ",".join(f"{device}:{asked.names[device]}" for device in asked.backends)


def get_default_backend_for_device(device: named | str) -> str:
    """Return the name of the backend of a device's tensors: "mpi" for the CPU, "nccl" for CUDA.

    Parameters
    ----------
    device : device or str
        Such as "cpu".

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_default_backend_for_device("cpu")
    'mpi'
    """
    return BACKEND_OF[named(device).type]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the numbers in the job of the processes of a group.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_process_group_ranks(None)
    [0]
    """
    asked = _asked(group, "get_process_group_ranks")
    return [] if asked is None else list(asked.ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the number in the job of a process of a group.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_global_rank(lucid.distributed.new_group([0]), 0)
    0
    """
    if not 0 <= group_rank < group.size():
        raise SettingError(f"get_global_rank: expected a rank of 0 .. {group.size() - 1}, got {group_rank}")
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the number in a group of a process of the job.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.get_group_rank(lucid.distributed.new_group([0]), 0)
    0
    """
    return index_in(group, global_rank, "get_group_rank")


def set_timeout(timeout: timedelta | float, group: ProcessGroup | None = None) -> None:
    """Set for how long the collectives of a group may wait, from the next on; in seconds if it is a number.

    That of all processes is also the time after which a script that has ended says that it waits for others.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.set_timeout(600)
    """
    seconds = as_seconds(timeout, "set_timeout: timeout")
    chosen = member(group, "set_timeout")
    if chosen is not None:
        chosen.timeout = seconds
        if chosen is world.group:
            world.timeout = seconds
