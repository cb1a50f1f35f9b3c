"""Passes inside of passes, to any depth: once the stack of a thread is half used, the next pass gets a new one."""

from __future__ import annotations

import sys
from contextvars import copy_context
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from lucid.autograd.modes.state import thread
from lucid.base import gpu
from lucid.errors import NestingError, warn

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# As many passes may run inside of each other; a stack holds about eighty.
MOST_PASSES = 10_000

warned = False  # that a pass runs on another thread


def stack_is_half_used() -> bool:
    """Return whether the calls of this thread have used half of Python's recursion limit."""
    try:
        sys._getframe(sys.getrecursionlimit() // 2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    except ValueError:
        return False
    return True


def warn_once(depth: int) -> None:
    """Warn, once in a process, of the effects of another thread."""
    global warned
    if warned:
        return
    warned = True
    warn(
        f"backward: {depth} passes run inside of each other, which fills this thread's stack: inner ones run on "
        "another thread while this one waits. A lock that this thread holds, an RLock too, cannot be taken there, so "
        "that both wait for ever, and data of threading.local is not seen there; context variables are. Hold no lock "
        "where backward is called, and keep such data in contextvars; or let all of it run on a thread of a larger "
        "stack, made after threading.stack_size(2**29) and sys.setrecursionlimit(200_000)"
    )


def on_new_stack(function: Callable[[], T]) -> T:
    """Return ``function()``, run on another thread while this one waits, with this one's modes, device and streams.

    What the other thread has not is its locks and the data of `threading.local`, of which the first change of thread in
    a process warns. As PyTorch does it: a Python stack cannot grow, and raising the recursion limit would let the C
    stack overflow.

    Raises
    ------
    NestingError
        If `MOST_PASSES` run inside of each other already.

    Warns
    -----
    UserWarning
        Once in a process.
    """
    depth = len(thread.state.passes)
    if depth >= MOST_PASSES:
        raise NestingError(
            f"backward: {depth:,} passes run inside of each other: does a hook, or a Function's backward, call "
            "backward without end?"
        )
    warn_once(depth)
    state, on_streams = thread.state, gpu.on_this_threads_streams(function)

    def here() -> T:
        thread.state = state
        return on_streams()

    with import_module("concurrent.futures").ThreadPoolExecutor(1, "nested backward") as other:
        return other.submit(copy_context().run, here).result()
