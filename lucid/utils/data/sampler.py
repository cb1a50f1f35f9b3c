"""Samplers: the order of samples, a function of seed, epoch and position.

A sampler draws its seed from its `generator`, the CPU's default one if None, at its first pass, and again at the first
after the generator was given a seed: whoever calls `lucid.manual_seed` has the same orders again. Each pass is the next
epoch. Orders are drawn on the host, whatever the device, worker or rank. ``state_dict()`` holds seed, epoch and
position of a sampler, ``load_state_dict`` lets the next pass begin there, ``set_epoch`` at the beginning of another
epoch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import checked, shown, unfit
from lucid.base.random.draws import exponential, permutation, randint, uniform
from lucid.errors import ArgumentError, SettingError, ShapeError
from lucid.ops.base.scalars import as_int
from lucid.utils.data.dataset import size_of
from lucid.utils.data.epochs import EpochSampler, Sampler, state_at_rest, teller_of, tells_its_order
from lucid.utils.data.randomness import Passes, Walk, natural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lucid.base.random.generator import Generator
    from lucid.tensor import Tensor
    from lucid.utils.data.dataset import Dataset

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip

# Indices that are drawn at a time where an epoch may have any number of them.
_DRAWN = 1 << 16


class _Sized(EpochSampler):
    """The base of samplers of as many indices as their order has."""

    def __len__(self) -> int:
        return self.size


class SequentialSampler(_Sized):
    """The indices 0, 1, ... of a dataset, in order.

    Parameters
    ----------
    data_source : Dataset
        Its length is asked for at each pass.
    generator : Generator, optional
        Where the random numbers of samples come from.

    Examples
    --------
    >>> from lucid.utils import data
    >>> list(data.SequentialSampler([5, 6, 7]))
    [0, 1, 2]
    """

    def __init__(self, data_source: Dataset[Any], generator: Generator | None = None) -> None:
        super().__init__(generator)
        self.data_source = data_source

    @property
    def size(self) -> int:
        return size_of(self.data_source, "SequentialSampler")

    def order(self, generator: Generator) -> Iterator[range]:
        yield range(self.size)


class RandomSampler(_Sized):
    """The indices of a dataset in random order, another in each epoch.

    Parameters
    ----------
    data_source : Dataset
        With a length of at least 1, unless `num_samples` is 0.
    replacement : bool
        Whether each index is drawn from all, instead of from those left.
    num_samples : int, optional
        How many indices an epoch has; the dataset's length if None. More than that without replacement are several
        orders, one after the other.
    generator : Generator, optional
        Where the seed comes from.

    Examples
    --------
    >>> from lucid.utils.data import RandomSampler
    >>> sorted(RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    @checked
    def __init__(
        self,
        data_source: Dataset[Any],
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(generator)
        self.data_source = data_source
        self.replacement = replacement
        if num_samples is not None and (isinstance(num_samples, bool) or as_int(num_samples, "num_samples") < 0):
            raise SettingError(f"RandomSampler: expected num_samples of at least 0, got {num_samples}")
        self._num_samples = None if num_samples is None else as_int(num_samples, "num_samples")

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return size_of(self.data_source, "RandomSampler") if self._num_samples is None else self._num_samples

    @property
    def size(self) -> int:
        return self.num_samples

    def order(self, generator: Generator) -> Iterator[NDArray[np.int64]]:
        size, remaining = size_of(self.data_source, "RandomSampler"), self.num_samples
        if not size and remaining:
            raise SettingError(f"RandomSampler: expected a dataset that is not empty, to draw {remaining} indices from")
        while remaining:
            if self.replacement:
                piece = randint(generator, 0, size, (min(remaining, _DRAWN),))
            else:
                piece = permutation(generator, size)[:remaining]
            yield piece
            remaining -= len(piece)


class SubsetRandomSampler(_Sized):
    """Some indices in random order, another in each epoch.

    Parameters
    ----------
    indices : sequence
        The indices.
    generator : Generator, optional
        Where the seed comes from.

    Examples
    --------
    >>> from lucid.utils import data
    >>> sorted(data.SubsetRandomSampler([4, 7, 2]))
    [2, 4, 7]
    """

    def __init__(self, indices: Sequence[Any], generator: Generator | None = None) -> None:
        super().__init__(generator)
        self.indices = indices

    @property
    def size(self) -> int:
        return len(self.indices)

    def order(self, generator: Generator) -> Iterator[list[Any]]:
        yield [self.indices[place] for place in permutation(generator, len(self.indices)).tolist()]


class WeightedRandomSampler(_Sized):
    """Indices 0 .. len(weights)-1, each drawn with a probability in proportion to its weight.

    Without replacement the next is drawn from those that are left, in proportion to their weights (Efraimidis,
    Spirakis: Weighted random sampling with a reservoir. 2006).

    Parameters
    ----------
    weights : sequence of float, tensor or array
        At least 0, finite; their sum need not be 1.
    num_samples : int
        How many indices an epoch has; without replacement at most as many as there are weights above 0.
    replacement : bool
        Whether an index can come again.
    generator : Generator, optional
        Where the seed comes from.

    Raises
    ------
    SettingError
        If a weight is negative or not finite, or none is above 0, or too few for `num_samples` without replacement.
    ShapeError
        If the weights are not one row.

    Examples
    --------
    >>> from lucid.utils import data
    >>> list(data.WeightedRandomSampler([0.0, 1.0], num_samples=3))
    [1, 1, 1]
    """

    @checked
    def __init__(
        self,
        weights: Sequence[float] | Tensor | NDArray[Any],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(generator)
        if isinstance(num_samples, bool) or as_int(num_samples, "num_samples") <= 0:
            raise SettingError(f"WeightedRandomSampler: expected num_samples of at least 1, got {num_samples}")
        num_samples = as_int(num_samples, "num_samples")
        self.weights = _weights(weights)
        usable = int(np.count_nonzero(self.weights))
        if not usable or (not replacement and usable < num_samples):
            raise SettingError(
                f"WeightedRandomSampler: expected {1 if replacement else num_samples} or more weights above 0, from "
                f"which to draw {num_samples} indices {'with' if replacement else 'without'} replacement, got {usable}"
            )
        self.num_samples = num_samples
        self.replacement = replacement

    @property
    def size(self) -> int:
        return self.num_samples

    def order(self, generator: Generator) -> Iterator[NDArray[np.int64]]:
        if not self.replacement:
            usable = np.flatnonzero(self.weights)
            times = exponential(generator, (len(self.weights),), np.float64)[usable]
            # by logarithms: a quotient by the smallest weights would be infinite
            order = (np.log(times) - np.log(self.weights[usable])).argsort(kind="stable")
            yield usable[order[: self.num_samples]]
            return
        ends = np.cumsum(self.weights / self.weights.max())
        # of equal ends the first: an index of weight 0 ends where the one before it does
        last = int(np.flatnonzero(self.weights)[-1])
        for start in range(0, self.num_samples, _DRAWN):
            drawn = uniform(generator, (min(_DRAWN, self.num_samples - start),), np.float64) * ends[-1]
            yield cast("Any", ends).searchsorted(drawn, side="right").clip(0, last)


def _weights(values: Any) -> NDArray[np.float64]:
    """Return weights as an array, after a look at them."""
    try:
        weights = np.asarray(values.tolist() if hasattr(values, "tolist") else values, np.float64)
    except (TypeError, ValueError):
        raise unfit(values, "a sequence of numbers", "weights") from None
    if weights.ndim != 1:
        raise ShapeError(f"WeightedRandomSampler: expected weights in one row, got shape {tuple(weights.shape)}")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise SettingError("WeightedRandomSampler: expected finite weights of at least 0, got others among them")
    return weights


class BatchSampler(Sampler["list[Any]"]):
    """Lists of `batch_size` indices of another sampler.

    Parameters
    ----------
    sampler : Sampler or iterable
        What gives the indices.
    batch_size : int
        At least 1.
    drop_last : bool
        Whether a last batch that is smaller is left out.

    Examples
    --------
    >>> from lucid.utils.data import BatchSampler, SequentialSampler
    >>> list(BatchSampler(SequentialSampler(range(5)), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    @checked
    def __init__(self, sampler: Sampler[Any] | Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if not isinstance(sampler, Iterable):
            raise unfit(sampler, "an iterable of indices", "sampler")
        if isinstance(batch_size, bool) or as_int(batch_size, "batch_size") <= 0:
            raise SettingError(f"BatchSampler: expected a batch_size of at least 1, got {batch_size}")
        if not isinstance(drop_last, bool):
            raise ArgumentError(f"BatchSampler: drop_last: expected a bool, got {drop_last!r}")
        self.sampler = sampler
        self.batch_size = as_int(batch_size, "batch_size")
        self.drop_last = drop_last
        self._latest: BatchIterator | None = None
        self._skipped = 0
        # the pass whose indices are skipped, if the sampler has such
        self._skipped_in: Walk | None = None

    def __iter__(self) -> Iterator[list[Any]]:
        skipped, self._skipped = self._skipped, 0
        if self.passes is not None and self.passes.latest is not self._skipped_in:
            skipped = 0  # another epoch was set
        indices = iter(self.sampler)
        for _ in itertools.islice(indices, skipped):
            pass
        self._latest = BatchIterator(self, indices, skipped)
        return self._latest

    def forget(self, batches: BatchIterator) -> None:
        """Note that a pass is complete: the next one begins at the beginning."""
        if self._latest is batches:
            self._latest = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_latest": None}  # a copy is in no pass

    @property
    def passes(self) -> Passes | None:
        """Seed and epoch of the sampler, if it is a function of them."""
        return getattr(self.sampler, "passes", None)

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be that of `epoch`."""
        cast("Any", self.sampler).set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the sampler's state, or how many of its indices have been given if it has none."""
        if tells_its_order(self.sampler):
            return {"sampler": cast("Any", self.sampler).state_dict()}
        return {"position": self._skipped} if self._latest is None else self._latest.state_dict()

    def state_at_rest(self) -> dict[str, Any]:
        """Return the state of the pass that would begin next."""
        if tells_its_order(self.sampler):
            return {"sampler": state_at_rest(self.sampler)}
        return {"position": self._skipped}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Let the next pass begin at the position of `state_dict`."""
        told = tells_its_order(self.sampler)
        name = "sampler" if told else "position"
        if not isinstance(state_dict, dict) or name not in state_dict:
            raise ArgumentError(
                f"BatchSampler.load_state_dict: expected the state of a BatchSampler over one like this, a "
                f"{type(self.sampler).__name__}: a dict with {name!r}, got {shown(state_dict)}"
            )
        if told:
            cast("Any", self.sampler).load_state_dict(state_dict["sampler"])
        else:
            self._skipped = natural(state_dict["position"], "BatchSampler.load_state_dict: position")
            self._skipped_in = None if self.passes is None else self.passes.latest
            self._latest = None

    def __len__(self) -> int:
        count = len(self.sampler)  # pyright: ignore[reportArgumentType]  one without a length says so itself
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class BatchIterator(Iterator["list[Any]"]):
    """The batches of one pass, with a position of its own, independent of other passes over the sampler."""

    def __init__(self, batches: BatchSampler, indices: Iterator[Any], position: int) -> None:
        self._batches = batches
        self._indices = indices
        self._position = position

    def __next__(self) -> list[Any]:
        batch = list(itertools.islice(self._indices, self._batches.batch_size))
        if not batch or (self._batches.drop_last and len(batch) < self._batches.batch_size):
            self._batches.forget(self)
            raise StopIteration
        self._position += len(batch)
        return batch

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the sampler's own iterator, or of the sampler, or the number of indices given so far."""
        sampler = self._batches.sampler
        if not tells_its_order(sampler):
            return {"position": self._position}
        return {"sampler": teller_of(sampler, self._indices).state_dict()}
