"""`python -m benchmarks.gpu --out FOLDER`: what a GPU that is held for ten minutes can tell, in 450 s.

Stages, in order: hello, battery, large, capture, nccl, host, steps, kernels, tests, sanitizer, profile. What they learn
is in FOLDER, a fact a line in facts.jsonl, as soon as it is known; summary.txt has it in short. Exit status: 0 all is
right, 1 something failed, 2 nothing was run: there is no CUDA device, or the call was wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from benchmarks.command import machine
from benchmarks.gpu import prepare, rehearsal, report, run, summary
from benchmarks.gpu.device import NO_DEVICE, NoDeviceError, device
from benchmarks.gpu.facts import FILE, Facts, FolderError, text_of
from benchmarks.gpu.rows import Scope
from benchmarks.gpu.stages import BOXES, stage

PASSED, FAILED = 0, 1
SHOWN = 10_000  # characters of the summary: its first lines are what the end of an output must hold


def names(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in BOXES]:
        raise argparse.ArgumentTypeError(f"there is no stage {unknown[0]!r}; the stages are {','.join(BOXES)}")
    return [name for name in BOXES if name in chosen]


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return value


def target(text: str) -> Path:
    """Return a folder that is there or can be made."""
    path = Path(text)
    nearest = next(each for each in (path.absolute(), *path.absolute().parents) if os.path.lexists(each))
    if not nearest.is_dir():
        raise argparse.ArgumentTypeError(f"{nearest} is no folder")
    if not os.access(nearest, os.W_OK):
        raise argparse.ArgumentTypeError(f"{nearest} cannot be written to")
    return path


def source(text: str) -> Path:
    """Return a folder that is there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no folder")
    return Path(text)


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with a call."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def parser() -> Parser:
    made = Parser(prog="python -m benchmarks.gpu", description=__doc__)
    does = made.add_mutually_exclusive_group(required=True)
    does.add_argument("--out", type=target, metavar="FOLDER", help="where what is learnt is written")
    made.add_argument("--budget", type=seconds, metavar="SECONDS", help="for all stages (default: 450, less for some)")
    made.add_argument("--only", type=names, default=list(BOXES), metavar="NAME,...", help="only these stages")
    made.add_argument("--resume", action="store_true", help="go on behind the facts that FOLDER holds")
    made.add_argument("--simulate", action="store_true", help="on a simulated device, at small sizes")
    made.add_argument("--rehearse", action="store_true", help="so too, few rows, two faults planted, and checked")
    made.add_argument(
        "--prepared", type=source, default=prepare.DEFAULT, metavar="FOLDER", help="what --prepare has filled"
    )
    does.add_argument(
        "--prepare", type=target, nargs="?", const=prepare.DEFAULT, metavar="FOLDER",
        help=f"fill a folder with what a GPU's machine lacks (default: {prepare.DEFAULT.name}), and do nothing else",
    )  # fmt: skip
    does.add_argument(
        "--report", type=source, metavar="FOLDER", help="make table and page of a folder, and nothing else"
    )
    made.add_argument("--to", type=target, metavar="FOLDER", help="where --report writes both (default: the project's)")
    does.add_argument("--worker", help=argparse.SUPPRESS)
    does.add_argument("--describe", action="store_true", help=argparse.SUPPRESS)
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


def measure(options: argparse.Namespace) -> int:
    """Run the stages, print the summary, and return whether all is right."""
    if (options.out / FILE).exists() and not options.resume:
        raise FolderError(f"{options.out} holds the facts of another run: --resume goes on behind them")
    # what it has started is ended with it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    run.run(options)
    print((options.out / summary.FILE).read_text(encoding="utf-8")[:SHOWN])
    if options.rehearse:
        wrong = rehearsal.complaints(options.out, options.only)
        print(*wrong or ["the rehearsal left what it should"], sep="\n")
        return FAILED if wrong else PASSED
    return FAILED if summary.failed(summary.digest(options.out)) else PASSED


def main(argv: list[str] | None = None) -> int:
    options = (made := parser()).parse_args(argv)
    if options.describe:
        return describe()
    if options.worker:
        return work(options.worker)
    if options.to and not options.report:
        made.error("--to says where --report writes its folder's table and page, and there is no --report")
    if options.budget and options.rehearse:
        made.error("--rehearse takes no --budget: its stages end by their rows")
    if options.prepare:
        return prepare.prepare(options.prepare)
    try:
        if options.out:
            return measure(options)
        report.report(options.report, options.to)
    except FolderError as error:
        made.error(str(error))
    except NoDeviceError as error:
        print(f"nothing was run: {error}", file=sys.stderr)
        return NO_DEVICE
    return PASSED


if __name__ == "__main__":
    sys.exit(main())
