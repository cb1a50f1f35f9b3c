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


def text_of(error: BaseException) -> str:
    """Return an error's class and the beginning of its words."""
    return f"{type(error).__name__}: {str(error)[:600]}"
