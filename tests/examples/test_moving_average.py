"""The example that knows nothing of lucid computes what it says, and its mistakes are found."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "moving_average.py"

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")


def run(*arguments):
    """Run the example on one simulated device."""
    command = [sys.executable, "-m", "lucid.cuda.simulator", "--devices", "1", str(EXAMPLE), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_without_a_bug():
    """It agrees with NumPy to a float32's last digit."""
    ran = run()
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout.removeprefix("largest difference from NumPy: ")) < 1e-6


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("bounds", "out-of-range write of 4 bytes"),
        ("barrier", "race on byte"),
    ],
)
def test_with_a_bug(bug, words):
    """The report names the mistake and the line of the kernel."""
    ran = run("--bug", bug)
    assert ran.returncode == 1
    report = ran.stderr.splitlines()[-1]
    assert "moving_average: block (" in report
    assert words in report
    assert "(kernel.cu:10)" in report
