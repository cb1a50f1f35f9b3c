"""One job for the tests of several files: it runs once, and each test asks for the checks that are its own.

On a device, which MPI does not take, there are twins: a group whose second process does what this one does.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from lucid.collectives.engines.base import Single
from lucid.collectives.group import ProcessGroup
from tests.collectives.jobs import failures


@functools.cache
def _outcome(processes):
    with tempfile.TemporaryDirectory() as folder:
        return failures(processes, "tests.distributed.scripts.training", Path(folder))


def failed(processes, part):
    """Return which checks of a part of the script have failed in which process, with the traceback."""
    return {name: why for name, why in _outcome(processes).items() if name.startswith(part)}


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
