"""What tests of kernels share: arrays rounded to a dtype, and how near a result must be."""

from __future__ import annotations

import numpy as np

import lucid
from lucid.base import gpu

FLOATS = ("float32", "float64", "float16", "bfloat16")
# By how many units of the dtype a result may differ, relative to the largest: half types are computed in float32 and
# rounded once or twice, the others are summed in another order than the reference.
UNITS = {"float32": 20, "float64": 20, "float16": 4, "bfloat16": 4}
EPSILON = {"float32": 2**-23, "float64": 2**-52, "float16": 2**-10, "bfloat16": 2**-7}


def rounded(array, dtype):
    """Return float64 numbers that the dtype holds exactly."""
    return np.asarray(array, np.float64).astype(getattr(lucid, dtype).numpy).astype(np.float64)


def on_device(array, dtype=None):
    """Return a CUDA tensor of these numbers, of the array's dtype unless another is given."""
    return lucid.tensor(array, dtype=getattr(lucid, dtype) if dtype else None, device="cuda")


def device(array):
    """Return a raw CUDA array."""
    return gpu.cupy().asarray(array)


def assert_same(got, expected):
    """Compare a CUDA array with NumPy's, bit for bit."""
    assert got is not NotImplemented
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.flags.c_contiguous
    assert (got.get() == expected).all()


def assert_near(got, wanted, dtype, slack=1, terms=0.0):
    """Compare a CUDA array, of this dtype, with float64 numbers, to `slack` times the units.

    Sums whose `terms` are given by the root of their sum of squares may be off by units of that: terms may cancel.
    """
    assert got is not NotImplemented
    assert got.dtype == getattr(lucid, dtype).numpy
    assert got.flags.c_contiguous
    values = got.get().astype(np.float64)
    assert values.shape == wanted.shape
    scale = max(np.abs(wanted).max(initial=0), terms, 1e-30)
    np.testing.assert_allclose(values / scale, wanted / scale, rtol=0, atol=slack * UNITS[dtype] * EPSILON[dtype])
