"""Nsight Compute on seven families of kernels, at 256 MiB: what the hardware says of each launch."""

from __future__ import annotations

import re
import shutil
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.families import FAMILIES, WIDTH
from benchmarks.gpu import device
from benchmarks.gpu.rows import Group, Row, Stage, unasked, working
from benchmarks.measure import Peer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.families import Family
    from benchmarks.gpu.facts import Facts
    from benchmarks.gpu.rows import Scope, Setting

TOOL = "ncu"
REPORT = "profile.txt"
MIB = 256
# In bfloat16 where a pack has the more arithmetic.
PROFILED = {
    "add": "float32", "sum of rows": "float32", "softmax": "bfloat16", "layer norm backward": "float32",
    "embedding backward": "float32", "transposed copy": "float32", "gelu": "bfloat16",
}  # fmt: skip
SECTIONS = ("SpeedOfLight", "Occupancy", "LaunchStats", "MemoryWorkloadAnalysis", "WarpStateStats")


def launched(family: Family, dtype: str) -> dict[str, object]:
    """Call a family once warm and once while the profiler looks."""
    import lucid  # noqa: F401, I001 - before CuPy: it may simulate the device
    import cupy

    rows = 16 if device.simulated() else MIB * 2**20 // 4 // WIDTH
    call = family.build(Peer("lucid", "cuda"), dtype, rows)
    call()
    device.synchronize()
    if not device.simulated():
        cupy.cuda.runtime.profilerStart()
    call()
    device.synchronize()
    if not device.simulated():
        cupy.cuda.runtime.profilerStop()
    del call
    device.free()
    return {}


def rows(_: Scope) -> Sequence[Row]:
    families = {family.name: family for family in FAMILIES}
    return [Row(f"{name}, {dtype}", partial(launched, families[name], dtype)) for name, dtype in PROFILED.items()]


def groups(setting: Setting) -> Sequence[Group]:
    """Return the process under the profiler; on a simulated device without it, and on a GPU none."""
    if setting.simulated:
        return [Group()]
    if shutil.which(TOOL) is None:
        return []
    sections = [word for section in SECTIONS for word in ("--section", section)]
    log = ("--log-file", str(setting.scratch / REPORT))
    return [Group(prefix=(TOOL, "--clock-control", "none", "--profile-from-start", "off", *sections, *log))]


def finish(setting: Setting, facts: Facts) -> None:
    """Note how many launches were profiled, in this run and those before it; nothing is learnt without one."""
    if setting.simulated or shutil.which(TOOL) is None:
        missing = {"ok": False, "error": f"there is no {TOOL} here"}
        facts(row=TOOL, **(unasked(TOOL) if setting.simulated else missing))
        return
    path, own = setting.folder / REPORT, setting.scratch / REPORT
    with path.open("a", encoding="utf-8") as file:
        file.write(own.read_text(encoding="utf-8", errors="replace") if own.exists() else "")
    text = path.read_text(encoding="utf-8")
    done = [name for name, fact in facts.rows().items() if name != TOOL and not fact.get("stopped")]
    launches = re.findall(r"^  (\S.*) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context", text, re.MULTILINE)
    facts(
        row=TOOL,
        ok=len(launches) >= len(PROFILED),
        launches=len(launches),
        **({"stopped": True} if len(done) < len(PROFILED) else {}),
        **({} if launches else {"error": text[-300:]}),
    )


STAGE = Stage(working(rows), rehearsed=1, groups=groups, finish=finish)
