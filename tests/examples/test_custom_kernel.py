"""The example of a custom kernel agrees with composed operations and with finite differences."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_kernel.py"


@pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")
def test_custom_kernel():
    """It runs where there is no GPU, and prints small differences and a passed gradcheck."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parents[1])}
    ran = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    differences = [float(number) for number in re.findall(r"difference (\S+)", ran.stdout)]
    assert len(differences) == 2
    assert max(differences) < 1e-6
    assert "gradcheck: True" in ran.stdout
