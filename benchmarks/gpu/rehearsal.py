"""What goes wrong in a rehearsal, on purpose, and what must be in its folder afterwards."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from benchmarks.gpu import facts as known

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

# Before which of the rows of a stage what happens. Both processes of the stage have more rows behind it.
FAULTS: dict[str, dict[str, int]] = {"battery": {"killed": 2, "lost": 5}}
STRAY = 'extern "C" __global__ void stray(float* x) { x[1000000] = 1; }'


def go_wrong(faults: Mapping[str, int], place: int) -> None:
    """Do what is planted before a row, if anything is."""
    if faults.get("killed") == place:
        os.kill(os.getpid(), signal.SIGKILL)
    if faults.get("lost") == place:
        stray_write()


def stray_write() -> None:
    """Write outside of all arrays, as a wrong kernel does: CUDA has no use for the context then."""
    import lucid  # noqa: F401, I001 - before CuPy: it simulates the device
    import cupy

    cupy.RawKernel(STRAY, "stray")((1,), (1,), (cupy.zeros(8, "float32"),))
    cupy.cuda.runtime.deviceSynchronize()


def complaints(folder: Path, stages: Iterable[str]) -> list[str]:
    """Return what a rehearsal of stages has not left in its folder, and what failed there that was not planted."""
    facts = known.read(folder)
    ended = {fact["ended"]: fact["left"] for fact in facts if "ended" in fact and fact["stage"] == known.RUN}
    made = [f"{name}: has not come to its end" for name in stages if name not in ended]
    made += [f"{name}: has no row" for name in ended if not known.rows(facts, name)]
    made += [f"{name}: {left} rows were left" for name, left in ended.items() if left]
    planted: dict[str, list[str]] = {"killed": [], "lost": []}
    for fact in known.failures(facts):
        kind = "killed" if fact.get("ended") == -signal.SIGKILL else "lost" if "lost" in fact else ""
        if kind and fact["stage"] in FAULTS and "row" in fact:
            planted[kind].append(fact["row"])
        else:
            made.append(f"{fact['stage']}: {fact.get('row', 'process')}: {fact.get('error')}")
    for stage, faults in FAULTS.items():
        if stage not in ended:
            continue
        for kind in faults:
            if len(planted[kind]) != 1:
                made.append(f"{stage}: one process was to be {kind}, the rows of such are {planted[kind]}")
        behind = [fact["behind"] for fact in facts if fact["stage"] == stage and "restarted" in fact]
        if sorted(behind) != sorted(planted["killed"] + planted["lost"]):
            made.append(f"{stage}: processes were started again behind {behind}, expected behind the rows above")
    files = {path.name for path in folder.iterdir()}
    if unexpected := files - {known.FILE, "summary.txt", "log.txt", "sanitizer.txt", "profile.txt"}:
        made.append(f"files that are not a run's: {sorted(unexpected)}")
    return made
