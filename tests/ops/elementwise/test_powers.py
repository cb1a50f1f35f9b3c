"""Derivatives of powers, and of numbers as powers of two, in the digits of their dtype."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from tests.gradients import numbers


def leaf(*elements):
    """Return numbers of float64 that need a gradient."""
    return lucid.tensor(elements, dtype=lucid.float64, requires_grad=True)


@pytest.mark.parametrize("power", [lucid.pow, lucid.float_power])
def test_the_mixed_derivative_of_a_power_at_an_exponent_of_zero(power):
    """The slope of ``a ** b`` in `a` is 0 where b is, its derivative in `b` 1 / a; 0 where a or that is no number."""
    a, b = leaf(4.0, 0.5, 0.0, 5e-324, math.inf, math.nan), leaf(*[0.0] * 6)
    (once,) = lucid.autograd.grad(power(a, b), [a], [lucid.ones_like(a)], create_graph=True)
    np.testing.assert_array_equal(numbers(once), np.zeros(6))
    (twice,) = lucid.autograd.grad(once, [b], [lucid.ones_like(b)])
    np.testing.assert_allclose(numbers(twice), [0.25, 2, 0, 0, 0, 0], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_float_power_differentiates_in_float64(dtype):
    """Both slopes are found in float64, and rounded to the dtype of the operand alone."""
    narrow = lucid.tensor([0.3, 1.1, 2.7], dtype=getattr(lucid, dtype))
    of_narrow = numbers(narrow.double())
    wide = np.array([1.7, -0.4, 0.9])
    for low in (True, False):
        x, y = narrow.clone().requires_grad_(), leaf(*wide)
        (lucid.float_power(x, y) if low else lucid.float_power(y.abs(), x)).sum().backward()
        if low:
            expected, slope = of_narrow**wide * np.log(of_narrow), wide * of_narrow ** (wide - 1)
        else:
            expected = np.sign(wide) * of_narrow * abs(wide) ** (of_narrow - 1)
            slope = abs(wide) ** of_narrow * np.log(abs(wide))
        np.testing.assert_allclose(numbers(y.grad), expected, rtol=1e-14)
        assert x.grad.dtype == x.dtype
        np.testing.assert_array_equal(numbers(x.grad), numbers(lucid.tensor(slope, dtype=x.dtype)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_slope_of_a_mantissa_is_a_power_of_two_of_any_size(dtype):
    """The gradient is scaled by powers that the dtype need not hold: of its largest and its smallest numbers."""
    dtype = getattr(lucid, dtype)
    info = lucid.finfo(dtype)
    x = lucid.tensor([info.max, info.tiny, 0.75], dtype=dtype, requires_grad=True)
    mantissa, exponent = lucid.frexp(x)
    upstream = lucid.tensor([info.max / 4, info.tiny, 3.0], dtype=dtype)
    (grad,) = lucid.autograd.grad(mantissa, [x], [upstream])
    expected = [math.ldexp(g, -e) for g, e in zip(upstream.double().tolist(), exponent.tolist(), strict=True)]
    np.testing.assert_array_equal(numbers(grad.double()), expected)


def test_a_number_that_is_scaled_has_the_dtype_of_numpy():
    """A fraction of Python's, and one of NumPy's, beside whole exponents keeps its own dtype in `numpy.ldexp`."""
    n = lucid.tensor([1])
    for number in (0.1, np.float32(0.1), np.float16(0.1)):
        scaled, expected = np.ldexp(number, n), np.ldexp(number, np.array([1]))
        assert numbers(scaled).dtype == expected.dtype
        np.testing.assert_array_equal(numbers(scaled), expected)
