"""How long a loop waited for its data."""

from __future__ import annotations

import re

import pytest

from lucid.utils.data import DataLoader, LoaderStats, iteration
from tests.utils.data.datasets import Slow
from tests.utils.data.readers import begun, some_readers


class Clock:
    """Stands where it is set."""

    def __init__(self):
        self.seconds = 5.0

    def perf_counter(self):
        return self.seconds


class Takes:
    """Numbers, each of which takes two seconds of a clock to read."""

    def __init__(self, clock):
        self.clock = clock

    def __len__(self):
        return 20

    def __getitem__(self, index):
        self.clock.seconds += 2
        return index


@pytest.fixture
def clock(monkeypatch):
    """Give the loops of loaders a clock of the test's own."""
    clock = Clock()
    monkeypatch.setattr(iteration, "time", clock)
    return clock


def test_times(clock):
    """Waiting is told from work: what the loop does between two batches is its own, what reading takes is waiting."""
    loader = DataLoader(Takes(clock), batch_size=2)
    for _ in loader:
        clock.seconds += 30
    stats = loader.stats()
    assert stats.batches == 10
    assert list(stats.waits) == [4] * 10
    assert (stats.waited, stats.worked) == (40, 300)
    assert stats.share == 40 / 340


@some_readers
def test_work_beside_reading(reader, clock):
    """Where workers read, the loop works meanwhile: only its own time passes on its clock."""
    loader = DataLoader(range(20), batch_size=2, **reader)
    for _ in loader:
        clock.seconds += 30
    stats = loader.stats()
    assert (stats.batches, stats.waited, stats.worked) == (10, 0, 300)


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


def test_hooks_are_no_work(clock):
    """What batch hooks take is neither waiting nor the loop's own work."""
    loader = DataLoader(Takes(clock))

    def hook(*_):
        clock.seconds += 100

    loader.register_batch_hook(hook)
    for _ in loader:
        clock.seconds += 5
    assert (loader.stats().waited, loader.stats().worked) == (40, 100)


def test_times_are_of_when_they_were_asked_for():
    """What was returned in the middle of a pass stays."""
    loader = DataLoader(range(3))
    iterator = begun(loader)
    stats = loader.stats()
    list(iterator)
    assert (stats.batches, loader.stats().batches) == (1, 3)


def test_the_longest_wait():
    """It is shown with its batch, beside the sums."""
    shown = repr(LoaderStats([0.125, 0.5, 0.25], 0.875))
    assert shown == "LoaderStats(3 batches: waited 0.875 s for data of 1.75 s (50%), longest 0.5 s for batch 1)"
