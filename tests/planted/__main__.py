"""Plants faults in files of lucid, one at a time, and prints those that no test finds.

``python -m tests.planted lucid/hooks`` draws 100 faults of that folder and runs tests/hooks, in which those that call
the function are chosen; ``LUCID_TEST_DEVICE=cuda`` and the rest of `make device` lets them run on a simulated device,
where ``--again`` a file of what was printed on the CPU tries the faults that only a device can show.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from tests.planted.running import ROOT, Planting


def of_lucid(text):
    """Return the path of a file or folder, relative to the checkout."""
    path = Path(text).resolve()
    if not path.exists() or ROOT / "lucid" not in [path, *path.parents]:
        raise argparse.ArgumentTypeError(f"{text} is no file or folder of lucid that exists")
    return path


def neighbours(path):
    """Return the nearest folder of tests to a file or folder of lucid."""
    place = ROOT / "tests" / path.relative_to(ROOT / "lucid").with_suffix("")
    return next(str(each) for each in [place, *place.parents] if each.is_dir())


def main(arguments):
    """Return 0, 1 if faults survive, another number if no test could be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("paths", nargs="+", type=of_lucid, help="files or folders of lucid")
    parser.add_argument("--tests", nargs="+", help="what pytest is to run (default: the folders of the same names)")
    parser.add_argument("--faults", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--draw", type=int, default=0, help="the seed that draws them (default: 0)")
    parser.add_argument("--again", type=Path, help="a file of what was printed: these faults, and no others")
    options = parser.parse_args(arguments)
    files = sorted({file for path in options.paths for file in ([path] if path.is_file() else path.rglob("*.py"))})
    tests = options.tests or sorted({neighbours(path) for path in options.paths})
    again = None if options.again is None else options.again.read_text().splitlines()
    planting = Planting(list(map(str, files)), options.faults, options.draw, again)
    code = pytest.main(["-q", "-p", "no:terminalreporter", "-p", "no:cacheprovider", *tests], plugins=[planting])
    return code or planting.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
