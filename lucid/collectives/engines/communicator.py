"""How a communicator of NCCL comes to be, through nccl4py; no wait for it is without an end."""

from __future__ import annotations

import functools
import os
import time
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.collectives.engines.mpi import CALLS
from lucid.errors import DistributedError, DistributedTimeoutError, SettingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.collectives.job.watch import Watch
    from lucid.collectives.work import Work


_INSTALL = "pip install 'lucid-cupy[nccl13]', which brings nccl4py and NCCL for CUDA 13"
_ID_BYTES = 128  # of ncclUniqueId
_TAGS = 32_000
SUCCESS, IN_PROGRESS = 0, 7
"""Of ncclResult_t."""
_PAUSE = 0.0002


@functools.cache
def library() -> Any:
    """Return `nccl.core`, found to have a library of NCCL for the CUDA version of CuPy.

    Raises
    ------
    DistributedError
        If something of it is missing, or is for another version of CUDA.
    """
    try:
        core: Any = import_module("nccl.core")
    except ImportError as error:
        raise DistributedError(f"CUDA tensors go through NCCL, by nccl4py ({error}): {_INSTALL}") from error
    version = core.get_version().libnccl
    if version is None:
        raise DistributedError(f"CUDA tensors go through NCCL, and nccl4py finds no libnccl.so.2: {_INSTALL}")
    ours = gpu.cupy().cuda.runtime.runtimeGetVersion() // 1000
    if version.cuda_variant is not None and version.cuda_variant.major != ours:
        raise DistributedError(
            f"CuPy is for CUDA {ours}, and the NCCL that nccl4py has found ({version}) is for CUDA "
            f"{version.cuda_variant.major}: expected one version; pip install 'lucid-cupy[cuda13,nccl13]' brings both "
            "for CUDA 13"
        )
    return core


