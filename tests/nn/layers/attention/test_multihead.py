"""Attention of several heads: its formula with masks, weights and further keys, first parameters, and mistakes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid import numpy as lnp
from lucid.errors import ArgumentError, DtypeError, SettingError, ShapeError
from tests.gradients import numbers

ROWS = {
    "plain": {},
    "no bias": {"bias": False},
    "further keys": {"add_bias_kv": True, "add_zero_attn": True},
    "other features": {"kdim": 3, "vdim": 5},
    "batch first": {"batch_first": True},
}


def filled(layer, rng):
    """Return a layer in float64 with random parameters."""
    layer = layer.double()
    for parameter in layer.parameters():
        parameter.data = lucid.tensor(rng.standard_normal(parameter.shape))
    return layer


def reference(m, query, key, value, bias):
    """Return what each head sees, and the weights (batch, heads, queries, keys), of one sequence after the other."""
    own = {name: numbers(p) for name, p in m.named_parameters()}
    names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
    weights = np.split(own["in_proj_weight"], 3) if "in_proj_weight" in own else [own[name] for name in names]
    biases = np.split(own.get("in_proj_bias", np.zeros(24)), 3)
    outs, seen = [], []
    for b in range(query.shape[1]):
        q, k, v = (x[:, b] @ w.T + c for x, w, c in zip((query, key, value), weights, biases, strict=True))
        if "bias_k" in own:
            k, v = (
                np.vstack([k, own["bias_k"][0], np.zeros((1, 8))]),
                np.vstack([v, own["bias_v"][0], np.zeros((1, 8))]),
            )
        heads = []
        for h in range(2):
            part = slice(4 * h, 4 * h + 4)
            scores = q[:, part] @ k[:, part].T / 2
            scores[:, : key.shape[0]] += bias[b, h]
            e = np.exp(scores - scores.max(-1, keepdims=True))
            seen.append(e / e.sum(-1, keepdims=True))
            heads.append(seen[-1] @ v[:, part])
        outs.append(np.hstack(heads) @ own["out_proj.weight"].T + own.get("out_proj.bias", 0))
    return np.stack(outs, 1), np.reshape(seen, (query.shape[1], 2, query.shape[0], -1))


def masks(kind, rng):
    """Return a mask, one of padded keys, and what they add to the scores (batch, heads, queries, keys)."""
    if kind == "none":
        return None, None, np.zeros((2, 2, 3, 4))
    if kind == "bool":
        mask, padded = rng.random((3, 4)) < 0.4, np.zeros((2, 4), bool)
        mask[:, 0], padded[1, 2:] = False, True
        return mask, padded, np.where(mask | padded[:, None, None] | np.zeros((2, 2, 3, 4), bool), -np.inf, 0.0)
    mask, padded = rng.standard_normal((4, 3, 4)), rng.standard_normal((2, 4))
    return mask, padded, mask.reshape(2, 2, 3, 4) + padded[:, None, None]


@pytest.mark.parametrize("kind", ["none", "bool", "float"])
@pytest.mark.parametrize("row", ROWS)
def test_formula(row, kind, rng):
    """Results and weights are those of each head alone; without weights the results are the same."""
    m = filled(nn.MultiheadAttention(8, 2, **ROWS[row]), rng)
    query, key, value = (rng.standard_normal((n, 2, e)) for n, e in ((3, 8), (4, m.kdim), (4, m.vdim)))
    mask, padded, bias = masks(kind, rng)
    expected, weights = reference(m, query, key, value, bias)
    q, k, v = (lucid.tensor(x.swapaxes(0, 1) if m.batch_first else x) for x in (query, key, value))
    settings = {
        name: lucid.tensor(x) for name, x in (("attn_mask", mask), ("key_padding_mask", padded)) if x is not None
    }
    for need, average in ((True, True), (True, False), (False, True)):
        out, seen = m(q, k, v, need_weights=need, average_attn_weights=average, **settings)
        got = numbers(out).swapaxes(0, 1) if m.batch_first else numbers(out)
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
        if need:
            np.testing.assert_allclose(numbers(seen), weights.mean(1) if average else weights, rtol=1e-10, atol=1e-10)
        else:
            assert seen is None


@pytest.mark.parametrize("need", [False, True])
def test_one_sequence(need, rng):
    """Without a batch it is the only one of a batch; one tensor in several places gives what equal ones do."""
    for first in (False, True):
        m = filled(nn.MultiheadAttention(8, 2, batch_first=first), rng)
        x, mask = lucid.tensor(rng.standard_normal((3, 8))), lucid.tensor(rng.standard_normal((2, 3, 3)))
        padded = lucid.tensor([False, False, True])
        out, weights = m(x, x, x, padded, need, mask)
        y = x.unsqueeze(0 if first else 1)
        expected, more = m(y, y * 1, y * 1, padded.unsqueeze(0), need, mask)
        np.testing.assert_allclose(numbers(out), numbers(expected).reshape(3, 8), rtol=1e-12, atol=1e-12)
        z = y * 1
        for inputs in ((y, z, z), (y, y, z), (y, z, y)):
            same, _ = m(*inputs, padded.unsqueeze(0), need, mask)
            np.testing.assert_allclose(numbers(same), numbers(expected), rtol=1e-12, atol=1e-12)
        if need:
            np.testing.assert_allclose(numbers(weights), numbers(more)[0], rtol=1e-12)


def test_a_causal_hint(rng):
    """With the hint, and whatever else is asked for, the result is that of the mask."""
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype=lucid.float64)
    assert numbers(mask).tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    padded = lucid.tensor([[False, False, True]])
    for settings in ({}, {"add_bias_kv": True}, {"add_zero_attn": True}):
        m = filled(nn.MultiheadAttention(8, 2, **settings), rng)
        x = lucid.tensor(rng.standard_normal((3, 1, 8)))
        for need in (False, True):
            for more in (None, padded):
                a, b = (m(x, x, x, more, need, mask, is_causal=hint)[0] for hint in (False, True))
                np.testing.assert_allclose(numbers(b), numbers(a), rtol=1e-12, atol=1e-12)
    with pytest.raises(ShapeError, match="expected attn_mask together with is_causal=True"):
        m(x, x, x, is_causal=True)


def test_dropout_is_of_training(rng):
    """Weights are dropped in training alone, with and without their being returned."""
    m = filled(nn.MultiheadAttention(8, 2, dropout=0.5), rng)
    x = lucid.tensor(rng.standard_normal((40, 1, 8)))
    weights = numbers(m(x, x, x, average_attn_weights=False)[1])
    kept = numbers(m.eval()(x, x, x, average_attn_weights=False)[1])
    share = (weights == 0).mean()
    assert abs(share - 0.5) < 0.06
    np.testing.assert_allclose(weights[weights != 0], 2 * kept[weights != 0], rtol=1e-12)
    quick = m(x, x, x, need_weights=False)[0]
    np.testing.assert_allclose(numbers(quick), numbers(m(x, x, x)[0]), rtol=1e-12, atol=1e-12)
    assert np.abs(numbers(m.train()(x, x, x, need_weights=False)[0]) - numbers(quick)).max() > 0.1


def test_first_parameters(rng):
    """Projections are uniform by Glorot's bound of the whole matrix, biases zero, further keys normal."""
    lucid.manual_seed(int(rng.integers(1000)))
    m = nn.MultiheadAttention(64, 4, add_bias_kv=True)
    bound = np.sqrt(6 / (64 + 3 * 64))
    assert bound * 0.99 < np.abs(numbers(m.in_proj_weight)).max() <= bound
    assert np.abs(numbers(m.out_proj.weight)).max() <= 1 / 8
    assert not numbers(m.in_proj_bias).any()
    assert not numbers(m.out_proj.bias).any()
    deviation = np.sqrt(2 / (64 + 64))
    assert 0.6 * deviation < numbers(m.bias_k).std() < 1.4 * deviation
    assert numbers(m.bias_v).any()
    m = nn.MultiheadAttention(64, 4, kdim=32, vdim=16)
    for weight, features in ((m.q_proj_weight, 64), (m.k_proj_weight, 32), (m.v_proj_weight, 16)):
        bound = np.sqrt(6 / (64 + features))
        assert bound * 0.97 < np.abs(numbers(weight)).max() <= bound
    assert m.in_proj_weight is None


