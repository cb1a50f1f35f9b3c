"""Gamma and Bessel functions, to the last digits, at their poles and their ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import GRAPH
from lucid.errors import DtypeError, SettingError
from tests.device import DEVICE
from tests.gradients import numbers

# Kernels may use functions of NVIDIA's that err by a few units more.
EXACT = 4e-15 if DEVICE == "cpu" else 2e-14
INF, NAN = math.inf, math.nan


def test_lgamma_is_exact():
    """The logarithm of the gamma function errs by a few units, also next to its zeros at 1 and 2; also far out."""
    x = np.concatenate([np.linspace(1e-3, 30, 4001), np.geomspace(30, 1e300, 50), np.geomspace(1e-300, 1e-3, 50)])
    expected = [math.lgamma(value) for value in x]
    np.testing.assert_allclose(numbers(lucid.lgamma(lucid.tensor(x))), expected, rtol=EXACT, atol=1e-15)
    z = np.geomspace(1e-12, 1e-6, 20)
    # the first two terms of the series: gamma_1 is Euler's number, zeta(2) = pi ** 2 / 6
    around_two = z * (1 - np.euler_gamma) + z * z * (math.pi**2 / 6 - 1) / 2
    np.testing.assert_allclose(numbers(lucid.lgamma(lucid.tensor(2 + z))), around_two, rtol=1e-3)
    x = np.linspace(-20.3, -0.1, 1001)
    expected = [math.lgamma(value) for value in x]
    np.testing.assert_allclose(numbers(lucid.lgamma(lucid.tensor(x))), expected, rtol=1e-12, atol=1e-13)


def test_digamma_of_whole_numbers_and_halves():
    """Digamma is a sum of reciprocals less Euler's number; below zero what its mirror image makes of it."""
    n = np.arange(1.0, 60)
    whole = np.cumsum(1 / n) - 1 / n - np.euler_gamma
    np.testing.assert_allclose(numbers(lucid.digamma(lucid.tensor(n))), whole, rtol=EXACT)
    odd = np.cumsum(2 / (2 * n - 1)) - np.euler_gamma - 2 * math.log(2)
    np.testing.assert_allclose(numbers(lucid.digamma(lucid.tensor(n + 0.5))), odd, rtol=EXACT, atol=1e-15)
    # at 1 - x with x = n + 1/2 the cotangent between them is zero
    np.testing.assert_allclose(numbers(lucid.digamma(lucid.tensor(0.5 - n))), odd, rtol=1e-13)
    quarter = -math.pi / 2 - 3 * math.log(2) - np.euler_gamma
    np.testing.assert_allclose(numbers(lucid.digamma(lucid.tensor([0.25, 0.75], dtype=lucid.float64))),
                               [quarter, quarter + math.pi], rtol=EXACT)  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_polygamma_steps_and_mirrors(n):
    """Polygamma of x and x + 1 differ by one term, on both sides of zero; at 1/2 it is a multiple of that at 1."""
    x = np.concatenate([np.linspace(-7.3, -0.1, 38), np.linspace(0.1, 40, 200)])
    here, there = (numbers(lucid.polygamma(n, lucid.tensor(value))) for value in (x, x + 1))
    term = (-1) ** n * math.factorial(n) * x ** -(n + 1.0)
    np.testing.assert_allclose(here + term, there, rtol=0, atol=3e-13 * np.abs(term).max())
    half, one = numbers(lucid.polygamma(n, lucid.tensor([0.5, 1.0], dtype=lucid.float64)))
    np.testing.assert_allclose(half, (2 ** (n + 1) - 1) * one, rtol=EXACT)
    if n == 1:
        np.testing.assert_allclose(one, math.pi**2 / 6, rtol=EXACT)
    far = numbers(lucid.polygamma(n, lucid.tensor([1e9], dtype=lucid.float64)))
    np.testing.assert_allclose(far, (-1) ** (n + 1) * math.factorial(n - 1) * 1e9**-n, rtol=1e-8)


@pytest.mark.parametrize("n", [9, 20, 21, 60, 120, 170])
def test_polygamma_of_high_order(n):
    """It is a sum of powers, of which few count, up to the last order whose factorial is a float64."""
    x = np.array([1.0, 2.5, 4.0])
    sums = [math.fsum((value + k) ** -(n + 1.0) for k in range(2000)) for value in x]
    expected = (-1) ** (n + 1) * float(math.factorial(n)) * np.array(sums)
    np.testing.assert_allclose(numbers(lucid.polygamma(n, lucid.tensor(x))), expected, rtol=1e-13)


