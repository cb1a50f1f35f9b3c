"""Datasets: samples by index, streams of samples, and combinations of other datasets."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from lucid.arguments import checked, unfit
from lucid.autograd.base import TensorBase, wrap
from lucid.base.arrays import to_device
from lucid.base.device import device_of
from lucid.base.random.draws import default_generator_for, permutation
from lucid.errors import ArgumentError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.ops.index.index_select import index_select

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "random_split",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: a subclass defines ``__getitem__(index)`` and, for most samplers, ``__len__()``.

    One that reads many samples faster together defines ``__getitems__(indices)``, which a `DataLoader` then calls once
    for a batch. It returns a list of samples, or anything else: the whole batch, as `default_collate` would make it.
    A subclass that overrides ``__getitem__`` below a class with ``__getitems__`` is read sample by sample.

    Examples
    --------
    >>> from lucid.utils.data import DataLoader, Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 5
    ...
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> list(DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4]), tensor([ 9, 16])]
    """

    def __getitem__(self, index: Any) -> T_co:
        """Return the sample at `index`."""
        raise NotImplementedError(f"{type(self).__name__}: a Dataset defines __getitem__(index), and this one does not")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples: a subclass defines ``__iter__()``, and ``__len__()`` if it knows how many there are.

    Each worker of a `DataLoader` iterates a copy of its own: ``__iter__`` asks `get_worker_info` which part is its. It
    may have ``state_dict()`` and ``load_state_dict(state)``, or its iterator may, from which a loader goes on in the
    middle of an epoch; without them it is read from the beginning, up to there.

    Examples
    --------
    >>> from lucid.utils.data import DataLoader, IterableDataset, get_worker_info
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         info = get_worker_info()
    ...         return iter(range(4) if info is None else range(info.id, 4, info.num_workers))
    >>> list(DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2, 3])]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(
            f"{type(self).__name__}: an IterableDataset defines __iter__(), and this one does not"
        )

    def __add__(self, other: Dataset[Any]) -> ChainDataset[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ChainDataset([self, other])


def size_of(dataset: Any, name: str) -> int:
    """Return how many samples a dataset has; an error of the caller `name` if it does not say."""
    kind = cast("type[Any]", type(dataset))
    if issubclass(kind, IterableDataset) or not hasattr(kind, "__len__"):
        raise ArgumentError(f"{name}: expected a dataset with __len__, got {kind.__name__}")
    return len(dataset)


def length_of(stream: Any) -> int | None:
    """Return how many samples a stream, or batches a loader, says that it has; None if it says nothing."""
    try:
        return len(stream)
    except (TypeError, NotImplementedError, AttributeError):
        return None


def batch_reader(dataset: Any) -> Callable[[list[Any]], Any] | None:
    """Return the ``__getitems__`` of a dataset; None if it has none, or a subclass reads single samples another way."""
    for kind in type(dataset).__mro__:
        if "__getitems__" in vars(kind):
            return dataset.__getitems__
        if "__getitem__" in vars(kind):
            return None
    return getattr(dataset, "__getitems__", None)


def samples_of(dataset: Any, indices: list[Any]) -> list[Any]:
    """Return the samples at `indices`, read together if the dataset returns them so as a list."""
    read = batch_reader(dataset)
    samples = None if read is None else read(indices)
    return cast("list[Any]", samples) if isinstance(samples, list) else [dataset[index] for index in indices]


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Tuples of the rows of tensors: sample i is ``(tensors[0][i], tensors[1][i], ...)``.

    A batch is one indexing operation for each tensor, on the device where it is.

    Parameters
    ----------
    *tensors : Tensor
        With equal sizes in dimension 0.

    Raises
    ------
    SettingError
        If their sizes in dimension 0 differ, or there is none.

    Examples
    --------
    >>> import lucid
    >>> from lucid.utils.data import TensorDataset
    >>> TensorDataset(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), lucid.tensor([0, 1]))[1]
    (tensor([3., 4.]), tensor(1))
    """

    def __init__(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            if not isinstance(tensor, TensorBase):
                raise unfit(tensor, "a Tensor", "tensors")
        sizes = [tuple(tensor.shape) for tensor in tensors]
        if not sizes or not all(size and size[0] == sizes[0][0] for size in sizes):
            raise SettingError(
                "TensorDataset: Size mismatch between tensors: expected at least one tensor, of equal sizes in "
                f"dimension 0, got shapes {sizes}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getitems__(self, indices: list[int]) -> tuple[Tensor, ...]:
        """Return the batch of the samples at `indices`, equal to `default_collate` of them."""
        size = len(self)
        try:
            index = np.array([operator.index(each) for each in indices], np.int64)
        except TypeError:
            raise ArgumentError(f"TensorDataset: expected integers as indices, got {indices}") from None
        if index.size and not (-size <= int(index.min()) and int(index.max()) < size):
            raise IndexOutOfRangeError(
                f"TensorDataset: expected indices in [{-size}, {size - 1}], got {index.min()} to {index.max()}"
            )
        index %= max(size, 1)
        places = {device_of(tensor.array) for tensor in self.tensors}
        copies: dict[Any, Any] = {place: wrap(to_device(index, place)) for place in places}
        return tuple(index_select(tensor, 0, copies[device_of(tensor.array)]) for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset[T_co]):
    """The samples of a dataset at chosen indices: sample i is ``dataset[indices[i]]``.

    Parameters
    ----------
    dataset : Dataset
        What is chosen from.
    indices : sequence
        Indices of `dataset`.

    Examples
    --------
    >>> from lucid.utils.data import Subset
    >>> list(Subset("abcde", [4, 0]))
    ['e', 'a']
    """

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[Any]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in cast("list[int]", index)]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> Any:
        """Return the samples at `indices`, read as the dataset reads them."""
        chosen = [self.indices[index] for index in indices]
        read = batch_reader(self.dataset)
        return [self.dataset[index] for index in chosen] if read is None else read(chosen)

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T_co]):
    """The samples of several datasets, one dataset after the other.

    Parameters
    ----------
    datasets : iterable of Dataset
        At least one; each with a length.

    Raises
    ------
    SettingError
        If one of them is an IterableDataset: put those into a `ChainDataset`.

    Examples
    --------
    >>> import lucid
    >>> from lucid.utils import data
    >>> parts = [data.TensorDataset(lucid.zeros(2)), data.TensorDataset(lucid.ones(3))]
    >>> len(data.ConcatDataset(parts)), data.ConcatDataset(parts)[2]
    (5, (tensor(1.),))
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise SettingError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise SettingError("ConcatDataset: expected datasets with indices, got an IterableDataset: ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(size_of(each, "ConcatDataset") for each in self.datasets))

    def __getitem__(self, index: int) -> T_co:
        size = len(self)
        if not -size <= index < size:
            raise IndexOutOfRangeError(f"ConcatDataset: expected an index in [{-size}, {size - 1}], got {index}")
        place = index + size if index < 0 else index
        which = bisect.bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[T_co]):
    """The samples of several streams, one stream after the other.

    Parameters
    ----------
    datasets : iterable of IterableDataset
        Asked for when the chain is iterated.

    Examples
    --------
    >>> from lucid.utils import data
    >>> class Count(data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(data.ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise ArgumentError(f"ChainDataset: expected IterableDatasets, got {type(dataset).__name__}")
            yield from cast("IterableDataset[T_co]", dataset)

    def __len__(self) -> int:
        return sum(len(cast("Any", dataset)) for dataset in self.datasets)


class StackDataset(Dataset[Any]):
    """Tuples or dicts of the samples of several datasets at one index.

    Parameters
    ----------
    *args : Dataset
        Sample i is then ``(args[0][i], args[1][i], ...)``.
    **kwargs : Dataset
        Given instead: sample i is ``{"name": name[i], ...}``.

    Raises
    ------
    ShapeError
        If their lengths differ.
    SettingError
        If there is none, or some are given by position and some by name.

    Examples
    --------
    >>> from lucid.utils.data import StackDataset
    >>> StackDataset(image="abc", label=[0, 1, 2])[1]
    {'image': 'b', 'label': 1}
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise SettingError(
                "StackDataset: expected datasets, either all by position (samples are tuples) or all by name (dicts), "
                f"got {len(args)} and {len(kwargs)}"
            )
        self.datasets: tuple[Any, ...] | dict[str, Any] = args or kwargs
        sizes = [size_of(dataset, "StackDataset") for dataset in (args or kwargs.values())]
        if len(set(sizes)) > 1:
            raise ShapeError(f"StackDataset: Size mismatch between datasets: expected equal lengths, got {sizes}")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """Return the samples at `indices`, read as each dataset reads them."""
        if isinstance(self.datasets, dict):
            columns = [samples_of(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*[samples_of(dataset, indices) for dataset in self.datasets], strict=True))

    def __len__(self) -> int:
        return self._length


