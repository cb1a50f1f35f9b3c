"""What becomes of memory that is freed."""

import os
import platform
import runpy
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from lucid.base import memory
from tests.pieces import raising

pytestmark = pytest.mark.cpu("memory of the host")

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
    monkeypatch.setattr(np, "empty", raising(MemoryError))
    assert "byte_bounds" in runpy.run_path(memory.__file__)


@pytest.mark.parametrize(
    ("shape", "steps", "expected"),
    [
        ((2, 2), (1, 1), True),
        ((3, 3), (2, 1), True),
        ((3, 2), (2, 1), False),
        ((2, 3), (1, 2), False),
        ((2, 3), (1, 1), True),
        ((2, 3), (0, 1), True),
        ((2, 1), (1, 0), False),
        ((2, 1, 2), (2, 1, 1), False),
    ],
)
def test_elements_that_share_memory(shape, steps, expected):
    """Strides of which one is no larger than what the smaller ones reach meet in some element; sizes of 1 do not."""
    array = np.lib.stride_tricks.as_strided(np.zeros(9, np.int8), shape, steps)
    places = {sum(i * step for i, step in zip(index, steps, strict=True)) for index in np.ndindex(*shape)}
    assert (len(places) < array.size) == expected
    assert memory.overlapping(array) == expected
    assert memory.writeable(array) == (not expected)


@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (-1, 1), (1, -2), (-2, -1)])
def test_where_the_memory_of_an_array_begins_and_ends(steps):
    """As NumPy says of its own, forwards or backwards; an array without elements has none."""
    array = np.zeros((4, 6))[:: steps[0], :: steps[1]]
    for each in (array, array[:0]):
        start = each.__array_interface__["data"][0]
        there = SimpleNamespace(
            data=SimpleNamespace(ptr=start), size=each.size, shape=each.shape, strides=each.strides, itemsize=8
        )
        expected = np.lib.array_utils.byte_bounds(each) if each.size else (start, start)
        assert memory.byte_bounds(there) == expected
