"""Attention: errors, dropout, rows that see nothing, blocks."""

from __future__ import annotations

import functools
import tracemalloc

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from lucid.ops.layers import attention
from lucid.ops.layers.attention import scaled_dot_product_attention
from tests.device import DEVICE
from tests.gradients import check_gradient, check_second_derivative


def ones(*shape, dtype=None):
    return lucid.tensor(np.ones(shape, np.float32), dtype=dtype)


def call(q=(2, 3, 4), k=(2, 5, 4), v=(2, 5, 6), **settings):
    return scaled_dot_product_attention(ones(*q), ones(*k), ones(*v), **settings)


WRONG = {
    "features": (lambda: call(k=(2, 5, 3)), r"got shapes \(2, 3, 4\), \(2, 5, 3\) and \(2, 5, 6\)"),
    "keys": (lambda: call(v=(2, 4, 6)), "expected query"),
    "leading": (lambda: call(k=(3, 5, 4)), "cannot be broadcast"),
    "mask": (lambda: call(attn_mask=ones(4, 5)), r"attn_mask that can be broadcast to \(2, 3, 5\)"),
    "both masks": (lambda: call(attn_mask=ones(3, 5), is_causal=True), "no attn_mask together with is_causal"),
    "dropout": (lambda: call(dropout_p=1.5), r"dropout_p in \[0, 1\)"),
    "heads": (lambda: call((1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4), enable_gqa=True), "that divide those of query"),
}


@pytest.mark.parametrize("case", WRONG)
def test_shapes_that_do_not_fit(case):
    """A shape error names the op, what was expected and what was got."""
    wrong, message = WRONG[case]
    with pytest.raises(ShapeError, match=message):
        wrong()


def test_dtypes():
    """Attention is of three tensors of floating point, and a mask of bool, float32 or the same dtype."""
    for missing in ("key", "value"):
        with pytest.raises(TypeError, match=f"scaled_dot_product_attention: {missing}: expected"):
            scaled_dot_product_attention(**{name: ones(2, 3) for name in ("query", "key", "value")} | {missing: None})
    with pytest.raises(DtypeError, match="floating-point operands"):
        x = ones(2, 3, dtype=lucid.int64)
        scaled_dot_product_attention(x, x, x)
    with pytest.raises(DtypeError, match=r"attn_mask of bool or lucid\.float32, got lucid\.float64"):
        call(attn_mask=ones(3, 5, dtype=lucid.float64))


def hidden(mask, q, k, v):
    """Return attention under a mask that is no input."""
    return scaled_dot_product_attention(q, k, v, lucid.tensor(mask))


def test_a_query_that_sees_nothing(rng):
    """Its weights are zero, and so is its gradient; the other rows do not notice."""
    q, k, v = (rng.standard_normal(shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
    mask = rng.random((3, 5)) < np.array([0.8, 0.0, 0.8])[:, None]
    mask[0, 0] = mask[2, 1] = True
    out = hidden(mask, *map(lucid.tensor, (q, k, v)))
    np.testing.assert_array_equal(out.numpy(force=True)[:, 1], 0)
    check_gradient(functools.partial(hidden, mask), [q, k, v], rng)
    check_second_derivative(functools.partial(hidden, mask), [q, k, v], rng)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_gradients_of_halves_are_rounded_once(half, rng):
    """With a mask's gradient, gradients of halves are those of float64, rounded."""
    shapes = ((2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5), (2, 3, 6))
    *arrays, upstream = (lucid.tensor(rng.standard_normal(shape), dtype=getattr(lucid, half)) for shape in shapes)
    found = []
    for dtype in (getattr(lucid, half), lucid.float64):
        tensors = [x.detach().to(dtype).requires_grad_() for x in arrays]
        grads = lucid.autograd.grad([scaled_dot_product_attention(*tensors)], tensors, [upstream.to(dtype)])
        found.append([g.to(lucid.float64).numpy(force=True) for g in grads])
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[half]
    for got, exact in zip(*found, strict=True):
        # sums of fewer than a hundred terms of about 1 in float32
        np.testing.assert_allclose(got, exact, rtol=unit, atol=100 * 2.0**-23)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_masks_of_float32(dtype, rng):
    """They are added to the scores of every dtype without being rounded, and have gradients of float32."""
    shapes = ((2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5), (2, 3, 6))
    dtypes = [getattr(lucid, dtype)] * 3 + [lucid.float32, getattr(lucid, dtype)]
    *arrays, upstream = (
        lucid.tensor(rng.standard_normal(shape), dtype=kind, device=DEVICE)
        for shape, kind in zip(shapes, dtypes, strict=True)
    )
    found = []
    for exact in (False, True):
        tensors = [(x.double() if exact else x).detach().clone().requires_grad_() for x in arrays]
        out = scaled_dot_product_attention(*tensors)
        for again in (False, True):
            given = upstream.double() if exact else upstream
            grads = lucid.autograd.grad([out], tensors, [given], retain_graph=True, create_graph=again)
            found.append([x.detach().double().cpu().numpy() for x in (out, *grads)])
            assert exact or [g.dtype for g in grads] == dtypes[:-1]
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-40}[dtype]
    for got in found[:2]:
        # sums of fewer than a hundred terms of about 1 in float32, or in the half type in a second pass
        for one, other in zip(got, found[2], strict=True):
            np.testing.assert_allclose(one, other, rtol=unit, atol=max(100 * 2.0**-23, 4 * unit))


def dropped(seed, q, k, v):
    """Return attention with dropout of 0.4, the same for the same seed."""
    lucid.manual_seed(seed)
    return scaled_dot_product_attention(q, k, v, dropout_p=0.4)


def test_dropout(rng):
    """Weights are zeroed or divided by 1 - p, as often as p says, repeatably, and are differentiated so, also twice."""
    eye = lucid.tensor(np.eye(50))
    q = lucid.tensor(np.zeros((50, 50)))
    weights = dropped(1, q, q, eye).numpy(force=True) * 50
    np.testing.assert_allclose(np.unique(weights), [0, 1 / 0.6], rtol=1e-12)
    # 2500 draws: 5 standard deviations are 0.05
    assert abs((weights == 0).mean() - 0.4) < 0.05
    np.testing.assert_array_equal(weights, dropped(1, q, q, eye).numpy(force=True) * 50)
    arrays = [rng.standard_normal(shape) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6))]
    check_gradient(functools.partial(dropped, 2), arrays, rng)
    check_second_derivative(functools.partial(dropped, 2), arrays, rng)


