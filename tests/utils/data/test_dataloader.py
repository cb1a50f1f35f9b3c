"""DataLoader: the order of samples and their random numbers, going on in the middle of an epoch, and its settings."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import random
import threading
import time
import warnings

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, SettingError
from lucid.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    TensorDataset,
    get_worker_info,
)
from tests.pieces import in_threads
from tests.utils.data.datasets import Augmented, Numbers, Resumable, Samples, Slow, Stream
from tests.utils.data.readers import (
    READERS,
    begun,
    cut_off,
    goes_on,
    lists,
    name_of,
    passes,
    readers,
    shuffled,
    some_readers,
)

# ---- order ----


@pytest.fixture(scope="module")
def plain():
    """Return what a loader without workers gives in two epochs."""
    return {kind: passes(kind()) for kind in (Numbers, Augmented, Stream, Resumable)}


@readers
def test_the_same_batches_and_random_numbers(reader, plain):
    """Two epochs are bit by bit those that the loop reads itself, whoever reads; their orders differ."""
    assert passes(Numbers(), **reader) == plain[Numbers]
    first, second = ([n for batch in epoch for n in batch[0]] for epoch in plain[Numbers])
    assert sorted(first) == sorted(second) == list(range(77))
    assert first != second


@readers
def test_generators_of_python_and_numpy(reader, plain):
    """In processes the global generators are those of the sample, too; threads share them."""
    got = passes(Augmented(), **reader)
    if reader.get("worker") == "thread":
        got, expected = ([[batch[0] for batch in epoch] for epoch in epochs] for epochs in (got, plain[Augmented]))
        assert got == expected
    else:
        assert got == plain[Augmented]


def test_the_loops_own_generators_are_left_alone():
    """Reading in the loop draws nothing from the streams of the training, but the seed of the order once."""
    loader = DataLoader(Augmented(), batch_size=4)
    random.gauss(0, 1)
    np.random.standard_normal()  # noqa: NPY002  each keeps a second number
    before = _streams()
    list(loader)
    middle = _streams()
    list(loader)
    assert _streams() == middle
    assert middle[:2] == before[:2]


def _streams():
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    return random.getstate(), str(state) + str(state["state"]["key"].tolist()), lucid.get_rng_state().tolist()


@some_readers
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_share_one_order(reader, ranks):
    """Sample k of the order goes to rank k modulo their number, with the random numbers that it has for one rank."""
    alone = [row for batch in lists(_of_rank(1, 0, {})) for row in zip(*batch, strict=True)]
    parts = [
        [row for batch in lists(_of_rank(ranks, rank, reader)) for row in zip(*batch, strict=True)]
        for rank in range(ranks)
    ]
    merged = list(itertools.chain.from_iterable(zip(*parts, strict=True)))
    assert merged[: len(alone)] == alone
    assert merged[len(alone) :] == alone[: len(merged) - len(alone)]


def _of_rank(ranks, rank, reader, batch_size=4):
    sampler = DistributedSampler(Numbers(), num_replicas=ranks, rank=rank, seed=5)
    return DataLoader(Numbers(), batch_size=batch_size, sampler=sampler, **reader)


def test_seeds():
    """Orders repeat with the seed, of the default generator or of one's own; two loaders of one seed differ."""
    assert passes(Numbers()) == passes(Numbers())
    loader = DataLoader(Numbers(), batch_size=4, shuffle=True)
    orders = []
    for seed in (3, 3, 4):
        lucid.manual_seed(seed)
        orders.append([lists(loader), lists(loader)])
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    own = [lists(DataLoader(Numbers(), shuffle=True, generator=lucid.Generator().manual_seed(9))) for _ in range(2)]
    assert own[0] == own[1]
    lucid.manual_seed(0)
    assert lists(DataLoader(Numbers(), shuffle=True)) != lists(DataLoader(Numbers(), shuffle=True))


@some_readers
def test_out_of_order(reader):
    """Without `in_order` the same batches come, with the same random numbers."""
    got, expected = (passes(Numbers(), 1, in_order=order, **reader)[0] for order in (False, True))
    assert sorted(got) == sorted(expected)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_streams_are_read_in_turn(number):
    """Batch k is worker k's, modulo the number of workers that have something left; its samples are in order."""
    batches = [batch[0] for batch in passes(Stream(), 1, num_workers=number)[0]]
    mine = [list(range(worker, 77, max(number, 1))) for worker in range(max(number, 1))]
    expected = []
    while any(mine):
        for left in mine:
            if left:
                expected.append(left[:4])
                del left[:4]
    assert batches == expected


