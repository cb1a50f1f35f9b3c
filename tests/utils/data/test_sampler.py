"""Samplers: functions of seed, epoch and position."""

from __future__ import annotations

import collections
import copy
import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DeviceError, SettingError, ShapeError
from lucid.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tests.utils.data.datasets import Stream
from tests.utils.data.readers import begun

SAMPLERS = {
    "sequential": lambda: SequentialSampler(range(30)),
    "random": lambda: RandomSampler(range(30)),
    "random with replacement": lambda: RandomSampler(range(30), replacement=True),
    "random, more than there are": lambda: RandomSampler(range(7), num_samples=30),
    "subset": lambda: SubsetRandomSampler([3 * n for n in range(30)]),
    "weighted": lambda: WeightedRandomSampler(np.arange(40.0), 30),
    "weighted without replacement": lambda: WeightedRandomSampler(list(range(40)), 30, replacement=False),
    "batches": lambda: BatchSampler(RandomSampler(range(89)), 3, drop_last=False),
    "batches of a list": lambda: BatchSampler(list(range(90)), 3, drop_last=False),
    "distributed": lambda: DistributedSampler(range(60), num_replicas=2, rank=1),
}
samplers = pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)


def test_a_state_that_is_loaded_in_the_middle_of_a_pass():
    """It counts from then on, and not the pass that was begun before."""
    batches = BatchSampler([5, 6, 7, 8, 9], 2, drop_last=False)
    state = batches.state_dict()
    begun = iter(batches)
    assert next(begun) == [5, 6]
    middle = batches.state_dict()
    next(begun)
    for loaded, rest in ((middle, [[7, 8], [9]]), (state, [[5, 6], [7, 8], [9]])):
        batches.load_state_dict(loaded)
        assert batches.state_dict() == loaded
        assert [*batches] == rest


@samplers
@pytest.mark.parametrize("cut", [0, 1, 17, 30])
def test_state(make, cut):
    """What is left of an epoch, and the next, are those of a sampler that was not interrupted."""
    lucid.manual_seed(5)
    sampler = make()
    assert len(sampler) == 30
    iterator = iter(sampler)
    assert len(list(itertools.islice(iterator, cut))) == cut
    state = sampler.state_dict()
    rest, following = list(iterator), list(sampler)
    lucid.manual_seed(6)
    other = make()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert (list(other), list(other)) == (rest, following)


@samplers
def test_epochs(make):
    """Orders repeat with seed and epoch; each pass is the next epoch."""
    lucid.manual_seed(5)
    sampler = make()
    epochs = [list(sampler) for _ in range(3)]
    lucid.manual_seed(5)
    assert [list(sampler) for _ in range(3)] == epochs or isinstance(sampler, DistributedSampler)
    if hasattr(getattr(sampler, "sampler", sampler), "set_epoch"):
        sampler.set_epoch(1)
        assert [list(sampler), list(sampler)] == epochs[1:]


@pytest.mark.parametrize("name", ["random", "random with replacement", "subset", "weighted"])
def test_epochs_differ(name):
    """Each epoch has an order of its own, and so has each sampler of one seed."""
    lucid.manual_seed(5)
    one, other = SAMPLERS[name](), SAMPLERS[name]()
    assert len({tuple(order) for order in (list(one), list(one), list(other), list(other))}) == 4


def test_every_index_once():
    """An epoch of a random sampler is a permutation; several where more are asked for."""
    assert sorted(RandomSampler(range(30))) == list(range(30))
    drawn = list(RandomSampler(range(7), num_samples=30))
    assert all(sorted(drawn[k : k + 7]) == list(range(7)) for k in (0, 7, 14, 21))
    assert len(set(drawn[28:])) == 2
    assert sorted(SubsetRandomSampler([5, 9, 5])) == [5, 5, 9]
    assert all(type(index) is int for index in drawn)
    assert set(RandomSampler(range(3), replacement=True, num_samples=100)) == {0, 1, 2}
    assert list(RandomSampler([], num_samples=0)) == list(RandomSampler([])) == []


@pytest.mark.parametrize("replacement", [False, True])
def test_weights(replacement):
    """Indices come as often as their weights say, and those of weight 0 never; the first drawn too."""
    weights = [0.0, 1.0, 3.0, 0.0, 6.0, 0.0]
    lucid.manual_seed(3)
    if replacement:
        counts = collections.Counter(WeightedRandomSampler(weights, 20_000))
    else:
        counts = collections.Counter(
            next(iter(WeightedRandomSampler(weights, 3, replacement=False))) for _ in range(4000)
        )
    total = sum(counts.values())
    for index, weight in enumerate(weights):
        share = weight / 10
        # five standard deviations of the binomial distribution
        assert abs(counts[index] / total - share) <= 5 * (share * (1 - share) / total) ** 0.5


