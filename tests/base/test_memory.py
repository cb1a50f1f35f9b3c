"""What becomes of memory that is freed."""

import math
import os
import platform
import runpy
import subprocess
import sys
from itertools import permutations
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


class Noting(np.ndarray):
    """An array that notes the shapes in which it, and each view of it, is written to."""

    def __setitem__(self, key, value):
        WRITTEN.append(self[key].shape)
        super().__setitem__(key, value)


WRITTEN: list[tuple[int, ...]] = []


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "f4", "f8", "c16"])
def test_copies_in_c_order(dtype, rng):
    """They hold the same bytes in order, of any layout: transposed, with gaps, backwards, repeated, empty."""
    base = rng.integers(0, 2 if dtype == "?" else 100, 2**19).astype(dtype)
    for shape in ((700, 600), (3, 300, 400), (300, 3, 400), (5, 1, 7, 9000), (2**18,), (0, 9), (128, 512), (40, 8000)):
        x = base[: int(np.prod(shape))].reshape(shape)
        for axes in permutations(range(x.ndim)):
            for part in (x, x[::-1], x[..., ::-2], np.broadcast_to(x[:1], shape) if x.size else x):
                turned = part.transpose(axes)
                copy = memory.c_copy(turned)
                assert copy.flags.c_contiguous
                assert not np.may_share_memory(copy, x)
                assert copy.tobytes() == turned.tobytes()
                out = np.empty(shape, dtype).transpose(axes) if part.shape == shape else np.empty_like(copy)
                memory.copy_tiled(out, turned)
                assert out.tobytes() == turned.tobytes()


def test_a_transposed_array_is_copied_by_tiles(rng):
    """Each tile fits a first-level cache, and together they are all; lines that lie as they are written go at once."""
    x = rng.standard_normal((1000, 700))
    for source, tiled in ((x.T, True), (x, False), (x.T[::-1], True), (x[:, :5].T, False)):
        out = np.empty(source.shape).view(Noting)
        WRITTEN.clear()
        memory.copy_tiled(out, source)
        assert sum(map(math.prod, WRITTEN)) == tiled * source.size
        assert max(map(math.prod, WRITTEN), default=0) <= 2**15 / 8
        assert max([near for near, _ in WRITTEN], default=0) <= 128
        np.testing.assert_array_equal(np.asarray(out), source)


def test_a_copy_onto_itself(rng):
    """An array that is written over its own transposition holds that, as if it had been copied first."""
    x = rng.standard_normal((512, 512))
    expected = x.T.copy()
    memory.copy_tiled(x, x.T)
    np.testing.assert_array_equal(x, expected)
