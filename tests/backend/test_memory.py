"""What becomes of memory that is freed."""

import os
import platform
import runpy
import subprocess
import sys

import numpy as np
import pytest

from lucid.backend import memory

FAULTS = """
import resource
import numpy as np
import lucid

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        kept = [np.ones(1 << 20, np.uint8) for _ in range(3)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is a habit of glibc's to give memory back")
def test_memory_that_is_freed_is_used_again():
    """Arrays of a megabyte that come and go cost no pages of the system's, unless the user wanted that."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}

    def run(**variables):
        command = [sys.executable, "-c", FAULTS]
        return int(subprocess.run(command, env=own | variables, capture_output=True, text=True, check=True).stdout)

    assert run() < 100
    assert run(MALLOC_TRIM_THRESHOLD_="131072") > 10_000


def test_memory_that_is_not_there_is_done_without(monkeypatch):
    """Where the system refuses the array that is made for this, lucid is imported all the same."""

    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr(np, "empty", refuse)
    assert "byte_bounds" in runpy.run_path(memory.__file__)
