"""Passes over a loader: what they read, draw and say, and where they go on."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import lucid
from lucid.errors import ShapeError
from lucid.utils.data import DataLoader, IterableDataset, get_worker_info, sample_seed
from tests.pieces import raising
from tests.utils.data.datasets import Failing, Numbers, OfSize, Samples, Seeds, Stream
from tests.utils.data.readers import begun, goes_on, lists, shuffled, some_readers
from tests.waiting import PATIENCE, until


@some_readers
def test_numbers_of_batches_go_on(reader):
    """A hook's `index` is the number in the epoch, also where a loader goes on in the middle."""
    loader = DataLoader(Numbers(), batch_size=4, **reader)
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    loader.load_state_dict(loader.state_dict())
    numbers = []
    loader.register_batch_hook(lambda loader, index, batch: numbers.append(index))
    list(loader)
    assert numbers == list(range(3, 20))


class Noted(OfSize):
    """Notes what was read."""

    size = 100

    def __init__(self):
        self.read = []

    def __getitem__(self, index):
        self.read.append(index)
        return index


@pytest.mark.parametrize("factor", [1, 2, 5])
def test_how_far_workers_read_ahead(factor):
    """While the loop works, `prefetch_factor` batches of each worker are read, and no more."""
    dataset = Noted()
    iterator = iter(DataLoader(dataset, num_workers=2, worker="thread", prefetch_factor=factor))
    next(iterator)
    until(lambda: len(dataset.read) >= 2 * factor + 1)
    time.sleep(0.05)  # time to read too much in
    assert sorted(dataset.read) == list(range(2 * factor + 1))


class Gated(OfSize):
    """Sample 0 is there when the gate is open."""

    size = 10

    def __init__(self):
        self.gate = threading.Event()

    def __getitem__(self, index):
        if not index:
            self.gate.wait(PATIENCE)
        return index


def test_whichever_is_ready_first():
    """Without `in_order` a slow batch does not hold up the others."""
    dataset = Gated()
    iterator = iter(DataLoader(dataset, num_workers=2, worker="thread", in_order=False))
    first = int(next(iterator))
    dataset.gate.set()
    assert first != 0
    assert sorted([first, *map(int, iterator)]) == list(range(10))


def test_a_sample_that_raises_in_the_loop():
    """The exception itself comes, with a note of batch, sample and indices."""
    with pytest.raises(ValueError, match="bad") as caught:
        list(DataLoader(Failing(raising(ValueError("bad"))), batch_size=10))
    assert caught.value.__notes__[0].startswith("raised while it was reading batch 3, sample 37, of indices [30, 31,")


def test_a_seed_given_after_a_loaded_pass():
    """A loaded state wins for its own pass alone: a seed that is set after that counts again."""
    loader = shuffled(2)
    next(iter(loader))
    other = shuffled(3)
    other.load_state_dict(loader.state_dict())
    list(other)
    orders = []
    for _ in range(2):
        lucid.manual_seed(5)
        orders.append(lists(other))
    assert orders[0] == orders[1]


def test_an_older_pass_that_ends():
    """The end of a pass that is not the latest does not say which epoch is next."""
    loader = shuffled(2)
    whole = [lists(loader) for _ in range(3)]
    loader = shuffled(2)
    older = begun(loader)
    assert lists(loader) == whole[1]
    list(older)
    assert lists(loader) == whole[2]


def ragged(number):
    return np.zeros(2 if number == 5 else 1)


class Ragged(IterableDataset):
    """The sixth sample is longer."""

    def __iter__(self):
        return map(ragged, range(8))


def test_a_loader_names_the_samples_of_a_stream():
    """By their numbers in it."""
    with pytest.raises(ShapeError, match=r"sample 4 has shape \(1,\), sample 5 has \(2,\)"):
        list(DataLoader(Ragged(), batch_size=4))


class Live(IterableDataset):
    """Its state is the object that it goes on changing."""

    def __init__(self):
        self.where = {"position": 0}

    def __iter__(self):
        while self.where["position"] < 20:
            self.where["position"] += 1
            yield self.where["position"]
        self.where["position"] = 0

    def state_dict(self):
        return self.where

    def load_state_dict(self, state):
        self.where = dict(state)


@pytest.mark.parametrize("reader", [{}, {"num_workers": 1, "worker": "thread"}])
def test_a_state_of_a_stream_is_of_its_time(reader):
    """A dataset may return the state that it goes on changing."""
    goes_on(lambda: DataLoader(Live(), batch_size=4, **reader), 1, load=lambda state: state)


