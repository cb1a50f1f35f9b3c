"""Reading of one batch, by a loader without workers itself, and by each worker for it."""

from __future__ import annotations

import copy
import itertools
import threading
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.errors import ArgumentError, WorkerError
from lucid.utils.data.collate import collate, default_collate
from lucid.utils.data.dataset import IterableDataset, batch_reader
from lucid.utils.data.randomness import SampleStreams, mix, number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lucid.utils.data.collate import Memory


class WorkerInfo(NamedTuple):
    """The identity of a worker, for a dataset that divides itself among them.

    Parameters
    ----------
    id : int
        From 0 on.
    num_workers : int
        How many there are.
    seed : int
        With which the random streams of this worker were started.
    dataset : Dataset
        The worker's copy; threads share one, or have shallow copies of a stream.

    Examples
    --------
    >>> from lucid.utils import data
    >>> data.WorkerInfo(id=0, num_workers=2, seed=1, dataset=None).num_workers
    2
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Worker(threading.local):
    info: WorkerInfo | None = None


_worker = _Worker()


def get_worker_info() -> WorkerInfo | None:
    """Return the information about this worker of a `DataLoader`; None in the training loop.

    Examples
    --------
    >>> from lucid.utils.data import get_worker_info
    >>> print(get_worker_info())
    None
    """
    return _worker.info


def set_worker_info(info: WorkerInfo | None) -> None:
    """Set the information about the worker of this thread."""
    _worker.info = info


class Place(NamedTuple):
    """The position of a worker in its stream: the stream's state if it keeps one, samples read, and an end flag."""

    state: Any = None
    position: int = 0
    ended: bool = False


class Pass(NamedTuple):
    """One pass over the data, as readers know it.

    Attributes
    ----------
    seed, epoch : int
        Of the samples' random numbers.
    places : list of Place
        Of a stream, where each worker goes on.
    """

    seed: int
    epoch: int
    places: list[Place]


class Job(NamedTuple):
    """A batch to be read: its number in the epoch, and the indices of its samples; None of a stream."""

    number: int
    indices: Any


class Result(NamedTuple):
    """A batch; of a stream also the position after it, and whether there is no batch, since it has ended."""

    batch: Any
    place: Place | None = None
    ended: bool = False


class Outcome(NamedTuple):
    """The answer of a worker to a job: its number, and the result, or the error to raise."""

    number: int
    result: Result | WorkerError


