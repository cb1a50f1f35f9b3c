"""Activation functions at kinks, far out, on large arrays, and their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError
from lucid.ops.activation.elu import celu, elu, selu
from lucid.ops.activation.gelu import gelu
from lucid.ops.activation.hard import hardshrink, hardsigmoid, hardswish, softshrink, threshold
from lucid.ops.activation.mish import mish
from lucid.ops.activation.relu import hardtanh, leaky_relu, relu, relu6
from lucid.ops.activation.sigmoid import logsigmoid, sigmoid, silu, softplus, tanh
from lucid.ops.activation.soft import softsign, tanhshrink
from lucid.ops.base.blocks import BLOCK
from tests.gradients import numbers

SMOOTH = {
    "gelu": gelu,
    "gelu tanh": lambda x: gelu(x, "tanh"),
    "silu": silu,
    "softplus": softplus,
    "logsigmoid": logsigmoid,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "elu": elu,
    "selu": selu,
    "celu": lambda x: celu(x, 0.7),
    "mish": mish,
    "softsign": softsign,
    "tanhshrink": tanhshrink,
}
PIECEWISE = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "relu6": relu6,
    "hardtanh": hardtanh,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
    "hardshrink": hardshrink,
    "softshrink": softshrink,
    "threshold": lambda x: threshold(x, 0.3, -2.0),
}


def value_and_gradient(op, array, upstream):
    """Return the value and the gradient of an op as arrays."""
    x = lucid.tensor(array, requires_grad=True)
    out = op(x)
    (grad,) = lucid.autograd.grad(out, [x], [lucid.tensor(upstream)])
    return numbers(out), numbers(grad)


@pytest.mark.parametrize("name", SMOOTH | PIECEWISE)
@pytest.mark.cpu("blocks are of NumPy arrays")
def test_large_arrays(name, rng):
    """float32 in many blocks, of any layout, is as near to float64 as in one; a broadcast gradient too."""
    op = (SMOOTH | PIECEWISE)[name]
    array = rng.uniform(-9, 9, (3, BLOCK + 5)).astype(np.float32)
    for values in (array, array.T, array[:, ::2]):
        upstream = rng.uniform(-1, 1, values.shape).astype(np.float32)
        got = value_and_gradient(op, values, upstream)
        expected = value_and_gradient(op, values.astype(np.float64), upstream.astype(np.float64))
        for one, other in zip(got, expected, strict=True):
            assert one.dtype == np.float32
            np.testing.assert_allclose(one, other, rtol=3e-6, atol=4e-7)
    x = lucid.tensor(array, requires_grad=True)
    (op(x).sum() * 0.3).backward()
    ones = np.full(array.shape, 0.3, np.float32)
    np.testing.assert_array_equal(numbers(x.grad), value_and_gradient(op, array, ones)[1])


SLOPES_AT_ZERO = {
    "relu": (relu, 0),
    "leaky_relu": (lambda x: leaky_relu(x, 0.1), 0.1),
    "relu6": (relu6, 0),
    "hardtanh": (lambda x: hardtanh(x, 0, 1), 0),
    "elu": (lambda x: elu(x, 0.7), 0.7),
}


@pytest.mark.parametrize("name", SLOPES_AT_ZERO)
def test_slope_at_the_kink(name, rng):
    """At zero the slope is that of the lower piece."""
    op, slope = SLOPES_AT_ZERO[name]
    upstream = rng.uniform(0.5, 2, 1)
    _, grad = value_and_gradient(op, np.zeros(1), upstream)
    np.testing.assert_allclose(grad, slope * upstream, rtol=1e-15)


# Where pieces meet: the places, the values there, and the slopes.
ENDS = {
    "hardshrink": (lambda x: hardshrink(x, 0.5), (-0.5, 0.5), (0, 0), (0, 0)),
    "softshrink": (lambda x: softshrink(x, 0.5), (-0.5, 0.5), (0, 0), (0, 0)),
    "hardsigmoid": (hardsigmoid, (-3, 3), (0, 1), (0, 0)),
    "hardswish": (hardswish, (-3, 3), (0, 3), (0, 1)),
    "threshold": (lambda x: threshold(x, 0.5, 9), (0.5, np.nextafter(0.5, 1)), (9, np.nextafter(0.5, 1)), (0, 1)),
}


@pytest.mark.parametrize("name", ENDS)
def test_value_and_slope_where_pieces_meet(name, rng):
    """On a bound the value is that of both pieces, but for a threshold, and the slope what the docstring says."""
    op, places, values, slopes = ENDS[name]
    upstream = rng.uniform(0.5, 2, 2)
    out, grad = value_and_gradient(op, np.array(places, float), upstream)
    np.testing.assert_array_equal(out, values)
    np.testing.assert_array_equal(grad, upstream * slopes)


def test_relu_stops_infinite_gradients():
    """An infinite gradient becomes zero where the input is below zero, and not NaN."""
    _, grad = value_and_gradient(relu, np.array([-1.0, 2.0]), np.array([math.inf, -math.inf]))
    np.testing.assert_array_equal(grad, [0, -math.inf])


FAR = {
    "sigmoid": (sigmoid, [0, 1], [0, 0]),
    "tanh": (tanh, [-1, 1], [0, 0]),
    "silu": (silu, [0, 200], [0, 1]),
    "gelu": (gelu, [0, 200], [0, 1]),
    "gelu tanh": (lambda x: gelu(x, "tanh"), [0, 200], [0, 1]),
    "softplus": (softplus, [0, 200], [0, 1]),
    "logsigmoid": (logsigmoid, [-200, 0], [1, 0]),
    "elu": (elu, [-1, 200], [0, 1]),
    "mish": (mish, [0, 200], [0, 1]),
}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", FAR)
def test_far_out(name, dtype, rng):
    """At -200 and 200 nothing overflows: value and slope are those of the limit."""
    op, values, slopes = FAR[name]
    upstream = rng.uniform(0.5, 2, 2).astype(dtype)
    got, grad = value_and_gradient(op, np.array([-200, 200], dtype), upstream)
    np.testing.assert_allclose(got, values, atol=1e-30 if dtype is not np.float16 else 0)
    np.testing.assert_allclose(grad, slopes * upstream, atol=1e-30 if dtype is not np.float16 else 0)


def test_small_results_keep_their_digits():
    """Where a result is small beside 1 its relative error stays that of the dtype."""
    x = np.linspace(-12, -2, 101)
    cases = [
        (softplus, [math.log1p(math.exp(v)) for v in x]),
        (gelu, [v * math.erfc(-v / math.sqrt(2)) / 2 for v in x]),
        (lambda t: elu(t * 1e-6), [math.expm1(v * 1e-6) for v in x]),
        (lambda t: logsigmoid(-t), [-math.log1p(math.exp(v)) for v in x]),
    ]
    for op, expected in cases:
        np.testing.assert_allclose(numbers(op(lucid.tensor(x))), expected, rtol=4e-14)
        rounded = x.astype(np.float32).astype(np.float64)
        np.testing.assert_allclose(rounded, x, rtol=1e-7)
        single = numbers(op(lucid.tensor(x.astype(np.float32))))
        # exp(-x**2 / 2) makes of half a unit in x up to x**2 units in the result
        np.testing.assert_allclose(single, expected, rtol=3e-5)


@pytest.mark.parametrize("op", [gelu, silu, softplus, elu, leaky_relu, logsigmoid, mish])
def test_integers_are_refused(op):
    """Activations that have no integer results refuse integers and say what to do."""
    with pytest.raises(DtypeError, match="floating-point dtype first"):
        op(lucid.tensor([1, 2]))


def test_integers_stay_where_they_can():
    """Of integers relu and its bounded kin keep the dtype; sigmoid and tanh make the default dtype of them."""
    x = lucid.tensor([-3, 9])
    assert (relu(x).dtype, relu6(x).dtype, sigmoid(x).dtype) == (lucid.int64, lucid.int64, lucid.float32)
    np.testing.assert_array_equal(numbers(relu6(x)), [0, 6])


def test_unknown_approximation():
    """The message of gelu names the approximations that it has."""
    with pytest.raises(ValueError, match="'none' or 'tanh', got 'fast'"):
        gelu(lucid.ones(1), "fast")


def test_softplus_threshold(rng):
    """Above the threshold softplus is the identity, with slope one, in both derivatives."""
    x = lucid.tensor([0.4, 0.6], dtype=lucid.float64, requires_grad=True)
    out = softplus(x, beta=2.0, threshold=1.0)
    upstream = lucid.tensor(rng.standard_normal(2), requires_grad=True)
    (grad,) = lucid.autograd.grad(out, [x], [upstream], create_graph=True)
    assert numbers(out)[1] == 0.6
    assert numbers(grad)[1] == numbers(upstream)[1]
    (second,) = lucid.autograd.grad(grad, [x], [lucid.tensor(rng.standard_normal(2))])
    assert numbers(second)[0] != 0
    assert numbers(second)[1] == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", SMOOTH | PIECEWISE)
def test_all_are_straight_far_from_zero(name, dtype):
    """The second derivative goes to zero, up to the largest numbers of the dtype, whose squares and cubes overflow."""
    dtype = getattr(lucid, dtype)
    sizes = lucid.tensor([30.0, 100.0, 300.0, lucid.finfo(dtype).max ** 0.5, lucid.finfo(dtype).max], dtype=dtype)
    x = lucid.cat((sizes, -sizes)).requires_grad_()
    # the first derivative of gelu by tanh is NaN where its cube overflows, as PyTorch's
    (once,) = lucid.autograd.grad((SMOOTH | PIECEWISE)[name](x), [x], [lucid.ones_like(x)], create_graph=True)
    if once.requires_grad:
        (twice,) = lucid.autograd.grad(once, [x], [lucid.ones_like(x)])
        np.testing.assert_allclose(numbers(twice).astype(np.float64), np.zeros(10), atol=1e-4)


def test_bounds_of_hardtanh_are_in_order():
    """A lower bound above the upper one is refused, with numbers; two equal ones leave a constant."""
    x = lucid.tensor([0.0, 5.0])
    with pytest.raises(ValueError, match=r"hardtanh: min_val cannot be greater than max_val, got 2.0 and 1.0"):
        hardtanh(x, 2.0, 1.0)
    assert hardtanh(x, 2.0, 2.0).tolist() == [2.0, 2.0]