class Peers:
    """The processes of a group, with everything that each needs to connect with the others.

    Parameters
    ----------
    name : str
        Of the group, the same in all of its processes.
    ranks : sequence of int
        Their numbers in the job.
    watch : Watch
        That of the job.
    comm : mpi4py.MPI.Comm or None
        Of all processes of the job; None where MPI has not started it.
    """

    def __init__(self, name: str, ranks: Sequence[int], watch: Watch, comm: Any) -> None:
        self.name = name
        self.ranks = tuple(ranks)
        self.watch = watch
        self.comm = comm
        self.index = self.ranks.index(watch.rank)

    def __str__(self) -> str:
        return f"rank {self.watch.rank} of {self.watch.size}, in group {self.name!r} of {len(self.ranks)} processes"

    def without(self, ranks: Sequence[int]) -> Peers:
        """Return the remaining peers after removing `ranks`, all of them other processes."""
        remaining = [rank for rank in self.ranks if rank not in ranks]
        return Peers(f"{self.name} without {', '.join(map(str, ranks))}", remaining, self.watch, self.comm)

    def connect(self, limit: float) -> Any:
        """Return a communicator on the current device; all processes call this, and are waited for.

        Raises
        ------
        DistributedTimeoutError
            If they are not there within `limit` seconds.
        DistributedError
            If NCCL cannot connect them, or one has failed.
        SettingError
            If an address is needed, and MASTER_ADDR or MASTER_PORT is missing.
        """
        core = library()
        deadline = time.monotonic() + limit
        identity = self._identity(core, deadline, limit)
        try:
            comm = core.Communicator.init(len(self.ranks), self.index, identity, core.NCCLConfig(blocking=False))
        except Exception as error:
            raise self.failure(error) from error
        settle(comm, self, "connecting through NCCL", deadline - time.monotonic(), limit)
        return comm

    def failure(self, error: object) -> DistributedError:
        """Return the error for one of NCCL's."""
        return DistributedError(
            f"{self}: NCCL says: {error}; NCCL_DEBUG=INFO in the environment lets it say more. Each process needs a "
            "GPU of its own, lucid.cuda.set_device(int(os.environ['LOCAL_RANK'])), and calls the same collectives"
        )

    def overdue(self, what: str, limit: float) -> DistributedTimeoutError:
        """Return the error of an operation that exceeded its time limit."""
        return DistributedTimeoutError(
            f"{self}: {what} has taken more than {limit:g} s: do all processes of the group compute the same "
            "collectives of CUDA tensors? A longer limit is set by init_process_group(timeout=)",
            rank=self.watch.rank,
        )

    def check(self, work: Work | None) -> None:
        """Raise `DistributedError` if a process that is waited for, in `work` if it is one, has failed or left."""
        self.watch.receive()
        if work is not None:
            error = self.watch.missing(work)
            if error is not None:
                raise error
            return
        for rank in self.ranks:
            if rank in self.watch.failed:
                raise DistributedError(f"{self}: rank {rank} has failed: {self.watch.failed[rank]}")
            if self.watch.has_ended(rank):
                raise DistributedError(f"{self}: rank {rank} has ended its script")

    def _identity(self, core: Any, deadline: float, limit: float) -> Any:
        """Return the identifier of the communicator, the same in all processes."""
        if len(self.ranks) == 1:
            return core.get_unique_id()
        if self.comm is None:
            self._publish_address()
            return core.get_unique_id()
        first, tag = self.ranks[0], zlib.crc32(self.name.encode()) % _TAGS
        identity = np.zeros(_ID_BYTES, np.uint8)
        with CALLS:
            if self.index:
                requests = [self.comm.Irecv(identity, first, tag)]
            else:
                identity[:] = np.frombuffer(bytes(core.get_unique_id()), np.uint8)
                requests = [self.comm.Isend(identity, rank, tag) for rank in self.ranks[1:]]

        def all_connected() -> bool:
            with CALLS:
                return all(request.Test() for request in requests)

        self.poll(all_connected, deadline, "the exchange of NCCL's identity", limit)
        return core.UniqueId.from_bytes(identity.tobytes())

    def _publish_address(self) -> None:
        """Let NCCL make the same identity in all processes, of the address of the first."""
        if os.environ.get("NCCL_COMM_ID"):
            return
        missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
        if missing:
            raise SettingError(
                f"{self}: without MPI, NCCL needs the address of rank 0: expected MASTER_ADDR and MASTER_PORT in the "
                f"environment, {' and '.join(missing)} {'are' if missing[1:] else 'is'} missing: torchrun and "
                "mpiexec by python -m lucid.distributed.run set them"
            )
        if self.ranks[0] != 0:
            raise DistributedError(
                f"{self}: without MPI, NCCL connects processes through rank 0, which is not the first of this group: "
                "start the job by mpiexec or python -m lucid.distributed.run for such groups"
            )
        port = int(os.environ["MASTER_PORT"])
        # torchrun's own store listens at the port that it gives
        port += os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        os.environ["NCCL_COMM_ID"] = f"{os.environ['MASTER_ADDR']}:{port}"

    def poll(
        self, condition: Callable[[], bool], deadline: float, what: str, limit: float, work: Work | None = None
    ) -> None:
        """Wait until `condition` holds; raise if that exceeds the deadline, or a process has failed."""
        while not condition():
            self.check(work)
            if time.monotonic() > deadline:
                raise self.overdue(what, limit)
            time.sleep(_PAUSE)


def settle(comm: Any, peers: Peers, what: str, remaining: float, limit: float, work: Work | None = None) -> None:
    """Wait until the pending call of a nonblocking communicator has completed in all processes.

    Raises
    ------
    DistributedTimeoutError
        If `left` seconds pass, of `limit` for all of it; the communicator is aborted.
    DistributedError
        If it has failed; the same.
    """

    def is_done() -> bool:
        state = int(comm.get_async_error())
        if state not in {SUCCESS, IN_PROGRESS}:
            raise peers.failure(f"{library().get_error_string(state)}: {comm.get_last_error()}")
        return state == SUCCESS

    try:
        peers.poll(is_done, time.monotonic() + remaining, what, limit, work)
    except BaseException:
        comm.abort()
        raise