# ---- going on in the middle ----

CUTS = range(21)


@pytest.mark.parametrize(
    ("reader", "cut"),
    [
        pytest.param(reader, cut, id=f"{name_of(reader)}-{cut}")
        for reader in READERS
        # the loop counts what it was given, whoever reads; processes take long to start
        for cut in (CUTS[::5] if name_of(reader).endswith("process") and reader else CUTS)
    ],
)
def test_resuming(reader, cut):
    """The rest of the epoch, and the next, are those of a run that was not interrupted; the state is plain data."""

    def make():
        return DataLoader(Numbers(), batch_size=4, shuffle=True, **reader)

    given, rest = goes_on(make, cut, load=lambda state: pickle.loads(pickle.dumps(state)))
    assert len(given) + len(rest[0]) == 20


@pytest.mark.parametrize("cut", CUTS[::7])
@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (4, 1), (1, 4)])
def test_resuming_with_other_workers(before, after, cut):
    """How many workers there are, and of which kind, makes no difference to what is left."""
    made = [{"num_workers": number, "worker": kind} for number, kind in ((before, "process"), (after, "thread"))]
    one, other = (lambda s=s: DataLoader(Numbers(), batch_size=4, shuffle=True, **s) for s in made)
    goes_on(one, cut, other)


@pytest.mark.parametrize("cut", range(5))
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 4), (4, 2), (2, 1)])
def test_resuming_with_other_ranks(before, after, cut):
    """The ranks that go on have together, step by step, the samples that the ranks before would have had."""
    batch = 16 // before
    loaders = [_of_rank(before, rank, {}, batch) for rank in range(before)]
    iterators = [iter(loader) for loader in loaders]
    for iterator in iterators:
        assert len(list(itertools.islice(iterator, cut))) == min(cut, 5)
    states = [loader.state_dict() for loader in loaders]
    assert all(state == states[0] for state in states)
    rest = _steps(iterators)
    others = [_of_rank(after, rank, {"num_workers": 1}, 16 // after) for rank in range(after)]
    for other in others:
        other.load_state_dict(states[0])
    resumed = _steps(others)
    whole = 77 // 16 - cut
    assert resumed[:whole] == rest[:whole]
    # the last step is filled up for each number of ranks in its own way
    given = {
        n
        for step in _steps([itertools.islice(_of_rank(before, rank, {}, batch), cut) for rank in range(before)])
        for n in step
    }
    assert set(resumed[-1]) >= set(range(77)) - {n for step in rest[:whole] for n in step} - given


def _steps(ranks):
    """Return the samples that all ranks have together, step by step."""
    return [sorted(n for batch in step for n in batch[0]) for step in zip(*map(lists, ranks), strict=True)]


@some_readers
@pytest.mark.parametrize("cut", CUTS[::4])
def test_resuming_a_stream(reader, cut):
    """A stream that keeps its state goes on; the random numbers are those that it would have had."""

    def make():
        return DataLoader(Resumable(), batch_size=4, **reader)

    goes_on(make, cut)


@some_readers
def test_resuming_a_stream_without_state(reader):
    """It is read from its beginning, which is said once; a state of another number of workers is refused."""

    def make():
        return DataLoader(Stream(), batch_size=4, **reader)

    with pytest.warns(UserWarning, match="from its beginning"):
        goes_on(make, 5)
    with pytest.raises(SettingError, match=r"that \d workers read, and here are 7"):
        DataLoader(Stream(), num_workers=7).load_state_dict(make().state_dict())


@some_readers
def test_resuming_out_of_order(reader):
    """Batches that were given early do not come again, and none is missing."""

    def make():
        return DataLoader(Numbers(), batch_size=4, shuffle=True, in_order=False, **reader)

    given, rest, resumed = cut_off(make, 7, make)
    assert sorted(resumed[0]) == sorted(rest[0])
    assert len({tuple(batch[0]) for batch in given + resumed[0]}) == 20


@some_readers
@pytest.mark.parametrize("batch_sampler", [False, True])
def test_resuming_with_a_sampler_that_keeps_no_state(reader, batch_sampler):
    """Its indices are skipped."""
    order = np.random.default_rng(0).permutation(77).tolist()

    def make():
        if batch_sampler:
            return DataLoader(Numbers(), batch_sampler=[order[k : k + 4] for k in range(0, 77, 4)], **reader)
        return DataLoader(Numbers(), batch_size=4, sampler=order, **reader)

    goes_on(make, 6)


class Evens(RandomSampler):
    """Those of the indices of the class above that are even, of which it inherits the state."""

    def __iter__(self):
        return iter([index for index in super().__iter__() if index % 2 == 0])


class Late(DistributedSampler):
    """Begins the pass of the class above when the first index is asked for."""

    def __iter__(self):
        yield from super().__iter__()


class Apart(DistributedSampler):
    """Keeps what PyTorch's class keeps, without its constructor, and draws by itself."""

    def __init__(self, dataset):
        self.dataset, self.epoch = dataset, 0
        self.num_samples = self.total_size = len(dataset)

    def __iter__(self):
        return iter(np.random.default_rng(self.epoch).permutation(self.num_samples).tolist())


class Backwards(BatchSampler):
    """The batches of the class above from the last one on."""

    def __iter__(self):
        return iter(list(super().__iter__())[::-1])


class Grouped(BatchSampler):
    """Batches of indices of one parity, without the constructor of the class above."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        groups = [], []
        for index in self.sampler:
            groups[index % 2].append(index)
            if len(groups[index % 2]) == 3:
                yield groups[index % 2].copy()
                groups[index % 2].clear()

    def __len__(self):
        return 12


class Stateful:
    """Says where something is that keeps its order."""

    def state_dict(self):
        return {"perm": self.perm, "at": self.at}

    def load_state_dict(self, state):
        self.perm, self.at = list(state["perm"]), state["at"]


class Kept(Stateful, Sampler):
    """Inherits its state from a class of the user's."""

    def __init__(self):
        self.perm, self.at = [], 0

    def __iter__(self):
        if not self.perm:
            self.perm = lucid.randperm(77).tolist()
        while self.at < 77:
            self.at += 1
            yield self.perm[self.at - 1]
        self.perm, self.at = [], 0


class More(RandomSampler):
    """Adds something to the state, which comes back to it."""

    def state_dict(self):
        return {**super().state_dict(), "mine": 1}

    def load_state_dict(self, state):
        assert state["mine"] == 1
        super().load_state_dict(state)


class Twice(RandomSampler):
    """Two orders of the class above in one pass, each of which is an epoch of its own."""

    def __iter__(self):
        return itertools.chain(super().__iter__(), super().__iter__())


@pytest.mark.parametrize("kind", [RandomSampler, Evens])
def test_a_sampler_that_is_iterated_meanwhile(kind):
    """What the loop does with it is no part of the pass, nor of the state at its end."""
    loader, other = (DataLoader(Numbers(), batch_size=4, sampler=kind(Numbers())) for _ in range(2))
    for index, _ in enumerate(loader):
        if index == 1:
            list(loader.sampler)
    other.load_state_dict(loader.state_dict())
    assert lists(other) == lists(loader)


def test_passes_of_a_sampler_that_begins_late():
    """Each has the epoch that its loader says."""

    def make():
        return DataLoader(Numbers(), batch_size=4, sampler=Late(Numbers(), 1, 0))

    whole = make()
    epochs = [lists(whole) for _ in range(2)]
    loader = make()
    one, other = iter(loader), iter(loader)
    first, second = [next(one)], [next(other)]
    assert lists([*first, *one]) == epochs[0]
    assert lists([*second, *other]) == epochs[1]


def test_another_epoch_after_a_load():
    """It is read from its beginning."""

    def make():
        return DataLoader(Numbers(), batch_size=4, sampler=Listed(Numbers(), 1, 0))

    loader = make()
    for _ in loader:
        state = loader.state_dict()
    other = make()
    other.load_state_dict(state)
    other.sampler.set_epoch(1)
    assert other.state_dict()["batch"] == 0
    assert lists(other) == lists(loader)


class Listed(DistributedSampler):
    """Makes a list of the order of the class above."""

    def __iter__(self):
        return iter(list(super().__iter__()))


@pytest.mark.parametrize("worker", ["process", "thread"])
def test_workers_that_change_their_number(worker):
    """Those that stayed are as many as the loader wants, or end."""
    loader = DataLoader(Stream(), batch_size=4, num_workers=4, worker=worker, persistent_workers=True)
    list(loader)
    for number in (2, 3, 0):
        loader.num_workers = number
        got = [n for batch in loader for n in batch[0].tolist()]
        assert sorted(got) == list(range(77))
        assert len(loader.state_dict()["workers"]) == max(number, 1)
    assert loader._workers is None


@pytest.mark.parametrize("worker", ["process", "thread"])
def test_closing_while_another_thread_waits(worker):
    """The thread's loop ends, and the workers do not stay for the next pass, which is whole."""
    loader = DataLoader(Slow(0.05, size=12), num_workers=1, worker=worker, persistent_workers=True)
    iterator, got = iter(loader), []
    thread = threading.Thread(target=lambda: got.extend(iterator))
    thread.start()
    while not got:
        time.sleep(0.005)
    iterator.close()
    assert [int(batch) for batch in loader] == list(range(12))
    thread.join(20)
    assert not thread.is_alive()


class Drawn(Sampler):
    """Draws its order from the default generator."""

    def __iter__(self):
        yield from lucid.randperm(77).tolist()


SAMPLERS = {
    "evens": lambda: {"sampler": Evens(Numbers())},
    "evens in batches": lambda: {"batch_sampler": BatchSampler(Evens(Numbers()), 3, drop_last=False)},
    "late": lambda: {"sampler": Late(Numbers(), 2, 1)},
    "late in batches": lambda: {"batch_sampler": BatchSampler(Late(Numbers(), 1, 0), 4, drop_last=True)},
    "apart": lambda: {"sampler": Apart(Numbers())},
    "backwards": lambda: {"batch_sampler": Backwards(RandomSampler(Numbers()), 4, drop_last=False)},
    "grouped": lambda: {"batch_sampler": Grouped(RandomSampler(Numbers()))},
    "grouped, late": lambda: {"batch_sampler": Grouped(Late(Numbers(), 1, 0))},
    "more": lambda: {"batch_size": 4, "sampler": More(Numbers())},
    "twice": lambda: {"batch_size": 4, "sampler": Twice(Numbers())},
}
ENDS = {"more": [20], "twice": [39]}


@pytest.mark.parametrize(("name", "cut"), [(name, cut) for name in SAMPLERS for cut in [0, 3, 9, *ENDS.get(name, [])]])
def test_resuming_with_a_sampler_that_makes_an_order_of_another(name, cut):
    """The state that it inherits is that of the other order: its own indices are skipped, in the same epoch.

    Of one that adds to the state, or has two orders in a pass, too.
    """

    def make():
        return DataLoader(Numbers(), **SAMPLERS[name]())

    given, rest = goes_on(make, cut)
    assert len(given) == cut
    assert rest[0] != rest[1]


@pytest.mark.parametrize(("kind", "seed"), [(Drawn, 7), (Kept, 8)])
def test_resuming_with_a_sampler_that_draws(kind, seed):
    """The loader draws its seed also where a state gives another: what the sampler draws after it is the same.

    Where the sampler keeps what it drew, in a state that any class of the user's has, that counts, whatever the seed.
    """
    lucid.manual_seed(7)
    loader = DataLoader(Numbers(), batch_size=4, sampler=kind())
    iterator = begun(loader)
    state = copy.deepcopy(loader.state_dict())
    lucid.manual_seed(seed)
    again = DataLoader(Numbers(), batch_size=4, sampler=kind())
    again.load_state_dict(state)
    assert lists(again) == lists(iterator)


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_epoch_of_a_sampler_that_begins_late(wrapped):
    """`set_epoch` chooses the order of the next pass, and each pass is the next epoch, as of the class above."""

    def orders(kind):
        sampler = kind(Numbers(), 1, 0)
        given = {"batch_sampler": Grouped(sampler)} if wrapped else {"sampler": sampler}
        loader = DataLoader(Numbers(), **given)
        sampler.set_epoch(3)
        first = lists(loader), sampler.epoch
        next(iter(loader))
        return first, lists(loader), sampler.epoch

    assert orders(Late) == orders(DistributedSampler)


def test_setting_the_epoch_of_a_sampler():
    """PyTorch's is an attribute: setting it is `set_epoch`."""
    one, other = (DistributedSampler(Numbers(), 1, 0) for _ in range(2))
    one.epoch = 4
    other.set_epoch(4)
    assert list(one) == list(other)
    assert (one.num_samples, one.total_size) == (77, 77)


class Endless:
    """Repeats a batch sampler, so that workers stay."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class Reused(DataLoader):
    """Has one iterator for all epochs, in the manner of well-known training scripts."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._DataLoader__initialized = False
        self.batch_sampler = Endless(self.batch_sampler)
        self._DataLoader__initialized = True
        self.iterator = super()._get_iterator()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)


def test_a_subclass_that_replaces_its_sampler():
    """The mark that PyTorch has on what may no longer be set can be taken off."""
    loader = shuffled(2)
    expected = [[batch[0] for batch in lists(loader)] for _ in range(2)]
    lucid.manual_seed(2)
    reused = Reused(Numbers(), batch_size=4, shuffle=True)
    assert sorted(n for batch in lists(reused) for n in batch[0]) == list(range(77))
    assert [len(epoch) for epoch in expected] == [len(lists(reused)), 20]
    with pytest.raises(SettingError, match="batch_sampler attribute should not be set"):
        reused.batch_sampler = []


class Own(IterableDataset):
    """Is its own iterator, and begins anew when it is asked for one."""

    def __iter__(self):
        self.given = 0
        return self

    def __next__(self):
        self.given += 1
        if self.given > 5:
            raise StopIteration
        return self.given


class Bare:
    """An iterator that cannot be asked for one."""

    def __init__(self):
        self.own = iter(Own())

    def __next__(self):
        return next(self.own)


class OfBare(IterableDataset):
    """Gives such an iterator."""

    def __iter__(self):
        return Bare()


@some_readers
@pytest.mark.parametrize("kind", [Own, OfBare])
def test_a_stream_that_is_its_own_iterator(reader, kind):
    """It is asked for an iterator once in a pass."""
    loader = DataLoader(kind(), batch_size=2, **reader)
    workers = reader.get("num_workers", 1)
    expected = [[1, 2]] * workers + [[3, 4]] * workers + [[5]] * workers
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == expected


def test_a_state_that_cannot_be_loaded_changes_nothing():
    """The sampler refuses its part: the pass that was to come is still the next one."""
    loader = shuffled(2)
    list(loader)
    state = loader.state_dict()
    with pytest.raises(ArgumentError):
        loader.load_state_dict({**state, "passes": {"seed": 1, "epoch": 9, "position": 0}, "order": {"sampler": {}}})
    assert loader.state_dict() == state
    rest = lists(loader)
    again = shuffled(2)
    list(again)
    assert lists(again) == rest


WRONG = [("batch", None), ("batch", -1), ("done", 5), ("done", [1.5]), ("passes", None), ("passes", {"seed": 1})]


@pytest.mark.parametrize(("name", "value"), WRONG)
@pytest.mark.parametrize("sampler", [None, [3, 1, 0, 2]])
def test_states_with_entries_that_are_none(name, value, sampler):
    """They are refused when they are loaded, and change nothing."""
    loader = DataLoader(range(4), 2, sampler=sampler)
    next(iter(loader))
    before = loader.state_dict()
    with pytest.raises(ArgumentError, match="load_state_dict"):
        loader.load_state_dict({**before, name: value})
    assert loader.state_dict() == before


def test_setting_the_number_of_workers():
    """Workers that are set later are of the kind that the loader has."""
    loader = DataLoader(Samples(5, told), batch_size=5)
    loader.num_workers = 2
    (batch,) = loader
    assert os.getpid() not in batch[1].tolist()
    with pytest.raises(SettingError, match="worker attribute"):
        loader.worker = "thread"


def told(index):
    """Say which worker and which process read a sample."""
    return get_worker_info().id, os.getpid()


@some_readers
def test_threads_that_share_a_pass(reader):
    """Each batch comes once, to one of them."""
    iterator, got = iter(DataLoader(Numbers(), batch_size=2, **reader)), []
    in_threads(*[lambda: got.extend(batch[0].tolist() for batch in iterator)] * 4)
    assert sorted(got) == [batch[0].tolist() for batch in DataLoader(Numbers(), batch_size=2)]


def test_a_hook_that_stops():
    """It does not end the loop unseen."""
    loader = DataLoader(range(4))
    loader.register_batch_hook(lambda *_: next(iter(())))
    with pytest.raises(RuntimeError, match="a batch hook raised StopIteration"):
        list(loader)


def test_indices_that_are_tensors():
    """Whatever the dataset takes is an index."""
    loader = DataLoader(np.arange(5), None, sampler=[lucid.tensor([0, 1], device="cpu"), np.array([4])])
    assert [batch.tolist() for batch in loader] == [[0, 1], [4]]


def test_a_pass_that_was_left():
    """The next pass is the next epoch, also after a `break`; setting the epoch goes back."""
    loader = shuffled(2)
    whole = [lists(loader) for _ in range(3)]
    lucid.manual_seed(2)
    next(iter(loader))
    assert lists(loader) == whole[1]
    loader.sampler.set_epoch(0)
    assert lists(loader) == whole[0]
    assert lists(loader) == whole[1]
    loader.sampler.set_epoch(2)
    assert lists(loader) == whole[2]


@some_readers
def test_passes_at_the_same_time(reader):
    """Passes over one loader do not disturb each other, nor the states that are taken in the latest."""
    settings = {**reader, "persistent_workers": True} if reader else {}
    loader = shuffled(2)
    whole = [lists(loader) for _ in range(4)]
    loader = shuffled(2, **settings)
    outer = iter(loader)
    given = [next(outer)]
    for epoch in (1, 2):
        inner = iter(loader)
        assert lists(inner) == whole[epoch]
        given.append(next(outer))
    assert lists([*given, *outer]) == whole[0]
    one, other = iter(loader), iter(loader)
    next(one)
    next(other)
    state = loader.state_dict()
    assert len(lists(one)) == 19
    again = shuffled(5)
    again.load_state_dict(state)
    assert lists(again) == lists(other)


@pytest.mark.parametrize("settings", [{}, {"num_workers": 1, "persistent_workers": True}])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))])
def test_copies(settings, duplicate):
    """A copy goes on with the next epoch as the loader does, also one that was made in the middle of a pass."""
    loader = shuffled(2, generator=lucid.Generator().manual_seed(3), **settings)
    list(loader)
    iterator = begun(loader)
    copied = duplicate(loader)
    assert len(list(iterator)) == 19
    assert lists(copied) == lists(loader)


