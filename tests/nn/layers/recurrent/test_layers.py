"""LSTM, GRU and RNN give what their formulas give in NumPy, sequence for sequence."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.gradcheck import gradcheck
from lucid.errors import SettingError, ShapeError
from lucid.nn.utils.rnn import pack_sequence, unpack_sequence
from tests.device import DEVICE
from tests.nn.layers.recurrent.formulas import run

LAYERS = {
    "LSTM": lambda: nn.LSTM(3, 4),
    "LSTM all": lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, proj_size=2),
    "GRU": lambda: nn.GRU(3, 4, bias=False),
    "GRU all": lambda: nn.GRU(3, 4, 2, batch_first=True, bidirectional=True),
    "RNN": lambda: nn.RNN(3, 4, 2),
    "RNN relu": lambda: nn.RNN(3, 4, nonlinearity="relu", bias=False, bidirectional=True),
}
LENGTHS = [2, 4, 1, 4]


def first_states(layer, rng, batch):
    """Return first states as arrays of shape (layers and directions, B, size)."""
    rows = layer.num_layers * (1 + layer.bidirectional)
    sizes = [layer.proj_size or 4, 4][: 1 + (layer.mode == "LSTM")]
    return [rng.standard_normal((rows, batch, size)) for size in sizes]


def called(layer, x, states):
    """Return the output and the last states, a tuple of one or two."""
    out, last = layer(x, *([] if states is None else [states if layer.mode == "LSTM" else states[0]]))
    return out, last if layer.mode == "LSTM" else (last,)


def close(got, expected):
    np.testing.assert_allclose(got.numpy(force=True), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("with_states", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_values(name, with_states, rng):
    """Packed, batched and alone, a sequence gives the outputs and last states of the formula."""
    layer = LAYERS[name]().double()
    arrays = [rng.standard_normal((length, 3)) for length in LENGTHS]
    first = first_states(layer, rng, len(arrays))
    if not with_states:
        first = [np.zeros_like(part) for part in first]
    expected = [run(layer, array, [part[:, k] for part in first]) for k, array in enumerate(arrays)]
    states = tuple(lucid.tensor(part) for part in first) if with_states else None
    out, last = called(layer, pack_sequence([lucid.tensor(a) for a in arrays], enforce_sorted=False), states)
    for k, (sequence, (outputs, ends)) in enumerate(zip(unpack_sequence(out), expected, strict=True)):
        close(sequence, outputs)
        for got, end in zip(last, ends, strict=True):
            close(got[:, k], end)
    alone, last = called(layer, lucid.tensor(arrays[1]), states and tuple(part[:, 1] for part in states))
    close(alone, expected[1][0])
    for got, end in zip(last, expected[1][1], strict=True):
        close(got, end)
    longest, axis = [1, 3], 0 if layer.batch_first else 1
    x = lucid.tensor(np.stack([arrays[k] for k in longest], axis))
    out, last = called(layer, x, states and tuple(part[:, [1, 3]] for part in states))
    close(out, np.stack([expected[k][0] for k in longest], axis))
    for which, got in enumerate(last):
        close(got, np.stack([expected[k][1][which] for k in longest], 1))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_gradients(kind, rng):
    """Derivatives are those of the values, of packed input and states, through layers and directions."""
    layer = getattr(nn, kind)(1, 2, 2, bidirectional=True).double()
    sizes = lucid.tensor([2, 1], device="cpu")
    states = rng.standard_normal((2 if kind == "LSTM" else 1, 4, 2, 2))
    given = [lucid.tensor(array, requires_grad=True) for array in (rng.standard_normal((3, 1)), *states)]

    def function(data, *states):
        out, last = called(layer, nn.utils.rnn.PackedSequence(data, sizes), states)
        return out.data, *last

    assert gradcheck(function, given)


def test_parameters():
    """Parameters have PyTorch's names, order and shapes, and are uniform below 1 / sqrt(hidden_size)."""
    lucid.manual_seed(0)
    layer = nn.LSTM(3, 100, 2, bidirectional=True, proj_size=7)
    names = [name for name, _ in layer.named_parameters()]
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
    assert names == [f"{kind}_l{k}{side}" for k in (0, 1) for side in ("", "_reverse") for kind in kinds]
    shapes = [tuple(parameter.shape) for parameter in layer.all_weights[2]]
    assert shapes == [(400, 14), (400, 7), (400,), (400,), (7, 100)]
    for parameter in layer.parameters():
        assert 0.08 < abs(parameter).max().item() <= 1 / math.sqrt(100)
        assert parameter.min().item() < -0.08
    assert layer.flatten_parameters() is None


def test_dropout_between_layers(rng):
    """What the next layer gets is dropped in training, the last output is not; one layer alone drops nothing."""
    layer = nn.RNN(3, 4, 2, dropout=1.0)
    x = lucid.tensor(rng.standard_normal((2, 3, 3)).astype(np.float32))
    other = x * 2
    assert lucid.equal(layer(x)[0], layer(other)[0])
    assert (layer(x)[0] != 0).all()
    layer.eval()
    assert not lucid.equal(layer(x)[0], layer(other)[0])
    with pytest.warns(UserWarning, match="num_layers=1"):
        nn.GRU(3, 4, dropout=0.5)