def test_blocks(rng, monkeypatch):
    """Values and gradients do not depend on how many heads are computed at a time."""
    arrays = [rng.standard_normal(shape) for shape in ((2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7), (2, 1, 4, 6))]
    upstream = lucid.tensor(rng.standard_normal((2, 3, 4, 7)))
    results = []
    for budget in (1, 3 * 4 * 6 * 8, 1 << 20):
        monkeypatch.setattr(attention, "CPU_BLOCK", budget)
        tensors = [lucid.tensor(a).requires_grad_() for a in arrays]
        out = scaled_dot_product_attention(*tensors)
        results.append([out.detach(), *lucid.autograd.grad([out], tensors, [upstream])])
    for other in results[1:]:
        for got, expected in zip(other, results[0], strict=True):
            np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("mask", ["none", "causal", (7, 9), (7, 1), (1, 9), (2, 1, 7, 9)])
@pytest.mark.parametrize(("queries", "keys"), [(7, 9), (9, 7), (7, 2)])
def test_bands(mask, queries, keys, rng, monkeypatch):
    """Values and gradients do not depend on how many queries are computed at a time."""
    shapes = (2, 3, queries, 5), (2, 3, keys, 5), (2, 3, keys, 6)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    if isinstance(mask, tuple):
        sizes = {7: queries, 9: keys}
        arrays.append(rng.standard_normal([sizes.get(size, size) for size in mask]))
    upstream = lucid.tensor(rng.standard_normal((2, 3, queries, 6)))
    monkeypatch.setattr(attention, "CPU_BLOCK", 1)
    results = []
    for rows in (1, 3, 1 << 20):
        monkeypatch.setattr(attention, "BAND", rows)
        lucid.manual_seed(0)
        tensors = [lucid.tensor(a).requires_grad_() for a in arrays]
        out = scaled_dot_product_attention(*tensors, is_causal=mask == "causal", dropout_p=0.3)
        results.append([out.detach(), *lucid.autograd.grad([out], tensors, [upstream])])
    for other in results[1:]:
        for got, expected in zip(other, results[0], strict=True):
            np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=1e-11, atol=1e-12)


def test_hidden_keys_are_not_computed():
    """Under a causal mask the CPU computes little more than the half of the weights that is seen."""
    q = np.empty((2048, 1), np.float32)
    bands = attention.bands(np, q, q, 4, causal=True)
    assert sum((rows.stop - rows.start) * columns.stop for rows, columns in bands) < 0.54 * 2048**2


@pytest.mark.cpu("memory of NumPy's arrays is counted")
def test_a_causal_mask_takes_no_memory(rng):
    """No more than attention without it: there is no mask of all queries and keys."""
    q = lucid.tensor(rng.standard_normal((1, 2048, 4)).astype(np.float32))
    most = []
    for causal in (False, True):
        tracemalloc.start()
        try:
            scaled_dot_product_attention(q, q, q, is_causal=causal)
            most.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert most[1] < 1.1 * most[0]


def test_scores_of_nothing_weigh_all_alike(rng):
    """A scale of 0 is one, and makes means of the values, of those that a query may see."""
    q, k, v = (lucid.tensor(rng.standard_normal((2, 3, 4))) for _ in range(3))
    expected = v.cumsum(1) / lucid.arange(1, 4, device=DEVICE).unsqueeze(1)
    for scale in (0, 0.0):
        out = scaled_dot_product_attention(q, k, v, scale=scale, is_causal=True)
        np.testing.assert_allclose(out.cpu().numpy(), expected.cpu().numpy(), rtol=1e-12)


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_a_causal_gradient_is_one_under_a_mask(size, rng):
    """Also where scores are large, so that the weights are computed anew and not from the logarithms of their sums."""
    arrays = [rng.standard_normal((2, 5, 4)) for _ in range(3)]
    upstream = lucid.tensor(rng.standard_normal((2, 5, 4)))
    results = []
    for settings in ({"is_causal": True}, {"attn_mask": lucid.ones(5, 5, dtype=lucid.bool).tril()}):
        tensors = [lucid.tensor(array).requires_grad_() for array in arrays]
        out = scaled_dot_product_attention(*tensors, scale=size, **settings)
        results.append(lucid.autograd.grad([out], tensors, [upstream]))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one.numpy(force=True), other.numpy(force=True), rtol=1e-9, atol=1e-10)