def test_samplers_without_a_length():
    """Whatever can be iterated is a sampler, also a generator and an empty list."""
    assert [batch[0].tolist() for batch in DataLoader(Numbers(), sampler=(n for n in [2, 0]))] == [[2], [0]]
    assert list(DataLoader(Numbers(), batch_sampler=[])) == []
    with pytest.raises(TypeError):
        len(DataLoader(Numbers(), sampler=(n for n in [2])))


class Foreign:
    """A stream of another library."""

    def __iter__(self):
        return iter([1])


def test_datasets_without_a_length():
    """What has no indices to choose from is refused, and the error says what to do."""
    with pytest.raises(ArgumentError, match="IterableDataset, or put its batches on the device by prefetch"):
        DataLoader(Foreign())


def test_setting_the_epoch_of_a_loaded_state():
    """A training loop that sets the epoch goes on in the middle of that epoch, and begins another one anew."""
    loader = shuffled(2)
    list(loader)
    iterator = begun(loader)
    state, rest = loader.state_dict(), lists(iterator)
    other = DataLoader(Numbers(), batch_size=4, shuffle=True)
    other.load_state_dict(state)
    other.sampler.set_epoch(1)
    assert lists(other) == rest
    other.load_state_dict(state)
    other.sampler.set_epoch(0)
    numbers = []
    other.register_batch_hook(lambda loader, index, batch: numbers.append(index))
    assert len(lists(other)) == 20
    assert numbers == list(range(20))


