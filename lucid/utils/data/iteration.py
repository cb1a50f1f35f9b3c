"""One pass over a loader: batches are read here or by workers, put on the device, and handed out."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.profiler import record_function
from lucid.base.interrupts import in_destructor
from lucid.base.reports import progress_bar, shows_progress
from lucid.errors import WorkerError
from lucid.utils.data.dataset import length_of
from lucid.utils.data.prefetch import pinned, prefetch
from lucid.utils.data.randomness import SampleStreams
from lucid.utils.data.reading import Parts, Result, reader_of, while_reading
from lucid.utils.data.stats import LoaderStats
from lucid.utils.data.workers.processes import ProcessWorkers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lucid.utils.data.dataloader import DataLoader
    from lucid.utils.data.order import Order, Workers


class Read(NamedTuple):
    """A batch that was read: its number, its worker, and the result."""

    number: int
    worker: int
    result: Result


class Iteration:
    """One pass over a `DataLoader`, an iterator of its batches; it ends early when closed or garbage collected."""

    def __init__(self, loader: DataLoader[Any], order: Order) -> None:
        self.stats = LoaderStats()
        self._loader: Any = loader  # some of whose private methods are for its passes
        self._order = order
        self._next_index = order.first
        self._ended = False
        self._returned = 0.0
        # threads that share a pass take turns; a hook may ask for the next batch
        self._turn = threading.RLock()
        # read, and not handed out yet: the order in which they come is that in which they are read
        self._ahead: deque[Read] = deque()
        self._workers: Workers | None = self._loader._take_workers(order)
        try:
            if self._workers is None:
                reads = read_here(self._loader._parts, order)
            else:
                reads = read_by(self._workers, loader, order)
            batches = _noted(reads, self._ahead)
            # worker processes fill memory that is page-locked already
            convert = pinned if self._loader._pins and not isinstance(self._workers, ProcessWorkers) else None
            self._items: Iterator[Any] = batches if convert is None else map(convert, batches)
            if loader.device is not None:
                self._items = prefetch(self._items, loader.device)
            if loader.progress and shows_progress():
                self._items = _with_bar(self._items, loader, order)
        except BaseException:
            self._end(healthy=False)
            raise

    def __iter__(self) -> Iteration:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        with self._turn:
            return self._next()

    def _next(self) -> Any:
        if self._ended:
            raise StopIteration
        asked = time.perf_counter()
        if self._returned:
            self.stats.worked += asked - self._returned
        with record_function("DataLoader: waiting for a batch"):
            try:
                batch = next(self._items)
            except StopIteration:
                self._loader._finish(self._order)
                self._end(healthy=True)
                raise
            except BaseException as error:
                if self._ended and isinstance(error, Exception):  # another thread has closed it meanwhile
                    raise StopIteration from None
                self._end(healthy=False)
                raise
        self.stats.waits.append(time.perf_counter() - asked)
        read = self._ahead.popleft()
        index = self._next_index
        self._next_index += 1
        batch = self._loader._hooked(index, batch)
        self._order.reach(read.number, read.worker, read.result)
        self._returned = time.perf_counter()
        return batch

    def close(self) -> None:
        """End the pass; workers that do not stay for the next one end."""
        # those from which another thread is waiting for a batch do not stay
        idle = self._turn.acquire(blocking=False)
        try:
            self._end(healthy=idle)
        finally:
            if idle:
                self._turn.release()

    def _end(self, *, healthy: bool) -> None:
        self._ended = True
        self._items = iter(())
        workers, self._workers = self._workers, None
        if workers is not None:
            self._loader._give_back(workers, healthy=healthy)

    def __del__(self) -> None:
        if getattr(self, "_workers", None) is not None:
            in_destructor(self.close)


def _noted(reads: Iterator[Read], ahead: deque[Read]) -> Iterator[Any]:
    for read in reads:
        ahead.append(read._replace(result=read.result._replace(batch=None)))
        yield read.result.batch


def _with_bar(batches: Iterator[Any], loader: DataLoader[Any], order: Order) -> Iterator[Any]:
    """Yield batches; a bar counts those that were worked with, so that it is full when the next pass begins."""
    with progress_bar(f"epoch {order.epoch}", length_of(loader), order.first) as (display, task):
        for batch in batches:
            yield batch
            display.advance(task)


# ---- who reads ----


def read_here(parts: Parts, order: Order) -> Iterator[Read]:
    """Yield the batches of a pass, read by whoever asks for them."""
    reader = reader_of(parts, SampleStreams())
    reader.begin(order.begin())
    while (job := order.next()) is not None:
        try:
            result = reader.read(job)
        except Exception as error:
            error.add_note(f"raised{while_reading(job, reader.at)}")
            raise
        if result.ended:
            return
        yield Read(job.number, 0, result)


def read_by(workers: Workers, loader: DataLoader[Any], order: Order) -> Iterator[Read]:
    """Return the batches of a pass, read by workers after telling them of the pass."""
    workers.begin(order.begin())
    limit = (loader.prefetch_factor or 1) * len(workers)
    at: dict[int, int] = {}  # the worker of a job, by its number
    ready: dict[int, Any] = {}
    exhausted: set[int] = set()

    def fill() -> None:
        while len(at) < limit:
            worker = order.worker(workers, exhausted)
            job = None if worker is None else order.next()
            if worker is None or job is None:
                return
            at[job.number] = worker
            workers.send(worker, job)

    def reads() -> Iterator[Read]:
        while at:
            wanted = next(iter(at))
            while wanted not in ready:
                outcome = workers.receive(at[wanted], loader.timeout)
                ready[outcome.number] = outcome.result
                if not loader.in_order:
                    wanted = outcome.number
            worker, result = at.pop(wanted), ready.pop(wanted)
            if isinstance(result, WorkerError):
                raise result
            if result.ended:
                exhausted.add(worker)
            fill()
            if not result.ended:
                yield Read(wanted, worker, result)

    fill()
    return reads()