def test_bessel_functions(rng):
    """The functions of order 0 and 1 are integrals of exponentials of a cosine, up to where they overflow."""
    x = np.concatenate([np.linspace(-30, 30, 301), [500.0, 712.0, -712.0], [19.999, 20.001]])
    # the trapezoidal rule of a period converges as fast as any
    angle = np.arange(400) * (2 * math.pi / 400)
    parts = np.exp(x[:, None] * np.cos(angle) - np.abs(x)[:, None])
    # above what float64 holds as one exponential
    scale = np.exp(np.abs(x) / 2)
    for op, weight in ((lucid.i0, 1), (GRAPH.i1, np.cos(angle))):
        expected = (parts * weight).mean(1) * scale * scale
        np.testing.assert_allclose(numbers(op(lucid.tensor(x))), expected, rtol=3e-13, atol=1e-15)


POLES = {
    "lgamma": (lucid.lgamma, [INF, INF, INF, INF, INF, INF, 0, NAN]),
    "digamma": (lucid.digamma, [-INF, INF, NAN, NAN, INF, NAN, -np.euler_gamma, NAN]),
    "trigamma": (lambda x: lucid.polygamma(1, x), [INF, INF, INF, INF, 0, NAN, math.pi**2 / 6, NAN]),
    "i0": (lucid.i0, [1, 1, 1.2660658777520082, 90.48, INF, INF, 1.2660658777520082, NAN]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", POLES)
def test_poles_and_ends(name, dtype):
    """Zeros of both signs, whole numbers below zero, infinities and NaN."""
    op, expected = POLES[name]
    x = lucid.tensor([0.0, -0.0, -1.0, -6.0, INF, -INF, 1.0, NAN], dtype=getattr(lucid, dtype))
    got = numbers(op(x)).astype(float)
    if name == "i0":
        expected = [*expected[:3], 67.23440697647798, *expected[4:]]
    coarse = {"float32": 1e-6, "float64": 1e-13, "float16": 1e-3, "bfloat16": 8e-3}
    np.testing.assert_allclose(got, expected, rtol=coarse[dtype], atol=1e-15)


def test_polygamma_of_order_zero(rng):
    """Order 0 is digamma itself; methods and functions are one, in place too."""
    x = lucid.tensor(rng.uniform(0.5, 3, 5))
    np.testing.assert_array_equal(numbers(lucid.polygamma(0, x)), numbers(x.digamma()))
    np.testing.assert_array_equal(numbers(x.clone().polygamma_(2)), numbers(lucid.polygamma(2, x)))
    np.testing.assert_array_equal(numbers(x.clone().mvlgamma_(2)), numbers(lucid.mvlgamma(x, 2)))
    assert lucid.lgamma(lucid.tensor([3])).dtype is lucid.float32


def test_third_derivatives(rng):
    """Every derivative of a gamma function is another: three times digamma's is polygamma of order 3."""
    x = lucid.tensor(rng.uniform(0.5, 3, 5), requires_grad=True)
    y = lucid.lgamma(x)
    for _ in range(4):
        (y,) = lucid.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(numbers(y), numbers(lucid.polygamma(3, x)), rtol=1e-14)
    zero = lucid.tensor([0.0, 1e-9], dtype=lucid.float64, requires_grad=True)
    (slope,) = lucid.autograd.grad(lucid.i0(zero).sum(), zero, create_graph=True)
    (curve,) = lucid.autograd.grad(slope.sum(), zero)
    np.testing.assert_allclose(numbers(slope), [0, 5e-10], rtol=1e-14)
    np.testing.assert_allclose(numbers(curve), [0.5, 0.5], rtol=1e-14)


BAD = {
    "polygamma: below zero": (lambda: lucid.polygamma(-1, lucid.ones(1)), SettingError, "n >= 0, got -1"),
    "mvlgamma: zero": (lambda: lucid.mvlgamma(lucid.ones(1), 0), SettingError, "p >= 1, got 0"),
    "mvlgamma: complex": (lambda: lucid.mvlgamma(lucid.tensor([1j]), 2), DtypeError, "mvlgamma"),
    "lgamma: complex": (lambda: lucid.lgamma(lucid.tensor([1j])), DtypeError, "real numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    """Orders that do not exist and complex numbers are refused."""
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()
