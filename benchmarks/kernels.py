"""`python -m benchmarks.kernels`: the memory bandwidth that each family of kernels reaches, and what a launch costs.

Every row counts the bytes that the operation must move at the least: each input read once, each output written once.
They are divided by the time of a call and set beside a device-to-device copy of an array of the same size, measured in
the same run. PyTorch runs the same line of text, CuPy its own function where it has one. Goals: 0.9 of the copy from
64 MiB up, and 5 us of host time for a launch. Exit status: 0 all rows were run, 1 some were not, 2 there is no CUDA
device.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.command import RESULTS, machine
from benchmarks.families import FAMILIES, WIDTH
from benchmarks.gpu.device import NO_DEVICE, NoDeviceError, device
from benchmarks.measure import Peer
from lucid.base import gpu
from lucid.cuda.launch.random import FILLS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.families import Family

MIB = 1 << 20
SIZES = (1.0, 16.0, 64.0, 256.0)
DTYPES = {"float32": 4, "bfloat16": 2}
SHARE_GOAL, SHARE_GOAL_FROM = 0.9, 64.0  # of a copy's bandwidth; MiB
LAUNCH_GOAL = 5.0  # us
SHORTEST = 2e-3  # seconds of work between two readings of the clock


@dataclass
class Bandwidth:
    """A row: GB/s of each library, lucid's as a share of a copy, and why nothing was run where nothing was."""

    family: str
    dtype: str
    mib: float
    bytes: int
    copy: float
    lucid: float | None = None
    torch: float | None = None
    cupy: float | None = None
    share: float | None = None
    goal: float | None = None
    reached: bool | None = None
    not_run: str | None = None


@dataclass
class Launch:
    """Host time of one call that does next to nothing on the device."""

    name: str
    us: float
    goal: float | None = None
    reached: bool | None = None


def seconds_per_call(call: Callable[[], object], synchronize: Callable[[], None], rounds: int) -> float:
    """Return the median over some rounds of the time of a call, the device's work included."""

    def piece(count: int) -> float:
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        synchronize()
        return time.perf_counter() - start

    piece(1)  # compiles, and fills the memory pool
    count = max(1, min(1000, round(SHORTEST / max(piece(1), 1e-9))))
    return statistics.median(piece(count) for _ in range(rounds)) / count


def copy_bandwidth(mib: float, rounds: int) -> float:
    """Return GB/s of a device-to-device copy: what is read and what is written count."""
    cupy = gpu.cupy()
    source, target = cupy.zeros(int(mib * MIB), "uint8"), cupy.zeros(int(mib * MIB), "uint8")
    seconds = seconds_per_call(lambda: cupy.copyto(target, source), cupy.cuda.runtime.deviceSynchronize, rounds)
    return 2 * source.nbytes / seconds / 1e9


