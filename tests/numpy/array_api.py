"""The suite of the array API, run on lucid: ``python -m tests.numpy.array_api FOLDER``, with a checkout of it.

The suite is ``data-apis/array-api-tests``, with its submodule; the packages that it needs have to be installed. With
``--device cuda`` its arrays are made on a CUDA device, or the simulated one of ``LUCID_CUDA_SIMULATOR=1``. What else is
given goes to pytest, as ``--max-examples 20``, how many arguments are drawn for each test; the suite's default is 100.
Printed is a table: per file how many tests pass and fail, then each that fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

from tests.numpy.hips import Results

MODULE = "exec('import lucid; lucid.set_default_device(\"{device}\"); import lucid.array_api as xp')"


def run(folder, device, options):
    """Return how each test of the suite ended, and why."""
    os.environ["ARRAY_API_TESTS_MODULE"] = MODULE.format(device=device)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    results = Results()
    usual = ["-q", "--tb=no", "-p", "no:cacheprovider", "--disable-deadline", "--hypothesis-seed=0", "-W", "ignore"]
    ending = pytest.main([*usual, "array_api_tests", *options], plugins=[results])
    if not results.ended:
        raise SystemExit(f"{folder}: no test has run, pytest ends with {ending!r}")
    return results.ended


def report(ended):
    """Print the tables."""
    counts = Counter((name.partition("::")[0], how) for name, (how, _) in ended.items())
    print(f"\n{'file':<46}{'passed':>8}{'failed':>8}{'skipped':>9}")
    for file in [*sorted({file for file, _ in counts}), "all"]:
        row = [
            sum(n for (name, how), n in counts.items() if how == wanted and file in {name, "all"})
            for wanted in ("passed", "failed", "not applicable")
        ]
        print(f"{file:<46}{row[0]:>8}{row[1]:>8}{row[2]:>9}")
    print()
    for name, (how, why) in sorted(ended.items()):
        if how == "failed":
            print(f"{name}: {why}")


def main():
    """Run the suite in the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a checkout of data-apis/array-api-tests")
    parser.add_argument("--device", default="cpu", help="where arrays are made: cpu or cuda")
    given, options = parser.parse_known_args()
    warnings.simplefilter("ignore")
    report(run(given.folder.resolve(), given.device, options))


if __name__ == "__main__":
    main()
