"""What the commands share: their options, the table, the file, and what a number was measured on."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import measure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.measure import Peer, Result, Row

RESULTS = Path(__file__).parent / "results"
ROUNDS, QUICK_ROUNDS = 40, 5


def parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that all have; `rounds` of what it parses is settled by `measured`."""
    made = argparse.ArgumentParser(prog=prog, description=description)
    made.add_argument("--rows", default="", metavar="TEXT", help="only rows whose name contains this")
    made.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"rounds per row (default {ROUNDS}; slow rows take 30)"
    )
    made.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds: a look, not a measurement")
    made.add_argument("--json", type=Path, help="where to write the results (default for a full run: in results/)")
    return made


def measured(rows: Sequence[Row], options: argparse.Namespace, peers: tuple[Peer, Peer], threads: int) -> list[Result]:
    """Measure the rows that are asked for; with none of such a name, print the names and return nothing."""
    chosen = [row for row in rows if options.rows.lower() in row.name.lower()]
    if not chosen:
        print(f"no row's name contains {options.rows!r}; the rows are:", *(row.name for row in rows), sep="\n  ")
        return []
    if options.quick:
        options.rounds = QUICK_ROUNDS
    try:
        peers[1].lib.set_num_threads(threads)
    except ImportError as error:
        print(f"every row will be 'not run', since there is nothing to compare with: {error}")
    results = []
    for row in chosen:
        print(f"{row.name} ...", file=sys.stderr, flush=True)
        results.append(measure(row, peers, options.rounds))
    return results


def columns(result: Result) -> tuple[str, str, str, str, str]:
    """Return name, the two best times, ratio and budget as text."""
    if result.not_run:
        return result.name, "", "", "", f"not run: {result.not_run}"
    verdict = "reached" if result.reached else "MISSED"
    ours, theirs = (f"{value:,.2f} {result.unit}" for value in (result.lucid_median, result.torch_median))
    budget = "-" if result.budget is None else f"<= {result.budget:g} {verdict}"
    return result.name, ours, theirs, f"{result.ratio:.2f}", budget


def show(results: Sequence[Result], title: str, more: Mapping[str, Sequence[str]] | None = None) -> None:
    """Print the table; in plain text where rich is not installed, as may be on a machine borrowed for its GPU.

    `more` are further columns, by their headings, with a text for each result.
    """
    further = more or {}
    headings = ("row", "lucid", "PyTorch", "ratio", *further, "budget")
    lines: list[tuple[str, ...]] = []
    for index, result in enumerate(results):
        *first, last = columns(result)
        lines.append((*first, *(texts[index] for texts in further.values()), last))
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(title, *(" | ".join(line) for line in (headings, *lines)), sep="\n")
        return
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in {"row", "budget"} else "right", overflow="fold")
    for result, (*first, verdict) in zip(results, lines, strict=True):
        colour = "yellow" if result.not_run else "green" if result.reached else "red"
        table.add_row(*first, f"[{colour}]" + verdict.replace("[", r"\[") + f"[/{colour}]")
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def write(path: Path, results: Sequence[Result], rows: Sequence[Mapping[str, object]] = (), **head: object) -> None:
    """Write the results behind `head` and the machine; `rows` has what belongs to each of them beside its fields."""
    further = rows or [{}] * len(results)
    made = [{**asdict(result), **more} for result, more in zip(results, further, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**head, "machine": machine(), "rows": made}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path}")


def cpu_model() -> str:
    """Return the processor's name as Linux gives it, or what Python knows elsewhere."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, object]:
    """Return processor, cores, system, versions and date."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "torch": version("torch"),
        "date": datetime.now(tz=UTC).isoformat(timespec="seconds"),
    }
