"""Collectives queued on a device through nccl4py: on a stream of their own, behind the writes of their arrays."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread, check_not_capturing, note_arrays
from lucid.base.locks import new_rlock
from lucid.collectives.engines.base import Engine
from lucid.collectives.engines.communicator import IN_PROGRESS, SUCCESS, library, settle
from lucid.collectives.job.watchdog import WATCHDOG, Flight
from lucid.errors import CaptureError, DeviceError, DistributedError, DistributedTimeoutError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from lucid.base.arrays import Array
    from lucid.collectives.engines.communicator import Peers
    from lucid.collectives.work import Work


class QueuedEngine(Engine):
    """The base of engines that compute on a device: communicator, stream, order, ends.

    All steps of a collective are queued at once on a stream of the engine's own, which waits for what was queued on the
    current one before; `Work.wait` lets the current stream wait for them. The communicator is made at the first
    collective, by all processes together, on the device of its arrays.

    Parameters
    ----------
    peers : Peers
        The processes of the group.
    limit : float
        For how many seconds they are waited for at first.

    Attributes
    ----------
    comm : nccl.core.Communicator or None
        None before the first collective, and after a failure.
    device : int
        Index of the CUDA device; -1 as long as there is no communicator.
    failed : bool
        Whether the communicator was aborted.
    unsaid : bool
        Whether that was while nobody waited, and no wait has raised the error since.
    """

    name = "nccl"

    def __init__(self, peers: Peers, limit: float) -> None:
        self.core = library()
        self.peers = peers
        self.watch = peers.watch
        self.limit = limit
        self.size = len(peers.ranks)
        self.comm: Any = None
        self.device = -1
        self.stream: Any = None
        self.failed = self.unsaid = False
        self.under_way: list[Flight] = []  # in the order in which the stream comes to them
        self._lost: list[Flight] = []  # of a failure: the device may still write into their memory
        self._lock = new_rlock()
        self._limit = limit
        self._first: Work | None = None  # of those that are being queued
        self._batch: list[Work] | None = None
        self._grouped = False
        self.watch.engines.append(self)
        WATCHDOG.look_after(self)

    # ---- the communicator ----

    def without(self, ranks: Sequence[int]) -> Self:
        """Return the engine of those that are left without some processes; all of them call this."""
        made = type(self)(self.peers.without(ranks), self.limit)
        with self._lock:
            if self.comm is not None:
                self._drain(self.limit)
                gone = [index for index, rank in enumerate(self.peers.ranks) if rank in ranks]
                with gpu.use_device(self.device):
                    try:
                        comm = self.comm.shrink(gone, self.core.NCCLConfig(blocking=False))
                    except Exception as error:
                        raise self.peers.failure(error) from error
                    settle(comm, made.peers, "connecting through NCCL", self.limit, self.limit)
                    made.use(comm, self.device)
        return made

    def use(self, comm: Any, device: int) -> None:
        """Take a communicator of the current device."""
        self.stream = gpu.cupy().cuda.Stream(non_blocking=True)
        self.comm, self.device = comm, device

    def ready(self, array: Array | None = None) -> None:
        """Have a communicator for the device of an array, or the current one, or raise, alike in all processes."""
        index = gpu.current_device() if array is None else gpu.device_index(array)
        if self.comm is None and not self.failed:
            if gpu.is_capturing():
                raise CaptureError(
                    "the first collective of a group, which connects its processes, cannot be captured in a CUDA "
                    "graph: call one before the capture"
                )
            with self._lock, gpu.use_device(index):
                self.use(self.peers.connect(self.limit), index)
        if index != self.device:
            raise DeviceError(
                f"{self.peers}: expected tensors on cuda:{self.device}, on which its first collective was, got one on "
                f"cuda:{index}: a process computes with one device in a group; choose it before, by "
                f"lucid.cuda.set_device({index})"
            )

    def close(self) -> None:
        with self._lock:
            self.watch.engines.remove(self)
            comm, self.comm = self.comm, None
            if comm is None:
                return
            try:
                comm.finalize()
                settle(comm, self.peers, "ending NCCL's communicator", self.limit, self.limit)
                comm.destroy()
            except DistributedError:  # a process is gone: nothing of this group is under way here
                comm.abort()

    def _drain(self, limit: float) -> None:
        """Return when nothing is under way."""
        deadline = time.monotonic() + limit
        while self.under_way:
            self.progress()
            if time.monotonic() > deadline:
                raise self.peers.overdue(str(self.under_way[0].call), limit)
            time.sleep(0.0005)

    # ---- works ----

    def begin(self, work: Work) -> None:
        if self._batch is None:
            self._start([work])
        else:
            self._batch.append(work)

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        self._batch = []
        try:
            yield
        finally:
            works, self._batch = self._batch, None
        if works:
            self._start(works)

    def _start(self, works: list[Work]) -> None:
        """Queue works, the first steps of several as one call of NCCL's."""
        with self._lock, gpu.use_device(self.device):
            self.progress()
            first = works[0]
            self._first, self._limit = first, first.group.timeout
            current = gpu.current_stream(self.device)
            captured = gpu.is_capturing()
            start = gpu.mark(current)
            self.stream.wait_event(start)
            try:
                with self.watch.waiting(first), gpu.use_stream(self.stream, self.device):
                    if len(works) > 1:
                        with self.grouped():
                            for work in works:
                                next(work.steps)
                    for work in works:
                        for _ in work.steps:
                            pass
            except Exception as error:
                if captured:
                    raise
                late = isinstance(error, DistributedTimeoutError)
                self._fail(works, self.watch.overdue(first, self._limit) if late else error)
                return
            end = gpu.mark(self.stream)
            for work in works:
                work.end = end
                if captured:
                    self._watch_replays(work)
                    continue
                work.flight = Flight(work.call, work.group.timeout, start, end, work, work.kept)
                work.made_on = current.ptr
                self.under_way.append(work.flight)
        WATCHDOG.wake()

    def _fail(self, works: Iterable[Work], error: BaseException) -> None:
        """Let works fail, and the device end them."""
        for work in works:
            work.fail(error)
        self.abort()

    def _watch_replays(self, work: Work) -> None:
        """Have each replay of the graph that is captured looked after as a whole."""
        capture = capture_of_this_thread()
        if capture is None or any(isinstance(each, _Replays) and each.engine is self for each in capture.kept):
            return
        replays = _Replays(self, work.group.timeout)
        capture.kept.append(replays)
        capture.before.append(replays.begin)
        capture.after.append(replays.end)

    def fly(self, flight: Flight) -> None:
        """Watch over a queued collective until it ends."""
        with self._lock:
            self.under_way.append(flight)
        WATCHDOG.wake()

    def progress(self) -> None:
        with self._lock:
            self._finish()

    # a function of its own, as the jump back of its loop lies outside of the handlers around it
    def _finish(self) -> None:
        """Finish the works that have ended; the lock is held."""
        while self.under_way and self.under_way[0].end.done:
            work = self.under_way.pop(0).work
            if work is not None:
                work.finish()

    def is_completed(self, work: Work) -> bool:
        if work.flight is None:  # captured: the device does it in replays
            return work.done
        self.watch.progress()
        return work.error is not None or work.finished is not None

    def wait(self, work: Work, limit: float, *, asked: bool) -> None:
        if asked and work.flight is None and work.error is None:
            check_not_capturing(f"a wait of the host for {work.call}")
        if asked and work.error is None:
            work.polled(limit)
            if work.error is not None:
                self.abort()
        if work.error is not None or work.end is None:
            self.unsaid = False
            return
        with gpu.use_device(self.device):
            current = gpu.current_stream(self.device)
            current.wait_event(work.end)
        if work.flight is not None and work.made_on == current.ptr:
            # what this stream is given next comes after it
            work.flight.kept = work.kept = None
        work.release()

    def check(self) -> bool:
        """Return whether a collective is under way; let it fail if it can never end, or exceeds its time limit."""
        if not self._lock.acquire(blocking=False):  # whoever holds it waits with a deadline of its own
            return True
        try:
            flight = next((flight for flight in self.under_way if not flight.end.done), None)
            if flight is None:
                return False
            error = self._state()
        finally:
            self._lock.release()
        # not under the lock: the host may hold MPI's, and want this one
        error = error or self._overdue(flight)
        if error is None:
            return True
        with self._lock:
            if flight.end.done:
                return True
            sys.stderr.write(f"rank {self.watch.rank} of {self.watch.size}: {error}\n")
            sys.stderr.flush()
            self.watch.broken = self.unsaid = True
            self._fail([each.work for each in self.under_way if each.work is not None], error)
        return False

    def _state(self) -> DistributedError | None:
        """Return the asynchronous error reported by NCCL, or None."""
        state = SUCCESS if self.comm is None else int(self.comm.get_async_error())
        if self.comm is None or state in {SUCCESS, IN_PROGRESS}:
            return None
        return self.peers.failure(f"{self.core.get_error_string(state)}: {self.comm.get_last_error()}")

    def _overdue(self, flight: Flight) -> DistributedError | None:
        """Return the error of a collective that will not end: a process is missing, or its time is over."""
        self.watch.receive()
        work = flight.work
        missing = None if work is None else self.watch.missing(work)
        if missing is not None or not flight.is_late(time.monotonic()):
            return missing
        if work is None:
            return self.peers.overdue(str(flight.call), flight.limit)
        return self.watch.overdue(work, flight.limit)

    def abort(self) -> None:
        """Abort the communicator, and with it the collectives on the device; their results are invalid."""
        with self._lock:
            self.failed = True
            comm, self.comm = self.comm, None
            self._lost += self.under_way
            self.under_way.clear()
            if comm is not None:
                comm.abort()

    # ---- calls ----

    def call(self, name: str, *args: Any) -> None:
        """Queue a call of the communicator on the engine's stream."""
        note_arrays(args)
        try:
            getattr(self.comm, name)(*args, stream=self.stream.ptr)
        except Exception as error:
            raise self.peers.failure(error) from error
        if not self._grouped:
            self._settle()

    @contextlib.contextmanager
    def grouped(self) -> Generator[None]:
        """Let calls inside begin together, so that none of them waits for another."""
        if self._grouped:
            yield
            return
        self._grouped = True
        try:
            with self.core.group():
                yield
        except DistributedError:
            raise
        except Exception as error:
            raise self.peers.failure(error) from error
        finally:
            self._grouped = False
        self._settle()

    def _settle(self) -> None:
        settle(self.comm, self.peers, "a collective", self._limit, self._limit, self._first)


class _Replays:
    """The watch over the replays of one graph."""

    def __init__(self, engine: QueuedEngine, limit: float) -> None:
        self.engine = engine
        self.limit = limit
        self.start: Any = None

    def begin(self) -> None:
        """Before a replay is queued on the current stream."""
        if self.engine.failed:
            raise DistributedError(
                f"{self.engine.peers}: a captured step with its collectives cannot go on: it has failed"
            )
        self.start = gpu.mark(gpu.current_stream())

    def end(self) -> None:
        """Behind it."""
        end = gpu.mark(gpu.current_stream())
        self.engine.fly(Flight("a replay of a captured step with collectives", self.limit, self.start, end))
