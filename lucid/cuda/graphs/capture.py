"""What a capture in progress is told by the code that it records: what to do before each replay, what to keep."""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Capture", "capture_of_this_thread", "captures"]


class Capture:
    """A capture in progress, or the graph that it has become.

    Attributes
    ----------
    before : list of callable
        Called before each replay, on its device and stream: what a graph cannot know, such as numbers that the host
        counts, is written to where the graph reads it.
    kept : list of object
        What lives for as long as the graph: arrays whose addresses it holds.
    """

    __slots__ = ("before", "kept")

    def __init__(self) -> None:
        self.before: list[Callable[[], None]] = []
        self.kept: list[object] = []


captures: dict[int, Capture] = {}
"""By the thread. Empty nearly always, so that who asks asks no more than that."""


def capture_of_this_thread() -> Capture | None:
    """Return the capture that this thread is in, if it is in any."""
    return captures.get(get_ident()) if captures else None
