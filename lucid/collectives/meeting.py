"""The meeting of the processes of a job: the start of MPI, objects made once for the job, and waits for all."""

from __future__ import annotations

import contextlib
import sys
import time
from datetime import timedelta
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

from lucid.collectives.engines.mpi import CALLS, MpiMailbox, mpi
from lucid.collectives.job import launch
from lucid.collectives.job.ending import end_together
from lucid.collectives.job.watch import Apart, Watch
from lucid.errors import DistributedError, DistributedTimeoutError, SettingError

if TYPE_CHECKING:
    from lucid.collectives.group import ProcessGroup


DEFAULT_TIMEOUT = timedelta(minutes=10)


class _World:
    """The state of this process: the group of all processes, and the objects made once for the whole job."""

    def __init__(self) -> None:
        self.group: ProcessGroup | None = None
        self.watch: Watch | None = None
        self.comm: Any = None  # of all processes, for making others from it
        self.generation = 0
        self.made = 0
        self.timeout = DEFAULT_TIMEOUT.total_seconds()
        self.others: list[ProcessGroup] = []
        self.discarded: list[ProcessGroup] = []  # of which MPI may still hold something: given back at the next meeting


world = _World()


def started(limit: float) -> Any:
    """Return MPI, started within the limit.

    Raises
    ------
    SettingError
        In a process that MPI does not know, as one of its own has started it.
    """
    if launch.under_mpi() and parent_process() is not None:
        raise SettingError(
            "init_process_group: this process was started by multiprocessing inside of one that mpiexec has started, "
            "and MPI does not know it: let mpiexec start as many as the script needs, and call the function in each, "
            "as multiprocessing.spawn does where nprocs is that number"
        )
    with launch.within(limit) if "mpi4py.MPI" not in sys.modules and launch.under_mpi() else contextlib.nullcontext():
        return mpi()


def start() -> None:
    """Start MPI, and have an exception end the job from now on, before processes come together."""
    library = started(world.timeout)
    if library.COMM_WORLD.size > 1:
        _begin_job(library, world.timeout)


def meet(library: Any, limit: float) -> None:
    """Wait until all processes of the job have arrived, and make the objects of the job once."""
    if world.watch is None:
        _begin_job(library, limit)
    else:
        arrive(world.comm, limit)
    give_back()


def _begin_job(library: Any, limit: float) -> None:
    everyone = library.COMM_WORLD
    everyone.Set_errhandler(library.ERRORS_RETURN)
    try:
        arrive(everyone, limit)
    except DistributedTimeoutError:
        lost = Watch(Apart(everyone.rank, everyone.size))
        lost.broken = True
        end_together(lost, lambda: everyone.Abort(1), lambda: 0.0)
        raise
    world.comm = everyone.Dup()
    world.watch = Watch(MpiMailbox(everyone.Dup()))
    end_together(world.watch, lambda: everyone.Abort(1), lambda: world.timeout)


def arrive(comm: Any, limit: float) -> None:
    """Wait until all processes of a communicator have called this, so that later calls cannot wait for long."""
    deadline = time.monotonic() + limit
    with CALLS:
        request = comm.Ibarrier()
    while True:
        with CALLS:
            if request.Test():
                return
        if world.watch is not None:
            world.watch.progress()
            world.watch.receive()
            if world.watch.failed or world.watch.ended:
                raise DistributedError(
                    f"rank {comm.rank} of {comm.size} waits for the others to make a group: {world.watch.gone()}"
                )
        if time.monotonic() > deadline:
            raise DistributedTimeoutError(
                f"rank {comm.rank} of {comm.size} has waited {limit:g} s for the others to make a group: do all "
                "processes call init_process_group and new_group alike?",
                rank=comm.rank,
            )
        time.sleep(0.0005)


def give_back() -> None:
    """Release MPI's resources of the groups that all their processes have left; a collective call of all processes."""
    names = world.comm.allgather([group.name for group in world.discarded])
    for group in tuple(world.discarded):
        if all(group.name in names[rank] for rank in group.ranks):
            world.discarded.remove(group)
            group.close()