def test_states_at_rest():
    """Before the first batch a state is that of the beginning, and after the last that of the next epoch."""
    loader = shuffled(2)
    beginning = loader.state_dict()
    first = lists(loader)
    state = loader.state_dict()
    second = lists(loader)
    for at, expected in ((beginning, first), (state, second)):
        loader.load_state_dict(at)
        assert loader.state_dict() == at
        assert lists(loader) == expected


def test_a_state_at_the_last_batch():
    """Taken in the loop's last body it has an empty rest; then comes the next epoch."""
    lucid.manual_seed(2)
    loader = DataLoader(Numbers(), batch_size=40, shuffle=True)
    for _ in loader:
        state = loader.state_dict()
    following = lists(loader)
    other = DataLoader(Numbers(), batch_size=40, shuffle=True)
    other.load_state_dict(state)
    assert lists(other) == []
    assert lists(other) == following


def test_a_seed_given_after_a_state():
    """A state that was loaded wins over a seed that is set afterwards."""
    loader = shuffled(2)
    iterator = begun(loader)
    state, rest = loader.state_dict(), lists(iterator)
    other = DataLoader(Numbers(), batch_size=4, shuffle=True)
    other.load_state_dict(state)
    lucid.manual_seed(1234)
    assert lists(other) == rest


