"""The sampler of one process among several that train together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import checked
from lucid.base.random.draws import permutation
from lucid.collectives.world import default_group
from lucid.errors import SettingError
from lucid.ops.base.scalars import as_int
from lucid.utils.data.dataset import size_of
from lucid.utils.data.epochs import EpochSampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lucid.base.random.generator import Generator
    from lucid.utils.data.dataset import Dataset

__all__ = ["DistributedSampler"]


class DistributedSampler(EpochSampler):
    """Every `num_replicas`-th index of one order of a dataset, beginning with the `rank`-th.

    All ranks have the same order, and the same number of indices: the first ones are repeated where there are too few,
    or the last ones left out. A position is counted in the order of all ranks, so that a state of one rank is that of
    all, also for another number of them: what is left of the epoch is divided anew.

    Parameters
    ----------
    dataset : Dataset
        With a length.
    num_replicas, rank : int, optional
        How many processes there are, and which of them this is; what the process group says where they are None.
    shuffle : bool
        Whether the order is random, another in each epoch, rather than 0, 1, ...
    seed : int
        Of the order; the same in all processes.
    drop_last : bool
        Whether indices are left out rather than repeated.
    shards : int, optional
        A multiple of `num_replicas`: indices are repeated, or left out, up to a multiple of it, so that an epoch has
        the same ones on 1, 2, ... `shards` processes; for ``DistributedDataParallel(..., shards=)``.

    Raises
    ------
    SettingError
        If `rank` is none of 0 .. num_replicas-1, if one of the two is given and does not fit the process group, if
        `shards` is no multiple of `num_replicas`, or the processes of a launcher have not come together.

    Notes
    -----
    Unlike PyTorch's, each pass is the next epoch also without `set_epoch`.

    Examples
    --------
    >>> from lucid.utils.data.distributed import DistributedSampler
    >>> [list(DistributedSampler(range(5), num_replicas=2, rank=rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    @checked
    def __init__(
        self,
        dataset: Dataset[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        *,
        shards: int | None = None,
    ) -> None:
        if num_replicas is None or rank is None:
            group = default_group("DistributedSampler")
            # a number of processes that are not there would let each of them read the part of the first
            if num_replicas is not None and as_int(num_replicas, "num_replicas") != group.size():
                raise SettingError(
                    "DistributedSampler: expected num_replicas and rank, or neither of them, or the number of "
                    f"processes of the group, {group.size()}, got num_replicas={num_replicas}, rank={rank}"
                )
            num_replicas = group.size()
            rank = group.rank() if rank is None else rank
        num_replicas, rank = as_int(num_replicas, "num_replicas"), as_int(rank, "rank")
        if num_replicas < 1 or not 0 <= rank < num_replicas:
            raise SettingError(
                "DistributedSampler: Invalid rank: expected num_replicas of at least 1 and rank in "
                f"[0, num_replicas - 1], got num_replicas={num_replicas}, rank={rank}"
            )
        seed = as_int(seed, "seed")
        shards = num_replicas if shards is None else as_int(shards, "shards")
        if shards < 1 or shards % num_replicas:
            raise SettingError(
                f"DistributedSampler: shards: expected a multiple of the {num_replicas} processes, got {shards}"
            )
        super().__init__(seed=seed)
        self.dataset = dataset
        self.num_replicas = self.stride = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.shards = shards
        self.total_size = self._evened(self.size)
        self.num_samples = self.total_size // num_replicas

    @property
    def size(self) -> int:
        """How many indices the order of all ranks has."""
        return size_of(self.dataset, "DistributedSampler")

    @property
    def epoch(self) -> int:
        """The epoch of the latest pass, or of the next one if that is complete; setting it is `set_epoch`."""
        return self.passes.state()["epoch"]

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.passes.set_epoch(epoch)

    def _evened(self, count: int) -> int:
        """Return the number of indices made divisible by that of shards, so that all shards have equally many."""
        return (count if self.drop_last else count + self.shards - 1) // self.shards * self.shards

    def order(self, generator: Generator) -> Iterator[NDArray[np.int64]]:
        yield permutation(generator, self.size) if self.shuffle else np.arange(self.size)

    def part(self, order: Iterator[Any], position: int) -> Iterator[Any]:
        whole = next(order)
        rest = whole[position:]
        yield np.resize(np.concatenate([rest, whole]), self._evened(len(rest)))[self.rank :: self.num_replicas]

    def __len__(self) -> int:
        return self.num_samples
