"""nccl4py's names and signatures, as lucid uses them, with MPI in the place of NCCL.

As a communicator that does not block, it begins with what it was called for and goes on while `get_async_error` is
asked. What it cannot do raises as there: other dtypes, buffers that are too small. MIN and MAX let NaN drop, and sums
of half types are rounded each time, as NCCL is free to do. `tests/collectives/engines/test_communicator.py` compares
with nccl4py where it is installed.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI

from lucid.base import gpu
from tests.collectives.engines.alone import NcclRedOp, on_stream

SUCCESS, INTERNAL_ERROR, IN_PROGRESS = 0, 3, 7
DTYPES = {
    "bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16"
}  # fmt: skip
_queued = None  # in a group: what is begun at its end


class NcclInvalid(Exception):
    """What nccl4py raises of arguments."""


class CommShrinkFlag(IntEnum):
    """How a communicator becomes smaller."""

    DEFAULT = 0
    ABORT = 1


@dataclass(kw_only=True)
class NCCLConfig:
    """Settings of a communicator."""

    blocking: bool | None = None


class UniqueId:
    """Which process the others of a communicator meet, and under which tag."""

    made = 0

    def __init__(self, _internal=None):
        self.numbers = np.zeros(16, np.int64) if _internal is None else _internal

    def __bytes__(self):
        return self.numbers.tobytes()

    @staticmethod
    def from_bytes(b):
        return UniqueId(np.frombuffer(bytes(b), np.int64).copy())


def get_unique_id(empty=False):
    """Return a new one, of this process."""
    made = UniqueId()
    if not empty:
        UniqueId.made += 1
        made.numbers[:2] = MPI.COMM_WORLD.rank, UniqueId.made
    return made


def get_version():
    """Return versions; of a library for no CUDA version in particular."""
    return SimpleNamespace(libnccl=SimpleNamespace(cuda_variant=None))


def get_error_string(nccl_result):
    """Return the text of a result."""
    return {INTERNAL_ERROR: "internal error"}.get(int(nccl_result), "no error")


@contextlib.contextmanager
def group():
    """Let sends and receives begin together."""
    global _queued
    _queued = []
    try:
        yield
    finally:
        posted, _queued = _queued, None
        if posted:
            posted[0][0]._do(_all_of([each for _, each in posted]))


def _all_of(posts):
    """Begin all, then end all."""
    ends = [post() for post in posts]
    requests = [request for request, _ in ends]
    yield from _until(requests)
    for _, end in ends:
        end()


def _until(requests):
    while not all(request.Test() for request in requests):
        yield


def _host(buffer, stream):
    if not isinstance(buffer, gpu.cupy().ndarray) or buffer.dtype.name not in DTYPES:
        raise NcclInvalid(f"Unsupported data type: {getattr(buffer, 'dtype', type(buffer))}")
    assert buffer.flags.c_contiguous
    with on_stream(stream):
        host = buffer.get()
    return host.view(np.uint8) if host.dtype == bool else host


def _store(buffer, host, stream):
    with on_stream(stream):
        buffer.set(np.ascontiguousarray(host).view(buffer.dtype).reshape(buffer.shape))


def _reduced(rows, op):
    total = rows[0]
    for row in rows[1:]:
        function = {
            NcclRedOp.SUM: np.add, NcclRedOp.AVG: np.add, NcclRedOp.PROD: np.multiply, NcclRedOp.MAX: np.fmax,
            NcclRedOp.MIN: np.fmin,
        }[op]  # fmt: skip
        total = function(total, row)
    return total / np.asarray(len(rows), total.dtype) if op == NcclRedOp.AVG else total


def _check(condition, words):
    if not condition:
        raise NcclInvalid(words)


class Communicator:
    """Processes, connected by MPI."""

    def __init__(self, ptr=None):
        self._comm = None
        self._tasks = []
        self.nranks = self.rank = None
        self._world = []

    # ---- as it is made and ends ----

    @classmethod
    def init(cls, nranks, rank, unique_id, config=None):
        assert config is not None
        assert config.blocking is False
        made = cls()
        made.nranks, made.rank = nranks, rank
        root, tag = (int(number) for number in unique_id.numbers[:2])
        made._do(made._meet(root, tag))
        return made

    def _meet(self, root, tag):
        """Learn from the process of the identity which processes there are, and connect with them."""
        world, ranks = MPI.COMM_WORLD, np.zeros(self.nranks, np.int64)
        ranks[self.rank] = world.rank
        if world.rank == root:
            said = np.zeros((self.nranks - 1, 2), np.int64)
            yield from _until([world.Irecv(row, MPI.ANY_SOURCE, tag) for row in said])
            for place, rank in said:
                ranks[place] = rank
            yield from _until([world.Isend(ranks, rank, tag) for rank in ranks if rank != root])
        else:
            yield from _until([world.Isend(np.array([self.rank, world.rank]), root, tag)])
            yield from _until([world.Irecv(ranks, root, tag)])
        self._world = ranks.tolist()
        self._comm = world.Create_group(world.group.Incl(self._world), tag)

    def shrink(self, exclude_ranks=None, config=None, flag=CommShrinkFlag.DEFAULT):
        left = [rank for index, rank in enumerate(self._world) if index not in exclude_ranks]
        made = type(self)()
        made.nranks, made.rank, made._world = len(left), left.index(MPI.COMM_WORLD.rank), left
        made._comm = MPI.COMM_WORLD.Create_group(MPI.COMM_WORLD.group.Incl(left), 31_000)
        return made

    def finalize(self):
        pass

    def destroy(self):
        self._comm = None

    def abort(self):
        self._comm = None
        self._tasks.clear()

    def get_async_error(self):
        while self._tasks:
            try:
                next(self._tasks[0])
            except StopIteration:
                self._tasks.pop(0)
            else:
                return IN_PROGRESS
        return SUCCESS

    def get_last_error(self):
        return ""

    def _do(self, task):
        self._tasks.append(task)
        self.get_async_error()

    # ---- collectives ----

    def _gathered(self, host):
        rows = np.empty((self.nranks, *host.shape), host.dtype)
        yield from _until([self._comm.Iallgather(host.view(np.uint8), rows.view(np.uint8))])
        return rows

    def reduce(self, sendbuf, recvbuf, op, root=None, *, stream=None, config=None):
        host = _host(sendbuf, stream)

        def task():
            rows = yield from self._gathered(host)
            if root in {None, self.rank}:
                _store(recvbuf, _reduced(rows, op), stream)

        if root in {None, self.rank}:
            _check(recvbuf.dtype == sendbuf.dtype and recvbuf.size >= sendbuf.size, "reduce: buffers")
        self._do(task())

    def allreduce(self, sendbuf, recvbuf, op, *, stream=None, config=None):
        self.reduce(sendbuf, recvbuf, op, stream=stream)

    def reduce_scatter(self, sendbuf, recvbuf, op, *, stream=None, config=None):
        host = _host(sendbuf, stream)
        part = sendbuf.size // self.nranks
        _check(part >= 1 and recvbuf.size >= part and recvbuf.dtype == sendbuf.dtype, "reduce_scatter: buffers")

        def task():
            rows = yield from self._gathered(host)
            _store(recvbuf, _reduced(rows, op)[self.rank * part : (self.rank + 1) * part], stream)

        self._do(task())

    def gather(self, sendbuf, recvbuf, root=None, *, stream=None, config=None):
        host = _host(sendbuf, stream)

        def task():
            rows = yield from self._gathered(host)
            if root in {None, self.rank}:
                _store(recvbuf, rows, stream)

        if root in {None, self.rank}:
            _check(recvbuf.size == self.nranks * sendbuf.size, "gather: buffers")
        self._do(task())

    def allgather(self, sendbuf, recvbuf, *, stream=None, config=None):
        self.gather(sendbuf, recvbuf, stream=stream)

    def broadcast(self, sendbuf, recvbuf, root, *, stream=None, config=None):
        host = _host(recvbuf if sendbuf is None or self.rank != root else sendbuf, stream)

        def task():
            yield from _until([self._comm.Ibcast(host.view(np.uint8), root)])
            if self.rank != root:
                _store(recvbuf, host, stream)

        self._do(task())

    def scatter(self, sendbuf, recvbuf, root, *, stream=None, config=None):
        size = recvbuf.size
        host = _host(sendbuf, stream) if self.rank == root else np.empty(self.nranks * size, recvbuf.dtype)
        _check(host.size == self.nranks * size, "scatter: buffers")

        def task():
            yield from _until([self._comm.Ibcast(host.view(np.uint8), root)])
            _store(recvbuf, host[self.rank * size : (self.rank + 1) * size], stream)

        self._do(task())

    def alltoall(self, sendbuf, recvbuf, *, stream=None, config=None):
        host = _host(sendbuf, stream)
        _check(sendbuf.size >= self.nranks and recvbuf.size >= sendbuf.size, "alltoall: buffers")

        def task():
            into = np.empty_like(host)
            yield from _until([self._comm.Ialltoall(host.view(np.uint8), into.view(np.uint8))])
            _store(recvbuf, into, stream)

        self._do(task())

    def send(self, sendbuf, peer, *, stream=None):
        host = _host(sendbuf, stream)
        self._post(lambda: (self._comm.Isend(host.view(np.uint8), peer), lambda: None))

    def recv(self, recvbuf, peer, *, stream=None):
        host = _host(recvbuf, stream)
        self._post(lambda: (self._comm.Irecv(host.view(np.uint8), peer), lambda: _store(recvbuf, host, stream)))

    def _post(self, post):
        if _queued is None:
            self._do(_all_of([post]))
        else:
            _queued.append((self, post))