def bandwidth(family: Family, dtype: str, mib: float, copy: float, rounds: int, peers: Sequence[Peer]) -> Bandwidth:
    """Measure one row; what goes wrong with lucid becomes the reason why it was not run."""
    rows = max(1, int(mib * MIB) // DTYPES[dtype] // WIDTH)
    count = rows * WIDTH
    row = Bandwidth(family.name, dtype, mib, family.bytes(count, DTYPES[dtype]), copy)

    def rate(call: Callable[[], object], synchronize: Callable[[], None]) -> float:
        return row.bytes / seconds_per_call(call, synchronize, rounds) / 1e9

    for peer in peers:
        try:
            setattr(row, peer.name, rate(family.build(peer, dtype, rows), peer.synchronize))
        except Exception as error:
            if peer.name == "lucid":
                row.not_run = f"{type(error).__name__}: {error}"
                return row
    if family.cupy is not None and dtype == "float32":
        cupy = gpu.cupy()
        row.cupy = rate(family.cupy(cupy, rows), cupy.cuda.runtime.deviceSynchronize)
    assert row.lucid is not None
    row.share = row.lucid / copy
    if mib >= SHARE_GOAL_FROM:
        row.goal, row.reached = SHARE_GOAL, row.share >= SHARE_GOAL
    return row


def launches(calls: int = 500, rounds: int = 20) -> list[Launch]:
    """Return the host time of a bare launch, and of whole operations on one element."""
    lucid = Peer("lucid", "cuda")
    one = lucid.lib.ones(1, device="cuda")
    bare = FILLS["uniform"]["float"]
    numbers = one.array.data.ptr, 1, 0, 0, 0, 0.0, 2.0**-24, 1.0, 24
    cases: dict[str, tuple[Callable[[], object], float | None]] = {
        "a prepared kernel": (lambda: bare(1, 32, *numbers), LAUNCH_GOAL),
        "lucid, x * x of 1 element": (lambda: one * one, None),
        "CuPy, x * x of 1 element": (lambda: one.array * one.array, None),
    }
    if has_torch():
        other = Peer("torch", "cuda").lib.ones(1, device="cuda")
        cases["PyTorch, x * x of 1 element"] = (lambda: other * other, None)
    made: list[Launch] = []
    for name, (call, goal) in cases.items():
        taken: list[float] = []
        for _ in range(rounds + 1):
            # the queue of launches must not fill: then the host would wait for the device
            lucid.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            taken.append((time.perf_counter() - start) / calls * 1e6)
        us = statistics.median(taken[1:])
        made.append(Launch(name, us, goal, None if goal is None else us <= goal))
    return made


def has_torch() -> bool:
    """Return whether PyTorch is installed and sees a CUDA device."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def measure(
    families: Sequence[Family], sizes: Sequence[float], rounds: int, progress: Callable[[str], None] = lambda _: None
) -> list[Bandwidth]:
    """Measure every family at every size in every dtype."""
    peers = [Peer("lucid", "cuda")] + ([Peer("torch", "cuda")] if has_torch() else [])
    made: list[Bandwidth] = []
    for mib in sizes:
        copy = copy_bandwidth(mib, rounds)
        for family in families:
            for dtype in DTYPES:
                progress(f"{family.name}, {dtype}, {mib:g} MiB")
                made.append(bandwidth(family, dtype, mib, copy, rounds, peers))
    return made


def number(value: float | None, form: str = ",.1f") -> str:
    return "" if value is None else format(value, form)


def verdict(reached: bool | None) -> str:
    return {None: "", True: "[green]reached[/]", False: "[red]missed[/]"}[reached]


def bandwidth_table(rows: Sequence[Bandwidth]) -> Table:
    """Return the table of bandwidths, in GB/s."""
    title = f"Bandwidth in GB/s; goal: {SHARE_GOAL} of a copy from {SHARE_GOAL_FROM:g} MiB up"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("family", "dtype"):
        table.add_column(name)
    for name in ("MiB", "copy", "lucid", "of copy", "PyTorch", "CuPy"):
        table.add_column(name, justify="right")
    table.add_column("goal")
    for row in rows:
        figures = [number(value) for value in (row.copy, row.lucid)]
        others = [number(row.torch), number(row.cupy)]
        last = f"[red]not run:[/] {row.not_run}" if row.not_run else verdict(row.reached)
        table.add_row(row.family, row.dtype, f"{row.mib:g}", *figures, number(row.share, ".2f"), *others, last)
    return table


def launch_table(rows: Sequence[Launch]) -> Table:
    """Return the table of what a launch costs the host."""
    title = f"Host time of a launch in us; goal: {LAUNCH_GOAL:g} for a prepared kernel"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("what")
    table.add_column("us", justify="right")
    table.add_column("goal")
    for row in rows:
        table.add_row(row.name, number(row.us, ".2f"), verdict(row.reached))
    return table


def report(rows: Sequence[Bandwidth], host: Sequence[Launch]) -> dict[str, object]:
    """Return what the JSON file holds beside the machine."""
    return {"rows": [asdict(row) for row in rows], "launches": [asdict(row) for row in host]}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only families whose name contains this")
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES, metavar="MIB", help="sizes of an array")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of a row (default 10)")
    parser.add_argument("--json", type=Path, default=RESULTS / "kernels.json", help="where to write what came of it")
    options = parser.parse_args(argv)
    try:
        content: dict[str, object] = {"device": device(), "machine": machine()}
    except NoDeviceError as error:
        print(f"nothing was run: {error}", file=sys.stderr)
        return NO_DEVICE
    console = Console()
    with console.status("") as status:
        families = [family for family in FAMILIES if options.only in family.name]
        rows = measure(families, options.sizes, options.rounds, status.update)
        host = launches()
    console.print(bandwidth_table(rows), launch_table(host))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({**content, **report(rows, host)}, indent=2) + "\n", encoding="utf-8")
    console.print(f"written to {options.json}")
    return int(any(row.not_run for row in rows))


if __name__ == "__main__":
    sys.exit(main())
