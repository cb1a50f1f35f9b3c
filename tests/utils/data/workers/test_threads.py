"""Worker threads: what fails in them, and how they end."""

from __future__ import annotations

import gc
import random
import sys
import threading
import time

import pytest

import lucid
from lucid.errors import WorkerError
from lucid.utils.data import DataLoader, IterableDataset, get_worker_info, iteration
from lucid.utils.data.reading import Job, while_reading
from tests.pieces import raising
from tests.utils.data.datasets import Failing, Numbers, OfSize, Slow, Stream
from tests.utils.data.readers import nothing_left
from tests.waiting import PATIENCE, until


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_sample_that_raises(kind):
    """The batches before come; the error says worker, batch, indices, and has the exception as its cause."""
    with nothing_left():
        given = 0
        with pytest.raises(
            WorkerError, match=rf"(?s){kind.__name__} in worker thread . of 2 .*sample 37.*bad"
        ) as caught:
            for _ in DataLoader(Failing(raising(kind("bad"))), batch_size=10, num_workers=2, worker="thread"):
                given += 1
        assert given == 3
        assert type(caught.value.__cause__) is kind
        assert (caught.value.batch, caught.value.indices) == (3, list(range(30, 40)))
        del caught


class Unprintable(Exception):
    def __str__(self):
        raise LookupError("no text")


def test_an_exception_that_cannot_be_shown():
    """The loop has the error of that; the thread goes on, so that nothing is waited for."""
    failing = Failing(raising(Unprintable()), at=0, size=2)
    loader = DataLoader(failing, num_workers=1, worker="thread", timeout=PATIENCE)
    with nothing_left(), pytest.raises(LookupError, match="no text"):
        next(iter(loader))


def test_leaving_the_loop():
    """A `break` after one batch, a hundred times, and a loader that goes away leave nothing."""
    with nothing_left():
        for _ in range(100):
            for _ in DataLoader(Slow(0.001), batch_size=2, num_workers=2, worker="thread"):
                break
        loader = DataLoader(Numbers(), num_workers=2, worker="thread", persistent_workers=True)
        list(loader)
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("lucid")]
        list(loader)
        assert [thread for thread in threading.enumerate() if thread.name.startswith("lucid")] == threads
        del loader, threads


def test_a_thread_that_is_silent():
    """After `timeout` seconds its stack is shown."""
    dataset = Gated()
    dataset.gate.clear()
    with pytest.raises(
        WorkerError, match=r"(?s)timed out after 0.3 seconds: worker thread 0 .* batch 0.*in __getitem__"
    ):
        next(iter(DataLoader(dataset, num_workers=1, worker="thread", timeout=0.3)))
    dataset.gate.set()


class Shared(OfSize):
    """Can be shared, and not pickled."""

    size = 40

    def __init__(self):
        self.lock = threading.Lock()
        self.seen = set()

    def __getitem__(self, index):
        time.sleep(0.001)
        with self.lock:
            self.seen.add(get_worker_info().id)
        return index


def test_threads_share_the_dataset():
    """All read the same object; each knows its number, and the loop has none."""
    dataset = Shared()
    assert sorted(int(batch) for batch in DataLoader(dataset, num_workers=3, worker="thread")) == list(range(40))
    assert dataset.seen == {0, 1, 2}
    assert get_worker_info() is None


def test_a_thread_that_the_system_refuses(monkeypatch):
    """Its error is what is raised, those that have started end, and nothing is said of one that never ran."""
    start, said = threading.Thread.start, []

    def refused(thread):
        if thread.name == "lucid worker 1":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    with nothing_left():
        with pytest.raises(RuntimeError, match="can't start new thread") as caught:
            list(DataLoader(Numbers(), num_workers=3, worker="thread"))
        del caught
        gc.collect()
    assert not said


def test_a_pass_that_cannot_begin(monkeypatch):
    """What fails before the first batch ends its workers, also those that would stay for the next pass."""
    monkeypatch.setattr(iteration, "prefetch", raising(RuntimeError("no way there")))
    loader = DataLoader(Numbers(), num_workers=2, worker="thread", persistent_workers=True)
    loader.device = lucid.device("cpu")
    with nothing_left(), pytest.raises(RuntimeError, match="no way there"):
        iter(loader)