def test_weights_of_other_kinds():
    """Weights may be a tensor or an array."""
    for weights in (lucid.tensor([0.0, 1.0]), np.array([0, 1]), (0, 1)):
        assert set(WeightedRandomSampler(weights, 5)) == {1}


@pytest.mark.parametrize(
    ("make", "kind", "match"),
    [
        (lambda: WeightedRandomSampler([1.0], 0), SettingError, "at least 1"),
        (lambda: WeightedRandomSampler([-1.0, 2.0], 1), SettingError, "finite weights"),
        (lambda: WeightedRandomSampler([float("nan")], 1), SettingError, "finite weights"),
        (lambda: WeightedRandomSampler([float("inf")], 1), SettingError, "finite weights"),
        (lambda: WeightedRandomSampler([0.0], 1), SettingError, "or more weights above 0"),
        (lambda: WeightedRandomSampler([1.0, 0.0], 2, replacement=False), SettingError, "got 1"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ShapeError, "one row"),
        (lambda: WeightedRandomSampler("ab", 1), ArgumentError, "sequence of numbers"),
        (lambda: RandomSampler(range(3), num_samples=-1), SettingError, "at least 0"),
        (lambda: RandomSampler(range(3), replacement=2), ArgumentError, "a bool"),
        (lambda: list(RandomSampler([], num_samples=3)), SettingError, "not empty"),
        (lambda: list(RandomSampler(Stream())), ArgumentError, "__len__"),
        (lambda: len(SequentialSampler(Stream())), ArgumentError, "__len__"),
        (lambda: BatchSampler(range(3), 0, drop_last=False), SettingError, "at least 1"),
        (lambda: BatchSampler(range(3), True, drop_last=False), SettingError, "at least 1"),
        (lambda: BatchSampler(3, 2, drop_last=False), ArgumentError, "iterable"),
        (lambda: BatchSampler(range(3), 2, drop_last=2), ArgumentError, "a bool"),
        (lambda: RandomSampler(range(3), generator=lucid.Generator("cuda")), DeviceError, "of the CPU"),
        (lambda: DistributedSampler(range(3), 2), SettingError, "num_replicas and rank.* num_replicas=2, rank=None"),
        (lambda: DistributedSampler(range(3), rank=1), SettingError, "Invalid rank"),
        (lambda: DistributedSampler(range(3), 2, 1, shards=3), SettingError, "shards: expected a multiple of the 2"),
        (lambda: DistributedSampler(range(3), 2, 1, shards=0), SettingError, "shards: expected a multiple of the 2"),
        (lambda: DistributedSampler(range(3), 2, 2), SettingError, "Invalid rank"),
        (lambda: DistributedSampler(range(3), 0, 0), SettingError, "Invalid rank"),
        (lambda: iter(Sampler()), NotImplementedError, "__iter__"),
    ],
)
def test_samplers_that_cannot_be(make, kind, match):
    """What is out of range is refused by its name."""
    with pytest.raises(kind, match=match):
        make()


@pytest.mark.parametrize("drop", [False, True])
def test_batches(drop):
    """Lists of as many indices, the last one shorter or left out."""
    sampler = BatchSampler(range(8), 3, drop)
    assert list(sampler) == [[0, 1, 2], [3, 4, 5], [6, 7]][: 2 if drop else 3]
    assert len(sampler) == (2 if drop else 3)
    assert [list(batch) for batch in BatchSampler(SequentialSampler("abc"), 2, drop)] == [[0, 1], [2]][
        : 1 if drop else 2
    ]


@pytest.mark.parametrize("state", [None, {}, {"sampler": 3}, {"position": 1}, {"sampler": {"seed": 1}}])
def test_states_that_are_none(state):
    """What is no state is refused."""
    sampler = BatchSampler(RandomSampler(range(5)), 2, drop_last=False)
    with pytest.raises(ArgumentError, match="load_state_dict"):
        sampler.load_state_dict(state)


