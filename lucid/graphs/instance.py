"""Graphs of CuPy's launched as they are now, after changes since the capture."""

from __future__ import annotations

from typing import Any
from weakref import finalize

from lucid.base import gpu


class Instance:
    """Executable of a graph of CuPy's as it is now: the one made by CuPy at the end of the capture knows no changes."""

    def __init__(self, graph: Any) -> None:
        self.of = graph.of if isinstance(graph, Instance) else graph
        self.graph: int = self.of.graph
        self.debug_dot_str = self.of.debug_dot_str
        runtime = gpu.cupy().cuda.runtime
        self._launch = runtime.graphLaunch
        self._pointer: int = runtime.graphInstantiate(self.graph)
        finalize(self, runtime.graphExecDestroy, self._pointer).atexit = False

    def launch(self, stream: Any) -> None:
        """Queue the graph on a stream."""
        self._launch(self._pointer, stream.ptr)