def test_mistakes():
    """Settings out of range, and shapes and dtypes that do not fit, are refused with what was expected."""
    for settings, text in (
        ({"embed_dim": 6, "num_heads": 4}, "multiple of num_heads"),
        ({"embed_dim": 0, "num_heads": 1}, "embed_dim: expected a whole number of at least 1"),
        ({"embed_dim": 6, "num_heads": 2, "dropout": 1.0}, r"dropout in \[0, 1\)"),
        ({"embed_dim": 6, "num_heads": 2, "kdim": 0}, "kdim: expected a whole number of at least 1"),
    ):
        with pytest.raises(SettingError, match=text):
            nn.MultiheadAttention(**settings)
    m, x = nn.MultiheadAttention(8, 2), lucid.ones(3, 2, 8)
    for args, settings, text in (
        ((x[..., :4], x, x), {}, "query of shape"),
        ((x, x[:, :1], x[:, :1]), {}, "the batch of query"),
        ((x, x, x[:2]), {}, "of one length"),
        ((x, x[0], x[0]), {}, "the batch of query"),
        ((x, x[..., :4], x[..., :4]), {}, "linear: expected"),
        ((x, x, x), {"attn_mask": lucid.ones(2, 3)}, r"attn_mask of shape \(3, 3\) or \(4, 3, 3\), got \(2, 3\)"),
        ((x, x, x), {"key_padding_mask": lucid.ones(3, 2)}, r"key_padding_mask of shape \(2, 3\), got \(3, 2\)"),
    ):
        with pytest.raises(ShapeError, match=text):
            m(*args, **settings)
    with pytest.raises(DtypeError, match=r"attn_mask of bool or lucid\.float32, got lucid\.float64"):
        m(x, x, x, attn_mask=lucid.ones(3, 3, dtype=lucid.float64))
    call, more = nn.functional.multi_head_attention_forward, (None, None, False, 0.0, lucid.ones(8, 8), None)
    with pytest.raises(ArgumentError, match="in_proj_weight: expected a Tensor"):
        call(x, x, x, 8, 2, None, None, *more)
    with pytest.raises(ArgumentError, match="k_proj_weight: expected a Tensor"):
        call(x, x, x, 8, 2, None, None, *more, use_separate_proj_weight=True, q_proj_weight=lucid.ones(8, 8))
    with pytest.raises(ShapeError, match="static_k of shape"):
        call(x, x, x, 8, 2, lucid.ones(24, 8), None, *more, static_k=lucid.ones(3, 3, 4))


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_masks_of_float32(dtype, need_weights, rng):
    """A mask as `generate_square_subsequent_mask` makes it serves a layer of any dtype."""
    m = filled(nn.MultiheadAttention(8, 2), rng).to(getattr(lucid, dtype))
    x = lucid.tensor(rng.standard_normal((3, 2, 8)), dtype=getattr(lucid, dtype))
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    padding = lucid.tensor([[0.0, -1.0, 0.0], [0.0, 0.0, -2.0]])
    own = {"attn_mask": causal.to(x.dtype), "key_padding_mask": padding.to(x.dtype)}
    expected, _ = m(x, x, x, need_weights=need_weights, **own)
    out, weights = m(x, x, x, need_weights=need_weights, attn_mask=causal, key_padding_mask=padding)
    assert out.dtype == x.dtype
    assert weights is None or weights.dtype == x.dtype
    np.testing.assert_array_equal(numbers(out), numbers(expected))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_masks_under_autocast(dtype, rng):
    """A mask changes no dtype there: outputs and weights have those that they have without one."""
    m, x = nn.MultiheadAttention(8, 2), lucid.tensor(rng.standard_normal((3, 2, 8)), dtype=lucid.float32)
    nothing = lucid.zeros(3, 3)
    with lucid.autocast(x.device.type, dtype=getattr(lucid, dtype)):
        expected = m(x, x, x)
        for masks in ({"attn_mask": nothing}, {"key_padding_mask": nothing[:2] != 0}):
            for one, other in zip(m(x, x, x, **masks), expected, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(numbers(one), numbers(other))


def test_keys_and_values_made_before(rng):
    """`static_k` and `static_v` stand for the projected keys and values."""
    m = filled(nn.MultiheadAttention(8, 2), rng)
    x = lucid.tensor(rng.standard_normal((3, 2, 8)))
    _, k, v = nn.functional.linear(x, m.in_proj_weight, m.in_proj_bias).chunk(3, -1)
    static = [y.reshape(3, 4, 4).transpose(0, 1) for y in (k, v)]
    own = (8, 2, m.in_proj_weight, m.in_proj_bias, None, None, False, 0.0, m.out_proj.weight, m.out_proj.bias)
    out, _ = nn.functional.multi_head_attention_forward(x, x * 0, x * 0, *own, static_k=static[0], static_v=static[1])
    np.testing.assert_allclose(numbers(out), numbers(m(x, x, x)[0]), rtol=1e-12, atol=1e-12)


def test_copies(rng):
    """Copies and pickles compute the same."""
    x = lucid.tensor(rng.standard_normal((3, 2, 8)))
    for activation in ("relu", "gelu", nn.functional.silu, nn.Tanh()):
        m = filled(nn.TransformerEncoderLayer(8, 2, 4, 0.0, activation), rng)
        for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            np.testing.assert_array_equal(numbers(twin(x)), numbers(m(x)))


def test_arrays_of_lucid_numpy_have_the_batch_first(rng):
    """Recorded arrays, of which the methods are NumPy's, are taken as the Tensors are that they were made of."""
    values = rng.standard_normal((2, 4, 6))
    layer, block = (
        each.double()
        for each in (
            nn.MultiheadAttention(6, 2, batch_first=True),
            nn.TransformerEncoderLayer(6, 2, 8, 0, batch_first=True),
        )
    )
    grads = []
    for made in (lucid.as_tensor, lnp.asarray):
        x = lucid.tensor(values, requires_grad=True)
        given = made(x)
        attended, _ = layer(given, given, given)
        whole = attended.sum() + (block(given) ** 2).sum()
        assert type(attended) is lucid.Tensor
        whole.backward()
        grads.append(x.grad)
    assert lucid.allclose(*grads, rtol=1e-12)
