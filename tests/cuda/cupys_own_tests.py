"""CuPy's own tests on simulated devices: ``python -m tests.cuda.cupys_own_tests SDIST [PART...]``.

SDIST is the folder into which cupy-<version>.tar.gz was unpacked, of the version that is installed; a part is a file or
a folder below tests/cupy_tests. Prints what passed, and why the rest did not: by the first words of the errors.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import packages_distributions, version
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
PARTS = (
    "cuda_tests/test_memory.py", "cuda_tests/test_pinned_memory.py", "cuda_tests/test_memory_hook.py",
    "cuda_tests/test_stream.py", "cuda_tests/test_graph.py", "cuda_tests/test_device.py", "cuda_tests/test_runtime.py",
    "core_tests/test_raw.py", "core_tests/test_elementwise.py", "core_tests/test_reduction.py",
    "core_tests/test_userkernel.py",
)  # fmt: skip


def words(message):
    """First line of an error without what differs from test to test."""
    line = next(iter(message.splitlines()), "")
    return re.sub(r"0x[0-9a-f]+|\d+", "#", line)[:110]


def run(sdist, part, results):
    """Run the tests of one part; give how many passed, failed and were skipped, and the words of the failures."""
    command = [
        sys.executable, "-m", "lucid.cuda.simulator", "--devices", "2", "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "--junitxml", str(results), f"cupy_tests/{part}",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        command, cwd=sdist / "tests", env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    outcomes, why = Counter(), Counter()
    if not results.exists():
        return outcomes, Counter({f"pytest ended with {ran.returncode}: {ran.stderr.strip()[-300:]}": 1})
    for test in ET.parse(results).getroot().iter("testcase"):
        kinds = {child.tag: child for child in test}
        found = kinds.get("failure", kinds.get("error"))
        outcomes["failed" if found is not None else "skipped" if "skipped" in kinds else "passed"] += 1
        if found is not None:
            why[words(found.get("message", ""))] += 1
    return outcomes, why


def main():
    """Run the parts one after the other and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("sdist", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART", default=PARTS)
    given = parser.parse_args()
    missing = [part for part in given.parts if not (given.sdist / "tests/cupy_tests" / part).exists()]
    if missing:
        parser.error(f"{given.sdist} is no unpacked sdist of CuPy, or has no tests/cupy_tests/{missing[0]}")
    told = re.search(r"^Version: (\S+)", (given.sdist / "PKG-INFO").read_text(encoding="utf-8"), re.MULTILINE)
    installed = version(packages_distributions()["cupy"][0])
    if told is None or told[1] != installed:
        parser.error(f"the tests are of CuPy {told and told[1]}, and {installed} is installed")
    print("| part | passed | failed | skipped | seconds |\n|---|---|---|---|---|")
    total, reasons = Counter(), Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(given.parts):
            started = time.perf_counter()
            outcomes, why = run(given.sdist, part, Path(folder, f"{number}.xml"))
            seconds = time.perf_counter() - started
            counts = " | ".join(str(outcomes[kind]) for kind in ("passed", "failed", "skipped"))
            print(f"| `{part}` | {counts} | {seconds:.0f} |", flush=True)
            total += outcomes
            reasons += why
    ran = total["passed"] + total["failed"]
    print(
        f"\n{total['passed']:,} of {ran:,} that were not skipped pass, {100 * total['passed'] / max(ran, 1):.0f} %.\n"
    )
    for reason, count in reasons.most_common():
        print(f"{count:5} {reason}")


if __name__ == "__main__":
    main()
