"""Embedding on a CUDA device: rows, their gradients with all settings, and rows that are shortened."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.ops.index import select_cuda as select
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)


@every_float
@pytest.mark.parametrize("columns", [1, 31, 64])
def test_forward(columns, dtype, rng):
    """Rows come unchanged, for indices of any shape and integer dtype, from tables of any layout."""
    xp = gpu.cupy()
    table, index = rounded(rng.standard_normal((9, columns)), dtype), rng.integers(0, 9, (3, 5))
    whole = on_device(table, dtype).array
    for weight in (whole, xp.ascontiguousarray(whole.T).T, xp.ascontiguousarray(whole[::-1])[::-1]):
        for kind in ("uint8", "int32", "int64"):
            got = select.embedding(weight, xp.asarray(index.astype(kind)), padding=None, by_frequency=False)
            assert (got.get().astype(np.float64) == table[index]).all()


@every_float
@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("padding", [None, 0, 6])
def test_gradient(padding, by_frequency, dtype, way, rng):
    """Every use of a row adds its gradient, or its share by frequency; the padding row gets none."""
    index, grad = rng.integers(0, 7, (2, 100)), rounded(rng.standard_normal((2, 100, 5)), dtype)
    expected = np.zeros((8, 5))
    np.add.at(expected, index, grad)
    if by_frequency:
        expected /= np.maximum(np.bincount(index.reshape(-1), minlength=8), 1)[:, None]
    if padding is not None:
        expected[padding] = 0
    settings = {"rows": 8, "padding": padding, "by_frequency": by_frequency}
    xp = gpu.cupy()
    raw = on_device(grad, dtype).array
    for values in (raw, xp.ascontiguousarray(raw.transpose(2, 0, 1)).transpose(1, 2, 0)):
        assert_near(select.embedding_grad(values, xp.asarray(index), **settings), expected, dtype)


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("padding", [None, 3])
def test_second_derivative(padding, by_frequency, rng):
    """The gradient of the gradient counts each use as the gradient does, on both devices."""
    values, index = rng.standard_normal((5, 3)), rng.integers(0, 5, 12)
    upper, outer = rng.standard_normal((12, 3)), rng.standard_normal((5, 3))
    results = []
    for device in ("cpu", "cuda"):
        table = lucid.tensor(values, device=device, requires_grad=True)
        up = lucid.tensor(upper, device=device, requires_grad=True)
        out = lucid.nn.functional.embedding(
            lucid.tensor(index, device=device), table, padding_idx=padding, scale_grad_by_freq=by_frequency
        )
        (grad,) = lucid.autograd.grad(out, table, up, create_graph=True)
        (back,) = lucid.autograd.grad(grad, up, lucid.tensor(outer, device=device))
        results.append(back.cpu().numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12)


@every_float
@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, 0.0, np.inf, -np.inf])
def test_max_norm(order, dtype, rng):
    """Rows in use that are too long are shortened in place, once; others stay as they are."""
    table = rounded(4 * rng.standard_normal((40, 33)), dtype)
    index = np.array([0, 3, 3, 38])
    weight = on_device(table, dtype)
    limit = 2.0 if order != 0 else 20.0
    out = lucid.nn.functional.embedding(lucid.tensor(index, device="cuda"), weight, max_norm=limit, norm_type=order)
    expected = table.copy()
    norms = np.linalg.norm(table[index], order, 1, keepdims=True)
    expected[index] = np.where(norms > limit, table[index] * limit / (norms + 1e-7), table[index])
    assert_near(weight.array, expected, dtype)
    assert_near(out.array, expected[index], dtype)
    assert (weight.array.get()[1:3].astype(np.float64) == table[1:3]).all()
    assert weight._version == 1


def test_nothing(rng):
    """No indices give no rows, and a gradient of zeros."""
    xp = gpu.cupy()
    weight, none = xp.asarray(rng.standard_normal((4, 3)).astype(np.float32)), xp.zeros((0, 2), np.int64)
    out = select.embedding(weight, none, padding=None, by_frequency=False)
    assert out.shape == (0, 2, 3)
    grad = select.embedding_grad(out, none, rows=4, padding=1, by_frequency=True)
    assert (grad.get() == 0).all()
