"""`python -m benchmarks`: the budget's rows, lucid beside PyTorch, as a table and as JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

THREADS = 2
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(
        THREADS
    )  # NumPy's libraries read it once, when they are loaded: hence before the imports

from benchmarks import engine, hooks, models, modules, ops, process  # noqa: E402
from benchmarks.machine import machine  # noqa: E402
from benchmarks.measure import Peer, measure  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.measure import Result, Row

ROWS: list[Row] = [
    *ops.ROWS[:2], *engine.ROWS, *modules.ROWS, *hooks.ROWS, *models.ROWS, *ops.ROWS[2:], *process.ROWS,
]  # fmt: skip
RESULTS = Path(__file__).parent / "results"
ROUNDS, QUICK_ROUNDS = 40, 5


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", default="", metavar="TEXT", help="only rows whose name contains this")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"rounds per row (default {ROUNDS}; slow rows take 30)"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds: a look, not a measurement")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where both peers work")
    parser.add_argument(
        "--json", type=Path, help="where to write the results (default for a full run: results/DEVICE.json)"
    )
    return parser.parse_args()


def columns(result: Result) -> tuple[str, str, str, str, str]:
    """Return name, the two best times, ratio and budget as text."""
    if result.not_run:
        return result.name, "", "", "", f"not run: {result.not_run}"
    verdict = "reached" if result.reached else "MISSED"
    ours, theirs = (f"{value:,.2f} {result.unit}" for value in (result.lucid_median, result.torch_median))
    budget = "-" if result.budget is None else f"<= {result.budget:g} {verdict}"
    return result.name, ours, theirs, f"{result.ratio:.2f}", budget


def show(results: list[Result], title: str) -> None:
    """Print the table; in plain text where rich is not installed, as may be on a machine borrowed for its GPU."""
    headings = ("row", "lucid", "PyTorch", "ratio", "budget")
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(title, *(" | ".join(line) for line in (headings, *map(columns, results))), sep="\n")
        return
    table = Table(title=title)
    for heading in headings:
        table.add_column(
            heading, justify="right" if heading in {"lucid", "PyTorch", "ratio"} else "left", overflow="fold"
        )
    for result in results:
        colour = "yellow" if result.not_run else "green" if result.reached else "red"
        name, *middle, verdict = columns(result)
        table.add_row(name, *middle, f"[{colour}]" + verdict.replace("[", r"\[") + f"[/{colour}]")
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def main() -> int:
    options = arguments()
    rounds = QUICK_ROUNDS if options.quick else options.rounds
    rows = [row for row in ROWS if options.rows.lower() in row.name.lower()]
    if not rows:
        print(f"no row's name contains {options.rows!r}; the rows are:", *(row.name for row in ROWS), sep="\n  ")
        return 2
    peers = Peer("lucid", options.device), Peer("torch", options.device)
    try:
        peers[1].lib.set_num_threads(THREADS)
    except ImportError as error:
        print(f"every row will be 'not run', since there is nothing to compare with: {error}")
    results = []
    for row in rows:
        print(f"{row.name} ...", file=sys.stderr, flush=True)
        results.append(measure(row, peers, rounds))
    show(results, f"lucid and PyTorch on {options.device}, {THREADS} threads, medians of up to {rounds} rounds")
    path = options.json
    if path is None and len(rows) == len(ROWS) and not options.quick:
        path = RESULTS / f"{options.device}.json"
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "device": options.device,
            "threads": THREADS,
            "machine": machine(),
            "rows": [asdict(result) for result in results],
        }
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
