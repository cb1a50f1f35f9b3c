"""Softmax and its logarithm on a CUDA device: rows in registers, and lines of any stride and length."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.cuda.source.signature import constant
from tests.kernels.layouts import LAYOUTS
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)
every_form = pytest.mark.parametrize("logarithm", [False, True])

MOST_HELD = constant("rows.cuh", "HELD * MAX_THREADS")
# Rows of one thread, of part of a warp, of a warp, of a block, multiples of a vector or not; and one too long to hold.
SHAPES = [(1, 1), (5, 3), (70, 31), (9, 33), (3, 512), (3, 1023), (2, 1025), (2, 2048), (1, MOST_HELD + 1)]


def softmax(x, dim, logarithm):
    shifted = x - x.max(dim, keepdims=True)
    log = shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))
    return log if logarithm else np.exp(log)


def softmax_grad(grad, y, dim, logarithm):
    if logarithm:
        return grad - np.exp(y) * grad.sum(dim, keepdims=True)
    return y * (grad - (grad * y).sum(dim, keepdims=True))


def forward(x, dim, logarithm):
    return PRIMITIVES["log_softmax" if logarithm else "softmax"].kernel(x, dim=dim)


def backward(grad, y, dim, logarithm):
    return PRIMITIVES["log_softmax_grad" if logarithm else "softmax_grad"].kernel(grad, y, dim=dim)


@every_float
@every_form
@pytest.mark.parametrize("shape", SHAPES)
def test_rows(shape, logarithm, dtype, rng):
    """Rows of every length have softmax and gradient as in float64."""
    x, grad = (rounded(2 * rng.standard_normal(shape), dtype) for _ in range(2))
    y = forward(on_device(x, dtype).array, 1, logarithm)
    assert_near(y, softmax(x, 1, logarithm), dtype, slack=2)
    known = y.get().astype(np.float64)
    got = backward(on_device(grad, dtype).array, y, 1, logarithm)
    assert_near(got, softmax_grad(grad, known, 1, logarithm), dtype, slack=2)


@every_form
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(40, 33), (5, 32, 12), (2, 3, 4, 16)])
def test_lines(shape, layout, logarithm, rng):
    """Along any dimension of any layout nothing is copied and nothing changes."""
    x, grad = (rounded(rng.standard_normal(shape), "float32") for _ in range(2))
    here, upstream = LAYOUTS[layout](x), LAYOUTS[layout](grad)
    there = LAYOUTS[layout](on_device(x, "float32").array)
    for dim in range(len(shape)):
        y = forward(there, dim, logarithm)
        assert_near(y, softmax(here, dim, logarithm), "float32")
        got = backward(LAYOUTS[layout](on_device(grad, "float32").array), y, dim, logarithm)
        wanted = softmax_grad(upstream, softmax(here, dim, logarithm), dim, logarithm)
        # not relative to the result: along a dimension of equal elements it is zero
        np.testing.assert_allclose(got.get(), wanted, rtol=1e-5, atol=4e-6)


@every_form
@pytest.mark.parametrize("dim", [0, 1])
def test_infinities_and_nan(dim, logarithm, rng):
    """Minus infinity gets no share; a line of nothing else, of plus infinity or of NaN is NaN: as on the CPU."""
    x = rng.standard_normal((6, 6)).astype(np.float32)
    x[0, 1], x[1], x[2, 2], x[3, 3] = -np.inf, -np.inf, np.inf, np.nan
    x = np.ascontiguousarray(x if dim == 1 else x.T)
    got = forward(lucid.tensor(x, device="cuda").array, dim, logarithm).get()
    wanted = PRIMITIVES["log_softmax" if logarithm else "softmax"].cpu
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, wanted(x, dim=dim), rtol=1e-5, atol=1e-6)


@every_form
def test_empty_and_scalar(logarithm):
    """No elements give no elements; a 0-dim array has all of the probability."""
    for shape in [(0, 3), (3, 0)]:
        assert forward(lucid.zeros(*shape, device="cuda").array, 1, logarithm).shape == shape
    point = forward(lucid.tensor(5.0, device="cuda").array, 0, logarithm)
    assert point.shape == ()
    assert point.get() == (0 if logarithm else 1)


def test_large_logits(rng):
    """Logits far beyond the range of exp do not overflow, held or not."""
    for columns in (100, MOST_HELD + 3):
        x = rounded(1e4 * rng.standard_normal((2, columns)), "float32")
        got = forward(on_device(x, "float32").array, 1, logarithm=False)
        assert_near(got, softmax(x, 1, logarithm=False), "float32")