class Parts(NamedTuple):
    """The parts that a reader needs: the dataset, and the settings of a loader to make batches of its samples."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool
    batch_size: int
    drop_last: bool


def reader_of(parts: Parts, streams: SampleStreams) -> Reader:
    """Return the reader of batches of a dataset, with these random streams."""
    return (StreamReader if isinstance(parts.dataset, IterableDataset) else MapReader)(parts, streams)


class Reader:
    """Reads batches of a dataset.

    Attributes
    ----------
    at : object
        The index that is being read, for errors; None between samples.
    memory : callable
        ``memory(shape, dtype)`` is where batches are collated. Not what the user's code collates, which may keep it.
    """

    def __init__(self, parts: Parts, streams: SampleStreams) -> None:
        self.parts = parts
        self.at: Any = None
        self.memory: Memory = np.empty
        self._streams = streams
        self._seed = self._epoch = 0

    def begin(self, this: Pass) -> None:
        """Begin a pass."""
        self._seed, self._epoch = this.seed, this.epoch

    def read(self, job: Job) -> Result:
        """Return the batch of a job."""
        raise NotImplementedError

    def _collated(self, samples: list[Any], names: list[Any], *numbers: int) -> Any:
        collate_fn = self.parts.collate_fn
        if collate_fn is default_collate:
            return collate(samples, names, self.memory)
        self._streams.start_all(self._seed, self._epoch, *numbers)
        return collate_fn(samples)


# Beside the numbers of a sample, so that collating does not draw what reading has drawn.
_COLLATING = 1


class MapReader(Reader):
    """Reads the samples at given indices."""

    def __init__(self, parts: Parts, streams: SampleStreams) -> None:
        super().__init__(parts, streams)
        self._read_batch = batch_reader(parts.dataset) if parts.batched else None
        # whether samples have drawn from `random` or `numpy.random`, which are started for each from then on
        self._draws = False

    def read(self, job: Job) -> Result:
        self.at = None
        with self._streams:
            if not self.parts.batched:
                return Result(self.parts.collate_fn(self._samples([job.indices])[0]))
            try:
                indices = list(job.indices)
            except TypeError:
                raise ArgumentError(
                    f"expected a batch_sampler that yields lists of indices, got {type(job.indices).__name__}"
                ) from None
            samples = self._together(indices)
            if samples is None:
                samples = self._samples(indices)
            elif not isinstance(samples, list):
                return Result(samples)
            self.at = None
            first = number_of(indices[0]) if indices else 0
            return Result(self._collated(cast("list[Any]", samples), indices, first, _COLLATING))

    def _samples(self, indices: list[Any]) -> list[Any]:
        """Return samples, each read with its own random numbers.

        The first batch is read twice if it draws from the generators that cannot be watched sample by sample.
        """
        if not self._draws:
            samples, self._draws = self._streams.watched(lambda: self._read(indices, self._streams.start))
            if samples is not None:
                return samples
        return self._read(indices, self._streams.start_all)

    def _read(self, indices: list[Any], start: Callable[..., None]) -> list[Any]:
        dataset, seed, epoch = self.parts.dataset, self._seed, self._epoch
        samples: list[Any] = []
        for index in indices:
            self.at = index
            start(seed, epoch, index if type(index) is int else number_of(index))
            samples.append(dataset[index])
        return samples

    def _together(self, indices: list[Any]) -> Any:
        """Return the samples that the dataset reads together, or its whole batch; None if it does neither here."""
        if self._read_batch is None or not indices:
            return None
        self._streams.start_all(self._seed, self._epoch, number_of(indices[0]))
        read = self._read_batch(indices)
        if isinstance(read, list):
            if len(cast("list[Any]", read)) != len(indices):
                raise ArgumentError(
                    f"{type(self.parts.dataset).__name__}.__getitems__: expected {len(indices)} samples for as many "
                    f"indices, got {len(cast('list[Any]', read))}"
                )
        elif self.parts.collate_fn is not default_collate:
            self._read_batch = None  # the user's function takes samples
            return None
        return cast("Any", read)


class StreamReader(Reader):
    """Reads the next samples of a stream."""

    def __init__(self, parts: Parts, streams: SampleStreams) -> None:
        super().__init__(parts, streams)
        self._stream: Iterator[Any] = iter(())
        self._position = 0
        self._ended = False
        self._worker = 0

    def begin(self, this: Pass) -> None:
        super().begin(this)
        info = get_worker_info()
        self._worker = 0 if info is None else info.id
        place = this.places[self._worker]
        self._ended = place.ended
        self._position = 0 if place.state is None else place.position
        dataset, state = self.parts.dataset, place.state
        with self._streams:
            self._start()
            if state is not None and keeps_state(dataset):
                dataset.load_state_dict(state)
            self._stream = iter(dataset)
            if state is not None and not keeps_state(dataset):
                cast("Any", self._stream).load_state_dict(state)
            for _ in itertools.islice(self._samples(), place.position - self._position):
                pass

    def read(self, job: Job) -> Result:
        with self._streams:
            size = self.parts.batch_size if self.parts.batched else 1
            samples = list(itertools.islice(self._samples(), size))
            self.at = None
            if not samples or (self.parts.batched and self.parts.drop_last and len(samples) < size):
                return Result(None, ended=True)
            owner: Any = next(filter(keeps_state, (self.parts.dataset, self._stream)), None)
            state = None if owner is None else copy.deepcopy(owner.state_dict())
            place = Place(state, self._position, self._ended)
            if not self.parts.batched:
                return Result(self.parts.collate_fn(samples[0]), place)
            names = list(range(self._position - len(samples), self._position))
            return Result(self._collated(samples, names, mix(self._worker, self._position), _COLLATING), place)

    def _samples(self) -> Iterator[Any]:
        while not self._ended:
            self._start()
            try:
                # not a `for`, which would ask an iterator of the user's for another one
                sample = next(self._stream)
            except StopIteration:
                self._ended = True
                return
            self._position += 1
            yield sample

    def _start(self) -> None:
        self.at = self._position
        self._streams.start_all(self._seed, self._epoch, mix(self._worker, self._position))


def keeps_state(value: Any) -> bool:
    """Return whether an object has a state, to continue from later."""
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


# ---- messages ----


class Failure(NamedTuple):
    """An exception of a worker, the index of the sample that was being read, and the traceback as text.

    An exception that comes with its traceback needs no text: it is made of that where it is raised.
    """

    error: BaseException
    at: Any = None
    text: str | None = None


def failed(worker: str, number: int, job: Job | None, failure: Failure) -> WorkerError:
    """Return the error for an exception of a worker; `worker` is its name in the message."""
    where = " while it was starting" if job is None else while_reading(job, failure.at)
    error = failure.error
    text = "".join(traceback.format_exception(error)) if failure.text is None else failure.text
    made = worker_error(f"{type(error).__name__} in {worker}{where}: {error}\n\n{text}", number, job)
    made.__cause__ = error
    return made


# As many indices of a batch as a message shows.
_SHOWN = 8


def while_reading(job: Job | None, at: Any = None) -> str:
    """Return a description of the batch and sample that a worker was reading, for a message."""
    if job is None:
        return ""
    text = f" while it was reading batch {job.number}"
    if at is not None:
        text += f", sample {at!r}"
    indices: Any = job.indices
    if isinstance(indices, list | tuple):
        indices = cast("list[Any]", indices)
        listed = ", ".join(repr(index) for index in indices[:_SHOWN])
        text += f", of indices [{listed}{', ...' if len(indices) > _SHOWN else ''}]"
    elif job.indices is not None and at is None:
        text += f", sample {job.indices!r}"
    return text


def worker_error(message: str, worker: int, job: Job | None) -> WorkerError:
    """Return the error of a worker and the job that it was at."""
    return WorkerError(message, worker, None if job is None else job.number, None if job is None else job.indices)
