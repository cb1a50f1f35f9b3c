"""Worker threads: for datasets that release the interpreter's lock while reading, as decoders and files do."""

from __future__ import annotations

import copy
import queue
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lucid.base.interrupts import in_destructor
from lucid.base.random.generator import use_generator
from lucid.ops.creation.generators import Generator
from lucid.utils.data.dataset import IterableDataset
from lucid.utils.data.randomness import SampleStreams
from lucid.utils.data.reading import (
    Failure,
    Job,
    Outcome,
    Pass,
    WorkerInfo,
    failed,
    reader_of,
    set_worker_info,
    while_reading,
    worker_error,
)

if TYPE_CHECKING:
    from lucid.errors import WorkerError
    from lucid.utils.data.workers.worker_process import Setup

# Seconds in which threads that are no longer needed end; one that reads for longer ends after that, unheard.
_GRACE = 0.5


class ThreadWorkers:
    """Worker threads of one loader.

    Parameters
    ----------
    setup : Setup
        What each works with; all share the dataset.
    seeds : list of int
        Of the random streams of each.
    """

    def __init__(self, setup: Setup, seeds: list[int]) -> None:
        self._pass = 0
        self._jobs: list[dict[int, Job]] = [{} for _ in seeds]
        self._asked: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in seeds]
        self._said: queue.SimpleQueue[tuple[int, int, Any]] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(
                target=_run,
                args=(setup, seed, number, len(seeds), _Wires(self._asked[number], self._said, self._ended)),
                name=f"lucid worker {number}",
                daemon=True,
            )
            for number, seed in enumerate(seeds)
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        return len(self._threads)

    def begin(self, this: Pass) -> None:
        """Begin a pass: results of an earlier one are dropped on arrival."""
        self._pass += 1
        for jobs, asked in zip(self._jobs, self._asked, strict=True):
            jobs.clear()
            asked.put((self._pass, this))

    def load(self, number: int) -> int:
        """Return how many jobs of this pass a worker has."""
        return len(self._jobs[number])

    def send(self, number: int, job: Job) -> None:
        """Give a worker a job."""
        self._jobs[number][job.number] = job
        self._asked[number].put(job)

    def receive(self, worker: int, timeout: float) -> Outcome:
        """Return the next outcome of any worker, while waiting for a batch of `worker`.

        Raises
        ------
        WorkerError
            If nothing came for `timeout` seconds; 0 waits for ever.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                number, of_pass, result = self._said.get(
                    timeout=max(0.0, deadline - time.monotonic()) if timeout else None
                )
            except queue.Empty:
                raise self._silence(worker, timeout) from None
            if of_pass == -1:
                raise failed(self._named(number), number, None, result)
            if of_pass == self._pass:
                outcome: Outcome = result
                job = self._jobs[number].pop(outcome.number)
                if isinstance(outcome.result, Failure):
                    return Outcome(outcome.number, failed(self._named(number), number, job, outcome.result))
                return outcome

    def _named(self, number: int) -> str:
        return f"worker thread {number} of {len(self)}"

    def _silence(self, number: int, timeout: float) -> WorkerError:
        thread = self._threads[number]
        job = next(iter(self._jobs[number].values()), None)
        frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        text = "(it has ended)" if frame is None else "".join(traceback.format_stack(frame))
        return worker_error(
            f"DataLoader timed out after {timeout:g} seconds: {self._named(number)} was silent{while_reading(job)}; "
            f"it is here:\n\n{text}",
            number,
            job,
        )

    def __del__(self) -> None:
        if hasattr(self, "_threads"):
            in_destructor(self.close)

    def close(self) -> None:
        """End all workers; one that reads for longer than half a second ends when it has read."""
        self._ended.set()
        for asked in self._asked:
            asked.put(None)
        deadline = time.monotonic() + _GRACE
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))


class _Wires(NamedTuple):
    """The queues of a thread, and no reference that would keep its loader alive."""

    asked: queue.SimpleQueue[Any]
    said: queue.SimpleQueue[tuple[int, int, Any]]
    ended: threading.Event


def _run(setup: Setup, seed: int, number: int, count: int, wires: _Wires) -> None:
    parts = setup.parts
    if isinstance(parts.dataset, IterableDataset):
        parts = parts._replace(dataset=copy.copy(cast("Any", parts.dataset)))  # what it counts is its own
    set_worker_info(WorkerInfo(number, count, seed, parts.dataset))
    try:
        generator = Generator("cpu", seed)
        with use_generator(lambda: generator):
            if setup.worker_init_fn is not None:
                setup.worker_init_fn(number)
            reader = reader_of(parts, SampleStreams(python=False))
    except BaseException as error:  # noqa: BLE001  told to the training loop, whatever it is
        wires.said.put((number, -1, Failure(error)))
        return
    number_of_pass, this = 0, Pass(0, 0, [])
    started = True
    while (what := wires.asked.get()) is not None and not wires.ended.is_set():
        if not isinstance(what, Job):
            (number_of_pass, this), started = what, False
            continue
        result: Any
        try:
            if not started:
                reader.begin(this)
                started = True
            result = reader.read(what)
        except BaseException as error:  # noqa: BLE001  as above
            result = Failure(error, reader.at)
        wires.said.put((number, number_of_pass, Outcome(what.number, result)))
