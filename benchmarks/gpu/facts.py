"""What was learnt, a JSON object a line: written the moment it is known, so that a run cut short leaves what it had."""

from __future__ import annotations

import json
import math
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    Fact = dict[str, Any]

FILE = "facts.jsonl"
RUN = "run"  # whose facts are those of the run itself, and no stage's


class FolderError(ValueError):
    """The facts in a folder are not those that a call needs."""


class Facts:
    """The facts of one stage; each line is one append, so that those of many processes do not mix."""

    def __init__(self, folder: Path, stage: str) -> None:
        self.path, self.stage = folder / FILE, stage

    def __call__(self, **fields: object) -> None:
        line = json.dumps(plain({"stage": self.stage, "at": round(time.time(), 2), **fields}), default=str) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def rows(self) -> dict[str, Fact]:
        """Return what is known of each row of the stage."""
        return rows(read(self.path.parent), self.stage)


def plain(value: Any) -> Any:
    """Return a value whose infinities and NaN, which JSON does not know, are words."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def read(folder: Path) -> list[Fact]:
    """Return the facts in a folder, oldest first; the line that a killed process did not finish is left out."""
    path = folder / FILE
    made: list[Fact] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            made.append(json.loads(line))
        except ValueError:
            continue
    return made


def rows(facts: list[Fact], stage: str) -> dict[str, Fact]:
    """Return a fact for each row of a stage: the last one, but what has failed once has failed."""
    made: dict[str, Fact] = {}
    for fact in facts:
        if fact["stage"] == stage and "row" in fact:
            before = made.get(fact["row"])
            if before is None or before.get("stopped") or before.get("ok") is not False:
                made[fact["row"]] = fact
    return made


def failures(facts: list[Fact]) -> list[Fact]:
    """Return the facts of what has failed and stands so, by stage: rows, then what has no row.

    What has no row, as a process that fell before its first or a stage for which there was no time, is answered where a
    later run brings the stage to an end, or has no time again for one that was skipped.
    """
    made: list[Fact] = []
    for stage in dict.fromkeys(fact["stage"] for fact in facts):
        alone = [(at, fact) for at, fact in enumerate(facts) if fact["stage"] == stage and "row" not in fact]
        standing = [fact for at, fact in alone if fact.get("ok") is False and not is_answered(fact, facts[at:])]
        made += [*(fact for fact in rows(facts, stage).values() if fact.get("ok") is False), *standing]
    return made


def is_answered(fact: Fact, facts: list[Fact]) -> bool:
    """Return whether a later run, among the facts from one without a row on, says what came of its stage."""
    name, says = fact.get("skipped", fact["stage"]), ("ended", "skipped") if "skipped" in fact else ("ended",)
    of_runs = [each for each in facts if each["stage"] == RUN]
    head = next((at for at, each in enumerate(of_runs) if is_head(each)), len(of_runs))
    return any(each.get(word) == name for each in of_runs[head:] for word in says)


def is_head(fact: Fact) -> bool:
    """Return whether a fact is the first of a run, which says where it runs."""
    return fact["stage"] == RUN and "device" in fact


def kind(head: Fact) -> str:
    """Return in words on what a run is: the device by its name, and whether it is simulated or rehearsed on."""
    how = " (a rehearsal)" if head["rehearsed"] else " (simulated)" if head["simulated"] else ""
    return f"{head['device'].get('name')}{how}"


def kinds(facts: list[Fact]) -> list[str]:
    """Return on what the runs were that left facts: of one kind only are they those of one folder."""
    return list(dict.fromkeys(kind(fact) for fact in facts if is_head(fact)))


def text_of(error: BaseException) -> str:
    """Return an error's class and the beginning of its words."""
    return f"{type(error).__name__}: {str(error)[:600]}"