# ---- distributed ----


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("size", [0, 1, 7, 12])
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_all_ranks(ranks, size, drop, shuffle):
    """All ranks have as many; together they have every index, repeated or left out at the end alone."""
    parts = [DistributedSampler(range(size), ranks, rank, shuffle, seed=3, drop_last=drop) for rank in range(ranks)]
    orders = [list(part) for part in parts]
    assert {len(order) for order in orders} == {len(part) for part in parts}
    merged = [index for step in zip(*orders, strict=True) for index in step]
    assert len(merged) == parts[0].total_size == (size // ranks if drop else -(-size // ranks)) * ranks
    first = merged[:size]
    assert len(set(first)) == len(first)
    assert merged[len(first) :] == list(itertools.islice(itertools.cycle(first or [0]), len(merged) - len(first)))
    if not shuffle:
        assert first == list(range(size))[: len(first)]


def test_seed_and_epoch_of_ranks():
    """The order depends on seed and epoch; the default generator has no say."""
    orders = []
    for seed, epoch in ((0, 0), (0, 0), (1, 0), (0, 1)):
        lucid.manual_seed(len(orders))
        sampler = DistributedSampler(range(20), 2, 1, seed=seed)
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomSampler(range(50)),
        lambda: RandomSampler(range(50), replacement=True),
        lambda: SubsetRandomSampler(range(50)),
        lambda: WeightedRandomSampler([1.0] * 50, 50),
        lambda: BatchSampler(RandomSampler(range(50)), 7, drop_last=False),
    ],
)
def test_an_order_is_drawn_with_the_first_index(make):
    """As in PyTorch: what the generator is seeded with after `iter` and before `next` decides."""
    lucid.manual_seed(3)
    expected = list(make())
    lucid.manual_seed(4)
    other = list(make())
    assert other != expected
    lucid.manual_seed(4)
    state = lucid.get_rng_state()
    iterator = iter(make())
    assert lucid.equal(lucid.get_rng_state(), state)
    lucid.manual_seed(3)
    assert list(iterator) == expected


def test_an_epoch_that_is_set_after_iter_is_of_the_next_pass():
    """Ranks agree on the epoch of a pass when they make its iterator: their seed is not drawn."""
    sampler = DistributedSampler(range(40), num_replicas=1, rank=0)
    expected = list(sampler)
    sampler.set_epoch(0)
    iterator = iter(sampler)
    sampler.set_epoch(5)
    assert list(iterator) == expected
    fifth = DistributedSampler(range(40), num_replicas=1, rank=0)
    fifth.set_epoch(5)
    assert list(sampler) == list(fifth) != expected


def test_several_orders_differ():
    """More indices than there are come in several orders, each its own."""
    drawn = list(RandomSampler(range(20), num_samples=60))
    assert len({tuple(drawn[k : k + 20]) for k in (0, 20, 40)}) == 3


@pytest.mark.parametrize("size", [4095, 4096, 4097, 10_000])
def test_long_orders(size):
    """Each index comes once, also where an order is made Python's numbers piece by piece."""
    assert sorted(RandomSampler(range(size))) == list(range(size))


@samplers
def test_orders_that_are_drawn_in_pieces(make, monkeypatch):
    """The pieces of an order are together as long as it is said to be, whatever the length of one."""
    monkeypatch.setattr("lucid.utils.data.sampler._DRAWN", 7)
    lucid.manual_seed(5)
    sampler = make()
    assert [len(list(sampler)) for _ in range(2)] == [30, 30]


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1), (np.nextafter(1.0, 0.0), 3), (1.0, 3)])
def test_the_ends_of_the_weights(share, expected, monkeypatch):
    """Also the least and the greatest number that can be drawn give no index of weight 0."""
    monkeypatch.setattr("lucid.utils.data.sampler.uniform", lambda generator, shape, dtype: np.full(shape, share))
    assert list(WeightedRandomSampler([0.0, 0.1, 0.2, 0.7, 0.0], 2)) == [expected] * 2


@pytest.mark.parametrize("ranks", [3, 5])
@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("drop", [False, True])
def test_ranks_that_go_on(ranks, cut, drop):
    """What is left of an epoch is that of a run that was not interrupted, with what fills it up."""
    for rank in range(ranks):
        make = lambda rank=rank: DistributedSampler(range(13), ranks, rank, drop_last=drop)
        sampler = make()
        iterator = iter(sampler)
        list(itertools.islice(iterator, cut))
        other = make()
        other.load_state_dict(sampler.state_dict())
        assert list(other) == list(iterator)


