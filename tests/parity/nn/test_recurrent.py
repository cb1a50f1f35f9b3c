"""Recurrent layers, cells and packed sequences: PyTorch's values, gradients, state and repr."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.parity.pieces import close

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
    close(ours, theirs, 1e-8, 1e-10)


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


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN", "RNN relu"])
def test_odd_inputs(name, rng):
    """NaN and infinities come out where PyTorch's do, forward and backward; strided inputs are taken."""

    def call(lib, layer, x):
        return flat(*layer(x[::2, :, :3].transpose(0, 1)))

    values = rng.standard_normal((8, 5, 4))
    check(LAYERS[name], values, call)
    for odd in (np.nan, np.inf, -np.inf):
        values[2, 2, 0] = odd
        check(LAYERS[name], values, call)


@pytest.mark.cpu("PyTorch is there for the CPU only")
@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["LSTM", "LSTM all", "GRU", "RNN", *CELLS])
def test_half_types(name, half, rng):
    """Half types, and float32 under autocast, give PyTorch's dtypes, and its numbers to their precision.

    Under autocast PyTorch's LSTM of padded sequences runs on some processors alone, as oneDNN does.
    """
    make, values = {**LAYERS, **CELLS}[name], rng.standard_normal((3, 3)).astype(np.float32)
    theirs, ours = (layer.float() for layer in pair(make))
    packs = [False, True] if name in LAYERS else [False]
    for cast, packed in [(cast, packed) for cast in (True, False) for packed in packs]:
        if name == "LSTM" and cast and not packed:
            continue
        outs = []
        for lib, layer in ((torch, theirs), (lucid, ours)):
            dtype, x = getattr(lib, half), lib.tensor(values, requires_grad=True)
            if not cast:
                layer, x = layer.to(dtype), x.detach().to(dtype).requires_grad_()
            with lib.autocast("cpu", dtype=dtype, enabled=cast):
                result = layer(lib.nn.utils.rnn.pack_sequence([x, x[:2]]) if packed else x)
                parts = flat(*result) if name in LAYERS else result if isinstance(result, tuple) else [result]
                parts = [getattr(part, "data", part) if packed else part for part in parts[:1]] + list(parts[1:])
            layer.zero_grad()
            sum(part.float().sum() for part in parts).backward()
            outs.append([*parts, x.grad, *(parameter.grad for parameter in layer.parameters())])
        for a, b in zip(*outs, strict=True):
            assert str(b.dtype).split(".")[1] == str(a.dtype).split(".")[1]
            a, b = a.detach().float().numpy(), b.detach().float().numpy()
            np.testing.assert_allclose(b, a, rtol=0.03, atol=0.03 * max(1, abs(a).max()))


def test_hooks_in_a_model():
    """Hooks of a recurrent layer and a cell inside of a model fire as often as PyTorch's, with the same shapes."""

    def record(lib):
        log = []

        def shapes(value):
            return (
                [shapes(part) for part in value] if isinstance(value, tuple) else value is not None and [*value.shape]
            )

        embedding, rnn, cell = lib.nn.Embedding(5, 3), lib.nn.LSTM(3, 4, 2), lib.nn.GRUCell(4, 4)
        for parameter in (*embedding.parameters(), *rnn.parameters(), *cell.parameters()):
            parameter.data.fill_(0.1)
        for layer in (rnn, cell):
            layer.register_forward_pre_hook(lambda _, args: log.append(shapes(args)))
            layer.register_forward_hook(lambda _, args, out: log.append(shapes(out)))
            layer.register_full_backward_hook(lambda _, *grads: log.append(shapes(grads)))
        rnn.register_forward_hook(lambda _, args, out: (out[0] * 3, out[1]))
        rnn.weight_hh_l0.register_hook(lambda grad: grad * 2)
        out, (h, _) = rnn(embedding(lib.tensor([[1, 2], [3, 4], [0, 1]])))
        cell(out[-1], h[-1]).sum().backward()
        return log, rnn.weight_hh_l0.grad

    (theirs, expected), (ours, grad) = record(torch), record(lucid)
    assert ours == theirs
    assert len(ours) == 6
    np.testing.assert_allclose(grad.numpy(force=True), expected.numpy(), rtol=1e-5)


@pytest.mark.cpu("PyTorch is there for the CPU only")
def test_padding_dtypes():
    """Padded sequences have PyTorch's dtype and values."""
    for dtype in ("bool", "int64", "float16", "bfloat16"):
        ours, theirs = (
            lib.nn.utils.rnn.pad_sequence([lib.ones(n, dtype=getattr(lib, dtype)) for n in (1, 2)], True)
            for lib in (lucid, torch)
        )
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        assert ours.tolist() == theirs.tolist()
