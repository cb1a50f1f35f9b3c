"""A communicator of one process, which can be stuck or fail, and marks in streams that come when a test says so."""

from __future__ import annotations

import contextlib
from enum import IntEnum
from types import SimpleNamespace

from lucid.base import gpu
from lucid.collectives.engines.communicator import Peers
from lucid.collectives.engines.nccl import NcclEngine
from lucid.collectives.group import ProcessGroup
from lucid.collectives.job.watch import Watch


class Address:
    """A stream by its address, in the protocol by which libraries take each other's."""

    def __init__(self, address):
        self.address = address

    def __cuda_stream__(self):
        return 0, self.address


def on_stream(address):
    """Return the block in which CuPy queues on a stream that NCCL is given."""
    return gpu.cupy().cuda.Stream.from_external(Address(address))


class NcclRedOp(IntEnum):
    """Operations."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4


class Communicator:
    """It copies on the stream that it is given, and says of itself what a test has set."""

    def __init__(self, log):
        self.log = log
        self.state = 0
        self.aborted = False
        self.sent = []

    def _copy(self, source, target, stream):
        with on_stream(stream):
            if target.data.ptr != source.data.ptr:
                target.reshape(-1)[...] = source.reshape(-1)
            else:
                source += 0  # as NCCL, it reads and writes

    def reduce(self, sendbuf, recvbuf, op, root=None, *, stream=None):
        self.log.append(("allreduce" if root is None else "reduce", stream, sendbuf.dtype.name, op.name))
        self._copy(sendbuf, recvbuf, stream)

    def allreduce(self, sendbuf, recvbuf, op, *, stream=None):
        self.reduce(sendbuf, recvbuf, op, stream=stream)

    reduce_scatter = allreduce

    def gather(self, sendbuf, recvbuf, root=None, *, stream=None):
        self.log.append(("moved", stream))
        self._copy(sendbuf, recvbuf, stream)

    allgather = alltoall = broadcast = scatter = gather

    def send(self, sendbuf, peer, *, stream=None):
        self.sent.append(sendbuf)

    def recv(self, recvbuf, peer, *, stream=None):
        self.gather(self.sent.pop(0), recvbuf, stream=stream)

    def get_async_error(self):
        return self.state

    def get_last_error(self):
        return "a cable"

    def abort(self):
        self.aborted = True
        self.state = 0


class Library:
    """In the place of `nccl.core`."""

    NcclRedOp = NcclRedOp

    def __init__(self):
        self.log = []
        self.state = 0
        self.made = []
        self.Communicator = SimpleNamespace(init=self.init)

    def init(self, nranks, rank, unique_id, config=None):
        made = Communicator(self.log)
        made.state = self.state
        self.made.append(made)
        return made

    def group(self):
        return contextlib.nullcontext()

    def NCCLConfig(self, *, blocking):
        assert blocking is False

    def get_unique_id(self):
        return None

    def get_error_string(self, nccl_result):
        return f"error {nccl_result}"


class Marks:
    """In the place of `gpu.mark`: marks are reached unless a test holds them back."""

    def __init__(self, log):
        self.log = log
        self.mark = gpu.mark
        self.held = False  # those behind the engine's work
        self.engine = None

    def __call__(self, stream):
        return Mark(self, stream)


class Mark:
    """An event at the end of what is queued on a stream."""

    def __init__(self, marks, stream):
        self._marks = marks
        self._event = marks.mark(stream)
        self.ptr = self._event.ptr
        self.side = marks.engine is not None and stream is marks.engine.stream
        marks.log.append(("record", stream.ptr, self.ptr))

    @property
    def done(self):
        return not (self.side and self._marks.held)


def group_of_one(library, timeout=60.0):
    """Return a group of this process alone, over NCCL, and its engine."""
    watch = Watch.of_one()
    engine = NcclEngine(Peers("one", (0,), watch, None), timeout)
    assert engine.core is library
    return ProcessGroup("one", (0,), watch, timeout, {"cuda": lambda: engine}), engine
