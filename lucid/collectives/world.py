"""The processes of this job: how they come together, the group of all, and groups of some."""

from __future__ import annotations

import functools
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked, unfit
from lucid.collectives.engines.base import Single
from lucid.collectives.engines.communicator import Peers
from lucid.collectives.engines.mpi import MpiEngine, mpi
from lucid.collectives.engines.nccl import NcclEngine
from lucid.collectives.group import ProcessGroup
from lucid.collectives.job import launch
from lucid.collectives.job.watch import Apart, Watch
from lucid.collectives.meeting import DEFAULT_TIMEOUT, arrive, give_back, meet, started, world
from lucid.collectives.work import as_seconds
from lucid.errors import DistributedError, SettingError, warn
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.collectives.engines.base import Engine


_BACKENDS = {"mpi": "cpu", "gloo": "cpu", "nccl": "cuda"}
BACKEND_OF = {"cpu": "mpi", "cuda": "nccl"}
"""By the type of a device, through what its tensors go."""


@functools.cache
def _single() -> Single:
    return Single()


@functools.cache
def alone() -> ProcessGroup:
    """Return the group of this process alone, the default one if no launcher has started several."""
    return _group_of_one("alone", DEFAULT_TIMEOUT.total_seconds(), ("cpu", "cuda"))


def _group_of_one(name: str, limit: float, kinds: Sequence[str]) -> ProcessGroup:
    return ProcessGroup(name, (0,), _single().watch, limit, dict.fromkeys(kinds, _single))


def default_group(what: str) -> ProcessGroup:
    """Return the group of all processes; of a process that no launcher started, the group of itself.

    Raises
    ------
    SettingError
        If a launcher has started several processes, and they have not come together.
    """
    if world.group is not None:
        return world.group
    source = launch.several()
    if source:
        raise SettingError(
            f"{what}: Default process group has not been initialized: this is one of several processes ({source}): "
            "call lucid.distributed.init_process_group() first"
        )
    return alone()


def member(group: ProcessGroup | None, what: str) -> ProcessGroup | None:
    """Return the group in question; None, with a warning, if this process is not in it."""
    if group is None:
        return default_group(what)
    if group is NON_MEMBER:
        warn(f"{what}: this process, rank {default_group(what).rank()}, is not in the group, and does nothing")
        return None
    if not isinstance(group, ProcessGroup):
        raise unfit(group, "a ProcessGroup", "group")
    return group


NON_MEMBER: Any = object()
"""What `new_group` returns in a process that is not in the group."""


# ---- together and apart ----


@checked
def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Bring the processes of a job together in one group, the default one of collectives from then on.

    How many there are, and which of them this is, say the launcher: MPI (``mpiexec -n 4 python train.py``, or
    ``python -m lucid.distributed.run --nproc-per-node 4 train.py``), or RANK and WORLD_SIZE in the environment, with
    MASTER_ADDR and MASTER_PORT for NCCL without MPI (torchrun, Slurm, Ray). Where no launcher is, the process is alone.

    Parameters
    ----------
    backend : str, optional
        "mpi" for CPU tensors, "nccl" for CUDA tensors, "cpu:mpi,cuda:nccl" or None for both; "gloo" is "mpi" here.
    init_method : str, optional
        "env://", or "tcp://address:port", which says MASTER_ADDR and MASTER_PORT.
    timeout : timedelta or float, optional
        For how long a collective may wait, in seconds if it is a number; 10 minutes if None.
    world_size, rank : int
        What the launcher says too, or both -1.
    store : None
        There is none: MPI, or NCCL itself, exchanges what is needed.
    group_name : str
        In messages; "default" if empty.
    pg_options, device_id
        Taken for PyTorch's sake, and change nothing.

    Raises
    ------
    SettingError
        If it was called before, if what says rank and size contradict each other, or something needed is missing.
    DistributedError
        If mpi4py or nccl4py is needed and not installed.
    DistributedTimeoutError
        If not all processes come within `timeout`.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.init_process_group()
    >>> lucid.distributed.get_rank(), lucid.distributed.get_world_size()
    (0, 1)
    >>> lucid.distributed.destroy_process_group()
    """
    if world.group is not None:
        raise SettingError("init_process_group: trying to initialize the default process group twice!")
    if store is not None:
        raise SettingError("init_process_group: store: there is none to exchange addresses: expected None")
    kinds = _kinds(backend)
    _address(init_method)
    limit = as_seconds(DEFAULT_TIMEOUT if timeout is None else timeout, "init_process_group: timeout")
    name = group_name or "default"
    library = started(limit) if launch.under_mpi() or _asks_mpi(backend, world_size) else None
    told = None if library is None else launch.Place(library.COMM_WORLD.rank, library.COMM_WORLD.size, "MPI")
    here = launch.place(rank, world_size, told)
    if here.size == 1:
        world.group = _named(_group_of_one(name, limit, kinds), backend)
        return
    if library is None and "cuda" not in kinds:
        raise SettingError(
            f"init_process_group: {here.source} say that there are {here.size} processes, but no mpiexec has started "
            "them: CPU tensors go through MPI: start them with mpiexec -n N python script.py, or "
            "python -m lucid.distributed.run --nproc-per-node N script.py"
        )
    world.timeout = limit
    if library is not None:
        meet(library, limit)
    world.generation += 1
    name = name if world.generation == 1 else f"{name} ({world.generation})"
    watch = world.watch or Watch(Apart(here.rank, here.size))
    world.group = _named(_make(name, range(here.size), limit, kinds, watch), backend)


def _asks_mpi(backend: str | None, world_size: int) -> bool:
    """Return whether MPI is requested without its launcher, so that MPI itself reports the error."""
    size = world_size if world_size > 0 else launch.number_of("WORLD_SIZE")
    return size > 1 and backend is not None and "cpu" in _kinds(backend) and find_spec("mpi4py") is not None


def _kinds(backend: str | None) -> tuple[str, ...]:
    """Return the types of device that a group is made for."""
    if backend is None:
        return "cpu", "cuda"
    kinds: list[str] = []
    for each in backend.lower().split(","):
        device, colon, engine = each.strip().rpartition(":")
        if engine not in _BACKENDS or (colon and device != _BACKENDS[engine]):
            raise SettingError(
                "init_process_group: backend: expected 'mpi' (CPU tensors), 'nccl' (CUDA tensors), 'cpu:mpi,cuda:nccl' "
                f"or None for both, got {backend!r}"
            )
        if engine == "gloo":
            _say_gloo()
        kinds.append(_BACKENDS[engine])
    return tuple(dict.fromkeys(kinds))


def _named(group: ProcessGroup, backend: str | None, parent: ProcessGroup | None = None) -> ProcessGroup:
    """Return the group after naming its backends as the user does, or as the group of all processes does."""
    if backend is not None and "gloo" in backend.lower():
        group.names = {**group.names, "cpu": "gloo"}
    elif backend is None and parent is not None:
        group.names = parent.names
    return group


@functools.cache
def _say_gloo() -> None:
    warn("init_process_group: backend 'gloo' is 'mpi' in lucid: both are for CPU tensors")


def _address(init_method: str | None) -> None:
    """Take the address of rank 0 from PyTorch's form of it."""
    if init_method is None or init_method == "env://":
        return
    address, colon, port = init_method.removeprefix("tcp://").rpartition(":")
    if not (init_method.startswith("tcp://") and colon and port.isdigit()):
        raise SettingError(
            f"init_process_group: init_method: expected 'env://' or 'tcp://address:port', got {init_method!r}"
        )
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = address, port


