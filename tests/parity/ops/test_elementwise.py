"""Elementwise ops against PyTorch: dtypes of results, special values, slopes at kinks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import lucid
from lucid.ops.activation import bias_activation, gelu, relu, sigmoid
from tests.gradients import numbers
from tests.parity.pieces import agree, differentiated
from tests.sample_rows.activation import OF_SUM

DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
NUMBERS = [True, 3, -1, 0.5, 2j]
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, math.inf, -math.inf, math.nan, 1e-30, -1e30]


def outcome(run):
    """Return what `run` gives, or None if it is refused, or experimental there: complex numbers of halves."""
    try:
        result = run()
    except (RuntimeError, TypeError, ValueError, UserWarning):
        return None
    return None if result.dtype is torch.complex32 else result


def filled(module, dtype, value=2):
    """Return a tensor of one dtype with one dimension."""
    return module.tensor([value], dtype=getattr(module, dtype))


@pytest.mark.parametrize("name", BINARY)
def test_dtype_of_result(name):
    """For every pair of dtypes, and numbers on either side, the dtype is PyTorch's; what it refuses is refused."""
    op = BINARY[name]
    cases = [
        *((lambda m, a=a, b=b: op(filled(m, a), filled(m, b))) for a, b in itertools.product(DTYPES, DTYPES)),
        *((lambda m, a=a, n=n: op(filled(m, a), n)) for a, n in itertools.product(DTYPES, NUMBERS)),
        *((lambda m, a=a, n=n: op(n, filled(m, a))) for a, n in itertools.product(DTYPES, NUMBERS)),
    ]
    for case in cases:
        theirs = outcome(lambda: case(torch))
        if theirs is None:
            continue
        got = case(lucid)
        assert str(got.dtype).removeprefix("lucid.") == str(theirs.dtype).removeprefix("torch.")
        if theirs.dtype is not torch.bfloat16:
            np.testing.assert_allclose(numbers(got), theirs.numpy(), rtol=2e-3)


UNARY = [
    "abs", "sign", "neg", "reciprocal", "square", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10",
    "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "erfc", "erfinv", "sigmoid", "relu", "floor", "ceil", "trunc", "round", "frac", "angle", "nan_to_num", "isnan",
    "isinf", "isfinite", "logical_not", "lgamma", "digamma",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name, dtype):
    """Zeros of both signs, infinities, NaN and numbers near the ends of the range give what PyTorch gives."""
    if name == "exp2" and dtype == "float32":
        # NumPy gives the smallest denormal numbers where PyTorch gives zero, and the other way round
        values = [v for v in SPECIAL if abs(v) < 1e3]
    else:
        values = SPECIAL
    x = np.array(values, dtype)
    got = numbers(getattr(lucid, name)(lucid.tensor(x)))
    expected = getattr(torch, name)(torch.tensor(x)).numpy()
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("name", ["div", "floor_divide", "remainder", "fmod", "pow", "atan2", "maximum", "minimum"])
def test_special_pairs(name):
    """Every pair of special values gives what PyTorch gives."""
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(SPECIAL, SPECIAL))
    got = numbers(getattr(lucid, name)(lucid.tensor(a), lucid.tensor(b)))
    np.testing.assert_allclose(got, getattr(torch, name)(torch.tensor(a), torch.tensor(b)).numpy(), rtol=1e-14)


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
def test_quotients_of_integers(mode):
    """Quotients and remainders of integers of either sign are PyTorch's."""
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid([-7, -6, -1, 0, 1, 6, 7], [-3, -2, 2, 3]))
    pairs = (lucid.tensor(a), lucid.tensor(b)), (torch.tensor(a), torch.tensor(b))
    got, expected = lucid.div(*pairs[0], rounding_mode=mode), torch.div(*pairs[1], rounding_mode=mode)
    np.testing.assert_allclose(numbers(got), expected.numpy(), rtol=1e-6)
    for name in ("remainder", "fmod"):
        np.testing.assert_array_equal(numbers(getattr(lucid, name)(*pairs[0])), getattr(torch, name)(*pairs[1]).numpy())


