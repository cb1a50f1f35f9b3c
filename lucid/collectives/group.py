"""Process groups, and the collectives that a process has begun in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from lucid.base.capture import capture_of_this_thread, captures, check_not_capturing
from lucid.collectives.job.agreement import agree, debugging
from lucid.collectives.work import Call, Work
from lucid.errors import DeviceError, DistributedError, SettingError
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.collectives.engines.base import Engine
    from lucid.collectives.job.watch import Watch
    from lucid.collectives.work import Steps


class ProcessGroup:
    """Processes that compute together, as `init_process_group` and `new_group` make them.

    Attributes
    ----------
    name : str
        In messages.
    ranks : tuple of int
        The numbers of its processes in the whole job; a process's number in the group is its place here.
    timeout : float
        For how many seconds a process waits for the others.
    started : int
        How many collectives this process has begun.
    last : Call or None
        The one that has ended last here.
    broken : str
        Why the group is of no use any more; empty while it is.

    Examples
    --------
    >>> import lucid
    >>> group = lucid.distributed.new_group()
    >>> group.rank(), group.size()
    (0, 1)
    """

    def __init__(
        self, name: str, ranks: Sequence[int], watch: Watch, timeout: float, engines: dict[str, Callable[[], Engine]]
    ) -> None:
        self.name = name
        self.ranks = tuple(ranks)
        self.timeout = timeout
        self.watch = watch
        self.started = 0
        self.last: Call | None = None
        self.broken = ""
        self.backends = tuple(engines)
        self.names = {"cpu": "mpi", "cuda": "nccl"}  # of backends, as the user calls them
        self._makers = engines
        self._engines: dict[str, Engine] = {}
        watch.started[name] = 0

    def __deepcopy__(self, memo: object) -> Self:
        """Return the group itself: a copy of its owner belongs to the same group."""
        return self

    def rank(self) -> int:
        """Return the number of this process in the group."""
        return self.ranks.index(self.watch.rank)

    def size(self) -> int:
        """Return the number of processes in the group."""
        return len(self.ranks)

    def __repr__(self) -> str:
        return f"group {self.name!r} of {self.size()} processes"

    def engine(self, device: str, what: str = "") -> Engine:
        """Return the engine for a type of device, created on first use.

        Raises
        ------
        DeviceError
            If the group has none for it.
        """
        self._check_whole(what)
        engine = self._engines.get(device)
        if engine is None:
            maker = self._makers.get(device)
            if maker is None:
                known = " and ".join(self._makers)
                raise DeviceError(
                    f"{what}: this group computes with {known} tensors, got one on {device}: init_process_group("
                    f"{'nccl' if device == 'cuda' else 'mpi'!r}) is for {device.upper()} tensors, init_process_group() "
                    "for both"
                )
            engine = self._engines[device] = maker()
        return engine

    def begin(
        self, engine: Engine, kind: str, text: str, steps: Callable[[], Steps], phases: int = 1, peer: int = -1
    ) -> Work:
        """Begin a collective or a point-to-point transfer, and return its work."""
        if captures and engine.name == "mpi":
            check_not_capturing(f"{kind}, which goes through the host with CPU tensors,")
        self._check_whole(kind)
        made = steps()  # which refuses what the engine cannot do, before it counts
        if peer < 0:
            self.started = self.watch.started[self.name] = self.started + 1
            if debugging() and capture_of_this_thread() is None:  # a capture reads no values
                agree(self, engine, kind, text)
        work = Work(self, engine, Call(kind, self.started if peer < 0 else 0, text, peer), made, phases)
        work.kept = steps
        engine.begin(work)
        return work

    def _check_whole(self, what: str) -> None:
        if self.broken:
            raise DistributedError(f"{what}: {self!r} is of no use any more: {self.broken}")

    def without(self, ranks: Sequence[int]) -> ProcessGroup:
        """Return a group of the processes that are left without some, for CUDA tensors, as after a failure.

        All that are left call this, and the others do not. After a failure, which aborts NCCL's communicator, they are
        connected anew, for which MPI has to have started the job.

        Parameters
        ----------
        ranks : sequence of int
            The numbers in the job of the processes to be left out, of which this is none.

        Raises
        ------
        SettingError
            If one of them is not in the group, or is this process, or none is given.
        DistributedError
            If the group is not over NCCL, or those that are left cannot be connected.
        """
        gone = sorted({as_int(rank, "ranks") for rank in ranks})
        if not gone or not set(gone) <= set(self.ranks) - {self.watch.rank}:
            raise SettingError(
                f"ProcessGroup.without: ranks: expected some of {list(self.ranks)} other than this process, "
                f"{self.watch.rank}, got {gone}"
            )
        parent = self._engines.get("cuda") or self.engine("cuda", "ProcessGroup.without")  # after a failure too
        engine = parent.without(gone)
        kept = [rank for rank in self.ranks if rank not in gone]
        name = f"{self.name} without {', '.join(map(str, gone))}"
        return ProcessGroup(name, kept, self.watch, self.timeout, {"cuda": lambda: engine})

    def leave(self) -> None:
        """Take no part in it any more."""
        self.broken = "this process has left it by destroy_process_group"

    def close(self) -> None:
        """Release the resources of its engines."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()
        self._makers = {}


def index_in(group: ProcessGroup, rank: int, name: str) -> int:
    """Return the number in `group` of a process of the job."""
    if rank not in group.ranks:
        raise SettingError(f"{name}: expected one of the ranks of {group!r}, {list(group.ranks)}, got {rank}")
    return group.ranks.index(rank)


def text_of(arrays: Any) -> str:
    """Return shape and dtype of an array in words that all processes use."""
    return f"shape {tuple(arrays.shape)}, {arrays.dtype.name}"
