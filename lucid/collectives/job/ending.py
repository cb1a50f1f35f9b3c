"""The end of a job after the failure of a process: each prints its own error, then all are ended."""

from __future__ import annotations

import atexit
import contextlib
import io
import math
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from lucid.collectives.job.watch import Watch


# So many seconds a launcher has to read what processes have printed last, which it drops when the job is aborted.
_READING = 0.3


def end_together(watch: Watch, abort: Callable[[], object], limit: Callable[[], float]) -> None:
    """Have an exception that nobody catches, in any thread, and the end of the script, end the whole job.

    An exception is printed, with the rank, and told to the others, which raise in their waits and do the same; then the
    job is aborted. A script that ends waits until the others end too, for as long as they compute; after ``limit()``
    seconds it says so. Meanwhile one of them that calls another collective is told that this one will not come. Where a
    collective has failed here, and the script went on to its end, the job is aborted after these seconds, as MPI would
    wait for the others without an end.
    """
    process = os.getpid()
    usual, usual_thread = sys.excepthook, threading.excepthook

    def end(kind: type[BaseException], value: BaseException, show: Callable[[], object]) -> None:
        if os.getpid() != process:  # one that was forked from it, to which MPI does not belong
            show()
            return
        text = io.StringIO()  # in one write, as all processes of the job share what it goes to
        print(f"rank {watch.rank} of {watch.size} ends by an exception:", file=text)
        try:
            with contextlib.redirect_stderr(text):
                show()
        finally:
            sys.stderr.write(text.getvalue())
            sys.stderr.flush()
            sys.stdout.flush()
            try:
                watch.say_failed(f"{kind.__name__}: {value}"[:2000])
            finally:
                time.sleep(_READING)
                abort()

    def uncaught(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        end(kind, value, lambda: usual(kind, value, traceback))

    def uncaught_in_thread(arguments: Any) -> None:
        if issubclass(arguments.exc_type, SystemExit):  # ends its thread, in Python too
            usual_thread(arguments)
            return
        end(arguments.exc_type, arguments.exc_value, lambda: usual_thread(arguments))

    def leave() -> None:
        if os.getpid() != process:
            return
        watch.announce_departure(ends=True)
        if not watch.everyone_ends(limit()):
            ends = "the job is ended, as a collective has failed here" if watch.broken else "it waits for them"
            sys.stderr.write(
                f"rank {watch.rank} of {watch.size} has ended its script, and ranks {watch.running()} have not within "
                f"{limit():g} s: {ends}\n"
            )
            sys.stderr.flush()
            if watch.broken:
                time.sleep(_READING)
                abort()
            watch.everyone_ends(math.inf)
        if watch.failed:
            time.sleep(_READING)
            abort()

    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
    atexit.register(leave)