@pytest.mark.parametrize(
    "state", [None, {}, {"batch": 1}, 3, {"batch": 0, "passes": {}, "done": [], "order": {"x": 1}}]
)
def test_states_that_are_none(state):
    """What is no state is refused, and changes nothing."""
    loader = shuffled(2)
    with pytest.raises(ArgumentError, match="load_state_dict"):
        loader.load_state_dict(state)
    lucid.manual_seed(2)
    assert lists(loader) == lists(shuffled(2))


# ---- settings ----


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"num_workers": -1}, "non-negative"),
        ({"batch_size": 0}, "batch_size of at least 1"),
        ({"batch_size": -3}, "batch_size of at least 1"),
        ({"batch_size": None, "drop_last": True}, "exclusive with drop_last"),
        ({"shuffle": True, "sampler": [0]}, "exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "exclusive with batch_size"),
        ({"batch_sampler": [[0]], "drop_last": True}, "exclusive with batch_size"),
        ({"batch_sampler": [[0]], "sampler": [0]}, "exclusive with batch_size"),
        ({"timeout": -1}, "non-negative"),
        ({"timeout": float("nan")}, "non-negative"),
        ({"prefetch_factor": 2}, "needs num_workers"),
        ({"prefetch_factor": 0, "num_workers": 1}, "at least 1"),
        ({"persistent_workers": True}, "needs num_workers"),
        ({"num_workers": 1, "worker": "fiber"}, "'process' or 'thread'"),
        ({"num_workers": 1, "multiprocessing_context": "thread"}, "valid start method"),
        ({"multiprocessing_context": "spawn"}, "needs num_workers"),
        ({"num_workers": 1, "worker": "thread", "multiprocessing_context": "spawn"}, "worker='process'"),
    ],
)
def test_settings_that_cannot_be(settings, match):
    """A setting out of its range, or beside one that it excludes, is refused by its name."""
    with pytest.raises(SettingError, match=match):
        DataLoader(Numbers(), **settings)


