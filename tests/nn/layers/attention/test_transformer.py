"""The Transformer and its parts: formulas, copies, masks and hints, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, SettingError, ShapeError
from lucid.nn import functional as F
from tests.gradients import numbers
from tests.nn.layers.attention.test_multihead import filled

MASKS = ("tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask")


def drawn(*shape, rng):
    """Return a tensor of normal numbers."""
    return lucid.tensor(rng.standard_normal(shape))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", F.silu])
def test_decoder_layer(norm_first, activation, rng):
    """It is attention to itself, to the memory and two linear layers, each with its norm, masks and padding."""
    m = filled(nn.TransformerDecoderLayer(8, 2, 5, 0.0, activation, 1e-3, norm_first=norm_first), rng)
    tgt, memory = drawn(3, 2, 8, rng=rng), drawn(4, 2, 8, rng=rng)
    shapes = ((4, 3, 3), (3, 4), (2, 3), (2, 4))
    masks = {name: drawn(*shape, rng=rng) for name, shape in zip(MASKS, shapes, strict=True)}
    function = getattr(F, activation) if isinstance(activation, str) else activation
    steps = (
        lambda x: m.self_attn(x, x, x, masks["tgt_key_padding_mask"], attn_mask=masks["tgt_mask"])[0],
        lambda x: m.multihead_attn(x, memory, memory, masks["memory_key_padding_mask"], attn_mask=masks["memory_mask"])[
            0
        ],
        lambda x: m.linear2(function(m.linear1(x))),
    )
    x = tgt
    for norm, step in zip((m.norm1, m.norm2, m.norm3), steps, strict=True):
        x = x + step(norm(x)) if norm_first else norm(x + step(x))
    np.testing.assert_allclose(numbers(m(tgt, memory, **masks)), numbers(x), rtol=1e-10, atol=1e-10)
    encoder = nn.TransformerEncoderLayer(8, 2, 5, layer_norm_eps=1e-3)
    assert {norm.eps for norm in (m.norm1, m.norm2, m.norm3, encoder.norm1, encoder.norm2)} == {1e-3}


def test_whole(rng):
    """The target is decoded with the encoded source as memory; every mask reaches the layers that it is for."""
    m = filled(nn.Transformer(8, 2, 2, 2, 5, 0.0, batch_first=True), rng)
    src, tgt = drawn(2, 4, 8, rng=rng), drawn(2, 3, 8, rng=rng)
    masks = {
        name: drawn(*shape, rng=rng)
        for name, shape in zip(
            ("src_mask", "src_key_padding_mask", *MASKS), ((4, 4), (2, 4), (3, 3), (3, 4), (2, 3), (2, 4)), strict=True
        )
    }
    memory = src
    for layer in m.encoder.layers:
        memory = layer(memory, masks["src_mask"], masks["src_key_padding_mask"])
    memory, expected = m.encoder.norm(memory), tgt
    for layer in m.decoder.layers:
        expected = layer(expected, memory, *(masks[name] for name in MASKS))
    expected = m.decoder.norm(expected)
    np.testing.assert_allclose(numbers(m(src, tgt, **masks)), numbers(expected), rtol=1e-12, atol=1e-12)
    for left_out in masks:
        others = {name: mask for name, mask in masks.items() if name != left_out}
        assert np.abs(numbers(m(src, tgt, **others)) - numbers(expected)).max() > 1e-6


def test_hints(rng):
    """Hints that masks are causal change nothing."""
    m = filled(nn.Transformer(8, 2, 1, 1, 5, 0.0), rng)
    x, y = drawn(3, 2, 8, rng=rng), drawn(3, 2, 8, rng=rng)
    mask = m.generate_square_subsequent_mask(3, dtype=lucid.float64)
    masks = {"src_mask": mask, "tgt_mask": mask, "memory_mask": mask}
    expected = numbers(m(x, y, **masks))
    np.testing.assert_allclose(
        numbers(m(x, y, **masks, src_is_causal=True, tgt_is_causal=True, memory_is_causal=True)), expected, rtol=1e-10
    )
    with pytest.raises(ShapeError, match="expected attn_mask together with is_causal=True"):
        m(x, y, tgt_is_causal=True)
    with pytest.raises(ShapeError, match="expected attn_mask together with is_causal=True"):
        m(x, y, src_is_causal=True)
    with pytest.raises(ShapeError, match="expected attn_mask together with is_causal=True"):
        m(x, y, memory_is_causal=True)


def test_copies_and_first_parameters(rng):
    """Layers begin as copies of the one given, which they leave alone; those of a Transformer are drawn one by one."""
    layer = filled(nn.TransformerDecoderLayer(8, 2, 5), rng)
    decoder = nn.TransformerDecoder(layer, 2)
    first, second = (list(copied.parameters()) for copied in decoder.layers)
    for own, a, b in zip(layer.parameters(), first, second, strict=True):
        assert len({id(own), id(a), id(b)}) == 3
        np.testing.assert_array_equal(numbers(a), numbers(own))
        np.testing.assert_array_equal(numbers(b), numbers(own))
    m = nn.Transformer(32, 2, 2, 2, 64)
    a, b = (numbers(m.encoder.layers[i].linear1.weight) for i in (0, 1))
    assert (a != b).any()
    bound = np.sqrt(6 / 96)
    assert bound * 0.98 < np.abs(a).max() <= bound
    assert not m.state_dict()["decoder.layers.1.self_attn.in_proj_bias"].any()


def test_dropout_in_every_place(rng):
    """Each dropout of a layer acts in training: with all others off, the output changes."""
    tgt, memory = drawn(9, 2, 8, rng=rng), drawn(9, 2, 8, rng=rng)
    for make, more in ((nn.TransformerEncoderLayer, ()), (nn.TransformerDecoderLayer, (memory,))):
        layer = filled(make(8, 2, 16, 0.5), rng)
        expected = numbers(layer.eval()(tgt, *more))
        places = [place for place in layer.modules() if hasattr(place, "p") or isinstance(place, nn.MultiheadAttention)]
        assert len(places) == (4 if not more else 6)
        for place in places:
            place.train()
            assert np.abs(numbers(layer(tgt, *more)) - expected).max() > 1e-3
            place.eval()
        assert all(getattr(place, "p", 0.5) == 0.5 == getattr(place, "dropout", 0.5) for place in places)


def test_mistakes():
    """Activations that are none, no layers, and inputs of other batches or features are refused."""
    for make in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer, nn.Transformer):
        with pytest.raises(SettingError, match="activation: expected 'relu', 'gelu' or a callable, got 'tanh'"):
            make(8, 2, activation="tanh")
        with pytest.raises(ArgumentError, match=r"activation: expected .*callable, got int 3"):
            make(8, 2, activation=3)
    for make in (nn.TransformerEncoder, nn.TransformerDecoder):
        with pytest.raises(SettingError, match="num_layers: expected a whole number of at least 1, got int 0"):
            make(nn.Linear(1, 1), 0)
    m = nn.Transformer(8, 2, 1, 1, 4)
    for src, tgt in (((3, 2, 8), (3, 1, 8)), ((3, 2, 4), (3, 2, 8)), ((3, 2, 8), (3, 2, 4)), ((3, 2, 8), (3, 8))):
        with pytest.raises(ShapeError, match="expected src and tgt of one batch and 8 features"):
            m(lucid.ones(*src), lucid.ones(*tgt))


def test_hooks_of_inner_modules_fire(rng):
    """In evaluation without gradients too, where PyTorch goes around them."""
    encoder = filled(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, batch_first=True), 1), rng).eval()
    seen = []
    for name, module in encoder.named_modules():
        module.register_forward_hook(lambda *_, name=name: seen.append(name.rpartition(".")[2]))
    with lucid.no_grad():
        encoder(drawn(2, 3, 8, rng=rng), src_key_padding_mask=lucid.tensor([[False, False, True]] * 2))
    order = "out_proj self_attn dropout1 norm1 linear1 dropout linear2 dropout2 norm2 0"
    assert seen == [*order.split(), ""]


def test_layers_ask_for_no_weights(rng):
    """Attention inside of a layer makes no weights, which a hook on it sees: its kernel would have to keep them."""
    x, seen = drawn(3, 2, 8, rng=rng), []
    for layer, others in ((nn.TransformerEncoderLayer(8, 2, 4), ()), (nn.TransformerDecoderLayer(8, 2, 4), (x,))):
        for name in ("self_attn", "multihead_attn") if others else ("self_attn",):
            getattr(layer, name).register_forward_hook(lambda module, args, output: seen.append(output[1]))
        filled(layer.eval(), rng)(x, *others)
    assert seen == [None] * 3
