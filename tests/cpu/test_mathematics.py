"""The functions of `kernels/cpu/mathematics.h`, beside Python's in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lucid.cpu.functions import BUILD, Function, Unit, address

_TEXT = """\
#include "mathematics.h"
namespace lucid {{
{}
}}
"""
_LOOP = """\
__global__ void loop_{0}(float* out_n, long long n, const float* x_n) {{
    for (long long i = 0; i < n; ++i) out_n[i] = {0}(x_n[i]);
}}"""
# the largest error of each in units in the last place, as its header says
UNITS = {"exp": 1.0, "expm1": 1.6, "log": 0.9, "log1p": 0.9, "tanh": 1.6, "erf": 2.6, "erfc": 5.7}
_UNIT = Unit("mathematics.cpp", lambda: _TEXT.format("\n".join(map(_LOOP.format, UNITS))))
LOOPS = {name: Function(_UNIT, f"loop_{name}") for name in UNITS}


def result(name, x):
    """Return the function of an array of float32."""
    out = np.empty_like(x)
    LOOPS[name](BUILD)(address(out), out.size, address(x))
    return out


def exact(name, x):
    """Return what Python gives in float64; infinity where it overflows."""

    def one(value):
        try:
            return getattr(math, name)(value)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if value == (0 if name == "log" else -1) else math.nan

    return np.array([one(value) for value in x.tolist()])


@pytest.mark.parametrize("name", UNITS)
def test_errors_in_units(name):
    """Of floats of all exponents, and of those where the function bends, none is further off than the header says."""
    random = np.random.default_rng(1)
    every = random.integers(0, 1 << 32, 40_000, np.uint32).view(np.float32)
    x = np.concatenate([every[np.isfinite(every)], random.normal(0, 3, 40_000), random.uniform(-1, 1, 20_000)])
    x = x.astype(np.float32)
    true, out = exact(name, x), result(name, x)
    with np.errstate(all="ignore"):
        rounded = true.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(rounded))
    np.testing.assert_array_equal(out[np.isinf(rounded)], rounded[np.isinf(rounded)])
    finite = np.isfinite(rounded)
    unit = np.spacing(np.maximum(np.abs(rounded[finite]), np.float32(1e-37))).astype(float)
    assert (np.abs(out[finite] - true[finite]) / unit).max() <= UNITS[name]


@pytest.mark.parametrize("name", UNITS)
def test_edges(name):
    """At zeros, infinities, NaN and where results vanish it is what C's function gives, with the sign of zero."""
    x = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, 1e-45, -1e-45, 1e-38, 3e38, -3e38], np.float32)
    true = exact(name, x).astype(np.float32)
    out = result(name, x)
    np.testing.assert_allclose(out, true, rtol=3e-7)
    whole = ~np.isnan(true)
    np.testing.assert_array_equal(np.signbit(out[whole]), np.signbit(true[whole]))
