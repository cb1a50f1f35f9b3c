"""Every numbered line of the hooks contract has a test; ``pytest -m contract`` prints which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.contract import LINES, named_lines


def test_every_line_has_a_test():
    """No line of the contract is without a test, and one that needs no PyTorch; no test names a line that is none."""
    found = named_lines()
    assert not set(found) - set(LINES), "tests name lines that the contract does not have"
    assert not set(LINES) - set(found), "lines of the contract without a test"
    only_parity = [line for line, tests in found.items() if all(test.startswith("parity/") for test in tests)]
    assert not only_parity, "lines of the contract that only a comparison with PyTorch tests"


def test_the_table_is_printed():
    """A run of marked tests ends with the table: each line, its tests and what became of them."""
    # in this file there are tests without the mark, too
    file, test = "autograd/test_hooks.py", "test_none_keeps_and_a_tensor_replaces"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "contract"]
    root = Path(__file__).parents[2]
    done = subprocess.run([*command, f"tests/{file}"], cwd=root, capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    following = {row.split()[0]: rows[n + 1].strip() for n, row in enumerate(rows[:-1]) if row.strip()}
    assert following["0.1"] == f"{file}::{test}: 1 passed"
    assert following["9.7"] == "no test in this run"
