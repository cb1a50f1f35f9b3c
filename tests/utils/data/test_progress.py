"""The bar of a pass over a loader: on a terminal, where asked for, one display for all passes at once."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
import weakref

import pytest

from lucid.base import reports
from lucid.utils.data import DataLoader
from tests.pieces import Terminal, raising, terminal
from tests.utils.data.datasets import Numbers, Stream
from tests.waiting import until


@pytest.fixture(autouse=True)
def nothing_shown():
    """No display is left behind by a test."""
    yield
    assert reports._display is None


@pytest.fixture
def bars(monkeypatch):
    """Return the names, totals and steps of the bars of a test, and whether each was taken away."""
    from rich.progress import Progress

    shown = {}
    add, advance, remove = Progress.add_task, Progress.advance, Progress.remove_task

    def added(self, name, total, completed):
        task = add(self, name, total=total, completed=completed)
        shown[self, task] = [name, total, completed, True]
        return task

    def advanced(self, task, steps=1):
        shown[self, task][2] += steps
        advance(self, task, steps)

    def removed(self, task):
        shown[self, task][3] = False
        remove(self, task)

    for name, method in (("add_task", added), ("advance", advanced), ("remove_task", removed)):
        monkeypatch.setattr(Progress, name, method)
    return shown.values, lambda: len({display for display, _ in shown})


def test_batches_are_counted(bars, monkeypatch):
    """The bar has the epoch and the number of batches, and counts those that were worked with; batches are the same."""
    output = terminal(monkeypatch)
    of, _ = bars
    loader = DataLoader(Numbers(10), batch_size=4, progress=True)
    for number, batch in enumerate(loader):
        assert [*of()] == [["epoch 0", 3, number, True]]
        assert len(batch[0]) == (4, 4, 2)[number]
    assert [*of()] == [["epoch 0", 3, 3, False]]
    list(loader)
    assert [*of()][1:] == [["epoch 1", 3, 3, False]]
    assert "epoch 0" in output.getvalue()


def test_a_pass_that_goes_on(bars, monkeypatch):
    """The bar of a pass that goes on from a state begins where that was."""
    terminal(monkeypatch)
    of, _ = bars
    first = DataLoader(Numbers(10), batch_size=2)
    for _, _ in zip(range(3), first, strict=False):
        pass
    loader = DataLoader(Numbers(10), batch_size=2, progress=True)
    loader.load_state_dict(first.state_dict())
    next(iter(loader))
    assert [*of()] == [["epoch 0", 5, 3, False]]


def test_a_stream_without_a_length(bars, monkeypatch):
    """The bar of a stream that has no length has no total."""
    terminal(monkeypatch)
    of, _ = bars
    count = len(list(DataLoader(Stream(), batch_size=None, progress=True)))
    assert [*of()] == [["epoch 0", None, count, False]]


def test_passes_in_a_pass(bars, monkeypatch):
    """Bars of several passes at once stand in one display, and each goes away with its pass."""
    terminal(monkeypatch)
    of, displays = bars
    for _ in DataLoader(Numbers(2), progress=True):
        list(DataLoader(Numbers(3), progress=True))
        assert sum(is_shown for *_, is_shown in of()) == 1
    assert [total for _, total, *_ in of()] == [2, 3, 3]
    assert displays() == 1
    assert not any(is_shown for *_, is_shown in of())


@pytest.mark.parametrize("end", ["break", "error", "worker", "close"])
def test_a_pass_that_ends_early(bars, end, monkeypatch):
    """The bar goes away with the pass, however that ends."""
    terminal(monkeypatch)
    of, _ = bars
    workers = {"num_workers": 1, "worker": "thread"} if end == "worker" else {}
    dataset = Numbers(4)
    if end in {"error", "worker"}:
        monkeypatch.setattr(Numbers, "__getitem__", raising(ValueError("no sample")))
    iterator = iter(DataLoader(dataset, progress=True, **workers))
    if end in {"error", "worker"}:
        with pytest.raises((ValueError, RuntimeError), match="no sample") as caught:
            next(iterator)
        del caught
    else:
        next(iterator)
        assert [is_shown for *_, is_shown in of()] == [True]
    if end == "close":
        iterator.close()
    else:
        del iterator
    assert [is_shown for *_, is_shown in of()] == [False]


@pytest.mark.parametrize("output", [None, io.StringIO(), "not asked"], ids=["nowhere", "no terminal", "not asked"])
def test_no_bar(output, bars, monkeypatch):
    """No bar where the output of errors is no terminal, or is not there, nor where none is asked for."""
    asked = output != "not asked"
    monkeypatch.setattr(sys, "stderr", output if asked else Terminal())
    assert len(list(DataLoader(Numbers(3), progress=asked))) == 3
    assert not bars[0]()
    assert not asked or output is None or not output.getvalue()


def test_a_pass_that_is_alive_when_python_ends():
    """Its bar is taken away before, and nothing is written of what came too late."""
    program = """
from lucid.utils.data import DataLoader
def batches():
    yield from DataLoader(list(range(9)), progress=True)
kept = batches()
next(kept)
"""
    ours, theirs = os.openpty()
    try:
        environment = os.environ | {"TERM": "xterm"}
        subprocess.run([sys.executable, "-c", program], stderr=theirs, env=environment, check=True)
        output = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "epoch 0" in output
    assert "\x1b[?25h" in output  # the cursor is shown again
    assert "Traceback" not in output


def test_nothing_is_left_for_the_end_of_python(monkeypatch):
    """What takes a bar away when Python ends is forgotten with the bar: no display is kept alive for it."""
    terminal(monkeypatch)
    passes = iter(DataLoader(Numbers(3), progress=True))
    next(passes)
    display = weakref.ref(reports._display)
    assert len([*passes]) == 2

    def is_gone():
        gc.collect()
        return display() is None

    # rich's thread that draws holds it until it sees that it is to end
    assert until(is_gone)
