"""Files under attack: threads of several processes that save and load one path at once, and files from strangers.

    python -m tests.stress.files --loads 5000    # each load must give one of the saves, whole
    python -m tests.stress.files --files 20000   # of files changed at random each is a value or a CheckpointError, soon

The exit status is 0 if no load failed and none was wrong. `--keep FOLDER` is where files go that are not as they
should be, `--seed` draws others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import lucid
from lucid.errors import LucidError
from tests.stress import mutants

PROCESSES = 2
READERS = WRITERS = 2  # threads in each process
ARRAYS, SIZE = 4, 20_000
FAULTS = (LucidError, OSError, ValueError, TypeError, LookupError, RuntimeError, EOFError)
MEMORY = Path("/dev/shm")  # a file system in memory, where a save takes no longer than a load, so that they meet often


@dataclass
class Counts:
    """What happened: loads and saves, the different saves that were loaded, and one line for each fault."""

    loads: int = 0
    saves: int = 0
    seen: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def add(self, other):
        """Count what another counted, too."""
        self.loads += other.loads
        self.saves += other.saves
        self.seen |= other.seen
        self.faults += other.faults


def saved(writer, n):
    """Return an object of which every part says which save it is of."""
    return {"writer": writer, "n": n, "arrays": [lucid.full((SIZE,), float(n), device="cpu") for _ in range(ARRAYS)]}


def fault_of(loaded):
    """Return what is wrong with a loaded object, or None."""
    arrays = [array.numpy() for array in loaded["arrays"]]
    if [array.shape for array in arrays] != [(SIZE,)] * ARRAYS:
        return f"wrong shapes: {[array.shape for array in arrays]}"
    if not all((array == loaded["n"]).all() for array in arrays):
        return f"wrong values: save {loaded['n']} has {sorted({float(array[i]) for array in arrays for i in (0, -1)})}"
    return None


def read(path, times):
    """Load a path that others save, and return the counts."""
    counts = Counts(loads=times)
    for _ in range(times):
        try:
            loaded = lucid.load(path)
        except FAULTS as error:
            counts.faults.append(f"load: {type(error).__name__}: {error}")
            continue
        fault = fault_of(loaded)
        if fault:
            counts.faults.append(fault)
        counts.seen.add(f"{loaded['writer']} {loaded['n']}")
    return counts


def write(path, index, done):
    """Save a path that others load and save, until it is done, and return the counts."""
    counts = Counts()
    while not done.is_set():
        try:
            lucid.save(saved(f"{os.getpid()} {index}", counts.saves), path)
        except FAULTS as error:
            counts.faults.append(f"save: {type(error).__name__}: {error}")
        counts.saves += 1
    return counts


def work(path, loads):
    """Load a path `loads` times in threads while others save it, and return the counts."""
    counts = Counts()
    done = threading.Event()
    with ThreadPoolExecutor(READERS + WRITERS) as threads:
        writers = [threads.submit(write, path, index, done) for index in range(WRITERS)]
        readers = [threads.submit(read, path, loads // READERS) for _ in range(READERS)]
        try:
            for reader in readers:
                counts.add(reader.result())
        finally:
            done.set()
        for writer in writers:
            counts.add(writer.result())
    return counts


def run(loads):
    """Return the counts of at least `loads` loads by all processes."""
    counts = Counts()
    each = -(-loads // (PROCESSES * READERS)) * READERS
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        path = Path(folder, "model.safetensors")
        lucid.save(saved("first", 0), path)
        # not forked: a copy of a process in which other threads run is another test
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
            for result in pool.map(partial(work, path), [each] * PROCESSES):
                counts.add(result)
        counts.faults += [f"left behind: {left.name}" for left in Path(folder).iterdir() if left != path]
    return counts


def main():
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--loads", type=int, default=0)
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    failed = 0
    if given.loads or not given.files:
        failed += race(given.loads or 5000)
    if given.files:
        failed += strangers(given.files, given.seed, given.keep)
    return 1 if failed else 0


def strangers(files, seed, keep):
    """Load so many changed files, print what was found, and return how many faults there are."""
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    finds = mutants.run(files, seed, keep)
    for line in sorted(set(finds.faults)):
        print(f"{finds.faults.count(line)} x {line}")
    kinds = {"raw ": "raw errors", "foreign": "with foreign bytes", "over ": "too late", "of memory": "too large"}
    found = [f"{sum(mark in line for line in finds.faults)} {kind}" for mark, kind in kinds.items()]
    print(f"{finds.files} files, {finds.loaded} loaded, {', '.join(found)}, {len(finds.faults)} faults")
    return len(finds.faults)


def race(loads):
    """Load one path so often, print what happened, and return how many faults there are."""
    counts = run(loads)
    for line in sorted(set(counts.faults)):
        print(f"{counts.faults.count(line)} x {line}")
    print(
        f"{counts.loads} loads, {counts.saves} saves, {len(counts.seen)} different saves loaded, "
        f"{len(counts.faults)} faults"
    )
    return len(counts.faults)


if __name__ == "__main__":
    sys.exit(main())
