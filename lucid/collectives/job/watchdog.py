"""The thread that watches over collectives computed by a device, as no call of the host need ever wait for them."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lucid.collectives.engines.queued import QueuedEngine


_PAUSE = 0.02


class Flight:
    """Work that was queued on a device: a collective, or a replay of a graph that holds some.

    Attributes
    ----------
    call : object
        In messages.
    limit : float
        How many seconds it may take, from when the device has come to it.
    start, end : event
        Between which the device computes it.
    work : Work or None
        The collective, if it is one.
    kept : object
        What holds its arrays, whose memory CuPy would else give to others.
    since : float or None
        When the device was seen to have come to it.
    """

    def __init__(self, call: object, limit: float, start: Any, end: Any, work: Any = None, kept: object = None) -> None:
        self.call = call
        self.limit = limit
        self.start = start
        self.end = end
        self.work = work
        self.kept = kept
        self.since: float | None = None

    def is_late(self, now: float) -> bool:
        """Return whether the device has been at it for longer than its limit."""
        if self.since is None and self.start.done:
            self.since = now
        return self.since is not None and now - self.since > self.limit


class Watchdog:
    """A thread of this process that looks at engines while something of theirs is under way, and sleeps else."""

    def __init__(self) -> None:
        self._engines: weakref.WeakSet[QueuedEngine] = weakref.WeakSet()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def look_after(self, engine: QueuedEngine) -> None:
        """Take an engine up; the first one starts the thread."""
        self._engines.add(engine)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lucid-nccl-watchdog", daemon=True)
            self._thread.start()
            atexit.register(self._leave, os.getpid())

    def wake(self) -> None:
        """Tell it that something is under way."""
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            self._look()

    def _look(self) -> None:
        """Look at all engines until nothing is under way."""
        while True:
            busy = [engine.check() for engine in tuple(self._engines)]  # each of them
            if not any(busy):
                return
            time.sleep(_PAUSE)

    def _leave(self, process: int) -> None:
        """At exit let the device end the collectives that others may need; report failure if it cannot."""
        if os.getpid() != process:
            return
        self._look()
        # what nobody has been told; under MPI the end of the job sees to it
        if any(engine.unsaid and engine.peers.comm is None for engine in tuple(self._engines)):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)


WATCHDOG = Watchdog()
