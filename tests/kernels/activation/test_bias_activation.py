"""Kernels of an activation after a bias: against formulas in float64, over layouts, dtypes and sizes; and launches."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.cuda.simulator import counters
from lucid.nn import functional as F
from lucid.ops.activation.bias_activation import ACTIVATIONS
from tests.gradients import numbers
from tests.kernels.layouts import LAYOUTS
from tests.kernels.near import EPSILON, FLOATS, assert_near, on_device
from tests.sample_rows.activation import OF_SUM, erf, logistic

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)
every_activation = pytest.mark.parametrize("name", ACTIVATIONS)

# Rows that are one pack or several, begin between packs, or are single elements; of one block of threads or several.
SHAPES = [(1,), (1, 1), (31, 33), (1025, 8), (3, 1025), (2, 3, 64), (5, 4, 3, 16), (2, 1, 2, 1, 2, 1, 2, 1, 2, 24)]


def cubic(x):
    """Return the argument of tanh in gelu by tanh."""
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


SLOPES = {
    "relu": lambda x: x > 0,
    "gelu": lambda x: (1 + erf(x / math.sqrt(2))) / 2 + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi),
    "gelu_tanh": lambda x: (
        (1 + np.tanh(cubic(x))) / 2 + x / np.cosh(cubic(x)) ** 2 * (1 + 3 * 0.044715 * x**2) / math.sqrt(2 * math.pi)
    ),
    "silu": lambda x: logistic(x) + x * logistic(x) * logistic(-x),
    "tanh": lambda x: np.cosh(x) ** -2,
    "sigmoid": lambda x: logistic(x) * logistic(-x),
}


def reference(x, bias, upstream, name):
    """Return value and gradients in float64."""
    grad = upstream * SLOPES[name](x + bias)
    return OF_SUM[name][0](x + bias), grad, grad.reshape(-1, bias.size).sum(0)


def check(x, bias, upstream, name, dtype):
    """Compare an op on CUDA arrays, of any layout, with the formulas."""
    x, bias, upstream = (lucid.as_tensor(a) for a in (x, bias, upstream))
    expected = reference(*[numbers(t).astype(np.float64) for t in (x, bias, upstream)], name)
    x.requires_grad_()
    bias.requires_grad_()
    out = F.bias_activation(x, bias, name)
    grads = lucid.autograd.grad(out, [x, bias], upstream)
    for got, wanted, slack in zip((out, *grads), expected, (1, 1, 4), strict=True):
        assert_near(got.array, wanted, dtype, slack)


@every_float
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@every_activation
def test_sizes(name, shape, dtype, rng):
    """Value and both gradients, for rows of any length and any number of them."""
    # Of one number the relative error is bounded only where the slope is not small; and far out the slope of gelu by
    # tanh is 1 plus a large multiple of what is left to 1, whose rounding shows.
    bounds = (-2, 2) if math.prod(shape) > 1 else (0.25, 0.75)
    x, bias, upstream = (on_device(rng.uniform(*bounds, size), dtype).array for size in (shape, shape[-1], shape))
    check(x, bias, upstream, name, dtype)


@every_float
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype, rng):
    """Input, bias and upstream gradient are read where they lie: in steps, backwards, unaligned, repeated."""
    place = LAYOUTS[layout]
    for name, shape in (("gelu", (24, 24)), ("silu", (7, 66)), ("relu", (3, 5, 40))):
        whole, upstream = (on_device(rng.uniform(-2, 2, shape), dtype).array for _ in range(2))
        x = place(whole)
        for bias in (
            on_device(rng.uniform(-2, 2, x.shape[-1]), dtype).array,
            on_device(rng.uniform(-2, 2, 2 * x.shape[-1]), dtype).array[::-2],
            on_device(rng.uniform(-2, 2, x.shape[-1] + 1), dtype).array[1:],
        ):
            check(x, bias, place(upstream), name, dtype)


@every_float
@pytest.mark.parametrize("shape", [(0,), (0, 4), (5, 0), (2, 0, 3)], ids=str)
def test_no_elements(shape, dtype, rng, launched):
    """Of no elements nothing is launched forward; the gradient of the bias is zero."""
    x = on_device(np.zeros(shape), dtype).requires_grad_()
    bias = on_device(rng.standard_normal(shape[-1]), dtype).requires_grad_()
    launched.clear()
    out = F.bias_activation(x, bias, "gelu")
    assert not launched
    grads = lucid.autograd.grad(out, [x, bias], out.detach())
    assert (out.shape, grads[0].shape) == (shape, shape)
    np.testing.assert_array_equal(numbers(grads[1]), np.zeros(shape[-1]))


@every_float
@every_activation
def test_special_numbers(name, dtype):
    """At zeros, infinities and NaN, and where the sum overflows, the devices agree."""
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 20.0, -20.0, 6e4, -6e4])
    x, bias = np.broadcast_to(special[:, None], (11, 11)).copy(), special
    upstream = np.linspace(-2, 2, 121).reshape(11, 11) + 0.003
    found = []
    for device in ("cpu", "cuda"):
        a, b = (lucid.tensor(v, dtype=getattr(lucid, dtype), device=device, requires_grad=True) for v in (x, bias))
        out = F.bias_activation(a, b, name)
        (grad,) = lucid.autograd.grad(out, a, lucid.tensor(upstream, dtype=out.dtype, device=device))
        found.append([numbers(t).astype(np.float64) for t in (out, grad)])
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(there, here, rtol=20 * EPSILON[dtype], atol=1e-7)


@every_float
@pytest.mark.parametrize("shape", [(64, 32), (4000, 40), (7, 1025)], ids=str)
@every_activation
def test_launches(name, shape, dtype, rng, launched):
    """Forward is one launch; backward one for the input and at most two for the bias, and none of CuPy's."""
    x, upstream = (on_device(rng.standard_normal(shape), dtype) for _ in range(2))
    bias = on_device(rng.standard_normal(shape[-1]), dtype)
    x.requires_grad_()
    counters.reset()
    for most in (1, 3):
        launched.clear()
        out = F.bias_activation(x, bias, name)
        assert len(launched) == 1
        launched.clear()
        lucid.autograd.grad(out, [t for t in (x, bias) if t.requires_grad], upstream)
        assert len(launched) <= most
        bias.requires_grad_()
    assert (counters.library, counters.synchronisations, counters.to_device) == (0, 0, 0)
