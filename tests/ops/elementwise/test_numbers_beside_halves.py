"""Numbers beside half types: the result is rounded, not the number before it, but where they are compared."""

import operator

import ml_dtypes
import numpy as np
import pytest

import lucid
from tests.device import DEVICE

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
NUMBER = 0.7  # no number of either type: they have 0.70019... and 0.69921875
RESULTS = {
    "x + n": (lambda x, n: x + n, lambda n, g, x: g),
    "n - x": (lambda x, n: n - x, lambda n, g, x: -g),
    "x * n": (lambda x, n: x * n, lambda n, g, x: g * n),
    "x / n": (lambda x, n: x / n, lambda n, g, x: g / n),
    "n / x": (lambda x, n: n / x, None),
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def drawn(rng, dtype):
    return (rng.uniform(0.5, 2, 300) * rng.choice([-1, 1], 300)).astype(dtype)


def host(x):
    return x.detach().cpu().numpy()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_rounded_once(name, dtype, rng):
    """It is that of float32; so is the gradient, in the number as it was given."""
    function, slope = RESULTS[name]
    values, upstream = drawn(rng, HALVES[dtype]), drawn(rng, HALVES[dtype])
    wide = values.astype(np.float32)
    x = lucid.tensor(values, device=DEVICE, requires_grad=True)
    result = function(x, NUMBER)
    np.testing.assert_array_equal(host(result), function(wide, np.float32(NUMBER)).astype(HALVES[dtype]))
    if slope:
        result.backward(lucid.tensor(upstream, device=DEVICE))
        expected = slope(np.float32(NUMBER), upstream.astype(np.float32), wide).astype(HALVES[dtype])
        np.testing.assert_array_equal(host(x.grad), expected)


@pytest.mark.parametrize("dtype", HALVES)
def test_in_place_and_by_function(dtype, rng):
    """Every form of a product is the same one."""
    values = drawn(rng, HALVES[dtype])
    expected = (values.astype(np.float32) * np.float32(NUMBER)).astype(HALVES[dtype])
    x = lucid.tensor(values, device=DEVICE)
    for result in (
        lucid.mul(x, NUMBER),
        x.mul(NUMBER),
        NUMBER * x,
        x.clone().mul_(NUMBER),
        lucid.addcmul(x * 0, x, lucid.ones_like(x), value=NUMBER),
    ):
        np.testing.assert_array_equal(host(result), expected)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_second_derivative(dtype, rng):
    """The derivative of a gradient takes the same number."""
    values = drawn(rng, HALVES[dtype])
    x = lucid.tensor(values, device=DEVICE, requires_grad=True)
    g = lucid.tensor(np.ones_like(values), device=DEVICE, requires_grad=True)
    (first,) = lucid.autograd.grad(x * NUMBER, x, g, create_graph=True)
    first.backward(lucid.tensor(values, device=DEVICE))
    expected = (values.astype(np.float32) * np.float32(NUMBER)).astype(HALVES[dtype])
    np.testing.assert_array_equal(host(g.grad), expected)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda each: each.__name__)
def test_what_is_compared_is_of_one_dtype(compare, dtype):
    """The number nearest to 0.7 equals 0.7, as in PyTorch and NumPy."""
    near = np.array([NUMBER], HALVES[dtype])
    values = np.concatenate([np.nextafter(near.astype(np.float32), 0).astype(HALVES[dtype]), near, near * 2])
    result = compare(lucid.tensor(values, device=DEVICE), NUMBER)
    np.testing.assert_array_equal(host(result), compare(values.astype(np.float32), near.astype(np.float32)))


@pytest.mark.parametrize("dtype", HALVES)
def test_where_and_bounds(dtype, rng):
    """What is chosen, and not computed, is the half next to the number."""
    values = drawn(rng, HALVES[dtype])
    x = lucid.tensor(values, device=DEVICE)
    number = HALVES[dtype].type(NUMBER)
    for result, expected in (
        (lucid.where(x > 1, x, NUMBER), np.where(values > 1, values, number)),
        (lucid.where(x > 1, NUMBER, x), np.where(values > 1, number, values)),
        (x.clamp(max=NUMBER), np.minimum(values, number)),
        (x.clamp(min=NUMBER), np.maximum(values, number)),
    ):
        assert result.dtype is x.dtype
        np.testing.assert_array_equal(host(result), expected)
