"""Recurrent layers, cells and packed sequences: PyTorch's values, gradients, state and repr."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid

LAYERS = {
    "LSTM": lambda nn: nn.LSTM(3, 4),
    "LSTM all": lambda nn: nn.LSTM(3, 4, 2, True, True, 0.0, True, 2),
    "GRU": lambda nn: nn.GRU(3, 4, bias=False),
    "GRU all": lambda nn: nn.GRU(3, 4, 2, True, True, 0.0, True),
    "RNN": lambda nn: nn.RNN(3, 4, 2),
    "RNN relu": lambda nn: nn.RNN(3, 4, 2, "relu", False, True, 0.0, True),
}
CELLS = {
    "LSTMCell": lambda nn: nn.LSTMCell(3, 4),
    "GRUCell": lambda nn: nn.GRUCell(3, 4, False),
    "RNNCell": lambda nn: nn.RNNCell(3, 4, False, "relu"),
}


def pair(make):
    """Return PyTorch's layer and lucid's in float64, of one state, after a look at what they show."""
    theirs, ours = make(torch.nn).double(), make(lucid.nn).double()
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({name: lucid.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    theirs.load_state_dict({name: torch.tensor(value.numpy(force=True)) for name, value in ours.state_dict().items()})
    return theirs, ours


def results(lib, layer, x, call):
    """Return all outputs of `call` and the gradients of the sum of their squares."""
    x = lib.tensor(x, requires_grad=True)
    outs = call(lib, layer, x)
    sum(((k + 1) * out**2).sum() for k, out in enumerate(outs)).backward()
    return [*outs, x.grad, *(parameter.grad for parameter in layer.parameters())]


def check(make, x, call):
    theirs, ours = (results(lib, layer, x, call) for lib, layer in zip((torch, lucid), pair(make), strict=True))
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b.numpy(force=True), a.numpy(force=True), rtol=1e-8, atol=1e-10)


def flat(out, hidden):
    return [out, *(hidden if isinstance(hidden, tuple) else (hidden,))]


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, rng):
    """Outputs, states and gradients agree for sequences in batches, alone and packed."""

    def packed(lib, layer, x):
        rnn = lib.nn.utils.rnn
        given = rnn.pack_padded_sequence(x, lib.tensor([2, 4, 1], device="cpu"), layer.batch_first, False)
        out, hidden = layer(given)
        padded, lengths = rnn.pad_packed_sequence(out, layer.batch_first, 0.5, 6)
        assert lengths.tolist() == [2, 4, 1]
        assert out.batch_sizes.tolist() == [3, 2, 1, 1]
        return flat(padded, hidden)

    batched = rng.standard_normal((3, 5, 3) if "all" in name or "relu" in name else (5, 3, 3))
    check(LAYERS[name], batched, lambda lib, layer, x: flat(*layer(x)))
    check(LAYERS[name], batched, packed)
    check(LAYERS[name], rng.standard_normal((5, 3)), lambda lib, layer, x: flat(*layer(x)))


@pytest.mark.parametrize("name", CELLS)
def test_cells(name, rng):
    """A step gives PyTorch's state and gradients."""

    def call(lib, cell, x):
        state = cell(x)
        return list(state) if isinstance(state, tuple) else [state]

    check(CELLS[name], rng.standard_normal((2, 3)), call)
    check(CELLS[name], rng.standard_normal(3), call)
