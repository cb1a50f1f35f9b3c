"""Memory that processes share: reserved at once, and nothing left of what could not be had."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.base.sharing import new_block, reduced
from lucid.errors import OutOfMemoryError
from tests.pieces import raising


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate")
def test_memory_is_reserved_at_once():
    """Its lack is found where it is asked for, not where it is written to."""
    block = new_block(1 << 20)
    assert os.fstat(block.descriptor).st_blocks * 512 >= 1 << 20


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs posix_fallocate")
def test_no_room_leaves_no_file(monkeypatch):
    """Memory that could not be had leaves no open file."""
    monkeypatch.setattr(os, "posix_fallocate", raising(OSError(errno.ENOSPC, "No space left on device")))
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


class Sent:
    """Stands in for what `multiprocessing` sends in the place of a file."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def detach(self):
        return os.dup(self.descriptor)


def test_views_arrive_as_they_are():
    """What another process makes of a shared tensor has its shape and strides, in the same memory."""
    x = lucid.tensor(np.arange(24.0).reshape(2, 3, 4), device="cpu").share_memory_()
    for view in (x, x.permute(2, 0, 1), x[1, ::2, 1:], x[:, 0], x.flatten()[5:23:3], x[0, 1, 2], x[:0]):
        make, arguments = reduced(view, Sent)
        other = make(*arguments)
        assert (other.shape, other.stride()) == (view.shape, view.stride())
        other += 100.0
        assert other.tolist() == view.tolist()
    assert x.sum().item() == sum(range(24)) + 100 * (24 + 24 + 6 + 8 + 6 + 1)
