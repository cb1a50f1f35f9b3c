"""Processes of a stage: each leads a group of its own, is ended with it, and is followed by another where it fell."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpu.rows import LOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO

    from benchmarks.gpu.facts import Facts
    from benchmarks.gpu.rows import Group, Scope, Setting

ROOT = Path(__file__).resolve().parents[2]
MOST_RESTARTS = 40  # of a stage: a device that loses every context is not asked for ever
LEAST = 5  # seconds that must be left for another process


def begin(command: Sequence[str], environment: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a command in the root of the repository, as the leader of a group of processes."""
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@dataclass
class Worker:
    """A process of a stage at work, and what starts it."""

    group: Group
    scope: Scope
    process: subprocess.Popen[bytes]

    def at(self) -> tuple[str, int]:
        """Return the row that it has begun last, nothing if none, and how many were left to it with that."""
        note = Path(self.scope.note)
        left, _, row = note.read_text(encoding="utf-8").partition(" ") if note.exists() else ("0", "", "")
        return row, int(left or 0)


class Workers:
    """The processes of one stage; `command` is given the words of a scope."""

    command: Sequence[str] = (sys.executable, "-m", "benchmarks.gpu", "--worker")

    def __init__(self, setting: Setting, facts: Facts, log: IO[bytes]) -> None:
        self.setting, self.facts, self.log = setting, facts, log
        self.running: list[Worker] = []
        self.restarts = 0

    def start(self, group: Group, scope: Scope) -> None:
        """Start the process that does what a scope says."""
        Path(scope.note).unlink(missing_ok=True)
        command = [*group.prefix, *self.command, json.dumps(scope.words())]
        process = begin(command, {**self.setting.environment, **group.environment}, self.log)
        self.running.append(Worker(group, scope, process))

    def start_all(self, groups: Sequence[Group], scope: Scope) -> None:
        """Start every process of every group."""
        for group in groups:
            for part in range(group.processes):
                note = self.setting.scratch / f"{scope.stage}-{group.name}-{part}"
                self.start(group, replace(scope, group=group.name, part=part, parts=group.processes, note=str(note)))

    def wait(self, until: float) -> None:
        """Wait until all have ended, or end them when their time is over."""
        try:
            self._wait(until)
        finally:
            for worker in self.running:
                end(worker.process)

    def _wait(self, until: float) -> None:
        while self.running:
            for worker in [*self.running]:
                code = worker.process.poll()
                if code is None and time.time() <= until:
                    continue
                self.running.remove(worker)
                # what it started goes with it
                end(worker.process)
                if code is None:
                    self.stopped(worker)
                elif code:
                    self.fell(worker, code, until)
            time.sleep(0.02)

    def stopped(self, worker: Worker) -> None:
        """Note the row that was under way when time was over, and how many are left with it."""
        (row, left), scope = worker.at(), worker.scope
        where = {"row": row} if row else {}
        words = "stopped: its stage's time was over"
        self.facts(**where, ok=False, stopped=True, error=words, group=scope.group, part=scope.part, left=max(left, 1))

    def fell(self, worker: Worker, code: int, until: float) -> None:
        """Note the row at which a process ended, and start another, which goes on behind it."""
        (row, left), scope = worker.at(), worker.scope
        if code != LOST:  # it has written its row itself
            # without a row all of its rows are left, to a run that goes on behind this one
            where = {"row": row} if row else {"left": 1}
            words = f"its process ended with {code}" + ("" if row else " before its first row; see the log")
            self.facts(**where, ok=False, error=words, ended=code, group=scope.group, part=scope.part)
        if row and self.restarts < MOST_RESTARTS and time.time() < until - LEAST:
            self.restarts += 1
            self.facts(restarted=scope.part, group=scope.group, ended=code, behind=row)
            self.start(worker.group, scope)
        elif left > 1:
            self.facts(group=scope.group, part=scope.part, left=left - 1)