def test_a_copy_is_in_no_pass():
    """A copy of a sampler of batches over a list begins at its beginning, and says so."""
    sampler = BatchSampler([3, 1, 2], 2, drop_last=False)
    iterator = iter(sampler)
    next(iterator)
    assert sampler.state_dict() == {"position": 2}
    assert copy.deepcopy(sampler).state_dict() == {"position": 0}


def test_any_number_of_indices():
    """They are drawn as they are asked for."""
    many = RandomSampler(range(7), replacement=True, num_samples=10**15)
    first = list(itertools.islice(many, 200_000))
    assert set(first) == set(range(7))
    assert first[: 1 << 16] != first[1 << 16 : 1 << 17]
    orders = list(itertools.islice(RandomSampler(range(7), num_samples=10**15), 21))
    assert sorted(orders[7:14]) == list(range(7))
    many.load_state_dict({**many.state_dict(), "epoch": 0, "position": 150_000})
    assert list(itertools.islice(many, 50_000)) == first[150_000:]


def test_weights_of_any_size():
    """Their sum may be beyond what a number can be, and the smallest number is above 0."""
    assert set(WeightedRandomSampler([1e308] * 3, 100)) == {0, 1, 2}
    for least in (1e-310, 5e-324):
        for _ in range(5):
            assert list(WeightedRandomSampler([0, 0, least, 1, 0], 2, replacement=False)) == [3, 2]
        firsts = {next(iter(WeightedRandomSampler([0, least, least, 0], 2, replacement=False))) for _ in range(30)}
        assert firsts == {1, 2}


ENTRIES = [(name, value) for name in ("seed", "epoch", "position") for value in (1.5, None, "x")]


@pytest.mark.parametrize(("name", "value"), [*ENTRIES, ("position", -1)])
def test_states_with_entries_that_are_none(name, value):
    """Each is an integer, the position at least 0; what is refused changes nothing."""
    sampler = RandomSampler(range(5))
    before = sampler.state_dict()
    with pytest.raises(ArgumentError, match=f"load_state_dict: {name}: expected an integer"):
        sampler.load_state_dict({**before, name: value})
    assert sampler.state_dict() == before


def test_states_of_orders_of_another_size():
    """What is left of an order that is not this one is nothing to go on with."""
    state = RandomSampler(range(100)).state_dict()
    with pytest.raises(ArgumentError, match="expected the state of an order of 30 indices, got one of 100"):
        RandomSampler(range(30)).load_state_dict(state)
    DistributedSampler(range(100), 3, 1).load_state_dict(DistributedSampler(range(100), 8, 0).state_dict())
    for make in (
        SequentialSampler, RandomSampler, lambda data: SubsetRandomSampler([*data]),
        lambda data: WeightedRandomSampler(np.ones(9), len(data)), lambda data: DistributedSampler(data, 3, 1),
    ):  # fmt: skip
        state = make(range(100)).state_dict()
        make(range(100)).load_state_dict(state)
        with pytest.raises(ArgumentError, match="expected the state of an order of 99 indices, got one of 100"):
            make(range(99)).load_state_dict(state)


class Half(SequentialSampler):
    """Every other index."""

    def __iter__(self):
        return itertools.islice(super().__iter__(), 0, None, 2)

    def __len__(self):
        return 5


def test_a_subclass_of_another_length():
    """Its length is not that of the order that it chooses from."""
    assert list(Half(range(10))) == [0, 2, 4, 6, 8]


def test_seeds_and_epochs_below_zero():
    """What can be used can be loaded."""
    sampler = DistributedSampler(range(9), 1, 0, seed=-3)
    sampler.set_epoch(-2)
    again = DistributedSampler(range(9), 1, 0, seed=-3)
    again.load_state_dict(sampler.state_dict())
    assert list(again) == list(sampler)


