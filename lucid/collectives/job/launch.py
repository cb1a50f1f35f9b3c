"""Rank and world size of this process, as its launcher gives them, and a time limit for the start of MPI."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from lucid.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Generator

# What launchers of MPI set in each process: Hydra (MPICH, Intel), PMIx (Open MPI 5), Open MPI, MVAPICH.
_MPI = ("PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")

# In which variable they tell a process its number.
_RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")

# The number of a process on its machine and how many there are: of lucid.distributed.run and torchrun, Hydra, Open MPI.
_ON_MACHINE = (
    ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)

_LONGEST = 1e6  # seconds, that `select` takes
# A process that ends when its input does; or says why, and kills who has started it.
_GUARD = """
import os, select, sys
if not select.select([0], [], [], float(sys.argv[1]))[0]:
    os.write(2, sys.argv[3].encode())
    os.kill(int(sys.argv[2]), 9)
"""


class Place(NamedTuple):
    """Rank and size of this process, and their source."""

    rank: int
    size: int
    source: str


def under_mpi() -> bool:
    """Return whether mpiexec, or another launcher of MPI, has started this process."""
    return any(name in os.environ for name in _MPI)


def rank_under_mpi() -> str:
    """Return the rank given by the launcher of MPI; "0" without one."""
    return next((os.environ[name] for name in _RANKS if name in os.environ), "0")


def several() -> str:
    """Return the setting that says that there are several processes, in words; empty without one."""
    for name in ("WORLD_SIZE", *_MPI):
        if name.endswith("SIZE") and number_of(name) > 1:
            return f"{name}={os.environ[name]}"
    return ""


def place_on_machine() -> Place | None:
    """Return the local rank and size of this process; None if no launcher gives them."""
    for names in _ON_MACHINE:
        if all(os.environ.get(name) for name in names):
            return Place(number_of(names[0]), number_of(names[1]), " and ".join(names))
    return None


def number_of(name: str) -> int:
    """Return the integer value of an environment variable; 1 if it is not set.

    Raises
    ------
    SettingError
        If it holds something else.
    """
    try:
        return int(os.environ.get(name) or 1)
    except ValueError:
        raise SettingError(f"{name}, which a launcher sets: expected an int, got {os.environ[name]!r}") from None


def _environment() -> Place | None:
    """Return the place given by RANK and WORLD_SIZE, or None."""
    names = "RANK", "WORLD_SIZE"
    env = {name: os.environ[name] for name in names if os.environ.get(name)}
    if not env:
        return None
    missing = [name for name in names if name not in env]
    if missing:
        raise SettingError(
            f"init_process_group: expected RANK and WORLD_SIZE together, got {next(iter(env))} without {missing[0]}: "
            "a launcher (mpiexec, torchrun, python -m lucid.distributed.run) sets both"
        )
    return Place(number_of("RANK"), number_of("WORLD_SIZE"), "RANK and WORLD_SIZE")


def place(rank: int, size: int, world: Place | None) -> Place:
    """Return rank and size by the arguments, the environment and MPI; raise if they contradict each other.

    Raises
    ------
    SettingError
        If they do, one is missing, or a number is out of range.
    """
    said = [each for each in (_environment(), world) if each is not None]
    if rank >= 0 or size >= 0:
        if (rank < 0 or size < 0) and not said:
            raise SettingError(
                "init_process_group: expected rank and world_size together, where no launcher says the other, or "
                f"neither, got rank={rank}, world_size={size}"
            )
        arguments = Place(
            rank if rank >= 0 else said[0].rank, size if size >= 0 else said[0].size,
            "the arguments rank and world_size",
        )  # fmt: skip
        said.insert(0, arguments)
    if not said:
        return Place(0, 1, "no launcher")
    for each in said:
        if not 0 <= each.rank < each.size:
            raise SettingError(
                f"init_process_group: {each.source}: expected a rank of 0 .. size - 1, got {each.rank} of {each.size}"
            )
    if len({each[:2] for each in said}) > 1:
        words = "; ".join(f"{each.source}: rank {each.rank} of {each.size}" for each in said)
        hint = ""
        if world is not None and world.size == 1:
            hint = (
                ". MPI knows this process alone, since no mpiexec has started it: start CPU processes with "
                "mpiexec -n N python script.py or python -m lucid.distributed.run --nproc-per-node N script.py"
            )
        raise SettingError(f"init_process_group: who starts the processes contradict each other: {words}{hint}")
    return said[0]


@contextlib.contextmanager
def within(limit: float) -> Generator[None]:
    """Kill this process, with a message, unless the block has ended after `limit` seconds.

    Where a process is killed, launchers of MPI end the whole job; where it exits before MPI has started, they do not.
    """
    message = (
        f"rank {rank_under_mpi()} has waited {limit:g} s in init_process_group for MPI to start, which waits for all "
        "processes: one has ended, has failed, or computes, before it calls init_process_group; this one is killed\n"
    )
    arguments = [str(min(limit, _LONGEST)), str(os.getpid()), message]
    command = [sys.executable, "-I", "-S", "-c", _GUARD, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE):  # noqa: S603 - the guard above; the end closes its input
        yield