@pytest.mark.parametrize("name", ["shuffle", "sampler", "batch_sampler"])
def test_a_stream_has_its_order(name):
    """A stream takes no other order."""
    with pytest.raises(SettingError, match=f"unspecified {name}"):
        DataLoader(Stream(), **{name: True if name == "shuffle" else [[0]]})


@pytest.mark.parametrize("name", ["sampler", "batch_sampler"])
def test_samplers_that_are_none(name):
    """A sampler can be iterated."""
    with pytest.raises(ArgumentError, match=f"{name}: expected an iterable"):
        DataLoader(Numbers(), **{name: 3})


def test_what_is_settled():
    """What decides the order is not changed afterwards."""
    loader = DataLoader(Numbers())
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(SettingError, match=f"{name} attribute should not be set"):
            setattr(loader, name, getattr(loader, name))
    loader.timeout = 3


@pytest.mark.parametrize(
    ("size", "batch", "drop"), [(10, 3, False), (10, 3, True), (9, 3, True), (0, 3, False), (2, 5, True)]
)
@some_readers
def test_lengths(size, batch, drop, reader):
    """`len` is the number of batches."""
    loader = DataLoader(Numbers(size), batch_size=batch, drop_last=drop, **reader)
    assert len(loader) == len(list(loader)) == (size // batch if drop else -(-size // batch))
    assert len(iter(loader)) == len(loader)
    with pytest.raises(TypeError):
        len(DataLoader(Stream(size)))


@some_readers
def test_single_samples(reader):
    """Without batches samples come one by one, with tensors in place of arrays."""
    samples = list(DataLoader(Numbers(5), batch_size=None, **reader))
    assert [sample[0] for sample in samples] == list(range(5))
    assert [sample[0] for sample in DataLoader(Stream(5), batch_size=None)] == list(range(5))


def test_pytorchs_attributes():
    """The samplers that were made are there to be asked."""
    loader = DataLoader(Numbers(), 8, True)
    assert isinstance(loader.sampler, RandomSampler)
    assert isinstance(loader.batch_sampler, BatchSampler)
    assert isinstance(DataLoader(Numbers()).sampler, SequentialSampler)
    assert (loader.batch_size, loader.num_workers, loader.prefetch_factor, loader.timeout) == (8, 0, None, 0)
    assert DataLoader(Numbers(), num_workers=2).prefetch_factor == 2
    own = DataLoader(Numbers(), batch_sampler=[[1, 2], [3]])
    assert own.batch_size is None
    assert [batch[0].tolist() for batch in own] == [[1, 2], [3]]


def test_a_dataset_of_tensors(rng):
    """One indexing operation makes the batch, on the device where the tensors are."""
    x, y = lucid.tensor(rng.standard_normal((10, 3))), lucid.arange(10)
    batches = list(DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True))
    assert all(part.device == x.device for batch in batches for part in batch)
    rows = np.concatenate([batch[1].cpu().numpy() for batch in batches])
    np.testing.assert_array_equal(np.concatenate([batch[0].cpu().numpy() for batch in batches]), x.cpu().numpy()[rows])