class Cursor:
    """An iterator that says where it is."""

    def __init__(self, read):
        self.position, self.read = 0, read

    def __iter__(self):
        return self

    def __next__(self):
        if self.position == 20:
            raise StopIteration
        self.position += 1
        self.read.append(self.position)
        return self.position

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


class Pages(IterableDataset):
    """A stream whose iterator keeps the state."""

    def __init__(self):
        self.read = []

    def __iter__(self):
        return Cursor(self.read)


def test_an_iterator_that_keeps_state():
    """It goes on where it was, without reading what came before."""
    loader = DataLoader(Pages(), batch_size=4)
    iterator = begun(loader)
    other = DataLoader(Pages(), batch_size=4)
    other.load_state_dict(loader.state_dict())
    assert [batch.tolist() for batch in other] == [batch.tolist() for batch in iterator]
    assert other.dataset.read == list(range(5, 21))


class Sized(Stream):
    """A stream that knows its length."""

    def __len__(self):
        return self.size


@some_readers
def test_the_last_batches_of_a_stream(reader):
    """With `drop_last` the smaller last batch of each worker is left out; `len` counts as one worker would."""
    batches = [batch[0].tolist() for batch in DataLoader(Sized(29), batch_size=4, drop_last=True, **reader)]
    assert {len(batch) for batch in batches} == {4}
    assert len(batches) == (6 if reader else 7)
    for size, drop, count in ((4, True, 7), (4, False, 8), (None, False, 29)):
        assert len(DataLoader(Sized(29), batch_size=size, drop_last=drop)) == count


class Nested(OfSize):
    """Reads another loader, and says the seed of the sample after that."""

    size = 4

    def __init__(self, inner):
        self.inner = inner

    def __getitem__(self, index):
        if self.inner:
            list(DataLoader(range(2)))
        return sample_seed()


@some_readers
def test_a_loader_below_a_loader(reader):
    """A dataset that reads another loader has the random numbers of its sample afterwards."""
    seeds = []
    for inner in (False, True):
        loader = DataLoader(Nested(inner), generator=lucid.Generator().manual_seed(3), **reader)
        seeds.append([int(batch) for batch in loader])
    assert seeds[0] == seeds[1]


def with_seed(samples):
    return sample_seed(), samples


@some_readers
def test_random_numbers_of_collating(reader):
    """A `collate_fn` has random numbers of its own, other ones than each sample."""
    loaders = [
        DataLoader(Seeds(), 2, collate_fn=with_seed, generator=lucid.Generator().manual_seed(3), **which)
        for which in ({}, reader)
    ]
    expected, got = map(list, loaders)
    assert got == expected
    assert len({seed for one, samples in got for seed in (one, *samples)}) == 6


class Together(Seeds):
    """Reads the samples of a batch together."""

    def __getitems__(self, indices):
        return [sample_seed() for _ in indices]


class StreamOfSeeds(IterableDataset):
    """The seed of each of four samples."""

    def __iter__(self):
        for _ in range(4):
            yield sample_seed()


@pytest.mark.parametrize("dataset", [Seeds(), Together(), StreamOfSeeds()], ids=lambda dataset: type(dataset).__name__)
def test_each_epoch_draws_anew(dataset):
    """Reading and collating draw other numbers in the next epoch, of which a loader of the same seed has the same."""
    loaders = [
        DataLoader(dataset, 2, collate_fn=with_seed, generator=lucid.Generator().manual_seed(3)) for _ in range(2)
    ]
    first, second = epochs = [list(loaders[0]) for _ in range(2)]
    assert [list(loaders[1]) for _ in range(2)] == epochs
    seeds = [{seed for one, samples in epoch for seed in (one, *samples)} for epoch in (first, second)]
    assert not seeds[0] & seeds[1]


class Eager(IterableDataset):
    """Draws when it is iterated, not only when it is read."""

    def __iter__(self):
        return iter([sample_seed()])


@some_readers
def test_random_numbers_of_a_streams_beginning(reader):
    """What `__iter__` draws is of the worker, the seed and the epoch, too."""
    loader = DataLoader(Eager(), batch_size=None, **reader)
    first, second = list(loader), list(loader)
    assert len({*first, *second}) == 2 * max(loader.num_workers, 1)


def test_random_numbers_of_the_workers_of_a_stream():
    """Samples of the same number have other random numbers in other workers."""
    drawn = [value for batch in DataLoader(Stream(), batch_size=4, num_workers=2) for value in batch[1].tolist()]
    assert len(set(drawn)) == len(drawn) == 77


def broken_collate(samples):
    raise ValueError("cannot collate")


