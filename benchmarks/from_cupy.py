"""`python -m benchmarks.from_cupy`: what a gradient costs the programs of `examples/from_cupy`.

Each is run as the plain program that it was, of NumPy's or CuPy's, and with its lines changed: forward and backward.
Rounds alternate; a ratio is the median over the rounds, to the plain program's time in the same round. Times are those
of the process, which other work on the machine does not change much; on a GPU, which is waited for, those of the clock.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time

import numpy as np

import lucid
from lucid.base import gpu
from tests.examples.from_cupy.programs import NAMES, before, module, problem, source

BUDGET = 3  # backward, by the plain program's time


def timed(device, function):
    """Return the milliseconds that a call takes, and its result."""
    clock = time.process_time if device == "cpu" or gpu.is_simulated() else time.perf_counter
    start = clock()
    result = function()
    if device == "cuda":
        lucid.cuda.synchronize()
    return (clock() - start) * 1e3, result


def measured(name, device, rounds):
    """Return the times of the plain program, of the recorded one and of its backward, for each round."""
    library = "cupy" if device == "cuda" else "numpy"
    original, start = problem(module(before(source(name), library)), name, np.random.default_rng(0), device)
    changed, _ = problem(module(source(name)), name, np.random.default_rng(0), device)
    x = lucid.tensor(start, requires_grad=True)
    rows = []
    for _ in range(rounds + 1):
        gc.collect()
        plain, _ = timed(device, lambda: original(x.detach().array))
        forward, loss = timed(device, lambda: changed(x))
        backward, _ = timed(device, loss.backward)
        rows.append((plain, forward, backward))
    return rows[1:]


def main():
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    lucid.set_default_device(options.device)
    print("| program | plain (ms) | forward (ms) | backward (ms) | forward / plain | backward / plain |")
    print("|---|---|---|---|---|---|")
    for name in NAMES:
        rows = measured(name, options.device, options.rounds)
        times = [f"{statistics.median(column):.1f}" for column in zip(*rows, strict=True)]
        forward = statistics.median(row[1] / row[0] for row in rows)
        backward = statistics.median(row[2] / row[0] for row in rows)
        mark = "" if backward <= BUDGET else f" (over {BUDGET})"
        print(f"| {name} | {' | '.join(times)} | {forward:.2f} | {backward:.2f}{mark} |")


if __name__ == "__main__":
    main()
