"""Draws by loops in C++, beside those by NumPy's passes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cpu
from lucid.cpu.functions import BUILD
from lucid.cpu.random import _FILLS, order
from lucid.nn import functional as F

FLOATS = [lucid.float32, lucid.float64, lucid.float16, lucid.bfloat16]
SIZES = [0, 1, 5, 511, 512, 1023, 1024, 1025, 4096, 10_003]
DRAWS = {
    "normal": lambda n, dtype: lucid.empty(n, dtype=dtype).normal_(3.0, 0.1),
    "randn": lambda n, dtype: lucid.randn(n, dtype=dtype),
    "rand": lambda n, dtype: lucid.rand(n, dtype=dtype),
    "uniform": lambda n, dtype: lucid.empty(n, dtype=dtype).uniform_(-3.0, 1e4),
    "exponential": lambda n, dtype: lucid.empty(n, dtype=dtype).exponential_(2.0),
    "dropout": lambda n, dtype: F.dropout(lucid.ones(n, dtype=dtype), 0.3),
}
INTEGERS = {
    "int64": lambda n: lucid.randint(-7, 100, (n,)),
    "all of int64": lambda n: lucid.empty(n, dtype=lucid.int64).random_(),
    "int8": lambda n: lucid.randint(-7, 100, (n,), dtype=lucid.int8),
    "uint8": lambda n: lucid.randint(0, 256, (n,), dtype=lucid.uint8),
    "int16": lambda n: lucid.randint(-(2**15), 2**15, (n,), dtype=lucid.int16),
    "int32": lambda n: lucid.randint(-(2**31), 2**31, (n,), dtype=lucid.int32),
    "bool": lambda n: lucid.bernoulli(lucid.full((n,), 0.3)),
    "permutation": lambda n: lucid.randperm(n),
}


@pytest.fixture(autouse=True)
def _loaded(_compiler):
    """Have the library compiled, which few numbers would not be worth."""
    assert _FILLS["bernoulli"](BUILD) is not None


def both(draw, seed):
    """Return the bytes that a draw gives by loops and by NumPy, each with two numbers that are drawn behind it."""
    results = []
    for compiled in (True, False):
        before, cpu.compiled = cpu.compiled, compiled
        try:
            lucid.manual_seed(seed)
            lucid.rand(3, device="cpu")
            drawn = draw()
            results.append((drawn.dtype, drawn.array.tobytes(), lucid.rand(2, device="cpu").array.tobytes()))
        finally:
            cpu.compiled = before
    return results


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", DRAWS)
def test_the_same_bits(name, dtype, size):
    """Floating-point draws are NumPy's, bit for bit, and the stream stands where NumPy leaves it."""
    loop, passes = both(lambda: DRAWS[name](size, dtype), size)
    assert loop == passes


@pytest.mark.cpu("compares the two ways of the CPU")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", INTEGERS)
def test_the_same_integers(name, size):
    """Integers, bools and permutations are those of NumPy's passes."""
    loop, passes = both(lambda: INTEGERS[name](size), size)
    assert loop == passes


def test_nothing_is_written_behind_the_numbers():
    """A loop fills what it is asked for, and no element beside it."""
    for count in (1, 3, 1021, 1025):
        memory = np.full(count + 32, 7.0, np.float32)
        _FILLS["normal"](BUILD, "float")(memory[16:].ctypes.data, count, 5, 0, 0.0, 1.0)
        np.testing.assert_array_equal(memory[:16], 7)
        np.testing.assert_array_equal(memory[16 + count :], 7)
        assert (memory[16 : 16 + count] != 7).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 5000])
def test_the_order_of_keys(count):
    """Keys are sorted as NumPy sorts them, and equal ones stay in order, whatever bits they differ in."""
    random = np.random.default_rng(count)
    every = random.integers(0, 2**64, count, np.uint64)
    for keys in (every, every >> np.uint64(50), every << np.uint64(50), every & np.uint64(3), np.zeros_like(every)):
        np.testing.assert_array_equal(order(keys), np.argsort(keys, kind="stable"))
