"""Memory that other streams than its own still read: kept from reuse until they are done.

CuPy gives the memory of an array whose last reference goes to what is queued next on the stream on which it was
allocated, and tells nobody. So memory that another stream reads is held here too, and let go when nobody else holds it
and the stream has reached the end of what was queued on it by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread, captures
from lucid.base.locks import new_rlock
from lucid.base.ownership import SOLE, references

if TYPE_CHECKING:
    from lucid.base.arrays import Array


class _Use:
    """One block of memory, the streams that read it, and events at the ends of these once nobody else holds it."""

    __slots__ = ("events", "memory", "streams")

    def __init__(self, memory: object) -> None:
        self.memory = memory
        self.streams: dict[tuple[int, int], Any] = {}
        self.events: list[Any] | None = None


_uses: dict[int, _Use] = {}
_lock = new_rlock()


def hold(array: Array, stream: Any, index: int) -> None:
    """Keep the memory of a CuPy array from reuse before a stream of device ``index`` is done with it."""
    memory = array.data.mem
    if captures and (capture := capture_of_this_thread()) is not None:
        # no event of a capture can be asked for, and the graph's memory is nobody else's
        capture.kept.append(memory)
        return
    release()
    with _lock:
        _uses.setdefault(id(memory), _Use(memory)).streams[index, stream.ptr] = stream


def release(*, wait: bool = False) -> None:
    """Release memory that no array holds and no stream still reads; with `wait`, wait for the streams first."""
    with _lock:
        for key, use in list(_uses.items()):
            if use.events is None:
                if references(use, "memory") > SOLE:
                    continue
                use.events = [gpu.run_on(index, gpu.mark, each) for (index, _), each in use.streams.items()]
            if wait:
                for event in use.events:
                    event.synchronize()
            if all(event.done for event in use.events):
                del _uses[key]
