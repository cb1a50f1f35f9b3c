"""Other processes: a Python that imports this lucid and its tests, with or without simulated devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


def python(*arguments, settings=None, **variables):
    """Return what came of a Python with these arguments and variables, of which None is not set, and settings."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={name: value for name, value in given.items() if value is not None},
        **{"capture_output": True, "text": True, "check": False, "timeout": 5 * PATIENCE, **(settings or {})},
    )


def simulated(code, **variables):
    """Return what came of Python code with a simulated device."""
    return python("-c", code, **{"LUCID_CUDA_SIMULATOR": "1", **variables})


def simulator(*arguments, **others):
    """Return what came of the command of simulated devices; LUCID_CUDA_SIMULATOR is not set unless it is named."""
    return python("-m", "lucid.cuda.simulator", *arguments, **{"LUCID_CUDA_SIMULATOR": None, **others})