# ---- hooks ----


@some_readers
def test_batch_hooks(reader):
    """A hook sees loader, number and batch in the loop, and may replace the batch; what it raises says so."""
    loader = DataLoader(range(6), batch_size=2, **reader)
    seen = []
    handle = loader.register_batch_hook(lambda *args: seen.append(args))
    loader.register_batch_hook(lambda loader, index, batch: batch + 10 * index)
    assert [batch.tolist() for batch in loader] == [[0, 1], [12, 13], [24, 25]]
    assert [(one is loader, index, batch.tolist()) for one, index, batch in seen] == [
        (True, 0, [0, 1]), (True, 1, [2, 3]), (True, 2, [4, 5]),
    ]  # fmt: skip
    handle.remove()
    assert len(list(loader)) == len(seen)
    with loader.register_batch_hook(lambda *_: 1 / 0), pytest.raises(ZeroDivisionError) as caught:
        next(iter(loader))
    assert "batch hook number 1 of DataLoader" in caught.value.__notes__[0]


def test_a_batch_whose_hook_fails_is_not_lost():
    """The state stands before it."""
    loader = DataLoader(range(6), batch_size=2)
    loader.register_batch_hook(lambda loader, index, batch: 1 / 0 if index else None)
    with pytest.raises(ZeroDivisionError):
        list(loader)
    other = DataLoader(range(6), batch_size=2)
    other.load_state_dict(loader.state_dict())
    assert [batch.tolist() for batch in other] == [[2, 3], [4, 5]]


