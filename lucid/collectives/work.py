"""A collective under way."""

from __future__ import annotations

import time
from collections.abc import Generator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from lucid.arguments import unfit
from lucid.errors import SettingError
from lucid.futures import Future

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import TensorBase
    from lucid.collectives.engines.base import Engine
    from lucid.collectives.group import ProcessGroup
    from lucid.collectives.job.watchdog import Flight


# What a collective does: it yields what it has begun, a request of the engine's, and goes on when that is complete.
Steps: TypeAlias = Generator[Any, None, None]

T = TypeVar("T")

# So often a wait looks again at once, before it begins to sleep in between.
_SPINS = 200
_LONGEST_SLEEP = 0.001


class Call(NamedTuple):
    """A collective call, to be equal in all processes.

    Attributes
    ----------
    kind : str
        The public function.
    number : int
        The how manieth collective of its group it is, from 1 on; 0 for what two processes do among themselves.
    text : str
        What of the call is equal in all processes, in words.
    peer : int
        The other process of `send` and `recv`, in the whole job; -1 where there is none.
    """

    kind: str
    number: int
    text: str
    peer: int = -1

    def __str__(self) -> str:
        number = f"collective {self.number}, " if self.number else ""
        return f"{number}{self.kind}{self.text and ' of ' + self.text}"


def as_seconds(timeout: object, name: str) -> float:
    """Return a time limit, a timedelta or a number of seconds, in seconds.

    Raises
    ------
    ArgumentError
        If it is neither.
    SettingError
        If it is not above zero.
    """
    if isinstance(timeout, timedelta):
        seconds = timeout.total_seconds()
    elif isinstance(timeout, int | float) and not isinstance(timeout, bool):
        seconds = float(timeout)
    else:
        raise unfit(timeout, "a datetime.timedelta, or seconds", name)
    if not seconds > 0:
        raise SettingError(f"{name}: expected more than 0 seconds, got {seconds:g}")
    return seconds


class Work:
    """A collective under way, as ``async_op=True`` returns it.

    Its tensors may be neither read nor written before `wait` has returned. MPI gets on only while lucid's functions of
    this module are called, `is_completed` among them, and in every hook of `DistributedDataParallel`. On CUDA devices
    what is queued after `wait` comes behind it, while `is_completed` tells whether the device is done.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2)
    >>> work = lucid.distributed.all_reduce(x, async_op=True)
    >>> work.wait(), work.is_completed(), x
    (True, True, tensor([1., 1.]))
    """

    def __init__(self, group: ProcessGroup, engine: Engine, call: Call, steps: Steps, phases: int = 1) -> None:
        self.group = group
        self.engine = engine
        self.call = call
        self.steps = steps
        # of a collective that begins a second one inside of it: that has to begin in the same order in all processes
        self.phases = phases
        self.phase = 0
        self.request: Any = None
        self.signature: Any = None  # what is compared among processes, until it is
        self.done = False
        self.error: BaseException | None = None
        self.started = time.perf_counter()
        self.finished: float | None = None
        self.tensors: list[TensorBase] = []  # what it writes
        # of one that a device computes: the event behind it, what is looked after until then, what holds its arrays,
        # and the stream that they belong to
        self.end: Any = None
        self.flight: Flight | None = None
        self.kept: object = None
        self.made_on: int | None = None
        self._then: list[Callable[[Work], object]] = []

    def is_completed(self) -> bool:
        """Return whether the collective has ended, successfully or not, after progressing it if this process must."""
        return self.engine.is_completed(self)

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Return True when the collective has ended and its results can be read.

        Of CUDA tensors the current stream waits, and the host does not, unless `timeout` is given.

        Parameters
        ----------
        timeout : timedelta or float, optional
            How long to wait at most, in seconds if it is a number; as a rule that of the group.

        Raises
        ------
        DistributedTimeoutError
            If it takes longer: it names this process, the collective, and the processes that have not called it.
        DistributedError
            If it has failed, or can never end, because another process has failed or left.
        """
        limit = self.group.timeout if timeout is None else as_seconds(timeout, "Work.wait: timeout")
        self.engine.wait(self, limit, asked=timeout is not None)
        if self.error is not None:
            raise self.error
        return True

    def get_future(self) -> Future[list[TensorBase]]:
        """Return the future of the tensors that the collective writes, set when it has ended.

        Its `wait`, and that of what its `then` returns, move the collective on.
        """
        future: WorkFuture[list[TensorBase]] = WorkFuture(self)

        def settle(_: Work) -> None:
            if self.error is None:
                future.set_result(self.tensors)
            else:
                future.set_exception(self.error)

        self.then(settle)
        return future

    def polled(self, limit: float) -> None:
        """Wait by looking again and again, with pauses that grow."""
        with self.engine.watch.waiting(self):
            self._look(limit)

    # a function of its own, as the jump back of its loop lies outside of the handlers around it
    def _look(self, limit: float) -> None:
        deadline = time.monotonic() + limit
        watch = self.engine.watch
        tries = 0
        while not self.is_completed():
            watch.look(self)
            if time.monotonic() > deadline:
                self.fail(watch.overdue(self, limit))
                break
            tries += 1
            time.sleep(0.0 if tries < _SPINS else min(_LONGEST_SLEEP, 1e-5 * (tries - _SPINS)))

    def then(self, function: Callable[[Work], object]) -> None:
        """Have ``function(self)`` called when this has ended, well or not."""
        if self.done:
            function(self)
        else:
            self._then.append(function)

    def finish(self) -> None:
        """Take note that it has ended well."""
        self.finished = time.perf_counter()
        self.group.last = self.call
        self.release()

    def fail(self, error: BaseException) -> None:
        """Take note that it will never end well, and that its group is of no use any more."""
        if self.error is None:
            self.error = error
            self.group.broken = self.group.broken or str(error)
            self.engine.watch.broken = True
        self.release()

    def release(self) -> None:
        """Call the functions waiting for it: it has ended, or later work on the stream is ordered behind its end."""
        self.done = True
        self.request = None
        waiting, self._then = self._then, []
        for function in waiting:
            function(self)


class WorkFuture(Future[T]):
    """The future of a collective: waiting for it moves the collective on."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.work = work

    def done(self) -> bool:
        """Tell whether the collective has ended."""
        self.work.is_completed()
        return super().done()

    def wait(self) -> T:
        """Return the value when the collective has ended, or raise its error."""
        self.work.wait()
        return super().wait()

    def after(self) -> Future[Any]:
        """Return the future of a callback of this one: it waits in the same way."""
        return WorkFuture(self.work)
