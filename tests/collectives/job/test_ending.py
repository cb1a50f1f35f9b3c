"""What a process of a job prints when it ends by an exception."""

from __future__ import annotations

import atexit
import io
import sys
import threading

import pytest

from lucid.collectives.job.ending import end_together
from lucid.collectives.job.watch import Watch


class Writes(io.StringIO):
    """A stream that keeps what each call has written."""

    def __init__(self):
        super().__init__()
        self.each = []

    def write(self, text):
        """Keep the text."""
        self.each.append(text)
        return len(text)


def fail(kind):
    """Raise."""
    raise kind("bad sample")


def uncaught():
    """Have Python's hook told of an exception of this thread."""
    try:
        fail(ValueError)
    except ValueError:
        sys.excepthook(*sys.exc_info())


def in_a_thread():
    """End a thread by an exception."""
    thread = threading.Thread(target=fail, args=(ValueError,))
    thread.start()
    thread.join()


@pytest.mark.parametrize(("ends", "broken"), [(uncaught, False), (uncaught, True), (in_a_thread, False)])
def test_an_exception_is_one_write(ends, broken, monkeypatch):
    """Others of the job share the stream, and their words do not come between; a hook that fails loses nothing."""
    err, aborted = Writes(), []

    def hook(*_):
        sys.stderr.write("the user's hook\n")
        fail(KeyError)

    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "excepthook", hook if broken else sys.__excepthook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    monkeypatch.setattr(atexit, "register", lambda _: None)
    end_together(Watch.of_one(), lambda: aborted.append(True), lambda: 1.0)
    if broken:
        with pytest.raises(KeyError):
            ends()
    else:
        ends()
    first = err.each[0]
    assert first.startswith("rank 0 of 1 ends by an exception:\n")
    assert ("the user's hook" if broken else "in fail") in first
    assert broken or (len(err.each) == 1 and first.endswith("ValueError: bad sample\n"))
    assert aborted == [True]