def test_starting():
    """`worker_init_fn` is called in each thread, with a generator of its own; what it raises is an error."""
    drawn = {}

    def start(number):
        drawn[number] = lucid.rand(1, device="cpu").item(), lucid.initial_seed(), get_worker_info().seed

    lucid.manual_seed(1)
    before = lucid.initial_seed()
    list(DataLoader(Stream(4), num_workers=2, worker="thread", worker_init_fn=start))
    assert len({value for value, _, _ in drawn.values()}) == 2
    assert all(seed == own for _, seed, own in drawn.values())
    assert lucid.initial_seed() == before
    with (
        nothing_left(),
        pytest.raises(WorkerError, match=r"ZeroDivisionError in worker thread . of 2 while it was starting"),
    ):
        list(DataLoader(Numbers(), num_workers=2, worker="thread", worker_init_fn=lambda number: 1 / 0))


def test_a_pass_that_was_left():
    """Threads that stay drop what they had still to read of it."""
    loader = DataLoader(Slow(0.002, size=20), batch_size=2, num_workers=2, worker="thread", persistent_workers=True)
    for _ in range(3):
        next(iter(loader))
        assert [batch.tolist() for batch in loader] == [[n, n + 1] for n in range(0, 20, 2)]


class Gated(OfSize):
    """Waits before each sample while the gate is shut."""

    size = 40

    def __init__(self):
        self.gate, self.reading, self.read = threading.Event(), threading.Event(), []
        self.gate.set()

    def __getitem__(self, index):
        self.read.append(index)
        self.reading.set()
        self.gate.wait(PATIENCE)
        return index


def test_which_batch_a_silent_thread_has():
    """Its error names a batch of the pass that is under way, not of one that was left."""
    dataset = Gated()
    loader = DataLoader(dataset, num_workers=1, worker="thread", persistent_workers=True)
    next(iter(loader))
    until(lambda: len(dataset.read) >= 3)
    loader.timeout = 0.3
    dataset.gate.clear()
    with pytest.raises(WorkerError) as caught:
        next(iter(loader))
    dataset.gate.set()
    assert caught.value.batch == 0


def test_threads_that_end_read_no_more():
    """What they were asked for and have not begun is not read."""
    dataset = Gated()
    dataset.gate.clear()
    iterator = iter(DataLoader(dataset, num_workers=1, worker="thread", prefetch_factor=8))
    dataset.reading.wait(PATIENCE)
    iterator.close()
    (thread,) = [each for each in threading.enumerate() if each.name == "lucid worker 0"]
    dataset.gate.set()
    thread.join(PATIENCE)
    assert dataset.read == [0]


def test_threads_leave_pythons_generator_alone():
    """What the loop draws meanwhile is not drawn again."""
    dataset = Gated()
    dataset.gate.clear()
    iterator = iter(DataLoader(dataset, num_workers=1, worker="thread", prefetch_factor=1))
    dataset.reading.wait(PATIENCE)
    random.seed(5)
    random.random()
    state = random.getstate()
    dataset.gate.set()
    next(iterator)
    assert random.getstate() == state


class Span(IterableDataset):
    """Numbers from one to another."""

    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))


def divide(worker):
    own = get_worker_info().dataset
    half = (own.end - own.start) // 2
    own.start, own.end = own.start + worker * half, own.start + (worker + 1) * half


def test_threads_divide_a_stream():
    """`worker_init_fn` finds the copy of a stream that its thread reads."""
    dataset = Span(0, 8)
    loader = DataLoader(dataset, num_workers=2, worker="thread", worker_init_fn=divide)
    assert sorted(int(batch) for batch in loader) == list(range(8))
    assert (dataset.start, dataset.end) == (0, 8)


def test_as_many_indices_as_are_shown():
    """Of more than eight the rest is left out, which dots say."""
    for count, end in ((8, "6, 7]"), (9, "6, 7, ...]")):
        assert while_reading(Job(3, list(range(count)))).endswith(end)
