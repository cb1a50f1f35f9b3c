"""Runs many programs: ``python -m tests.parity.programs FIRST COUNT`` prints those that differ, shortened."""

from __future__ import annotations

import sys
import traceback
from collections import Counter

import lucid
from tests.device import DEVICE
from tests.parity.programs.compare import difference, report
from tests.parity.programs.generator import generate


def main(first, count):
    """Compare the programs of `count` seeds and return how many differ."""
    lucid.set_default_device(DEVICE)
    found = Counter()
    for seed in range(first, first + count):
        program = generate(seed)
        try:
            result = "differs" if difference(program) else "same"
        except Exception:  # noqa: BLE001  the others are to run all the same
            result = "breaks"
            traceback.print_exc()
        found[result] += 1
        if result != "same":
            print(f"seed {seed} {result}")
        if result == "differs" and found["differs"] <= 5:
            print(report(program), flush=True)
    print(f"seeds {first} to {first + count - 1} on {DEVICE}: {dict(found)}")
    return found["differs"] + found["breaks"]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
