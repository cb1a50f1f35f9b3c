"""Runs many programs: ``python -m tests.parity.programs FIRST COUNT`` prints those that differ, shortened."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter

from tests.device import DEVICE
from tests.parity.programs.compare import judged, report
from tests.parity.programs.generator import generate

# how many programs a process takes at once
CHUNK = 50
# after how many chunks it says how far it is
PROGRESS = 20


def parsed(arguments):
    """Return the settings of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.programs", description=__doc__)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("count", type=int, help="how many seeds")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="how many run at once (default: all cores)"
    )
    parser.add_argument("--shorten", type=int, default=5, help="how many that differ are shown shortened (default: 5)")
    return parser.parse_args(arguments)


def main(arguments):
    """Compare the programs of `count` seeds and return how many differ."""
    options = parsed(arguments)
    end = options.first + options.count
    begin = time.monotonic()
    found = Counter()
    shown = 0
    chunks = [range(at, min(at + CHUNK, end)) for at in range(options.first, end, CHUNK)]
    # each process has modes and devices of its own from the start
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for number, (counts, others) in enumerate(pool.imap_unordered(judged, chunks), 1):
            found += counts
            for seed, words in others:
                print(f"seed {seed} {words}", flush=True)
                if words.startswith("differs") and shown < options.shorten:
                    shown += 1
                    print(report(generate(seed)), flush=True)
            if number % PROGRESS == 0:
                rate = found.total() / (time.monotonic() - begin)
                print(f"{found.total()} of {options.count}, {rate:.1f} per second: {dict(found)}", flush=True)
    seconds = time.monotonic() - begin
    print(f"seeds {options.first} to {end - 1} on {DEVICE}: {dict(found)}, in {seconds:.0f} s")
    return found["differs"] + found["breaks"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
