"""The sorts that stand for those in CuPy's thrust module: NumPy's order, stable, on the stream that CuPy names."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.cuda.simulator.libraries.queued import Library

TYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
         np.float64, np.complex64, np.complex128, np.bool_]  # fmt: skip
SORT = "_Z11thrust_sortiPvPmRKSt6vectorIlSaIlEElS_"
ARGSORT = "_Z14thrust_argsortiPmPvS0_RKSt6vectorIlSaIlEElS0_"
LEXSORT = "_Z14thrust_lexsortiPmPvmmlS0_"
STREAM, MEMORY = ctypes.c_longlong(4321), ctypes.c_void_p(0)


class Shape(ctypes.Structure):
    """A std::vector<ptrdiff_t>: its begin, its end and the end of its memory."""

    _fields_ = (("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("room", ctypes.c_void_p))

    def __init__(self, *sizes):
        self.sizes = np.array(sizes, np.int64)
        end = self.sizes.ctypes.data + self.sizes.nbytes
        super().__init__(self.sizes.ctypes.data, end, end)


@pytest.fixture(scope="module")
def thrust():
    """Return the library by itself."""
    return Library("thrust.cpp")


def drawn(random, shape, dtype):
    """Draw numbers of which many are equal, with NaN of both signs in all places."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return random.random(shape) < 0.5
    if kind in "iu":
        return random.integers(np.iinfo(dtype).min // 30, np.iinfo(dtype).max // 30, shape).astype(dtype) // 2 * 30
    some = [-np.inf, -2.0, -1.0, -0.0, 0.0, 1.0, 3.0, np.inf, np.nan, -np.nan]
    values = random.choice(some, shape)
    if kind == "c":
        values = values.astype(dtype)
        values.imag = random.choice(some, shape)
    return values.astype(dtype)


def same_bits(found, wanted):
    """Compare with the signs of zeros; NaN is equal to NaN."""
    np.testing.assert_array_equal(found, wanted)
    if found.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def bytes_of(*arrays):
    """Return the addresses of all bytes."""
    return {byte for x in arrays for byte in range(x.ctypes.data, x.ctypes.data + x.nbytes)}


@pytest.mark.parametrize("shape", [(0,), (1,), (200,), (7, 30), (2, 3, 50), (4, 1)])
@pytest.mark.parametrize("dtype", TYPES)
def test_sort_and_argsort(thrust, dtype, shape):
    """Along the last dimension; argsort sorts the elements with the indices, as Thrust does."""
    values = drawn(np.random.default_rng(3), shape, dtype)
    number, sizes = TYPES.index(dtype), Shape(*shape)
    keys = np.full(values.shape, 99, np.uint64) if len(shape) > 1 else np.zeros(0, np.uint64)
    order = np.full(values.shape, 99, np.uint64)
    wanted = np.argsort(values, axis=-1, kind="stable")
    found = values.copy()
    thrust(SORT, number, found, keys, ctypes.byref(sizes), STREAM, MEMORY)
    same_bits(found, np.take_along_axis(values, wanted, -1))
    assert thrust.stream == 4321
    assert thrust.touched(stores=True) == bytes_of(found, keys)
    found = values.copy()
    thrust(ARGSORT, number, order, found, keys, ctypes.byref(sizes), STREAM, MEMORY)
    np.testing.assert_array_equal(order, wanted)
    same_bits(found, np.take_along_axis(values, wanted, -1))
    assert thrust.touched(stores=True) == bytes_of(order, found, keys)
    assert not thrust.touched(stores=False)


@pytest.mark.parametrize("dtype", TYPES)
def test_lexsort(thrust, dtype):
    """By the last key first."""
    keys, order = drawn(np.random.default_rng(5), (3, 120), dtype), np.full(120, 999, np.uint64)
    sizes = [ctypes.c_size_t(3), ctypes.c_size_t(120)]
    thrust(LEXSORT, TYPES.index(dtype), order, keys, *sizes, STREAM, MEMORY)
    np.testing.assert_array_equal(order, np.lexsort(keys))
    assert thrust.stream == 4321
    assert thrust.touched(stores=False) == bytes_of(keys)
    assert thrust.touched(stores=True) == bytes_of(order)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="needs the wheel of CuPy")
def test_names_in_cupy():
    """The wheel of CuPy has functions of these names, and with them of these parameters."""
    where = importlib.util.find_spec("cupy").submodule_search_locations[0]
    (module,) = Path(where, "cuda").glob("thrust.*.so")
    binary = module.read_bytes()
    assert all(b"\0" + name.encode() + b"\0" in binary for name in (SORT, ARGSORT, LEXSORT))
