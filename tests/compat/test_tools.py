"""Libraries for PyTorch run on lucid, where they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import lucid
from tests.compat.tools import TOOLS

ROOT = Path(lucid.__file__).parents[1]


@pytest.mark.parametrize("name", TOOLS)
def test_a_library_runs(name):
    """A library gives what arithmetic says, in a process in which `torch` is lucid."""
    if find_spec(name) is None:
        pytest.skip(f"needs {name}: pip install --no-deps {TOOLS[name][1]}")
    command = [sys.executable, "-m", "tests.compat.tools", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(": runs\n")


def test_the_page_names_each():
    """docs/users/tools.md has a row for each library that is tried."""
    text = (ROOT / "docs" / "users" / "tools.md").read_text(encoding="utf-8")
    assert [package for _, package in TOOLS.values() if f"| {package} |" not in text] == []
