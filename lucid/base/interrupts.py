"""Calls that Ctrl-C must not cut in two."""

from __future__ import annotations

import _thread
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

T = TypeVar("T")

# Python's `signal` makes enums of what this gives and takes, for ten times the time
signal: Any = import_module("_signal")


def in_destructor(function: Callable[[], object]) -> None:
    """Call `function` in a destructor; a Ctrl-C meanwhile takes effect afterwards, as destructors drop exceptions."""
    try:
        uninterrupted(function)
    except KeyboardInterrupt:
        # not before this has returned
        threading.Timer(0.01, _thread.interrupt_main).start()


def uninterrupted(function: Callable[[], T]) -> T:
    """Return ``function()``; a Ctrl-C meanwhile takes effect when it is done, a second one at once.

    Only the main thread is ever interrupted, and only where Python handles SIGINT: anywhere else this is the call.
    """
    usual: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        return function()
    came: list[FrameType | None] = []

    def later(number: int, frame: FrameType | None) -> None:
        came.append(frame)
        if len(came) > 1:
            usual(number, frame)

    try:
        signal.signal(signal.SIGINT, later)
        return function()
    finally:
        if signal.getsignal(signal.SIGINT) is later:  # a hook may have set another
            signal.signal(signal.SIGINT, usual)
        if len(came) == 1:
            usual(signal.SIGINT, came[0])