def _make(name: str, ranks: Sequence[int], limit: float, kinds: Sequence[str], watch: Watch) -> ProcessGroup:
    """Return a group of processes of the job; with MPI all processes are in this call."""
    engines: dict[str, Callable[[], Engine]] = {}
    if "cpu" in kinds and world.comm is not None:
        try:
            part = world.comm.Create(world.comm.group.Incl(list(ranks)))
            engine = MpiEngine(part, watch) if watch.rank in ranks else None
        except mpi().Exception as error:
            raise DistributedError(
                f"MPI makes no group any more, after {world.made} ({error}): leave those that are not needed, by "
                "destroy_process_group(group) in all of their processes"
            ) from error
        if engine is not None:
            engines["cpu"] = lambda: engine
    if "cuda" in kinds and watch.rank in ranks:
        engines["cuda"] = lambda: NcclEngine(Peers(name, ranks, watch, world.comm), limit)
    return ProcessGroup(name, ranks, watch, limit, engines)


@checked
def destroy_process_group(group: Any = None) -> None:
    """Leave a group, or the group of all processes and with it all groups.

    It does not wait: another process that still calls a collective of the group is told that this one has left.

    Parameters
    ----------
    group : ProcessGroup, optional
        All if None.

    Raises
    ------
    SettingError
        If there is none.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.init_process_group()
    >>> lucid.distributed.destroy_process_group()
    >>> lucid.distributed.is_initialized()
    False
    """
    if world.group is None:
        raise SettingError("destroy_process_group: no process group was initialized")
    if group is not None and group is not world.group:
        leaving = member(group, "destroy_process_group")
        if leaving is not None:
            leaving.leave()
            if leaving in world.others:
                world.others.remove(leaving)
                world.discarded.append(leaving)
        return
    leaving, world.group = world.group, None
    leaving.leave()
    if world.watch is not None:
        world.watch.announce_departure(ends=False)
        world.discarded += [leaving, *world.others]
    for each in world.others:
        each.leave()
    world.others.clear()


@checked
def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Return a group of some of the processes; all processes call this, also those that are not in it.

    Parameters
    ----------
    ranks : iterable of int, optional
        The numbers of its processes in the whole job; all if None.
    timeout : timedelta or float, optional
        For how long a collective may wait; that of the group of all if None.
    backend : str, optional
        As for `init_process_group`.
    group_desc : str, optional
        The name in messages.
    use_local_synchronization : bool
        False: MPI makes no group that only its members call.
    pg_options, device_id
        Taken for PyTorch's sake, and change nothing.
    sort_ranks : bool
        Whether the numbers of processes in the group follow those in the job, rather than the order of `ranks`.

    Raises
    ------
    SettingError
        If a rank stands twice, or is none of the job; if `use_local_synchronization` is set.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.new_group([0]).size()
    1
    """
    if use_local_synchronization:
        raise SettingError("new_group: use_local_synchronization: expected False: all processes call new_group")
    parent = default_group("new_group")
    chosen = list(parent.ranks) if ranks is None else [as_int(rank, "ranks") for rank in ranks]
    chosen = sorted(chosen) if sort_ranks else chosen
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(parent.ranks):
        raise SettingError(f"new_group: ranks: expected different ranks of 0 .. {parent.size() - 1}, got {chosen}")
    limit = parent.timeout if timeout is None else as_seconds(timeout, "new_group: timeout")
    kinds = parent.backends if backend is None else _kinds(backend)
    world.made += 1
    name = f"{group_desc} (group {world.made})" if group_desc else f"group {world.made}"
    if world.watch is None:
        return _named(_group_of_one(name, limit, kinds), backend, parent)
    if world.comm is not None:
        arrive(world.comm, parent.timeout)
        give_back()
    group = _named(_make(f"{name} of {parent.name}", chosen, limit, kinds, world.watch), backend, parent)
    if world.watch.rank not in chosen:
        return NON_MEMBER
    world.others.append(group)
    return group