GRADIENTS = {
    "abs": (lucid.abs, torch.abs),
    "sign": (lucid.sign, torch.sign),
    "pow 0": (lambda x: x**0, lambda x: x**0),
    "pow 1": (lambda x: x**1, lambda x: x**1),
    "pow 2": (lambda x: x**2, lambda x: x**2),
    "pow 3": (lambda x: x**3, lambda x: x**3),
    "pow tensor": (lambda x: x ** (x * 0 + 2), lambda x: x ** (x * 0 + 2)),
    "pow of zero": (lambda x: 0.0**x, lambda x: 0.0**x),
    "pow of negative": (lambda x: (-2.0) ** x, lambda x: (-2.0) ** x),
    "clamp": (lambda x: lucid.clamp(x, -1, 1), lambda x: torch.clamp(x, -1, 1)),
    "maximum": (lambda x: lucid.maximum(x, x * x), lambda x: torch.maximum(x, x * x)),
    "minimum": (lambda x: lucid.minimum(x, 1 / x), lambda x: torch.minimum(x, 1 / x)),
    "nan_to_num": (lucid.nan_to_num, torch.nan_to_num),
    "round": (lucid.round, torch.round),
    "relu": (relu.relu, torch.relu),
    "relu6": (relu.relu6, torch.nn.functional.relu6),
    "hardtanh": (relu.hardtanh, torch.nn.functional.hardtanh),
    "leaky_relu": (relu.leaky_relu, torch.nn.functional.leaky_relu),
    "elu": (lucid.nn.functional.elu, torch.nn.functional.elu),
    "sigmoid": (sigmoid.sigmoid, torch.sigmoid),
    "tanh": (sigmoid.tanh, torch.tanh),
    "softplus": (sigmoid.softplus, torch.nn.functional.softplus),
    "logsigmoid": (sigmoid.logsigmoid, torch.nn.functional.logsigmoid),
    **{
        name: (getattr(lucid.nn.functional, name), getattr(torch.nn.functional, name))
        for name in ["selu", "celu", "hardswish", "hardshrink", "softshrink"]
    },
    "threshold": (lambda x: lucid.threshold(x, 0.0, 3.0), lambda x: torch.threshold(x, 0.0, 3.0)),
    "prelu": (lambda x: lucid.prelu(x, x[:1] * 0 + 0.2), lambda x: torch.prelu(x, x[:1] * 0 + 0.2)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_slopes_at_special_values(name, rng):
    """At zeros, bounds, ties, infinities and NaN the gradient is PyTorch's."""
    functions = dict(zip((lucid, torch), GRADIENTS[name], strict=True))
    array, upstream = np.array(SPECIAL), rng.standard_normal(len(SPECIAL))
    agree(lambda lib: differentiated(lib, functions[lib], [array], upstream)[1:], 1e-13)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_float32(approximate, rng):
    """In float32 gelu and its gradient are those of PyTorch in float64; its own in float32 are off by 1e-6 and 4e-6."""
    array = rng.uniform(-8, 8, 50001).astype(np.float32)
    upstream = rng.standard_normal(array.shape).astype(np.float32)
    x = lucid.tensor(array, requires_grad=True)
    y = torch.tensor(array.astype(np.float64), requires_grad=True)
    out, expected = gelu.gelu(x, approximate), torch.nn.functional.gelu(y, approximate=approximate)
    np.testing.assert_allclose(numbers(out), expected.numpy(force=True), rtol=1e-6, atol=1e-8)
    (got,) = lucid.autograd.grad(out, [x], [lucid.tensor(upstream)])
    (wanted,) = torch.autograd.grad(expected, [y], [torch.tensor(upstream.astype(np.float64))])
    np.testing.assert_allclose(numbers(got), wanted.numpy(), rtol=1e-6, atol=4e-6)


@pytest.mark.parametrize("name", OF_SUM)
def test_bias_activation(name, rng):
    """The fused op is PyTorch's function of the sum, with its first and second derivatives of both operands."""
    _, function, settings = OF_SUM[name]
    arrays = rng.uniform(-4, 4, (50, 7)), rng.uniform(-1, 1, 7), rng.standard_normal((50, 7))
    seeds = rng.standard_normal((50, 7)), rng.standard_normal(7)
    found = []
    for lib in (lucid, torch):
        x, bias, upstream = operands = [lib.tensor(a, requires_grad=True) for a in arrays]
        if lib is lucid:
            out = bias_activation.bias_activation(x, bias, name)
        else:
            out = getattr(torch.nn.functional, function)(x + bias, **settings)
        grads = lib.autograd.grad(out, [x, bias], [upstream], create_graph=True)
        again = lib.autograd.grad(grads, operands, [lib.tensor(s) for s in seeds], allow_unused=True)
        found.append([np.zeros(()) if t is None else t.numpy(force=True) for t in (out, *grads, *again)])
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, np.broadcast_to(expected, got.shape), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts(name):
    """Shifts by up to the number of bits, of both signs, are PyTorch's."""
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid([-5, -1, 0, 3, 77], [0, 1, 7, 30]))
    for dtype in (np.int32, np.int64):
        pair = a.astype(dtype), b.astype(dtype)
        got = numbers(getattr(lucid, name)(*map(lucid.tensor, pair)))
        np.testing.assert_array_equal(got, getattr(torch, name)(*map(torch.tensor, pair)).numpy())
