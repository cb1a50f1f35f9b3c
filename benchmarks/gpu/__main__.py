"""`python -m benchmarks.gpu --out FOLDER`: what a GPU that is held for ten minutes can tell, in 450 s.

Stages, in order: hello, battery, large, capture, host, steps, kernels, tests, sanitizer, profile. What they learn is in
FOLDER, a fact a line in facts.jsonl, as soon as it is known; summary.txt has it in short. Exit status: 0 all is right,
1 something failed, 2 nothing was run: there is no CUDA device, or the call was wrong.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from benchmarks.command import machine
from benchmarks.gpu import prepare, rehearsal, report, run, summary
from benchmarks.gpu.device import NO_DEVICE, NoDeviceError, device
from benchmarks.gpu.facts import FILE, Facts, text_of
from benchmarks.gpu.rows import Scope
from benchmarks.gpu.stages import BOXES, stage

PASSED, FAILED = 0, 1
SHOWN = 10_000  # characters of the summary: its first lines are what the end of an output must hold


def names(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in BOXES]:
        raise argparse.ArgumentTypeError(f"there is no stage {unknown[0]!r}; the stages are {','.join(BOXES)}")
    return [name for name in BOXES if name in chosen]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    made.add_argument("--out", type=Path, metavar="FOLDER", help="where what is learnt is written")
    made.add_argument("--budget", type=float, metavar="SECONDS", help="for all stages (default: 450, less for some)")
    made.add_argument("--only", type=names, default=list(BOXES), metavar="NAME,...", help="only these stages")
    made.add_argument("--resume", action="store_true", help="go on behind the facts that FOLDER holds")
    made.add_argument("--simulate", action="store_true", help="on a simulated device, at small sizes")
    made.add_argument("--rehearse", action="store_true", help="so too, few rows, two faults planted, and checked")
    made.add_argument(
        "--prepared", type=Path, default=prepare.DEFAULT, metavar="FOLDER", help="what --prepare has filled"
    )
    made.add_argument(
        "--prepare", type=Path, nargs="?", const=prepare.DEFAULT, metavar="FOLDER",
        help=f"fill a folder with what a GPU's machine lacks (default: {prepare.DEFAULT.name}), and do nothing else",
    )  # fmt: skip
    made.add_argument("--report", type=Path, metavar="FOLDER", help="make table and page of a folder, and nothing else")
    made.add_argument("--to", type=Path, metavar="FOLDER", help="where --report writes both (default: the project's)")
    made.add_argument("--worker", help=argparse.SUPPRESS)
    made.add_argument("--describe", action="store_true", help=argparse.SUPPRESS)
    return made


def describe() -> int:
    """Print device and machine, as the run asks a process of its own."""
    import lucid  # noqa: F401 - it may simulate the device

    try:
        print(json.dumps({"device": device(), "machine": machine()}))
    except NoDeviceError as error:
        print(error, file=sys.stderr)
        return NO_DEVICE
    return PASSED


def work(words: str) -> int:
    """Be a process of a stage."""
    scope = Scope(**json.loads(words))
    try:
        stage(scope.stage).work(scope)
    except Exception as error:
        Facts(Path(scope.folder), scope.stage)(ok=False, error=text_of(error), group=scope.group, part=scope.part)
        raise
    return PASSED


def main(argv: list[str] | None = None) -> int:
    options = (made := parser()).parse_args(argv)
    if options.describe:
        return describe()
    if options.worker:
        return work(options.worker)
    if options.prepare:
        return prepare.prepare(options.prepare)
    if options.report:
        return report.report(options.report, options.to)
    if options.out is None:
        made.error("--out FOLDER says where what is learnt is written")
    if (options.out / FILE).exists() and not options.resume:
        made.error(f"{options.out} holds the facts of another run: --resume goes on behind them")
    # what it has started is ended with it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        run.run(options)
    except NoDeviceError as error:
        print(f"nothing was run: {error}", file=sys.stderr)
        return NO_DEVICE
    print((options.out / summary.FILE).read_text(encoding="utf-8")[:SHOWN])
    if options.rehearse:
        wrong = rehearsal.complaints(options.out, options.only)
        print(*wrong or ["the rehearsal left what it should"], sep="\n")
        return FAILED if wrong else PASSED
    return FAILED if summary.failed(summary.digest(options.out)) else PASSED


if __name__ == "__main__":
    sys.exit(main())
