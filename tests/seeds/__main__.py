"""Runs tests that draw with seeds that no gate has seen: ``python -m tests.seeds tests/ops --seeds 50``.

Each find is printed when it is found, and at the end as a line that repeats it; the smallest seed stands for all.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath
from shlex import quote

import pytest
from _pytest.mark import expression as expressions

ROOT = PurePosixPath(__file__).parents[2]
LONGEST_MESSAGE = 200
MISREAD = getattr(expressions, "ParseError", SyntaxError)  # until pytest 9, and since


def number(text):
    """Return a number of which there must be one at least."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def there(text):
    """Return the path of tests, whose folder or file must exist."""
    if not Path(text.partition("::")[0]).exists():
        raise argparse.ArgumentTypeError(f"{text} does not exist")
    return text


def expression(text):
    """Return an expression of pytest's, as it stands."""
    try:
        expressions.Expression.compile(text)
    except MISREAD as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no expression of pytest's: {error}") from None
    return text


def parsed(arguments):
    """Return the settings of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.seeds", description=__doc__)
    parser.add_argument("paths", nargs="+", type=there, help="folders, files or tests, as pytest takes them")
    parser.add_argument("--seeds", type=number, default=50, help="how many (default: 50)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: 1; the gate has 0)")
    parser.add_argument(
        "--processes", type=number, default=os.cpu_count(), help="how many run at once (default: cores)"
    )
    parser.add_argument("-k", type=expression, default="", help="an expression of pytest's, by which tests are chosen")
    return parser.parse_args(arguments)


class Finds:
    """What runs found: by test the seeds that fail and the message of the smallest, by folder how many ran."""

    def __init__(self, seeds):
        self.seeds, self.failures = seeds, defaultdict(dict)
        self.tests, self.runs, self.broken = Counter(), Counter(), []

    def pytest_runtest_logreport(self, report):
        """Note a failure, and how often a test ran."""
        noted = dict(report.user_properties)
        if report.failed:
            # a test that ended its process has no seed: all of them are tried again
            self.note(report.nodeid, noted.get("seed", "any"), message_of(report))
        if runs := noted.get("runs"):
            folder = str(PurePosixPath(report.nodeid.partition("::")[0]).parent)
            self.tests[folder] += 1
            self.runs[folder] += runs

    def pytest_collectreport(self, report):
        """Note what could not be collected."""
        if report.failed:
            self.broken.append(f"{report.nodeid}: {report.longreprtext}")

    def note(self, nodeid, seed, message):
        """Print a find, and keep it."""
        self.failures[nodeid].setdefault(seed, message)
        print(f"{again(nodeid, seed)}  # {message}", flush=True)

    def print_all(self):
        """Print the lines that repeat the finds, those of most seeds first, and the table of folders."""
        print("\n".join(self.broken))
        for nodeid, found in sorted(self.failures.items(), key=lambda pair: -len(pair[1])):
            seed = next(iter(found))
            print(f"# {len(found)} of {self.seeds} seeds: {found[seed]}\n{again(nodeid, seed)}")
        rows = [("folder", "drawing tests", "runs", "failures", "failing tests")]
        failing = defaultdict(list)
        for nodeid, found in self.failures.items():
            failing[str(PurePosixPath(nodeid.partition("::")[0]).parent)].append(len(found))
        for folder in sorted({*self.tests, *failing}):
            counts = failing[folder]
            rows.append((folder, self.tests[folder], self.runs[folder], sum(counts), len(counts)))
        rows.append(("all", *(sum(row[k] for row in rows[1:]) for k in range(1, 5))))
        widths = [max(len(str(row[k])) for row in rows) for k in range(5)]
        for first, *numbers in rows:
            cells = [str(n).rjust(width) for n, width in zip(numbers, widths[1:], strict=True)]
            print("  ".join([first.ljust(widths[0]), *cells]))


def message_of(report):
    """Return what a failure says, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return " ".join((crash.message if crash else report.longreprtext).split())[:LONGEST_MESSAGE]


def again(nodeid, seed):
    """Return the command that repeats a run."""
    if seed == "any":
        return f"python -m tests.seeds {quote(nodeid)}"
    return f"LUCID_TEST_SEED={seed} python -m pytest {quote(nodeid)}"


def main(arguments):
    """Run the tests and return 0, 1 if anything failed, 2 if no test was chosen."""
    options = parsed(arguments)
    finds = Finds(options.seeds)
    own = ["-p", "tests.seeds.repeating", f"--number-of-seeds={options.seeds}", f"--first-seed={options.first}"]
    quiet = ["-p", "no:terminalreporter", "-p", "no:cacheprovider", "-k", options.k]
    code = pytest.main([*own, *quiet, f"--numprocesses={options.processes}", *options.paths], plugins=[finds])
    if code in {pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED} and not finds.broken:
        chosen = f" that -k {options.k!r} chooses" if options.k else ""
        print(f"no test was run: there is none in {' '.join(options.paths)}{chosen}", file=sys.stderr)
        return 2
    finds.print_all()
    return code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED} or bool(finds.failures or finds.broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
