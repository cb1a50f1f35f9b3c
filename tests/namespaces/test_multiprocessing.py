"""`lucid.multiprocessing`: Python's, with `spawn`."""

from __future__ import annotations

import multiprocessing as python
import os
import signal
import sys
import time

import pytest

import lucid
from lucid import multiprocessing
from lucid.errors import ArgumentError, SettingError
from tests.waiting import PATIENCE

pytestmark = pytest.mark.cpu("memory of the host is shared")


def add(number, shared, amount):
    """Add to the element of the process's number."""
    shared[number] += amount


def fail(number):
    """End the second process with exit code 3; let the others wait, one of which does not want to be ended."""
    if number == 1:
        sys.exit(3)
    if number == 2:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(PATIENCE)


def kill(number):
    """End by a signal."""
    os.kill(os.getpid(), 9)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_get_their_numbers(method):
    """Each runs the function with its number and the arguments, of which shared tensors stay shared."""
    shared = lucid.zeros(2).share_memory_()
    assert multiprocessing.start_processes(add, (shared, 3), 2, start_method=method) is None
    assert shared.tolist() == [3.0, 3.0]


def test_without_waiting():
    """The context knows the processes, and says when they have ended."""
    shared = lucid.zeros(2, device="cpu").share_memory_()
    context = multiprocessing.start_processes(add, (shared, 1), 2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    while not context.join(timeout=10):
        pass
    assert context.join()
    assert shared.tolist() == [1.0, 1.0]


def test_a_process_that_fails(monkeypatch):
    """Its number and how it ended are named, and the others are ended."""
    monkeypatch.setattr(multiprocessing, "GRACE", 0.5)
    several = multiprocessing.start_processes(fail, (), 3, join=False, start_method="fork")
    with pytest.raises(multiprocessing.ProcessExitedError, match="process 1 ended with exit code 3: what it printed"):
        while not several.join():
            pass
    first, second, third = (process.exitcode for process in several.processes)
    assert (first, second) == (-signal.SIGTERM, 3)
    assert third in {-signal.SIGKILL, -signal.SIGTERM}  # the latter if it came before it was told to ignore it
    late = multiprocessing.start_processes(fail, (), 2, join=False, start_method="fork")
    late.processes[1].join()
    with pytest.raises(multiprocessing.ProcessExitedError, match="process 1 ended with exit code 3"):
        late.join()
    assert late.processes[0].exitcode == -signal.SIGTERM
    with pytest.raises(multiprocessing.ProcessExitedError, match="process 0 ended by signal 9"):
        multiprocessing.start_processes(kill, (), 1, start_method="fork")


class EndsWhenLookedAt:
    """A process that runs when its exit code is read first, and has failed when it is read again."""

    sentinel = None

    def __init__(self):
        self.codes = iter([None, None, None])

    @property
    def exitcode(self):
        return next(self.codes, 3)


def test_one_that_fails_while_it_is_looked_at_has_not_ended_well(monkeypatch):
    """Exit codes are read once, so that a failure between two looks is raised by the next call."""
    monkeypatch.setattr(multiprocessing, "wait", lambda *_: None)
    context = multiprocessing.ProcessContext([EndsWhenLookedAt()])
    assert context.join() is False
    with pytest.raises(multiprocessing.ProcessExitedError, match="exit code 3"):
        context.join()


def test_names():
    """What Python has is Python's own; there is one way of sharing."""
    for name in ("Process", "Queue", "Pool", "Lock", "get_context", "cpu_count", "set_start_method"):
        assert getattr(multiprocessing, name) == getattr(python, name)
    assert lucid.multiprocessing is multiprocessing
    assert multiprocessing.get_sharing_strategy() in multiprocessing.get_all_sharing_strategies()
    with pytest.raises(SettingError, match="new_strategy: expected 'file_descriptor', got 'file_system'"):
        multiprocessing.set_sharing_strategy("file_system")
    with pytest.raises(SettingError, match="nprocs: expected at least 1, got 0"):
        multiprocessing.spawn(add, nprocs=0)
    with pytest.raises(SettingError, match=r"start_method: expected one of .*, got 'thread'"):
        multiprocessing.start_processes(add, start_method="thread")
    with pytest.raises(ArgumentError, match="nprocs: expected an int"):
        multiprocessing.spawn(add, nprocs=1.5)
