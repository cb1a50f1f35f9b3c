"""Worker processes: the memory in which batches cross, and what each worker has of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import time
import types
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.base.sharing import new_block
from lucid.errors import WorkerError
from lucid.utils.data import DataLoader, default_collate, get_worker_info
from lucid.utils.data.reading import Pass
from lucid.utils.data.workers import processes, sharing
from lucid.utils.data.workers.worker_process import Setup
from tests.utils.data.datasets import Failing, Numbers, OfSize, Samples, Slow, as_they_are, broken_start
from tests.waiting import PATIENCE, until


class Fatal(OfSize):
    """Ends its process when sample 0 is read for the second time."""

    size = 40

    seen = False

    def __getitem__(self, index):
        if not index:
            if self.seen:
                os.kill(os.getpid(), signal.SIGKILL)
            self.seen = True
        return index


def test_which_batch_a_dead_worker_had():
    """Its error names a batch of the pass that is under way, not of one that was left."""
    loader = DataLoader(Fatal(), num_workers=1, persistent_workers=True)
    next(iter(loader))
    with pytest.raises(WorkerError, match="SIGKILL") as caught:
        list(loader)
    assert caught.value.batch == 0


def test_slots_of_passes_that_were_left():
    """Memory that a pass had asked for is used again by the next, however many were left."""
    loader = DataLoader(Failing(int), batch_size=4, num_workers=1, persistent_workers=True)
    for _ in range(20):
        next(iter(loader))
    for _ in loader:
        pass
    assert loader._workers._workers[0].slots <= 6


def test_memory_that_was_held_is_given_back():
    """After many batches were held, and were not any more, both processes let go of their memory."""
    loader = DataLoader(Failing(int, size=800), batch_size=4, num_workers=1)
    iterator = iter(loader)
    held = [next(iterator) for _ in range(100)]
    worker = iterator._workers._workers[0]
    files = Path(f"/proc/{worker.process.pid}/fd")
    assert len(list(files.iterdir())) > 100
    del held
    for _ in range(20):
        next(iterator)
    assert len(worker.blocks) <= 10
    assert len(list(files.iterdir())) <= 30


def test_a_timeout_is_of_the_batch_that_is_wanted():
    """What comes of a pass that was left does not make the wait for a batch of this one longer."""
    loader = DataLoader(Slow(0.25), num_workers=1, prefetch_factor=10, persistent_workers=True)
    next(iter(loader))
    loader.timeout = 0.6
    with pytest.raises(WorkerError, match=r"timed out after 0\.6 seconds"):
        next(iter(loader))


def test_a_worker_that_has_failed_before_it_is_asked():
    """Its own error comes also where it had ended before the first question."""
    loader = DataLoader(Numbers(), num_workers=1)
    workers = processes.ProcessWorkers(
        Setup(loader._parts, broken_start), [1], loader.multiprocessing_context, 2, pin=False
    )
    try:
        workers._workers[0].process.join(20)
        with pytest.raises(
            WorkerError, match=r"ValueError in worker 0 .* while it was starting: worker 0 cannot start"
        ):
            workers.begin(Pass(0, 0, []))
    finally:
        workers.close()


class Marked(OfSize):
    """Counts in an array what its worker has read."""

    size = 20

    def __init__(self):
        self.counts = np.zeros(1000, np.int64)

    def __getitem__(self, index):
        self.counts += 1
        time.sleep(0.01)
        return get_worker_info().id, self.counts[0]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_a_worker_writes_is_its_own(method):
    """An array of the dataset is a copy in each worker."""
    rows = [tuple(map(int, batch)) for batch in DataLoader(Marked(), num_workers=2, multiprocessing_context=method)]
    for worker in range(2):
        mine = [count for who, count in rows if who == worker]
        assert mine == list(range(1, len(mine) + 1))


def test_memory_is_used_again(monkeypatch):
    """A worker makes new memory for its first batches alone."""
    made = []
    mapped = processes._mapped
    monkeypatch.setattr(processes, "_mapped", lambda descriptor: made.append(descriptor) or mapped(descriptor))
    for _ in DataLoader(Failing(int), batch_size=4, num_workers=1):
        pass
    assert 1 <= len(made) <= 6


def draw(number):
    get_worker_info().dataset.drawn = (
        random.random(),
        np.random.random(),  # noqa: NPY002  the stream that users draw from
        float(lucid.rand(1, device="cpu", dtype=lucid.float64)),
    )


class Drawn(OfSize):
    """What its worker has drawn when it started."""

    size = 8

    def __getitem__(self, index):
        return get_worker_info().id, *self.drawn


def test_what_worker_init_fn_draws():
    """All three generators are seeded in each worker: other numbers in each, the same again with the seed."""
    runs = []
    for _ in range(2):
        lucid.manual_seed(4)
        batches = DataLoader(Drawn(), num_workers=2, worker_init_fn=draw)
        runs.append({tuple(float(part) for part in batch) for batch in batches})
    assert runs[0] == runs[1]
    one, other = runs[0]
    assert all(a != b for a, b in zip(one, other, strict=True))


def mixed(index):
    """Return arrays of odd sizes."""
    return np.zeros(3, np.int8), np.zeros(1, np.float64), np.zeros(65, np.int8), np.zeros(2, np.float32)


@pytest.mark.parametrize("collate_fn", [None, as_they_are])
def test_arrays_of_a_batch_are_aligned(collate_fn):
    """Each begins at a multiple of 64 bytes, as NumPy's own and CUDA's do."""
    for batch in DataLoader(Samples(6, mixed), batch_size=2, num_workers=1, collate_fn=collate_fn):
        for part in batch if collate_fn is None else [array for sample in batch for array in sample]:
            assert np.asarray(part).ctypes.data % 64 == 0


class Long(OfSize):
    """Long texts, counted in memory that processes share."""

    size = 4

    def __init__(self):
        self.counts = lucid.zeros(4, dtype=lucid.int64, device="cpu").share_memory_()

    def __getitem__(self, index):
        self.counts[index] += 1
        return "x" * 3_000_000


def test_a_long_text_does_not_stop_a_worker():
    """A worker reads on while nobody has taken its last batch: what is long does not go through the pipe."""
    dataset = Long()
    iterator = iter(DataLoader(dataset, num_workers=1))
    until(lambda: dataset.counts[1])
    assert dataset.counts.tolist() == [1, 1, 0, 0]
    assert [len(batch[0]) for batch in iterator] == [3_000_000] * 4


def growing(index):
    """Return arrays, and texts that get longer."""
    return np.full(100, index), "x" * (5000 * index)


def test_batches_that_outgrow_their_memory():
    """What was collated into a block that turns out to be too small goes along into the next."""
    for index, (array, (text,)) in enumerate(DataLoader(Samples(8, growing), num_workers=1)):
        assert array.tolist() == [[index] * 100]
        assert text == "x" * (5000 * index)


def test_memory_is_unlocked_when_it_goes(monkeypatch):
    """Each address that was registered with CUDA is unregistered with the block."""
    said = []
    runtime = types.SimpleNamespace(
        hostRegister=lambda address, size, flags: said.append(("lock", address)),
        hostUnregister=lambda address: said.append(("unlock", address)),
    )
    cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(sharing.gpu, "cupy", lambda: cupy)
    block = new_block(100)
    sharing.pin(block)
    assert [name for name, _ in said] == ["lock"]
    del block
    assert said[1:] == [("unlock", said[0][1])]


class Caching(OfSize):
    """Keeps what it has stacked by `default_collate`."""

    size = 20

    def __init__(self):
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = default_collate([np.full(1000 if index % 3 else 4000, index, np.float32)] * 2)
        return self.cache[index]


def test_what_a_dataset_keeps_is_not_overwritten():
    """A worker's dataset may keep what `default_collate` returned: later batches do not lie there."""
    loader = DataLoader(Caching(), num_workers=1, persistent_workers=True)
    for _ in range(3):
        assert [batch.unique().tolist() for batch in loader] == [[float(index)] for index in range(20)]