def test_half_types(rng):
    """Half types give the values of float32 to their precision, with gradients, and so does autocast to them."""
    layer, values = nn.LSTM(3, 4), rng.standard_normal((2, 2, 3)).astype(np.float32)
    x, half = lucid.tensor(values), lucid.bfloat16
    expected = layer(x)[0].numpy(force=True)
    with lucid.autocast(DEVICE, dtype=half):
        within = layer(x)
    for out, (h, c) in (within, layer.to(half)(x.to(half))):
        assert out.dtype == h.dtype == c.dtype == half
        np.testing.assert_allclose(out.float().numpy(force=True), expected, atol=0.03)
    out.sum().backward()
    assert all(parameter.grad.dtype == half for parameter in layer.parameters())


def test_autocast():
    """On CUDA all is in the lower dtype; on the CPU what products give, and all of an LSTM of padded sequences."""
    x, h = lucid.ones(2, 1, 3), lucid.ones(1, 1, 4)
    packed = pack_sequence([x[:, 0]])
    with lucid.autocast(DEVICE, dtype=lucid.bfloat16):
        everywhere = [
            *nn.LSTM(3, 4)(x)[1], nn.LSTM(3, 4, proj_size=2)(x)[0], nn.RNN(3, 4)(x, h)[1], nn.RNNCell(3, 4)(x[0], h[0])
        ]  # fmt: skip
        on_cuda = [
            nn.LSTM(3, 4)(packed)[0].data, nn.LSTM(3, 4, proj_size=2)(x)[1][1], nn.GRU(3, 4)(x, h)[0],
            nn.GRUCell(3, 4)(x[0], h[0]), *nn.LSTMCell(3, 4)(x[0])
        ]  # fmt: skip
    assert {out.dtype for out in everywhere} == {lucid.bfloat16}
    assert {out.dtype for out in on_cuda} == {lucid.float32 if DEVICE == "cpu" else lucid.bfloat16}


def test_copies(rng):
    """Copies and pickles compute the same, with parameters of their own."""
    layer, x = nn.GRU(3, 4, 2), lucid.tensor(rng.standard_normal((3, 2, 3)).astype(np.float32))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert lucid.equal(other(x)[0], layer(x)[0])
        assert other.all_weights[0][0] is other.weight_ih_l0
        assert other.weight_ih_l0 is not layer.weight_ih_l0


def test_an_empty_batch():
    """No sequences give no outputs, with their shape and zero gradients."""
    layer = nn.LSTM(3, 4)
    out, (h, _) = layer(lucid.zeros(5, 0, 3))
    assert (out.shape, h.shape) == ((5, 0, 4), (1, 0, 4))
    out.sum().backward()
    assert (layer.weight_ih_l0.grad == 0).all()


def test_inputs_that_do_not_fit():
    """Inputs and states of other shapes, and no steps, are refused, and say what fits."""
    layer, x = nn.LSTM(3, 4, batch_first=True), lucid.zeros(2, 5, 3)
    for shape in ((3,), (2, 5, 4), (1, 2, 5, 3), (2, 0, 3)):
        with pytest.raises(ShapeError, match="LSTM: expected"):
            layer(lucid.zeros(*shape))
    with pytest.raises(ShapeError, match="LSTM: expected"):
        layer(pack_sequence([lucid.zeros(2, 4)]))
    good, bad = lucid.zeros(1, 2, 4), lucid.zeros(1, 5, 4)
    for states, name in (((bad, good), "h_0"), ((good, bad), "c_0"), ((good[:, 0], good), "h_0")):
        with pytest.raises(ShapeError, match=rf"{name} of shape \[1, 2, 4\]"):
            layer(x, states)
    for states in (good, (good,), (good, good, good), (good, 1.0)):
        with pytest.raises(TypeError):
            layer(x, states)
    with pytest.raises(RuntimeError, match="dtype"):
        layer(x.double())


def test_settings_that_do_not_fit():
    """Sizes are positive, probabilities in [0, 1], a projection makes smaller, and names are known."""
    for make in (
        lambda: nn.LSTM(0, 4), lambda: nn.LSTM(3, 0), lambda: nn.GRU(3, 4, 0), lambda: nn.RNN(3, 4, 2, dropout=1.5),
        lambda: nn.LSTM(3, 4, proj_size=4), lambda: nn.LSTM(3, 4, proj_size=-1),
        lambda: nn.RNN(3, 4, nonlinearity="gelu"), lambda: nn.RNNBase("QRNN", 3, 4),
        lambda: nn.RNNBase("GRU", 3, 4, proj_size=2),
    ):  # fmt: skip
        with pytest.raises(SettingError):
            make()
    assert nn.RNNBase("RNN_RELU", 3, 4)(lucid.zeros(2, 3))[0].shape == (2, 4)