@some_readers
def test_a_collate_fn_that_raises(reader):
    """The error names the batch, and no sample."""
    with pytest.raises(Exception, match="cannot collate") as caught:
        list(DataLoader(Numbers(), batch_size=4, collate_fn=broken_collate, **reader))
    text = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "while it was reading batch 0, of indices [0, 1, 2, 3]" in text


def own_seed(index):
    """Tell the seed of its worker."""
    return get_worker_info().seed


def test_seeds_of_workers():
    """Workers have other seeds in each epoch, below 2**63."""
    loader = DataLoader(Samples(8, own_seed), num_workers=2, worker="thread")
    seeds = [{int(batch) for batch in loader} for _ in range(2)]
    assert len(seeds[0]) == len(seeds[1]) == 2
    assert not seeds[0] & seeds[1]


def test_what_was_given_early_does_not_come_again():
    """Out of order, a state in the middle knows which batches were given beyond the first that was not."""
    loader = DataLoader(Gated(), num_workers=2, worker="thread", in_order=False)
    iterator = iter(loader)
    first = int(next(iterator))
    state = loader.state_dict()
    loader.dataset.gate.set()
    assert (first, state["batch"], state["done"]) == (1, 0, [1])
    other = DataLoader(range(10))
    other.load_state_dict(state)
    assert [int(batch) for batch in other] == [0, *range(2, 10)]


class Whole(Seeds):
    """Reads batches, and gives the seed of each."""

    def __getitems__(self, indices):
        return [sample_seed()] * len(indices)


def test_random_numbers_of_whole_batches():
    """A batch that a dataset reads at once has other random numbers than another, and than in another epoch."""
    loader = DataLoader(Whole(), batch_size=2)
    assert len({seed for _ in range(3) for batch in loader for seed in batch.tolist()}) == 6


def test_a_long_pass_keeps_little():
    """Where the order stood is kept for the batches that are under way alone."""
    loader = DataLoader(Numbers(), num_workers=2, worker="thread", shuffle=True)
    for _ in loader:
        assert len(loader._order._after) <= 7


@some_readers
def test_the_state_of_a_stream_at_rest(reader):
    """After the last batch a stream's state is that of the next epoch's beginning."""
    lucid.manual_seed(2)
    loader = DataLoader(Stream(), batch_size=4, **reader)
    list(loader)
    state, following = loader.state_dict(), lists(loader)
    other = DataLoader(Stream(), batch_size=4, **reader)
    other.load_state_dict(state)
    assert lists(other) == following


@pytest.mark.filterwarnings("ignore:DataLoader. the stream is read from its beginning")
def test_a_seed_set_in_the_loop_is_none_of_a_streams_pass():
    """The state is that of the pass that is under way, whatever seed was set since it began."""
    lucid.manual_seed(2)
    loader = DataLoader(Stream(), batch_size=4)
    iterator = begun(loader)
    lucid.manual_seed(99)
    state, rest = loader.state_dict(), lists(iterator)
    other = DataLoader(Stream(), batch_size=4)
    other.load_state_dict(state)
    assert lists(other) == rest


def test_the_state_at_rest_over_a_list():
    """After an epoch over a sampler that keeps no state, a loader that goes on has a whole epoch."""
    loader = DataLoader(Numbers(7), batch_size=2, sampler=list(range(7)))
    list(loader)
    other = DataLoader(Numbers(7), batch_size=2, sampler=list(range(7)))
    other.load_state_dict(loader.state_dict())
    assert len(list(other)) == 4


def test_numbers_after_a_hook_that_failed():
    """A loop that goes on after a hook has failed sees the next batch under its own number."""
    loader = DataLoader(range(8), batch_size=2)
    seen = []

    def hook(loader, index, batch):
        seen.append((index, int(batch[0])))
        if len(seen) == 2:
            raise ValueError

    loader.register_batch_hook(hook)
    iterator = begun(loader)
    with pytest.raises(ValueError):
        next(iterator)
    list(iterator)
    assert seen == [(0, 0), (1, 2), (2, 4), (3, 6)]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("data", [Numbers(7), Stream(8)], ids=["dataset", "stream"])
def test_the_state_at_rest_is_that_of_a_pass_that_begins(data, workers):
    """Before a pass and after its `iter` nothing was given: batch 0, of the first worker."""
    loader = DataLoader(data, batch_size=2, num_workers=workers, worker="thread")
    state = loader.state_dict()
    begun = iter(loader)
    assert loader.state_dict() == state
    assert (state["batch"], state.get("turn", 0)) == (0, 0)
    begun.close()