def small_array(index):
    """Return a small array, of which there are very many."""
    return np.zeros(1, np.int8)


@contextlib.contextmanager
def nobody_waits():
    """Fail what loop and worker do not come to the end of, as each waits for the other."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("both wait"))
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)


def test_batches_of_very_many_arrays():
    """A question and an answer that are both larger than a pipe do not wait for each other."""
    dataset = Samples(200_000, small_array)
    iterator = iter(DataLoader(dataset, batch_size=50_000, num_workers=1, collate_fn=as_they_are, timeout=PATIENCE))
    with nobody_waits():
        assert sum(map(len, iterator)) == 200_000


def test_any_number_of_batches_ahead():
    """A worker is asked for as many as its pipe holds the answers of, however many are wanted."""
    with nobody_waits():
        loader = DataLoader(Failing(int, size=3000), num_workers=1, prefetch_factor=1500, collate_fn=as_they_are)
        assert [int(batch[0][0]) for batch in loader] == list(range(3000))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_names_of_workers(method):
    """Whoever pickles the name of a worker gets a name, and keeps Ctrl-C."""
    if method == "fork" and lucid.cuda.is_available():
        pytest.skip("a device was used by then")
    usual = signal.getsignal(signal.SIGINT)
    iterator = iter(DataLoader(Numbers(), num_workers=1, multiprocessing_context=method))
    name = iterator._workers._workers[0].process.name
    assert type(pickle.loads(pickle.dumps(name))) is str
    assert signal.getsignal(signal.SIGINT) is usual
    iterator.close()


class Tokens(OfSize):
    """Windows of a file that is mapped."""

    size = 4

    def __init__(self, memory):
        self.memory = memory

    def __getitem__(self, index):
        # a memory map has the name of its file, in a worker too
        return self.memory[8 * index : 8 * index + 8], str(getattr(self.memory, "filename", ""))


@pytest.mark.cpu("arrays on files")
@pytest.mark.parametrize("kind", ["map", "array", "tensor", "window"])
def test_a_mapped_file_is_not_copied(tmp_path, rng, kind):
    """A dataset on a mapped file is sent as the name of that file: neither its bytes nor memory for them."""
    path = tmp_path / "tokens"
    values = rng.integers(0, 1000, 1 << 18, dtype=np.int64)
    values.tofile(path)
    memory = np.memmap(path, np.int64, "r")
    data = {"array": np.asarray, "tensor": lucid.from_numpy, "window": lambda m: m[16:]}.get(kind, lambda m: m)(memory)
    writer = sharing.Writer()
    message = writer.pack(Tokens(data), [])
    assert writer.block is None or len(writer.block) < 10_000
    assert np.array_equal(np.asarray(sharing.unpack(message, None).memory), np.asarray(data))
    start = 16 if kind == "window" else 0
    for index, (batch, name) in enumerate(DataLoader(Tokens(data), batch_size=None, num_workers=1)):
        assert np.array_equal(np.asarray(batch), values[start + 8 * index :][:8])
        assert name == (str(path) if kind in {"map", "window"} else "")


@pytest.mark.cpu("arrays on files")
def test_a_sample_of_a_mapped_file_is_sent(tmp_path):
    """What a worker has read goes through as elements: the training process reads no file."""
    np.arange(64).tofile(tmp_path / "tokens")
    memory = np.memmap(tmp_path / "tokens", np.int64, "r")
    writer = sharing.Writer()
    message = writer.pack(memory[8:16])
    lent = np.frombuffer(writer.block, np.uint8)
    found = sharing.unpack(message, lent)
    assert type(found) is np.ndarray
    assert found.tolist() == list(range(8, 16))
    assert np.shares_memory(found, lent)


class Unit(np.ndarray):
    """A class of somebody's own."""


@pytest.mark.cpu("arrays of NumPy's")
@pytest.mark.parametrize(
    "kind", ["own class", "matrix", "records", "structured", "of twelve bytes", "transposed", "steps", "backwards"]
)
def test_bytes_of_any_array_are_shared(kind):
    """Whatever its class, dtype and order, an array's bytes lie in the block, and not in the text that each reads."""
    array = np.arange(100_000.0).reshape(100, -1)
    made = {
        "own class": array.view(Unit),
        "matrix": array.view(np.matrix),
        "records": array.view([("a", "f4"), ("b", "f4")]).view(np.recarray),
        "structured": array.view([("a", "f4"), ("b", "f4")]),
        "of twelve bytes": array[:, :999].copy().view([("a", "f4"), ("b", "f8")]),
        "transposed": array.T,
        "steps": array[:, ::2],
        "backwards": array[::-1],
    }[kind]
    writer = sharing.Writer()
    message = writer.pack(made)
    lent = np.frombuffer(writer.block, np.uint8)
    found = sharing.unpack(message, lent)
    assert type(found) is type(made)
    assert found.dtype == made.dtype
    assert found.tolist() == made.tolist()
    assert np.shares_memory(found, lent)
