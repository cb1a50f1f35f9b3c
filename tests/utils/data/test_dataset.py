"""Datasets: samples by index, what is put together of others, and who is asked for whole batches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.utils.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)
from tests.utils.data.datasets import Numbers, OfSize, Stream


@pytest.fixture
def tensors(rng):
    """Rows and their numbers."""
    return TensorDataset(lucid.tensor(rng.standard_normal((9, 2, 3))), lucid.arange(9))


def test_tensors(tensors):
    """A sample is a tuple of rows; a slice of a dataset is one of its tensors."""
    assert len(tensors) == 9
    rows, numbers = tensors.tensors
    assert lucid.equal(tensors[-1][0], rows[8])
    assert tensors[3][1].item() == 3
    assert lucid.equal(tensors[2:4][1], numbers[2:4])


@pytest.mark.parametrize("indices", [[0], [8, 0, 8], [-1, -9, 3], []])
def test_a_batch_of_tensors(tensors, indices):
    """It is what `default_collate` makes of the samples, in one tuple."""
    batch = tensors.__getitems__(indices)
    assert isinstance(batch, tuple)
    for part, whole in zip(batch, tensors.tensors, strict=True):
        assert part.device == whole.device
        np.testing.assert_array_equal(part.cpu().numpy(), whole.cpu().numpy()[np.array(indices, int)])


@pytest.mark.parametrize("index", [9, -10])
def test_a_batch_out_of_range(tensors, index):
    """An index outside is refused, as of one sample."""
    with pytest.raises(IndexOutOfRangeError, match=r"\[-9, 8\]"):
        tensors.__getitems__([0, index])


def test_tensors_that_do_not_fit():
    """Sizes in dimension 0 are equal, and there is one."""
    for given in ([lucid.zeros(2), lucid.zeros(3)], [], [lucid.zeros(())]):
        with pytest.raises(SettingError, match="Size mismatch"):
            TensorDataset(*given)
    with pytest.raises(ArgumentError, match="expected a Tensor"):
        TensorDataset(np.zeros(3))


class Doubled(TensorDataset):
    """Reads single samples another way than its base."""

    def __getitem__(self, index):
        return tuple(part * 2 for part in super().__getitem__(index))


def test_a_subclass_that_reads_samples_its_own_way(tensors):
    """Its samples are those of the batch, also below a Subset."""
    dataset = Doubled(*tensors.tensors)
    for loader in (DataLoader(dataset, 9), DataLoader(Subset(dataset, range(9)), 9)):
        assert next(iter(loader))[1].tolist() == list(range(0, 18, 2))


class Together(OfSize):
    """Reads batches, as a list of samples or whole."""

    size = 10

    def __init__(self, whole):
        self.whole = whole
        self.asked = []

    def __getitem__(self, index):
        self.asked.append(index)
        return np.float32(index)

    def __getitems__(self, indices):
        self.asked.append(indices)
        return np.array(indices) * 10 if self.whole else [np.float32(index) for index in indices]


@pytest.mark.parametrize("make", [lambda one: one, lambda one: Subset(one, range(10))])
def test_asked_once_for_a_batch(make):
    """A dataset with `__getitems__` is asked once, and gives samples, or the batch as it is."""
    for whole in (False, True):
        dataset = Together(whole)
        (batch,) = DataLoader(make(dataset), batch_size=10)
        assert dataset.asked == [list(range(10))]
        assert batch.tolist() == [10 * n if whole else n for n in range(10)]
        assert type(batch) is (np.ndarray if whole else lucid.Tensor)


def test_a_whole_batch_and_ones_own_collate_fn():
    """A function that takes samples gets samples."""
    dataset = Together(whole=True)
    batches = list(DataLoader(dataset, batch_size=5, collate_fn=lambda samples: sum(samples).item()))
    assert batches == [10, 35]
    assert dataset.asked == [[0, 1, 2, 3, 4], *range(10)]


def test_too_few_samples():
    """As many samples come as were asked for."""

    class Wrong(Together):
        def __getitems__(self, indices):
            return [1]

    with pytest.raises(ArgumentError, match="expected 10 samples"):
        list(DataLoader(Wrong(whole=False), batch_size=10))


def test_subset():
    """Sample i is that at the i-th index; a list of places is one index of the dataset."""
    subset = Subset(Numbers(10), [7, 1, 7])
    assert len(subset) == 3
    assert [subset[k][0] for k in range(3)] == [7, 1, 7]
    assert Subset(np.arange(10) * 10, [5, 6, 7])[[0, 2]].tolist() == [50, 70]


def test_concatenation():
    """One dataset comes after the other, also counted from the end."""
    dataset = Subset(range(3), [0, 1, 2]) + Subset(range(10, 12), [0, 1])
    assert isinstance(dataset, ConcatDataset)
    assert [dataset[k] for k in range(-5, 5)] == [0, 1, 2, 10, 11] * 2
    assert dataset.cumulative_sizes == [3, 5]
    for index in (5, -6):
        with pytest.raises(IndexOutOfRangeError):
            dataset[index]
    with pytest.raises(SettingError, match="empty"):
        ConcatDataset([])
    with pytest.raises(SettingError, match="ChainDataset"):
        ConcatDataset([Stream()])


def test_chain():
    """One stream comes after the other."""
    chain = Stream(2) + Stream(3)
    assert isinstance(chain, ChainDataset)
    assert [sample[0] for sample in chain] == [0, 1, 0, 1, 2]
    with pytest.raises(ArgumentError, match="expected IterableDatasets"):
        list(ChainDataset([Numbers()]))
    with pytest.raises(TypeError):
        len(chain)


def test_stack():
    """Samples of several datasets at one index, in a tuple or a dict; each reads a batch as it can."""
    many = Together(whole=False)
    pair, named = StackDataset(many, "abcdefghij"), StackDataset(x=many, y=range(10))
    assert pair[1] == (1, "b")
    assert named[2] == {"x": 2, "y": 2}
    many.asked.clear()
    assert pair.__getitems__([3, 4]) == [(3, "d"), (4, "e")]
    assert named.__getitems__([5]) == [{"x": 5, "y": 5}]
    assert many.asked == [[3, 4], [5]]
    assert len(pair) == len(named) == 10
    for given, names in (((), {}), ((many,), {"x": many})):
        with pytest.raises(SettingError, match="either all by position"):
            StackDataset(*given, **names)
    with pytest.raises(ShapeError, match="Size mismatch"):
        StackDataset(many, "abc")


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([3, 7], [3, 7]),
        ([0.3, 0.7], [3, 7]),
        ([0.34, 0.33, 0.33], [4, 3, 3]),
        ([0.27, 0.28, 0.45], [3, 3, 4]),
        ([1], [10]),
        ([0.1] * 10, [1] * 10),
        ([0, 10], [0, 10]),
    ],
)
def test_random_split(lengths, expected):
    """The parts have their lengths, are disjoint, and repeat with the seed."""
    split = [random_split(Numbers(10), lengths, lucid.Generator().manual_seed(4)) for _ in range(2)]
    assert [len(part) for part in split[0]] == expected
    assert sorted(itertools.chain.from_iterable(part.indices for part in split[0])) == list(range(10))
    assert [part.indices for part in split[0]] == [part.indices for part in split[1]]
    lucid.manual_seed(1)
    assert [part.indices for part in random_split(Numbers(10), lengths)] != [part.indices for part in split[0]]


@pytest.mark.parametrize("lengths", [[3, 8], [0.5, 0.4], [-1, 11], [2.5, 7.5], [float("nan"), 1]])
def test_splits_that_cannot_be(lengths):
    """Lengths are whole and not negative, and have the sum of the dataset's, or 1."""
    with pytest.raises(SettingError, match="random_split"):
        random_split(Numbers(10), lengths)
    with pytest.raises(ArgumentError, match="__len__"):
        random_split(Stream(), [1.0])


def test_what_a_subclass_leaves_out():
    """A dataset without its method says so."""
    with pytest.raises(NotImplementedError, match="__getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())


def test_gradients_go_to_the_dataset():
    """A batch of tensors that require grad is in their graph."""
    x = lucid.ones(4, 2, requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(x), batch_size=2)))
    batch.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    (batch,) = next(iter(DataLoader(TensorDataset(x), batch_size=2, collate_fn=default_collate)))
    assert batch.requires_grad


@pytest.mark.parametrize("indices", [[2.7, 0.2], ["1", "0"], [float("nan"), 0]])
def test_a_batch_of_what_is_no_index(tensors, indices):
    """It is refused, as a single one is."""
    with pytest.raises(ArgumentError, match="TensorDataset: expected integers as indices"):
        tensors.__getitems__(indices)


def test_lengths_of_any_kind():
    """Whatever gives numbers."""
    assert [len(part) for part in random_split(range(5), range(2, 4))] == [2, 3]
