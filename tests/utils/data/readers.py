"""Ways of reading batches, what they give, and what they must not leave behind."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import multiprocessing
import threading
from pathlib import Path

import pytest

import lucid
from lucid.utils.data import DataLoader, IterableDataset
from tests.utils.data.datasets import Numbers
from tests.waiting import until

# How batches are read: by the loop, by processes, by threads.
READERS = [
    {},
    {"num_workers": 1},
    {"num_workers": 2},
    {"num_workers": 4, "persistent_workers": True},
    {"num_workers": 2, "worker": "thread"},
    {"num_workers": 4, "worker": "thread", "persistent_workers": True},
]
SOME_READERS = [READERS[0], READERS[2], READERS[4]]


def name_of(reader):
    """Return how a test of a reader is called."""
    return f"{reader.get('num_workers', 0)} {reader.get('worker', 'process')}"


readers = pytest.mark.parametrize("reader", READERS, ids=map(name_of, READERS))
some_readers = pytest.mark.parametrize("reader", SOME_READERS, ids=map(name_of, SOME_READERS))
workers = pytest.mark.parametrize("reader", SOME_READERS[1:], ids=map(name_of, SOME_READERS[1:]))


def lists(batches):
    """Return batches as lists of numbers."""
    return [[part.cpu().numpy().tolist() for part in batch] for batch in batches]


def passes(dataset, count=2, **settings):
    """Return the batches of some passes over a dataset, from one seed."""
    lucid.manual_seed(11)
    loader = DataLoader(dataset, **{"batch_size": 4, "shuffle": not isinstance(dataset, IterableDataset), **settings})
    return [lists(loader) for _ in range(count)]


def shuffled(seed, **settings):
    """Return a loader over the numbers, of which the order and the random numbers are those of the seed."""
    lucid.manual_seed(seed)
    return DataLoader(Numbers(), batch_size=4, shuffle=True, **settings)


def begun(loader):
    """Return an iterator over a loader that has given its first batch."""
    iterator = iter(loader)
    next(iterator)
    return iterator


def cut_off(make, cut, again, load=copy.deepcopy):
    """Return what is left of an epoch and the next one, of a loader and of another that goes on where it was cut."""
    lucid.manual_seed(7)
    loader = make()
    iterator = iter(loader)
    given = lists(itertools.islice(iterator, cut))
    state = load(loader.state_dict())
    rest = lists(iterator), lists(loader)
    lucid.manual_seed(99)
    other = again()
    other.load_state_dict(state)
    return given, rest, (lists(other), lists(other))


def goes_on(make, cut, again=None, **others):
    """Fail unless a loader that goes on gives what the one that was cut off would have; return what both gave."""
    given, rest, resumed = cut_off(make, cut, again or make, **others)
    assert resumed == rest
    return given, rest


def left_behind():
    """Return processes, threads, shared memory that is mapped, and how many files are open."""
    gc.collect()
    children = sorted(child.pid for child in multiprocessing.active_children())
    threads = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("lucid"))
    # of this process: other programs of the machine come and go meanwhile; PyTorch's memory is not lucid's
    mapped = [line.split()[4:] for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()]
    shared = sorted(words for words in mapped if words[1:] and words[1].startswith(("/dev/shm/", "/memfd:lucid")))
    shared = [words for words in shared if "/torch_" not in words[1]]
    return children, threads, shared, len(list(Path("/proc/self/fd").iterdir()))


@contextlib.contextmanager
def nothing_left():
    """Fail what leaves a process, a thread, shared memory or an open file behind."""
    # the fork server, which stays, is under way
    list(DataLoader(Numbers(2), num_workers=1))
    before = left_behind()
    yield
    until(lambda: left_behind() == before)
    assert left_behind() == before
