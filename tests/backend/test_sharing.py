"""Memory that processes share: reserved at once, and nothing left of what could not be had."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lucid.backend.sharing import new_block
from lucid.errors import OutOfMemoryError


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate")
def test_memory_is_reserved_at_once():
    """Its lack is found where it is asked for, not where it is written to."""
    block = new_block(1 << 20)
    assert os.fstat(block.descriptor).st_blocks * 512 >= 1 << 20


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate")
def test_no_room_leaves_no_file(monkeypatch):
    """Memory that could not be had leaves no open file."""

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(OutOfMemoryError, match=r"no room for 100 bytes"):
            new_block(100)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
