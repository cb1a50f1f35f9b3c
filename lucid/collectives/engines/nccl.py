"""Collectives of CUDA arrays through nccl4py: on a stream of their own, behind what writes the arrays."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.backend import gpu
from lucid.backend.arrays import astype, namespace
from lucid.backend.capture import capture_of_this_thread, check_not_capturing, note_arrays
from lucid.backend.locks import new_rlock
from lucid.collectives.engines.base import Engine
from lucid.collectives.engines.communicator import IN_PROGRESS, SUCCESS, library, settle
from lucid.collectives.engines.forms import Form, form_of
from lucid.collectives.job.watchdog import WATCHDOG, Flight
from lucid.collectives.reduction import ReduceOp, tree_sum
from lucid.errors import CaptureError, DeviceError, DistributedError, DistributedTimeoutError, SettingError
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.backend.arrays import Array
    from lucid.collectives.engines.communicator import Peers
    from lucid.collectives.work import Steps, Work

__all__ = ["NcclEngine"]


class NcclEngine(Engine):
    """Collectives of a group of processes, each on the CUDA arrays of one device.

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
        self.watch.engines.append(self)
        WATCHDOG.look_after(self)

    # ---- the communicator ----

    def without(self, ranks: Sequence[int]) -> NcclEngine:
        """Return the engine of those that are left without some processes; all of them call this."""
        made = NcclEngine(self.peers.without(ranks), self.limit)
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

    def _ready(self, *arrays: Array | None) -> None:
        """Have a communicator for the device of `arrays`, or raise, alike in all processes."""
        index = next((gpu.device_index(array) for array in arrays if array is not None), gpu.current_device())
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
        with self._lock, gpu.use_device(self.device):
            self.progress()
            self._limit = work.group.timeout
            current = gpu.current_stream(self.device)
            captured = gpu.is_capturing()
            start = gpu.mark(current)
            self.stream.wait_event(start)
            try:
                with self.watch.waiting(work), gpu.use_stream(self.stream, self.device):
                    for _ in work.steps:
                        pass
            except Exception as error:
                if captured:
                    raise
                late = isinstance(error, DistributedTimeoutError)
                work.fail(self.watch.overdue(work, self._limit) if late else error)
                self.abort()
                return
            work.end = gpu.mark(self.stream)
            if captured:
                self._watch_replays(work)
                return
            work.flight = Flight(work.call, work.group.timeout, start, work.end, work, work.kept)
            work.made_on = current.ptr
            self.under_way.append(work.flight)
        WATCHDOG.wake()

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
        """Look after what was queued."""
        with self._lock:
            self.under_way.append(flight)
        WATCHDOG.wake()

    def progress(self) -> None:
        with self._lock:
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
        """Return whether something is under way; let it fail where it can never end, or takes too long."""
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
            for each in self.under_way:
                if each.work is not None:
                    each.work.fail(error)
            self.watch.broken = self.unsaid = True
            self.abort()
        return False

    def _state(self) -> DistributedError | None:
        """Return what NCCL has noticed since."""
        state = SUCCESS if self.comm is None else int(self.comm.get_async_error())
        if self.comm is None or state in {SUCCESS, IN_PROGRESS}:
            return None
        return self.peers.failure(f"{self.core.get_error_string(state)}: {self.comm.get_last_error()}")

    def _overdue(self, flight: Flight) -> DistributedError | None:
        """Return why what the device is at will not end, if a process is missing or its time is over."""
        self.watch.receive()
        work = flight.work
        missing = None if work is None else self.watch.missing(work)
        if missing is not None or not flight.is_late(time.monotonic()):
            return missing
        if work is None:
            return self.peers.overdue(str(flight.call), flight.limit)
        return self.watch.overdue(work, flight.limit)

    def abort(self) -> None:
        """Give the communicator up, by which the device ends what it is at; results are of no use."""
        with self._lock:
            self.failed = True
            comm, self.comm = self.comm, None
            self._lost += self.under_way
            self.under_way.clear()
            if comm is not None:
                comm.abort()

    # ---- collectives ----

    def _call(self, name: str, *args: Any) -> None:
        note_arrays(args)
        try:
            getattr(self.comm, name)(*args, stream=self.stream.ptr)
        except Exception as error:
            raise self.peers.failure(error) from error
        self._settle()

    def _settle(self) -> None:
        settle(self.comm, self.peers, "a collective", self._limit, self._limit)

    def all_reduce(self, array: Array, op: ReduceOp) -> Steps:
        form = form_of(array, op)
        self._ready(array)
        return self._all_reduce(array, form)

    def _all_reduce(self, array: Array, form: Form) -> Steps:
        if array.size:
            given = form.given(array)
            self._call("allreduce", given, given, self.core.NcclRedOp[form.name])
            if form.copies:
                form.store(array, given)
        yield

    def reduce(self, array: Array, op: ReduceOp, root: int) -> Steps:
        form = form_of(array, op)
        self._ready(array)
        return self._reduce(array, form, root)

    def _reduce(self, array: Array, form: Form, root: int) -> Steps:
        if array.size:
            given = form.given(array)
            self._call("reduce", given, given, self.core.NcclRedOp[form.name], root)
            if form.copies and root == self.peers.index:
                form.store(array, given)
        yield

    def reduce_scatter(self, into: Array, array: Array, op: ReduceOp) -> Steps:
        form = form_of(array, op)
        self._ready(array)
        return self._reduce_scatter(into, array, form)

    def _reduce_scatter(self, into: Array, array: Array, form: Form) -> Steps:
        if array.size:
            given = form.given(_apart(array, into))
            result = namespace(given).empty(into.size, given.dtype) if form.copies else form.given(into)
            self._call("reduce_scatter", given, result, self.core.NcclRedOp[form.name])
            if form.copies:
                form.store(into, result)
        yield

    def tree_all_reduce(self, array: Array) -> Steps:
        self._ready(array)
        return self._tree_all_reduce(array)

    def _tree_all_reduce(self, array: Array) -> Steps:
        if array.size:
            xp, count, size = namespace(array), self.size, array.size
            part = -(-size // count)
            wide = xp.zeros(part * count, accumulation_dtype(array.dtype))
            wide[:size] = astype(array.reshape(-1), wide.dtype)
            rows = xp.empty((count, part), wide.dtype)
            self._call("alltoall", _bytes(wide), _bytes(rows))
            total = xp.ascontiguousarray(tree_sum(list(rows)))
            self._call("allgather", _bytes(total), _bytes(wide))
            array[...] = astype(wide[:size].reshape(array.shape), array.dtype)
        yield

    def broadcast(self, array: Array, root: int) -> Steps:
        self._ready(array)
        return self._moved("broadcast", array, array, root)

    def all_gather(self, into: Array, array: Array) -> Steps:
        self._ready(array)
        return self._moved("allgather", array, into)

    def gather(self, into: Array | None, array: Array, root: int) -> Steps:
        self._ready(array)
        return self._moved("gather", array, into, root)

    def scatter(self, into: Array, array: Array | None, root: int) -> Steps:
        self._ready(into)
        return self._moved("scatter", array, into, root)

    def _moved(self, name: str, array: Array | None, into: Array | None, *root: int) -> Steps:
        """Move bytes; `array` or `into` are None where a process sends or receives nothing."""
        whole = into if array is None else array
        if whole is not None and whole.size:
            if array is not None and into is not None and array is not into:
                array = _apart(array, into)
            self._call(name, *[None if each is None else _bytes(each) for each in (array, into)], *root)
        yield

    def all_to_all(self, into: Array, array: Array, received: Sequence[int], sent: Sequence[int]) -> Steps:
        self._ready(array)
        return self._all_to_all(into, array, received, sent)

    def _all_to_all(self, into: Array, array: Array, received: Sequence[int], sent: Sequence[int]) -> Steps:
        source, target = _bytes(_apart(array, into)), _bytes(into)
        size, begin, at = array.itemsize, 0, 0
        with self.core.group():
            for peer in range(self.size):
                give, take = size * sent[peer], size * received[peer]
                for name, part in (("send", source[begin : begin + give]), ("recv", target[at : at + take])):
                    if part.size:
                        note_arrays([part])
                        getattr(self.comm, name)(part, peer, stream=self.stream.ptr)
                begin, at = begin + give, at + take
        self._settle()
        yield

    def send(self, array: Array, peer: int, tag: int) -> Steps:
        return self._pair("send", array, peer, tag)

    def recv(self, array: Array, peer: int, tag: int) -> Steps:
        return self._pair("recv", array, peer, tag)

    def _pair(self, name: str, array: Array, peer: int, tag: int) -> Steps:
        if tag:
            raise SettingError(f"{name}: tag: NCCL tells messages apart by their order alone: expected 0, got {tag}")
        self._ready(array)
        return self._paired(name, array, peer)

    def _paired(self, name: str, array: Array, peer: int) -> Steps:
        if array.size:
            self._call(name, _bytes(array), peer)
        yield

    def barrier(self) -> Steps:
        self._ready()
        return self._barrier()

    def _barrier(self) -> Steps:
        here = gpu.cupy().zeros(1, np.int32)
        self._call("allreduce", here, here, self.core.NcclRedOp.SUM)
        yield


class _Replays:
    """What lets the replays of one graph be looked after."""

    def __init__(self, engine: NcclEngine, limit: float) -> None:
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


def _bytes(array: Any) -> Any:
    """Return the memory of a contiguous array, as bytes: what is moved needs no type of NCCL's."""
    return array.reshape(-1).view(np.uint8)


def _apart(array: Any, into: Any) -> Any:
    """Return `array`, or a copy of it if it shares memory with `into`, which NCCL does not allow."""
    shares = array.data.ptr < into.data.ptr + into.nbytes and into.data.ptr < array.data.ptr + array.nbytes
    return array.copy() if shares else array
