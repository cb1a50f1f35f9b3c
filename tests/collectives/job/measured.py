"""`python -m tests.collectives.job.measured [--mpiexec COMMAND]`: how soon a job ends after a fault, as a table.

The limit of the job is 2 s. With another library than MPICH: in an environment with mpi4py and that library,
``--mpiexec "mpiexec --allow-run-as-root --oversubscribe"``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from pathlib import Path

from lucid.distributed.run import mpiexec
from tests.collectives.jobs import run
from tests.collectives.scripts.faults import FAULTS


def main():
    """Run one job for each fault, and print how it ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.collectives.job.measured")
    parser.add_argument("--mpiexec", default=mpiexec(), help="the command that starts processes")
    starts = shlex.split(parser.parse_args().mpiexec)
    print(
        "| fault | status | s from the fault to the error | to the end | what rank 0 noticed |\n|---|---|---|---|---|"
    )
    for fault in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                [*starts, "-n", 2, sys.executable, "-m", "tests.collectives.scripts.faults", folder, fault], folder
            )
            end = time.time()
            begin, noticed = Path(folder, "1.begin").stat().st_mtime, Path(folder, "0.txt")
            after, words = "", ""
            if noticed.exists():
                after, words = f"{noticed.stat().st_mtime - begin:.2f}", noticed.read_text()[:200].replace("\n", " ")
            print(f"| {fault} | {done.status} | {after} | {end - begin:.2f} | {words} |", flush=True)


if __name__ == "__main__":
    main()
