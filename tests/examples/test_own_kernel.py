"""The example of a kernel of one's own finds its gradients, and with them the constants behind what it saw."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_kernel.py"


@pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")
def test_own_kernel():
    """It runs where there is no GPU, passes both checks of derivatives, and finds the constants that made the data."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])}
    ran = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "friction: -(g_next_angle" in ran.stdout
    assert "gradcheck: True" in ran.stdout
    assert "gradgradcheck: True" in ran.stdout
    gravity, friction = map(float, re.search(r"gravity (\S+), friction (\S+);", ran.stdout).groups())
    assert gravity == pytest.approx(4.0, abs=0.01)
    assert friction == pytest.approx(0.3, abs=0.01)
