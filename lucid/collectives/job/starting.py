"""A time limit for the start of MPI: it waits for all processes, and no Python runs meanwhile."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from lucid.collectives.job.launch import rank_under_mpi

if TYPE_CHECKING:
    from collections.abc import Generator


_LONGEST = 1e6  # seconds, that `select` takes
# A process that ends when its input does; or says why, and kills who has started it.
_GUARD = """
import os, select, sys
if not select.select([0], [], [], float(sys.argv[1]))[0]:
    os.write(2, sys.argv[3].encode())
    os.kill(int(sys.argv[2]), 9)
"""


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
