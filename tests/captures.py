"""Capture and replay with CuPy's own calls, for tests of what is recorded; what is told a capture is done."""

from __future__ import annotations

from contextlib import contextmanager
from threading import get_ident

from lucid.base import gpu
from lucid.graphs.capture import Capture, captures


class Recorded:
    """What a function queues, recorded on a stream of its own; called, it is done once.

    Parameters
    ----------
    act : callable
        Called once.
    told : bool
        Whether lucid is told of the capture, as `lucid.cuda.graph` does; otherwise it is CuPy's alone.
    """

    def __init__(self, act, *, told=True):
        cuda = gpu.cupy().cuda
        cuda.Device().synchronize()
        self.stream, self.capture = cuda.Stream(non_blocking=True), Capture()
        self.pool = cuda.MemoryPool()
        with self.stream, cuda.using_allocator(self.pool.malloc):
            self.stream.begin_capture()
            if told:
                captures[get_ident()] = self.capture
            try:
                self.result = act()
            finally:
                captures.pop(get_ident(), None)
                self.graph = self.stream.end_capture()
        self.stream.synchronize()

    def __call__(self):
        with self.waiting():
            for function in self.capture.before:
                function()
            self.graph.launch(self.stream)

    @contextmanager
    def waiting(self):
        """Let the stream of the graph be the current one; what was queued before is done, and all that is queued."""
        gpu.cupy().cuda.Device().synchronize()
        with self.stream:
            yield
        self.stream.synchronize()
