"""The base class of engines, and the engine of a single process."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.collectives.job.watch import Watch
from lucid.errors import DistributedError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from lucid.base.arrays import Array
    from lucid.collectives.reduction import ReduceOp
    from lucid.collectives.work import Steps, Work


def as_bytes(array: Array) -> Array:
    """Return the memory of a contiguous array as bytes, so that transfers need no datatype of the library."""
    return array.reshape(-1).view(np.uint8)


class Engine:
    """Collectives of contiguous arrays of one kind of device, each as the steps that it takes.

    Ranks are those of the group; arrays that are received into are written, those that are sent are not.
    """

    name = ""
    watch: Watch  # which moves all engines of the process on, each time that one of them is waited for

    def begin(self, work: Work) -> None:
        """Take the first step of `work`."""
        raise NotImplementedError

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        """Let works that are begun inside get on whatever their order, in each process."""
        yield

    def progress(self) -> None:
        """Take each step of the works under way that can be taken now."""

    def is_completed(self, work: Work) -> bool:
        """Return whether `work` has ended, successfully or not, after calling `progress`."""
        if not work.done:
            self.watch.progress()
        return work.done

    def without(self, ranks: Sequence[int]) -> Engine:
        """Return the engine of the processes of the group without some."""
        raise DistributedError(
            f"ProcessGroup.without: expected a group of several processes over NCCL, got {self.name}"
        )

    def wait(self, work: Work, limit: float, *, asked: bool) -> None:
        """Return when `work` has ended, within `limit` seconds; `asked` tells whether the user gave the limit."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the resources of the engine."""

    def all_reduce(self, array: Array, op: ReduceOp) -> Steps:
        """Put the values of all processes together, in place."""
        raise NotImplementedError

    def tree_all_reduce(self, array: Array) -> Steps:
        """Add the values of all processes in the order of `tree_sum`, in place."""
        raise NotImplementedError

    def broadcast(self, array: Array, root: int) -> Steps:
        """Take the values of `root`, in place."""
        raise NotImplementedError

    def reduce(self, array: Array, op: ReduceOp, root: int) -> Steps:
        """Put the values of all processes together in that of `root`."""
        raise NotImplementedError

    def all_gather(self, into: Array, array: Array) -> Steps:
        """Fill `into`, a row of it from each process."""
        raise NotImplementedError

    def gather(self, into: Array | None, array: Array, root: int) -> Steps:
        """Fill `into` of `root`, a row of it from each process."""
        raise NotImplementedError

    def scatter(self, into: Array, array: Array | None, root: int) -> Steps:
        """Fill `into` with the row of `array` of `root` that is for this process."""
        raise NotImplementedError

    def reduce_scatter(self, into: Array, array: Array, op: ReduceOp) -> Steps:
        """Fill `into` with this process's row of the reduction of all processes' `array`."""
        raise NotImplementedError

    def all_to_all(self, into: Array, array: Array, received: Sequence[int], sent: Sequence[int]) -> Steps:
        """Send so many elements of `array` to each process in turn, and receive so many into `into`."""
        raise NotImplementedError

    def send(self, array: Array, peer: int, tag: int) -> Steps:
        """Send to one process."""
        raise NotImplementedError

    def recv(self, array: Array, peer: int, tag: int) -> Steps:
        """Receive from one process."""
        raise NotImplementedError

    def barrier(self) -> Steps:
        """End when all processes have begun."""
        raise NotImplementedError


class Single(Engine):
    """Collectives of a process that is alone: all values are there, on whichever device."""

    name = "single"

    def __init__(self) -> None:
        self.watch = Watch.of_one()

    def begin(self, work: Work) -> None:
        for _ in work.steps:
            pass
        work.finish()

    def wait(self, work: Work, limit: float, *, asked: bool) -> None:
        pass

    def _nothing(self, *_: Any, **__: Any) -> Steps:
        yield from ()

    all_reduce = tree_all_reduce = broadcast = reduce = barrier = _nothing

    def all_gather(self, into: Array, array: Array) -> Steps:
        into.reshape(-1)[...] = array.reshape(-1)
        yield from ()

    def gather(self, into: Array | None, array: Array, root: int) -> Steps:
        if into is not None:
            yield from self.all_gather(into, array)

    def scatter(self, into: Array, array: Array | None, root: int) -> Steps:
        if array is not None:
            yield from self.all_gather(into, array)

    def reduce_scatter(self, into: Array, array: Array, op: ReduceOp) -> Steps:
        return self.all_gather(into, array)

    def all_to_all(self, into: Array, array: Array, received: Sequence[int], sent: Sequence[int]) -> Steps:
        return self.all_gather(into, array)

    def send(self, array: Array, peer: int, tag: int) -> Steps:
        raise DistributedError("send: there is one process, and none that would receive")

    def recv(self, array: Array, peer: int, tag: int) -> Steps:
        raise DistributedError("recv: there is one process, and none that would send")
