"""Memory: how much of the host's a block takes, and what comes back of a checkpoint that is written to it."""

from __future__ import annotations

import contextlib
import io
import tracemalloc
from types import SimpleNamespace

import lucid
from tests.pieces.loops import load_loops


@contextlib.contextmanager
def traced():
    """Count the bytes that a block takes, Python's and NumPy's: at its end `held` has them, and `most` their peak."""
    load_loops()
    memory = SimpleNamespace()
    tracemalloc.start()
    try:
        yield memory
        memory.held, memory.most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def reloaded(value):
    """Return what `lucid.load` makes of what `lucid.save` has written."""
    file = io.BytesIO()
    lucid.save(value, file)
    file.seek(0)
    return lucid.load(file)
