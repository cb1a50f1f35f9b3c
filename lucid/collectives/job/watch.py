"""Messages between processes beside their collectives: failures, departures, and waits.

The messages go over a communicator of their own and are looked at while this process waits, and only then. So a process
that computes, is stopped, or hangs elsewhere is one that does not answer.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from lucid.errors import DistributedError, DistributedTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from lucid.collectives.engines.base import Engine
    from lucid.collectives.work import Work


GRACE = 0.5
"""For so many seconds answers are waited for."""

# For so many, on a machine that may be busy, the last words of others, before the job is ended.
_LAST_WORDS = 5.0


class Watch:
    """The knowledge of this process about the others of its job, and its messages to them.

    Attributes
    ----------
    rank, size : int
        Of this process in the job.
    started : dict of str to int
        How many collectives this process has begun in each group.
    failed : dict of int to str
        Processes that have said that they fail, and why.
    departed : dict of int to dict of str to int
        Processes that have left their groups, and how many collectives of each they had begun.
    ended : set of int
        Those of them whose script has ended.
    mute : set of int
        Those that have not answered when a wait was at its end.
    engines : list of Engine
        What works of this process are under way in.
    broken : bool
        Whether a collective has failed in this process: MPI may then wait for ever at its end.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.rank = mailbox.rank
        self.size = mailbox.size
        self.others = [rank for rank in range(self.size) if rank != self.rank]
        self.started: dict[str, int] = {}
        self.failed: dict[int, str] = {}
        self.departed: dict[int, dict[str, int]] = {}
        self.ended: set[int] = set()
        self._answers: dict[int, dict[str, Any]] = {}
        self.mute: set[int] = set()
        self.engines: list[Engine] = []
        self.broken = False
        self._waits: list[Work] = []
        self._heard: dict[int, float] = {}  # when a process was heard to have left

    @classmethod
    def of_one(cls) -> Watch:
        """Return that of a process that is alone."""
        return cls(Mailbox())

    # ---- messages ----

    def tell(self, message: dict[str, Any], *ranks: int) -> None:
        """Send `message` to some processes, or to all others."""
        data = json.dumps(message).encode()
        for rank in ranks or self.others:
            self.mailbox.send(data, rank)

    def receive(self) -> None:
        """Read the messages of the others."""
        while letter := self.mailbox.receive():
            source, data = letter
            self._read(source, json.loads(data))

    def _read(self, source: int, message: dict[str, Any]) -> None:
        if "failed" in message:
            self.failed[source] = message["failed"]
        if "left" in message:
            self.departed[source] = message["left"]
            self._heard[source] = time.monotonic()
            if message["ends"]:
                self.ended.add(source)
        if "asks" in message:
            works = tuple(self._waits)
            waits = [f"{work.call} of group {work.group.name!r}" for work in works]
            self.tell({"answer": {"begun": self.started, "waits": " and in ".join(waits)}}, source)
        if "answer" in message:
            self._answers[source] = message["answer"]

    # ---- waiting ----

    def progress(self) -> None:
        """Move all works of this process on: another process may need one of them that this one does not wait for."""
        for engine in tuple(self.engines):
            engine.progress()

    @contextlib.contextmanager
    def waiting(self, work: Work) -> Generator[None]:
        """While this is open, whoever asks is told that this process waits for `work`."""
        self._waits.append(work)
        try:
            yield
        finally:
            self._waits.remove(work)

    def look(self, work: Work) -> None:
        """Raise `DistributedError` if `work` can never end: a process that it needs has failed or left before it."""
        self.receive()
        group = work.group
        if group.broken:
            work.fail(DistributedError(f"{self.place(work)}, which is of no use any more: {group.broken}"))
        error = self.missing(work)
        if error is not None:
            work.fail(error)

    def missing(self, work: Work) -> DistributedError | None:
        """Return the error of a work that needs a process known to have failed or left before it, or None."""
        group, call = work.group, work.call
        if not (self.failed or self.departed):
            return None
        for rank in group.ranks if call.peer < 0 else (call.peer,):
            if rank in self.failed:
                return DistributedError(f"rank {rank} has failed while {self.place(work)}: {self.failed[rank]}")
            if rank in self.departed and self._misses(rank, work):
                return DistributedError(
                    f"rank {rank} has left, by the end of its script or of its group, while {self.place(work)}: "
                    f"expected all processes to call the same collectives; rank {rank} had called "
                    f"{self.departed[rank].get(group.name, 0)} of this group"
                )
        return None

    def _misses(self, rank: int, work: Work) -> bool:
        counts = self.departed[rank]
        if work.group.name not in counts and rank not in self.ended:
            # a group that was made since then is none that it has left
            return False
        if work.call.number:
            if counts.get(work.group.name, 0) >= work.call.number:
                return False
            if rank in self.ended:
                return True
        # what it has sent before may still be on its way, and why it has left too
        return time.monotonic() - self._heard[rank] > GRACE

    def has_ended(self, rank: int) -> bool:
        """Return whether a process has ended its script, and nothing that it did before is on its way any more."""
        return rank in self.ended and time.monotonic() - self._heard[rank] > GRACE

    def place(self, work: Work) -> str:
        """Return a description of the wait of this process: rank, call and group."""
        return f"rank {self.rank} of {self.size} waits in {work.call}, in {work.group}"

    def overdue(self, work: Work, limit: float) -> DistributedTimeoutError:
        """Return the error of a collective that exceeded `limit` seconds, after asking for the missing processes."""
        group, call = work.group, work.call
        others = [rank for rank in (group.ranks if call.peer < 0 else (call.peer,)) if rank != self.rank]
        self._answers.clear()
        self.tell({"asks": True}, *others)
        self.until(lambda: all(rank in self._answers or rank in self.failed for rank in others), GRACE)
        missing: list[str] = []
        for rank in others:
            answer = self._answers.get(rank)
            if answer is not None and call.number and answer["begun"].get(group.name, 0) >= call.number:
                continue
            if rank in self.failed:
                missing.append(f"rank {rank}, which has failed: {self.failed[rank]}")
            elif rank in self.ended:
                missing.append(f"rank {rank}, whose script has ended")
            elif answer is None:
                self.mute.add(rank)
                missing.append(f"rank {rank}, which does not answer: it computes, is stopped or hangs")
            else:
                missing.append(f"rank {rank}, which waits in {answer['waits'] or 'nothing of this kind'}")
        arrived = "; ".join(missing) if missing else "none: all have called it, and the connection does not get on"
        return DistributedTimeoutError(
            f"{self.place(work)}, and has waited {limit:g} s. Not arrived: {arrived}. Last finished here: "
            f"{group.last or 'nothing'}. A longer limit is set by init_process_group(timeout=)",
            rank=self.rank,
            call=str(call),
        )

    def until(self, condition: Callable[[], bool], limit: float) -> bool:
        """Return whether `condition` becomes true within `limit` seconds, reading messages meanwhile."""
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.progress()
            self.receive()
            time.sleep(0.001)
        return True

    # ---- the end ----

    def say_failed(self, text: str) -> None:
        """Tell all others that this process ends, once it has printed why, and wait for their last words."""
        self.tell({"failed": text})
        self.until(lambda: self.mute >= set(self.running()), _LAST_WORDS)

    def announce_departure(self, *, ends: bool) -> None:
        """Tell all others that this process calls no collective of its groups any more; `ends`: nor of others."""
        self.tell({"left": self.started, "ends": ends})

    def gone(self) -> str:
        """Return the processes that have failed and those that have ended their script, in words."""
        words = [f"rank {rank} has failed: {why}" for rank, why in sorted(self.failed.items())]
        words += [f"rank {rank} has ended its script" for rank in sorted(self.ended - self.failed.keys())]
        return "; ".join(words)

    def running(self) -> list[int]:
        """Return the processes that have neither ended their script nor failed."""
        return [rank for rank in self.others if rank not in self.ended and rank not in self.failed]

    def everyone_ends(self, limit: float) -> bool:
        """Return whether all others end, or one fails, within `limit` seconds."""
        return self.until(lambda: bool(self.failed) or not self.running(), limit)


class Mailbox:
    """The transport of messages; this class is that of a process that is alone."""

    rank, size = 0, 1

    def send(self, data: bytes, rank: int) -> None:
        """Send `data` to a process, without waiting for it."""

    def receive(self) -> tuple[int, bytes] | None:
        """Return the sender and data of the next message, or None."""


class Apart(Mailbox):
    """The mailbox of processes connected by NCCL alone: messages cannot be sent."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
