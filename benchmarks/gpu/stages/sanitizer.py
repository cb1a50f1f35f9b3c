"""compute-sanitizer over rows of the battery: accesses out of bounds, and races on shared memory."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from benchmarks.gpu.rows import Group, Row, Stage, unasked, working
from benchmarks.gpu.stages import battery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.gpu.facts import Facts
    from benchmarks.gpu.rows import Scope, Setting

TOOL = "compute-sanitizer"
PROCESSES = {"memcheck": 6, "racecheck": 4}
ROWS = 120  # for each tool, evenly from all
REPORT = "sanitizer.txt"


def rows(scope: Scope) -> Sequence[Row]:
    every = battery.rows(scope)
    chosen = [every[place * len(every) // ROWS] for place in range(ROWS)]
    return [Row(f"{scope.group}: {row.name}", row.call) for row in chosen]


def groups(setting: Setting) -> Sequence[Group]:
    """Return processes of each tool; without it one that rehearses their rows, and on a GPU none."""
    if setting.simulated:
        return [Group("memcheck")]
    if shutil.which(TOOL) is None:
        return []
    # kernels that are compiled alone are loaded, and changed by the tool, one by one
    alone = {"LUCID_BUILT_KERNELS": "0", "CUDA_LAUNCH_BLOCKING": "1"}
    return [
        Group(
            name, count, alone,
            (TOOL, "--tool", name, "--print-limit", "3", "--log-file", str(setting.scratch / f"{name}-%p.log")),
        )
        for name, count in PROCESSES.items()
    ]  # fmt: skip


def finish(setting: Setting, facts: Facts) -> None:
    """Put what the tool says behind what it said in runs before, and its count of errors into the facts."""
    if setting.simulated or shutil.which(TOOL) is None:
        missing = {"ok": False, "error": f"there is no {TOOL} here"}
        facts(row=TOOL, **(unasked(TOOL) if setting.simulated else missing))
        return
    logs = sorted(path for name in PROCESSES for path in setting.scratch.glob(f"{name}-*.log"))
    texts = {path.stem: path.read_text(encoding="utf-8", errors="replace") for path in logs}
    for name, text in texts.items():
        told = re.findall(r"=+ (?:ERROR|RACECHECK) SUMMARY: (.*)", text)
        clean = bool(told) and told[-1].startswith("0 ")
        if told:
            facts(row=name, ok=clean, said=told[-1])
        else:  # the process was ended by its time; the tool has said more than its name if it had found something
            facts(row=name, ok=None if len(text.splitlines()) <= 1 else False, said=text[-300:])
    parts = [f"==== {name}\n{text[:3000]}\n[...]\n{text[-3000:]}" for name, text in texts.items()]
    with (setting.folder / REPORT).open("a", encoding="utf-8") as file:
        file.write("\n".join(parts))


STAGE = Stage(working(rows), rehearsed=1, groups=groups, finish=finish)
