"""How long a loop waited for its data."""

from __future__ import annotations

import re
import time

import pytest

from lucid.utils.data import DataLoader, LoaderStats
from tests.utils.data.datasets import Slow
from tests.utils.data.readers import some_readers


@some_readers
def test_times(reader):
    """Waiting is told from work: a loop that works for longer than reading takes waits for a worker no more."""
    loader = DataLoader(Slow(0.004, size=20), batch_size=2, **reader)
    begin = time.perf_counter()
    for _ in loader:
        time.sleep(0.03)
    whole = time.perf_counter() - begin
    stats = loader.stats()
    assert stats.batches == len(stats.waits) == 10
    assert stats.worked >= 0.26  # nine bodies: the last is not followed by a question
    assert stats.waited + stats.worked <= whole
    if not reader:
        assert stats.waited >= 10 * 2 * 0.004
    assert stats.share == pytest.approx(stats.waited / (stats.waited + stats.worked))


def test_what_is_shown():
    """The text says batches, times, the share, and the longest wait; each pass begins anew."""
    loader = DataLoader(Slow(0.0, size=3))
    assert repr(loader.stats()) == "LoaderStats(no batches yet)"
    assert loader.stats().share == 0
    list(loader)
    before = loader.stats()
    text = r"LoaderStats\(3 batches: waited \S+ s for data of \S+ s \(\d+%\), longest \S+ s for batch \d\)"
    assert re.fullmatch(text, repr(before))
    next(iter(loader))
    assert loader.stats().batches == 1
    assert before.batches == 3


def test_hooks_are_no_work():
    """What batch hooks take is neither waiting nor the loop's own work."""
    loader = DataLoader(range(3))
    loader.register_batch_hook(lambda *_: time.sleep(0.1))
    list(loader)
    stats = loader.stats()
    assert stats.worked < 0.1
    assert stats.waited < 0.1


def test_times_are_of_when_they_were_asked_for():
    """What was returned in the middle of a pass stays."""
    loader = DataLoader(range(3))
    iterator = iter(loader)
    next(iterator)
    stats = loader.stats()
    list(iterator)
    assert (stats.batches, loader.stats().batches) == (1, 3)


def test_the_longest_wait():
    """It is shown with its batch, beside the sums."""
    shown = repr(LoaderStats([0.125, 0.5, 0.25], 0.875))
    assert shown == "LoaderStats(3 batches: waited 0.875 s for data of 1.75 s (50%), longest 0.5 s for batch 1)"