@checked
def random_split(
    dataset: Dataset[Any], lengths: Iterable[float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """Return disjoint subsets of a dataset, of the given lengths, chosen at random.

    Parameters
    ----------
    dataset : Dataset
        What is split.
    lengths : sequence of int or float
        How many samples each has, with the dataset's as their sum; or their shares, with 1 as their sum, of which each
        is rounded down and what is left goes to the first ones, one each.
    generator : Generator, optional
        The CPU's default one if None.

    Raises
    ------
    SettingError
        If the sum is another, or a length is negative.

    Examples
    --------
    >>> from lucid.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    size = size_of(dataset, "random_split")
    counts = list(lengths)
    if any(not count >= 0 for count in counts):
        raise SettingError(f"random_split: expected lengths of at least 0, got {counts}")
    if math.isclose(sum(counts), 1):
        counts = _counts(counts, size)
    if sum(counts) != size or any(count % 1 for count in counts):
        raise SettingError(
            "random_split: Sum of input lengths does not equal the length of the input dataset: expected a sum of "
            f"{size}, or shares with a sum of 1, got {counts}"
        )
    order: list[int] = permutation(generator or default_generator_for("cpu"), size).tolist()
    ends = list(itertools.accumulate(int(count) for count in counts))
    return [Subset(dataset, order[end - int(count) : end]) for end, count in zip(ends, counts, strict=True)]


def _counts(shares: list[float], size: int) -> list[float]:
    """Return how many of `size` samples each share gets."""
    counts: list[float] = [math.floor(size * share) for share in shares]
    for index in range(int(size - sum(counts))):
        counts[index % len(counts)] += 1
    return counts
