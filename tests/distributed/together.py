"""Two processes that do the same, for tests on a device, which MPI does not take."""

from __future__ import annotations

from lucid.collectives.engines.base import Single
from lucid.collectives.group import ProcessGroup


class _Twice(Single):
    """Collectives of two processes that have the same arrays."""

    def all_gather(self, into, array):
        into[...] = array
        yield from ()

    def tree_all_reduce(self, array):
        array *= 2
        yield from ()


class Twins(ProcessGroup):
    """A group of this process, which is the second one in it, and another one with the same arrays."""

    def __init__(self):
        engine = _Twice()
        super().__init__("twins", (1, 0), engine.watch, 1.0, {"cpu": lambda: engine, "cuda": lambda: engine})

    def rank(self):
        return 1
