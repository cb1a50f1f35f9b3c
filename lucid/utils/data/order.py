"""The order of the batches of a pass and the position in it: the state of a loader."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from lucid.arguments import shown
from lucid.errors import ArgumentError, SettingError, warn
from lucid.utils.data.epochs import teller_of, tells_its_order
from lucid.utils.data.randomness import natural
from lucid.utils.data.reading import Job, Pass, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lucid.utils.data.randomness import Passes, Walk
    from lucid.utils.data.reading import Result
    from lucid.utils.data.workers.processes import ProcessWorkers
    from lucid.utils.data.workers.threads import ThreadWorkers

    Workers = ProcessWorkers | ThreadWorkers

T = TypeVar("T")


class Resume(NamedTuple):
    """The point to continue from: the state of a loader, and the pass, not yet begun."""

    state: Mapping[str, Any]
    walk: Walk


class Order:
    """The order of one pass.

    Parameters
    ----------
    passes : Passes
        Those of the sampler, or the loader's own.
    resume : Resume, optional
        Where it goes on.

    Attributes
    ----------
    seed, epoch : int
        Of the samples' random numbers.
    first : int
        The number of the first batch in its epoch.
    """

    def __init__(self, passes: Passes, resume: Resume | None) -> None:
        self._passes = passes
        self._walk = passes.begin()
        # a state counts for the pass that it was loaded for; the user may have set another epoch since
        self._resumed = resume.state if resume is not None and resume.walk is self._walk else None
        self.seed, self.epoch = self._walk.seed, self._walk.epoch
        self.first: int = 0 if self._resumed is None else self._resumed["batch"]

    def begin(self) -> Pass:
        """Return the description of the pass for readers."""
        return Pass(self.seed, self.epoch, [])

    def next(self) -> Job | None:
        """Return the next batch to be read; None if there is none."""
        raise NotImplementedError

    def worker(self, workers: Workers, exhausted: set[int]) -> int | None:
        """Return the worker that is to read the next batch; None if all are exhausted."""
        raise NotImplementedError

    def finish(self) -> None:
        """Note that the pass is complete."""
        self._passes.end(self._walk)

    def reach(self, number: int, worker: int, result: Result) -> None:
        """Note that a batch has been given out."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return the state for another pass to continue from."""
        raise NotImplementedError


class MapOrder(Order):
    """The order of a sampler of batches, or of single samples."""

    def __init__(self, source: Any, passes: Passes, resume: Resume | None) -> None:
        super().__init__(passes, resume)
        # whether the sampler has begun this pass: one that is a generator does so with the first index
        self._started = False
        self._iterator: Iterator[Any] = self._asked(lambda: iter(source))
        self._done: set[int] = set() if self._resumed is None else set(self._resumed["done"])
        self._teller: Any = teller_of(source, self._iterator) if tells_its_order(source) else None
        if self._teller is None:
            self._iterator = itertools.islice(self._iterator, self.first, None)
        self._sent = self._reached = self.first
        self._after: dict[int, Any] = {self.first - 1: self._snapshot()}

    def _asked(self, function: Callable[[], T]) -> T:
        """Return the result of ``function()``, a call of the sampler in this pass."""
        if self._started:
            return function()
        result, self._started = self._passes.offered(self._walk, function)
        return result

    def _snapshot(self) -> tuple[Any, dict[str, int]]:
        source = None if self._teller is None else self._asked(self._teller.state_dict)
        return source, beginning_of(self._walk)

    def next(self) -> Job | None:
        while True:
            try:
                indices = self._asked(lambda: next(self._iterator))
            except StopIteration:
                return None
            number = self._sent
            self._sent += 1
            self._after[number] = self._snapshot()
            if number not in self._done:
                return Job(number, indices)

    def worker(self, workers: Workers, exhausted: set[int]) -> int:
        return min(range(len(workers)), key=workers.load)

    def reach(self, number: int, worker: int, result: Result) -> None:
        self._done.add(number)
        while self._reached in self._done and self._reached in self._after:
            self._done.remove(self._reached)
            del self._after[self._reached - 1]
            self._reached += 1

    def state(self) -> dict[str, Any]:
        source, passes = self._after[self._reached - 1]
        return {"batch": self._reached, "done": sorted(self._done), "order": source, "passes": passes}


