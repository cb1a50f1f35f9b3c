"""Arrays on mapped files: another process maps the file, and gets the same elements where they lie."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lucid.base.foreign.files import reduced

pytestmark = pytest.mark.cpu("arrays on files")


def made(found):
    """Return the array that pickle makes of what says how to make it, and of what is made before."""
    make, arguments = found
    return make(*[made(reduced(each)) if isinstance(each, np.memmap) else each for each in arguments])


@pytest.fixture
def file(tmp_path, rng):
    """Return a file of 4,000 numbers."""
    path = tmp_path / "numbers"
    rng.integers(-100, 100, 4000, dtype=np.int16).tofile(path)
    return path


VIEWS = {
    "whole": lambda m: m,
    "slice": lambda m: m[100:200],
    "steps": lambda m: m[5:900:7],
    "backwards": lambda m: m[::-3],
    "matrix": lambda m: m[:600].reshape(20, 30).T[3:, ::2],
    "other dtype": lambda m: m.view(np.int32)[3:],
    "bfloat16": lambda m: m.view(ml_dtypes.bfloat16)[3:],
    "fields": lambda m: m.view([("a", "i2"), ("b", "i4"), ("c", "i2")])["b"],
    "empty": lambda m: m[3:3],
    "one": lambda m: m[7:8].reshape(()),
    "plain": np.asarray,
    "slice of a plain one": lambda m: np.asarray(m)[50:],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_views(file, name, mode):
    """Any view of a file is found again, of the same class, dtype and steps, as writeable as it was."""
    memory = np.memmap(file, np.int16, mode)
    array = VIEWS[name](memory)
    again = made(reduced(array))
    assert type(again) is type(array)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.strides == array.strides or not array.size
    assert again.tobytes() == array.tobytes()
    assert again.flags.writeable == array.flags.writeable
    assert not np.shares_memory(again, array)


def test_offset_shape_and_order(file):
    """A map that begins inside of its file, of a shape and order."""
    for order in "CF":
        memory = np.memmap(file, np.int16, "r", 5002, (30, 40), order)
        for array in (memory, memory[3:9, 4:]):
            again = made(reduced(array))
            assert np.array_equal(again, array)
            assert again.strides == array.strides


def test_a_file_of_numpys(tmp_path, rng):
    """What np.load maps."""
    values = rng.standard_normal((50, 3))
    np.save(tmp_path / "values.npy", values)
    memory = np.load(tmp_path / "values.npy", mmap_mode="r")
    assert np.array_equal(made(reduced(memory[4:])), values[4:])


def test_what_is_written_is_in_the_file(file):
    """Of a map that was made to write, one for what is there; the file is not made anew."""
    memory = np.memmap(file, np.int16, "w+", shape=4000)
    memory[:] = np.arange(4000)
    again = made(reduced(memory))
    again[3] = -7
    assert memory[3] == -7
    assert memory[3999] == 3999


def test_what_cannot_be_found(file, tmp_path):
    """What is in no file as it is here is left to be copied: changed copies, files that are gone, replaced or cut."""
    assert reduced(np.arange(3)) is None
    assert reduced(np.memmap(file, np.int16, "r") + 1) is None
    assert reduced(np.memmap(file, np.int16, "c")) is None
    memory = np.memmap(file, np.int16, "r")
    (tmp_path / "other").write_bytes(bytes(8000))
    (tmp_path / "other").replace(file)
    assert reduced(memory) is None
    assert reduced(memory[4:]) is None
    memory = np.memmap(file, np.int16, "r")
    file.write_bytes(bytes(100))
    assert reduced(memory) is None
    file.unlink()
    assert reduced(memory) is None


def test_a_file_that_was_renamed(file, tmp_path):
    """It is found by the name that it has now, and not what took its name."""
    memory = np.memmap(file, np.int16, "r")
    expected = memory.copy()
    file.rename(tmp_path / "renamed")
    file.write_bytes(bytes(8000))
    found = reduced(memory)
    # without Linux's list of mapped files there is the name alone
    assert found is None or np.array_equal(made(found), expected)
