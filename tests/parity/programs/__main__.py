"""Runs many programs: ``python -m tests.parity.programs FIRST COUNT`` prints those that differ, shortened."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import lucid
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
    lucid.set_default_device(DEVICE)
    end = options.first + options.count
    begin = time.monotonic()
    found = Counter()
    shown = 0
    chunks = [range(at, min(at + CHUNK, end)) for at in range(options.first, end, CHUNK)]
    for number, (counts, others) in enumerate(results(chunks, options.processes), 1):
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
    return found["differs"] + found["breaks"] + found["ends its process"]


def results(chunks, processes):
    """Yield what `judged` says of each chunk; what ends its process is looked for, seed by seed."""
    # each process has modes and devices of its own from the start
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(judged, chunk): chunk for chunk in chunks}
        lost = []
        for future in as_completed(running):
            try:
                yield future.result()
            except BrokenProcessPool:
                lost.append(running[future])
            del running[future]
    lost.sort(key=lambda chunk: chunk.start)
    if len(lost) > 1:
        # the one that ended a process is among the first, the others were only queued
        yield from results(lost[:1], 1)
        yield from results(lost[1:], processes)
    elif lost and len(lost[0]) > 1:
        middle = len(lost[0]) // 2
        yield from results([lost[0][:middle]], 1)
        yield from results([lost[0][middle:]], 1)
    elif lost:
        yield Counter({"ends its process": 1}), [(lost[0].start, "ends its process")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