class StreamOrder(Order):
    """The batches of a stream, read by each worker in turn; `length` is the stream's own length."""

    def __init__(self, passes: Passes, workers: int, resume: Resume | None, length: int | None) -> None:
        super().__init__(passes, resume)
        self._length = length
        self._places = [Place()] * workers
        self._after = 0  # the worker after the one whose batch was given out last
        if self._resumed is not None:
            check_workers(self._resumed, workers)
            self._places = [Place(*place) for place in self._resumed["workers"]]
            self._after = self._resumed["turn"]
            if any(place.state is None and place.position for place in self._places):
                warn(
                    "DataLoader: the stream is read from its beginning up to where the state was taken; give the "
                    "dataset, or its iterator, state_dict() and load_state_dict() to go on at once"
                )
        self._turn = self._after
        self._reached = self._sent = self.first

    def begin(self) -> Pass:
        return Pass(self.seed, self.epoch, self._places)

    def next(self) -> Job:
        self._sent += 1
        return Job(self._sent - 1, None)

    def worker(self, workers: Workers, exhausted: set[int]) -> int | None:
        for _ in range(len(workers)):
            turn = self._turn
            self._turn = (turn + 1) % len(workers)
            if turn not in exhausted:
                return turn
        return None

    def reach(self, number: int, worker: int, result: Result) -> None:
        self._reached += 1
        self._places = [*self._places]  # a reader may hold the other list
        self._places[worker] = result.place or Place()
        if self._length is not None and (total := sum(place.position for place in self._places)) > self._length:
            warn(
                f"DataLoader: the stream has a length of {self._length}, and has given {total} samples: let its "
                "__len__ tell what all workers give together; where there are several, each reads the whole stream "
                "unless its __iter__ asks get_worker_info() for its part"
            )
            self._length = None
        self._after = (worker + 1) % len(self._places)

    def state(self) -> dict[str, Any]:
        return {
            "batch": self._reached,
            "workers": list(map(tuple, self._places)),
            "turn": self._after,
            "passes": beginning_of(self._walk),
        }


def beginning_of(walk: Walk) -> dict[str, int]:
    """Return seed and epoch of a pass: how far it is, the sampler says, or the number of batches."""
    return {**walk.state(), "position": 0}


def check_workers(state: Mapping[str, Any], workers: int) -> None:
    """Raise `SettingError` if the state of a stream is of another number of workers."""
    if len(state["workers"]) != workers:
        raise SettingError(
            f"DataLoader.load_state_dict: this state is of a stream that {len(state['workers'])} workers read, and "
            f"here are {workers}: which samples a batch holds depends on that; give as many"
        )


def checked_state(state: Any, wanted: set[str]) -> Mapping[str, Any]:
    """Return the state of a loader after checking its entries."""
    entries = cast("dict[str, Any] | None", state if isinstance(state, dict) else None)
    if entries is None or not wanted <= set(entries):
        got = shown(state) if entries is None else sorted(map(str, entries))
        raise ArgumentError(
            "DataLoader.load_state_dict: expected what state_dict() of a loader over a dataset of this kind returned, "
            f"a dict with {sorted(wanted)}, got {got}"
        )
    for name in ("batch", "turn"):
        natural(entries.get(name, 0), f"DataLoader.load_state_dict: {name}")
    for name in ("done", "workers"):
        listed = entries.get(name, [])
        if not isinstance(listed, list | tuple):
            raise ArgumentError(
                f"DataLoader.load_state_dict: {name}: expected a list, got {shown(listed)}; give what state_dict() "
                "returned"
            )
    for number in entries.get("done", ()):
        natural(number, "DataLoader.load_state_dict: done")
    return entries
