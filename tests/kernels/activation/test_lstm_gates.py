"""The kernels of an LSTM's step give what its formula gives in NumPy, and so do their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.ops.activation.lstm_gates import lstm_gates

pytestmark = pytest.mark.gpu
TOLERANCE = {lucid.float64: 1e-12, lucid.float32: 1e-5, lucid.float16: 3e-3, lucid.bfloat16: 3e-2}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(x, hidden, cell, to_output, to_after):
    """Return output, cell, and the gradients of all gates and of the cell before."""
    i, f, g, o = np.split(x + hidden, 4, 1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    after = f * cell + i * g
    t = np.tanh(after)
    back = to_after + to_output * o * (1 - t**2)
    to_gates = [back * g * i * (1 - i), back * cell * f * (1 - f), back * i * (1 - g**2), to_output * t * o * (1 - o)]
    return o * t, after, np.concatenate(to_gates, 1), back * f


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_and_gradients(dtype, strided, rng):
    """Rows of odd widths, more elements than a block has, whatever the strides, in each dtype."""
    for batch, width in ((3, 5), (7, 43), (0, 3)):
        shapes = [(batch, 4 * width)] * 2 + [(batch, width)] * 3
        arrays = [rng.standard_normal(shape) for shape in shapes]
        tensors = [lucid.tensor(a.T if strided else a, device="cuda").to(dtype) for a in arrays]
        tensors = [t.T if strided else t for t in tensors]
        rounded = [t.double().numpy(force=True) for t in tensors]
        operands = [t.requires_grad_() for t in tensors[:3]]
        output, after = lstm_gates(*operands)
        grads = lucid.autograd.grad([output, after], operands, tensors[3:])
        expected = by_hand(*rounded)
        for got, values in zip((output, after, grads[0], grads[2]), expected, strict=True):
            assert got.dtype == dtype
            tolerance = TOLERANCE[dtype]
            np.testing.assert_allclose(got.double().numpy(force=True), values, rtol=tolerance, atol=tolerance)
        assert lucid.equal(grads[0], grads[1])


def test_one_output_alone(rng):
    """What is missing among the gradients of the outputs counts as zeros."""
    x, hidden, cell = (
        lucid.tensor(rng.standard_normal((2, n)), device="cuda", requires_grad=True) for n in (12, 12, 3)
    )
    for k in (0, 1):
        upper = [rng.standard_normal((2, 3)) if k == side else np.zeros((2, 3)) for side in (0, 1)]
        grads = lucid.autograd.grad(
            lstm_gates(x, hidden, cell)[k], [hidden, cell], lucid.tensor(upper[k], device="cuda")
        )
        expected = by_hand(*(t.numpy(force=True) for t in (x, hidden, cell)), *upper)[2:]
        for got, values in zip(grads, expected, strict=True):
            np.testing.assert_allclose(got.numpy(force=True), values, rtol=1e-12, atol=1e-14)
