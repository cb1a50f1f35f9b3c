"""Threads in a capture: their work is not done but recorded, for a CUDA graph to do later."""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

from lucid.base.locks import new_rlock
from lucid.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.graphs.capture import Capture
    from lucid.graphs.outside import Watch


REMEDY = (
    "a capture records work and reads no values: move out of it what reads them (item(), bool(), tolist(), cpu()), "
    "what copies from the host (lucid.tensor() of Python numbers, indices in lists), and ops whose result has a shape "
    "that depends on values (nonzero, masked_select, unique)"
)

captures: dict[int, Capture] = {}
"""By the thread. Empty nearly always, so that who asks asks no more than that."""

waiting = new_rlock()
"""Held while a device is waited for as a whole, which no capture outlives, and for as long as warm-ups capture."""


class Changes:
    """Changes in the whole process that a captured step must look at before it is replayed.

    Attributes
    ----------
    arrays : int
        How often a tensor was given another array.
    watches : set of weakref to Watch
        What is told of tensors in whose place modules get others, and of hooks. Empty nearly always, which is asked at
        each of these: a WeakSet would take five times as long to say so.
    """

    __slots__ = ("arrays", "watches")

    def __init__(self) -> None:
        self.arrays = 0
        self.watches: set[ref[Watch]] = set()

    def tell(self, watch: Watch) -> None:
        """Tell a watch from now on, as long as it lives."""
        self.watches.add(ref(watch, self.watches.discard))

    def _told(self) -> list[Watch]:
        return [watch for each in list(self.watches) if (watch := each()) is not None]

    def replace(self, old: object) -> None:
        """Take note that a module has another tensor in place of this one."""
        for watch in self._told() if self.watches else ():
            watch.replaced(old)

    def hook(self, place: object) -> None:
        """Take note that a hook was added or removed at a place, as `note_places` is given them."""
        for watch in self._told() if self.watches else ():
            watch.hook_changed(place)


changes = Changes()


def capture_of_this_thread() -> Capture | None:
    """Return the capture that this thread is in, if it is in any."""
    return captures.get(get_ident()) if captures else None


def note_arrays(values: Iterable[Any]) -> None:
    """Tell the capture of this thread, if it is in one, of CUDA arrays that CuPy's own kernels may be given.

    Raises
    ------
    CaptureError
        If one is on another device than the capture, on which nothing is recorded.
    """
    capture = capture_of_this_thread()
    for value in values if capture is not None else ():
        if isinstance(value, (list, tuple)):
            note_arrays(cast("Iterable[Any]", value))
        elif (memory := getattr(value, "data", None)) is not None and hasattr(memory, "device_id"):
            check_device(memory.device_id)
            captures[get_ident()].addresses.add(memory.ptr)


def check_device(index: int) -> None:
    """Raise `CaptureError` if this thread is in a capture on another CUDA device than this."""
    capture = capture_of_this_thread()
    if capture is not None and index != capture.device:
        raise CaptureError(
            f"work on cuda:{index} cannot be part of a capture on cuda:{capture.device}, and would be done once for "
            "all replays: a graph is of one device; do it outside, or on that device"
        )


def note_assigned(tensor: object) -> None:
    """Tell the capture of this thread, if it is in one, that the gradient of a tensor is set or cleared."""
    capture = capture_of_this_thread()
    if capture is not None:
        capture.assigned.add(id(tensor))


def note_places(places: Iterable[object]) -> None:
    """Name to the capture of this thread, if it is in one, places that it must watch for hooks added later.

    They are the active hooks of modules and of tables, and the ends of the graph at leaves.
    """
    capture = capture_of_this_thread()
    if capture is not None:
        capture.places.update({id(place): ref(place) for place in places})


def check_not_capturing(what: str) -> None:
    """Raise `CaptureError` if this thread is in a capture: `what` cannot be recorded."""
    if captures and get_ident() in captures:
        raise CaptureError(f"{what} cannot be captured in a CUDA graph: {REMEDY}")
