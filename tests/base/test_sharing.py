"""Memory that processes share: reserved at once, and nothing left of what could not be had."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import lucid
from lucid.base.sharing import new_block
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


def test_memory_that_is_shared_stays_where_it_is():
    """A tensor whose memory is shared already keeps it, with all that lies in it, and so do views that are shared."""
    x = lucid.arange(6.0, device="cpu").share_memory_()
    view, place = x[2:4], x.data_ptr()
    for each in (x, view, x):
        before = each.data_ptr()
        assert each.share_memory_().data_ptr() == before
    view.fill_(7.0)
    assert x.tolist() == [0.0, 1.0, 7.0, 7.0, 4.0, 5.0]
    assert x.data_ptr() == place
