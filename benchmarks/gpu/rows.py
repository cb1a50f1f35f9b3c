"""A process of a stage works through rows: what each tells is a fact at once, and what has a fact is not done again.

A CUDA error that loses the context ends the process, since all later calls would fail: the run starts another, which
goes on behind the row.
"""

from __future__ import annotations

import os
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.gpu import device, rehearsal
from benchmarks.gpu.facts import Facts, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LOST = 77  # exit status of a process whose context is lost
MARGIN = 3  # seconds before its end in which a process begins nothing new


@dataclass(frozen=True)
class Scope:
    """What a process of a stage is to do.

    Attributes
    ----------
    folder, stage, group : str
        Where its facts go; of which stage, and of which of its groups of processes, it is.
    part, parts : int
        It does every row whose place is `part` of `parts`.
    until : float
        When it must have ended, in seconds since the epoch.
    rows : int
        How many rows there are at most, taken evenly from all; 0 for no limit.
    note : str
        The file that says how many rows are left to it, and at which it is.
    faults : dict
        Before which row of a rehearsal what goes wrong (`benchmarks.gpu.rehearsal`).
    """

    folder: str
    stage: str
    group: str = ""
    part: int = 0
    parts: int = 1
    until: float = float("inf")
    rows: int = 0
    note: str = ""
    faults: Mapping[str, int] = field(default_factory=dict)

    def at(self, row: str, left: int) -> None:
        """Note the row that is begun, and how many are left with it."""
        if self.note:
            Path(self.note).write_text(f"{left} {row}", encoding="utf-8")

    def chosen(self, every: Sequence[Any]) -> list[Any]:
        """Return as many of all as there are to be, evenly spaced."""
        if not self.rows or len(every) <= self.rows:
            return list(every)
        return [every[place * len(every) // self.rows] for place in range(self.rows)]

    def words(self) -> dict[str, Any]:
        """Return what `Scope` makes it from."""
        return asdict(self)


class Row(NamedTuple):
    """Something to be learnt: `call()` returns the fields of its fact, of which `ok` is true unless it says so."""

    name: str
    call: Callable[[], dict[str, object]]


@dataclass(frozen=True)
class Group:
    """Processes of a stage that share its rows: how many at most, their environment, and the tool they run under."""

    name: str = ""
    processes: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What a stage is run with: where, on how many processors, for how many rows, with which environment."""

    folder: Path
    scratch: Path
    simulated: bool
    rehearsed: bool
    processors: int
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Stage:
    """A stage: what each of its processes does, in `work(scope)`, and how many of its rows a rehearsal takes.

    `groups(setting)` are the processes, `finish(setting, facts)` notes what they left beside facts.
    """

    work: Callable[[Scope], None]
    rehearsed: int
    groups: Callable[[Setting], Sequence[Group]] = lambda _: [Group()]
    finish: Callable[[Setting, Facts], None] = lambda *_: None


def working(rows: Callable[[Scope], Sequence[Row]]) -> Callable[[Scope], None]:
    """Return the work of a stage that has such rows."""

    def work(scope: Scope) -> None:
        facts = Facts(Path(scope.folder), scope.stage)
        known = facts.rows()
        mine = [
            (place, row)
            for place, row in enumerate(scope.chosen(rows(scope)))
            if place % scope.parts == scope.part and (row.name not in known or known[row.name].get("stopped"))
        ]
        for done, (place, row) in enumerate(mine):
            left = len(mine) - done
            if time.time() > scope.until - MARGIN:
                facts(group=scope.group, part=scope.part, left=left)
                return
            scope.at(row.name, left)
            attempt(row, place, scope, facts)

    return work


def unasked(what: str) -> dict[str, object]:
    """Return the fact of something that a simulated device has no use for, whether it is installed or not."""
    return {"ok": None, "absent": f"{what} is not asked for beside a simulated device"}


def attempt(row: Row, place: int, scope: Scope, facts: Facts) -> None:
    """Do a row and write its fact; end the process if it has lost the context."""
    begun = time.perf_counter()
    try:
        rehearsal.go_wrong(scope.faults, place)
        told = row.call()
    except Exception as error:
        how = device.lost(error)
        told = {"ok": False, "error": text_of(error), "where": traceback.format_exception(error)[-4:]}
        facts(row=row.name, **told, **({"lost": how} if how else {}))
        if how:
            # without the ends of libraries, which would ask the lost context for more
            os._exit(LOST)
    else:
        facts(row=row.name, seconds=round(time.perf_counter() - begun, 3), **{"ok": True, **told})