# ---- lengths of streams ----


class Repeated(IterableDataset):
    """A stream of seven numbers that says another length, and is not divided among workers unless asked to be."""

    def __init__(self, length, divided=False):
        self.length = length
        self.divided = divided

    def __len__(self):
        if self.length is None:
            raise TypeError("no length")
        return self.length

    def __iter__(self):
        worker = get_worker_info()
        step, first = (worker.num_workers, worker.id) if self.divided and worker is not None else (1, 0)
        return iter(range(first, 7, step))


@pytest.mark.parametrize("batch", [1, 2, None])
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_stream_that_gives_more_than_its_length_is_said(workers, batch, recwarn):
    """Once in a pass: with workers that repeat it, or a length that is too small; not where each gives its part."""
    settings = {"num_workers": workers, "worker": "thread", "batch_size": batch}
    for length in (7, 8, None):
        assert len(list(DataLoader(Repeated(length, divided=True), **settings))) >= 7 // (batch or 1)
    assert not recwarn.list
    if workers < 2:
        list(DataLoader(Repeated(7), **settings))
        assert not recwarn.list
    stream = Repeated(7) if workers > 1 else Repeated(5)
    loader = DataLoader(stream, **settings)
    warnings.simplefilter("always")
    for _ in range(2):
        list(loader)
        said = str(recwarn.pop(UserWarning).message)
        assert not recwarn.list
        assert f"the stream has a length of {stream.length}, and has given" in said