def test_ranks_as_tensors():
    """Whatever is an integer."""
    assert list(DistributedSampler(range(4), lucid.tensor(2), lucid.tensor(1), shuffle=False)) == [1, 3]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BatchSampler(range(5), lucid.tensor(0.5), False), "batch_size: expected an int"),
        (lambda: DataLoader(range(5), batch_size=lucid.tensor(1.7)), "batch_size: expected an int"),
        (lambda: DataLoader(range(5), collate_fn=5), "collate_fn: expected a callable or None, got int 5"),
        (lambda: WeightedRandomSampler([1, 2], np.array(0.5)), "num_samples: expected an int"),
        (lambda: WeightedRandomSampler([1, 2], True), "num_samples of at least 1, got True"),
        (lambda: RandomSampler(range(3), num_samples=lucid.tensor(0.5)), "num_samples: expected an int"),
        (lambda: SubsetRandomSampler([0, 1], generator=5), "generator: expected a Generator or None, got int 5"),
        (lambda: DistributedSampler(range(8), 2, 0, seed=0.5), "seed: expected an int"),
        (lambda: DistributedSampler(range(8), 2.0, 0), "num_replicas: expected an int"),
    ],
)
def test_what_is_no_whole_number_is_refused_at_once(make, words):
    """Sizes, seeds and functions are looked at where a sampler or loader is made, not at the first batch."""
    with pytest.raises((ArgumentError, SettingError), match=words):
        make()


def test_whole_numbers_of_numpy_are_as_good():
    """A seed and sizes of NumPy's integers give the order that Python's give."""
    two = np.int64(2)
    assert list(DistributedSampler(range(8), two, 0, seed=two)) == list(DistributedSampler(range(8), 2, 0, seed=2))
    assert list(BatchSampler(range(5), two, False)) == [[0, 1], [2, 3], [4]]


def test_a_position_belongs_to_the_epoch_that_it_was_taken_in():
    """Batches of a sampler that tells no position of its own begin there, unless another epoch is set meanwhile."""

    class Own(RandomSampler):
        def __iter__(self):
            yield from super().__iter__()

    def batches():
        return BatchSampler(Own(range(8), generator=lucid.Generator().manual_seed(0)), 2, False)

    whole = batches()
    whole.set_epoch(0)
    first, second = list(whole), list(whole)
    there = batches()
    there.set_epoch(0)
    there.load_state_dict({"position": 4})
    assert list(there) == first[2:]
    there.load_state_dict({"position": 4})
    there.set_epoch(1)
    assert list(there) == second


class Counted(Sampler):
    """Counts what it gave; its iterators tell something else, which it does not take."""

    class Indices:
        """One pass."""

        def __init__(self, sampler):
            self.sampler = sampler

        def __iter__(self):
            return self

        def __next__(self):
            if self.sampler.given == 12:
                raise StopIteration
            self.sampler.given += 1
            return self.sampler.given - 1

        def state_dict(self):
            return {"left": 12 - self.sampler.given}

    def __init__(self):
        self.given = 0

    def __len__(self):
        return 12

    def __iter__(self):
        return Counted.Indices(self)

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


@pytest.mark.parametrize("batched", [True, False])
def test_a_sampler_with_a_state_of_its_own_is_asked_for_it(batched):
    """And not its iterator, whatever that could tell: what is loaded is what the sampler gave."""

    def loader():
        return DataLoader(range(12), batch_size=3 if batched else None, sampler=Counted())

    whole, other = loader(), loader()
    iterator = begun(whole)
    other.load_state_dict(whole.state_dict())
    assert [lucid.tensor(batch).tolist() for batch in other] == [lucid.tensor(batch).tolist() for batch in iterator]


def test_a_process_without_a_group_is_rank_0_of_1():
    """What is not given says the process group; a process that is alone is one."""
    for sampler in (DistributedSampler(range(5), shuffle=False), DistributedSampler(range(5), 1, shuffle=False)):
        assert (sampler.num_replicas, sampler.rank, list(sampler)) == (1, 0, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("drop", [False, True])
def test_shards_are_the_same_on_any_number_of_processes(drop, rng):
    """Row i of an epoch is in shard i modulo their number, whatever processes deal them, also from a state on."""
    for size in rng.integers(1, 40, 20):
        epochs = {}
        for ranks in (1, 2, 4):
            samplers = [DistributedSampler(range(size), ranks, rank, drop_last=drop, shards=4) for rank in range(ranks)]
            parts = [list(sampler) for sampler in samplers]
            assert len({*map(len, parts)}) == 1
            rows = [index for row in zip(*parts, strict=True) for index in row]
            shards = [samplers[0].num_samples * ranks // 4] * 4
            assert [len(rows[shard::4]) for shard in range(4)] == shards
            state = {**samplers[0].state_dict(), "epoch": 1, "position": 4 if len(rows) > 4 else 0}
            rest = []
            for sampler in samplers:
                sampler.load_state_dict(state)
                rest.append(list(sampler))
            epochs[ranks] = rows, [index for row in zip(*rest, strict=True) for index in row]
        assert epochs[1] == epochs[2] == epochs[4]
