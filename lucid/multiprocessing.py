"""Python's `multiprocessing` under PyTorch's address, with `spawn`; tensors travel by pickle.

A tensor in memory of its own is copied to the other process; one of `Tensor.share_memory_` stays one memory.
"""

from __future__ import annotations

from multiprocessing import (
    Barrier,
    Event,
    JoinableQueue,
    Lock,
    Manager,
    Pipe,
    Pool,
    Process,
    Queue,
    RLock,
    Semaphore,
    SimpleQueue,
    Value,
    active_children,
    cpu_count,
    current_process,
    freeze_support,
    get_all_start_methods,
    get_context,
    get_start_method,
    parent_process,
    set_start_method,
)
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.collectives.job.launch import place_on_machine
from lucid.errors import LucidError, SettingError
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "Barrier", "Event", "JoinableQueue", "Lock", "Manager", "Pipe", "Pool", "Process", "ProcessContext",
    "ProcessExitedError", "Queue", "RLock", "Semaphore", "SimpleQueue", "Value", "active_children", "cpu_count",
    "current_process", "freeze_support", "get_all_sharing_strategies", "get_all_start_methods", "get_context",
    "get_sharing_strategy", "get_start_method", "parent_process", "set_sharing_strategy", "set_start_method", "spawn",
    "start_processes",
]  # fmt: skip

STRATEGY = "file_descriptor"
# Seconds in which a process may end itself, as a handler of its own may want to.
GRACE = 5.0


class ProcessExitedError(LucidError, RuntimeError):
    """A process that `spawn` started ended with an error."""


class ProcessContext:
    """The processes that `start_processes` started.

    Attributes
    ----------
    processes : list of Process
        All of them, by their numbers.
    """

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes

    def pids(self) -> list[int | None]:
        """Return the system's numbers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until a process ends, at most `timeout` seconds; return whether all have ended.

        Raises
        ------
        ProcessExitedError
            If one ended with an error, whose traceback it has printed itself; the others are ended, too.
        """
        running = [process for process in self.processes if process.exitcode is None]
        # one that has failed already may be what the others wait for
        if running and not any(process.exitcode for process in self.processes):
            wait([process.sentinel for process in running], timeout)
        # looked at once: one that fails meanwhile is found by the next call, and none is taken for ended well
        codes = [process.exitcode for process in self.processes]
        failed = [(number, code) for number, code in enumerate(codes) if code]
        if failed:
            for process in running:
                process.terminate()
            for process in running:
                process.join(GRACE)
                process.kill()
                process.join()
            number, code = failed[0]
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            raise ProcessExitedError(f"spawn: process {number} ended {how}: what it printed says why")
        return None not in codes


@checked
def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` processes, i from 0 on.

    In one of `nprocs` processes that `mpiexec` or `lucid.distributed.run` has started on this machine, they are there
    already: each runs its own, where `join` is True, and goes on with the script.

    Parameters
    ----------
    fn : callable
        That the other process can import: a function at the top level of a module.
    args : sequence
        Its further arguments.
    nprocs : int
        The number of processes, at least 1.
    join : bool
        Whether to wait for all of them.
    daemon : bool
        Whether they end with this process.
    start_method : str
        ``"spawn"``, ``"fork"`` or ``"forkserver"``.

    Returns
    -------
    ProcessContext or None
        None with `join`.

    Raises
    ------
    ProcessExitedError
        With `join`, if a process ended with an error.
    SettingError
        If `nprocs` is below 1, or there is no such `start_method`.
    """
    if nprocs < 1:
        raise SettingError(f"spawn: nprocs: expected at least 1, got {nprocs}")
    if start_method not in get_all_start_methods():
        raise SettingError(f"spawn: start_method: expected one of {get_all_start_methods()}, got {start_method!r}")
    here = place_on_machine()
    if join and here is not None and here.size == nprocs > 1 and parent_process() is None:
        fn(here.rank, *args)
        return None
    kind: Any = get_context(start_method)
    processes = [kind.Process(target=fn, args=(number, *args), daemon=daemon) for number in range(nprocs)]
    for process in processes:
        process.start()
    context = ProcessContext(processes)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` new interpreters, or in those of a launcher, as `start_processes` does."""
    return start_processes(fn, args, nprocs, join, daemon, "spawn")


def get_sharing_strategy() -> str:
    """Return ``"file_descriptor"``: shared memory is held by a descriptor.

    Examples
    --------
    >>> from lucid import multiprocessing
    >>> multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return STRATEGY


def get_all_sharing_strategies() -> set[str]:
    """Return the only one.

    Examples
    --------
    >>> from lucid import multiprocessing
    >>> multiprocessing.get_all_sharing_strategies()
    {'file_descriptor'}
    """
    return {STRATEGY}


@checked
def set_sharing_strategy(new_strategy: str) -> None:
    """Look at the name of a strategy; another than ``"file_descriptor"`` raises a SettingError.

    Examples
    --------
    >>> from lucid import multiprocessing
    >>> multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy != STRATEGY:
        raise SettingError(f"set_sharing_strategy: new_strategy: expected {STRATEGY!r}, got {new_strategy!r}")


_publish(globals())
