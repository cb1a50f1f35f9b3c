"""Sole owners, by reference counts: memory that nobody else can see is taken over instead of copied.

Nothing else tells that a rule's result is also a saved tensor, or what a hook, another leaf or the user has kept. The
count includes what the code that asks holds itself. That is no constant to be counted by hand, which a variable more
would make wrong in silence: what a lone object gives is measured here, at import, by the same question, and in the
engine's loop by `lucid.autograd.engine.loop`.
"""

from __future__ import annotations

import _thread
import sys
from sys import getrefcount
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


T = TypeVar("T")


def is_watched() -> bool:
    """Whether a debugger, a profiler or a measurement of coverage watches this thread."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    # from Python 3.12 on there are tools that are neither
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(monitoring.get_tool(tool) is not None for tool in range(6))


def unwatched(measure: Callable[[], T]) -> T:
    """Return ``measure()``, run with nothing watching it.

    What a debugger or a profiler keeps of the frames that it sees would be counted, too. None of them watches a thread
    that is no `threading.Thread`; to be taken off here and put back, as only those written in Python can be, they need
    not be. Where there is none a thread is not needed: to start one may take milliseconds.
    """
    if not is_watched():
        return measure()
    measured: list[T] = []
    done = _thread.allocate_lock()

    def run() -> None:
        try:
            measured.append(measure())
        finally:
            done.release()

    done.acquire()
    _thread.start_new_thread(run, ())
    done.acquire()
    return measured[0]


class _Holder:
    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = object()


def references(owner: object, attribute: str) -> int:
    """Return the number of references to an attribute's value: `SOLE` if nobody else holds it."""
    return getrefcount(getattr(owner, attribute))


def _of_argument(x: object) -> int:
    return getrefcount(x)


SOLE = unwatched(lambda: references(_Holder(), "held"))

# What a function counts of an argument that it has not passed on, where its caller has kept nothing of it.
ARGUMENT = unwatched(lambda: _of_argument(object()))
