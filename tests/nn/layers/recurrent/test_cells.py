"""LSTMCell, GRUCell and RNNCell give what their formulas give in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.gradcheck import gradcheck, gradgradcheck
from lucid.errors import SettingError, ShapeError
from tests.nn.layers.recurrent.formulas import step

CELLS = {
    "LSTM": lambda **settings: nn.LSTMCell(3, 2, **settings),
    "GRU": lambda **settings: nn.GRUCell(3, 2, **settings),
    "RNN_TANH": lambda **settings: nn.RNNCell(3, 2, **settings),
    "RNN_RELU": lambda **settings: nn.RNNCell(3, 2, nonlinearity="relu", **settings),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mode", CELLS)
def test_values(mode, bias, rng):
    """A step gives the state of the formula, with first states or zeros, batched and not."""
    cell = CELLS[mode](bias=bias).double()
    assert (cell.bias_ih is None) is not bias
    w = {name: value.numpy(force=True) for name, value in cell.named_parameters()}
    x, states = rng.standard_normal((2, 3)), rng.standard_normal((2 if mode == "LSTM" else 1, 2, 2))
    given = tuple(lucid.tensor(state) for state in states)
    for first, hx in ((states, given), (states * 0, None)):
        expected = [step(mode, x[k], first[:, k], w) for k in (0, 1)]
        pair = hx if mode == "LSTM" or hx is None else hx[0]
        found = cell(lucid.tensor(x), pair)
        one = pair and tuple(part[0] for part in hx) if mode == "LSTM" else None if hx is None else pair[0]
        alone = cell(lucid.tensor(x[0]), one)
        for part, (got, single) in enumerate(
            zip(*((f if mode == "LSTM" else (f,)) for f in (found, alone)), strict=True)
        ):
            np.testing.assert_allclose(got.numpy(force=True), [e[part] for e in expected], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(single.numpy(force=True), expected[0][part], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", CELLS)
def test_gradients(mode, rng):
    """First and second derivatives are those of the values, of input, states and weights."""
    cell = CELLS[mode]().double()
    arrays = [rng.standard_normal((1, 3)), *rng.standard_normal((2 if mode == "LSTM" else 1, 1, 2))]
    operands = tuple(lucid.tensor(array, requires_grad=True) for array in arrays)
    function = (lambda x, *hx: cell(x, hx)) if mode == "LSTM" else cell
    assert gradcheck(lambda *each: function(*each[: len(operands)]), (*operands, *cell.parameters()))
    assert gradgradcheck(function, operands)
    # what the second derivative is taken of is the first one, computed in another way where it is recorded
    outs = function(*operands)
    total = sum((k + 1) * (out**2).sum() for k, out in enumerate(outs if mode == "LSTM" else [outs]))
    plain = lucid.autograd.grad(total, operands, retain_graph=True)
    for a, b in zip(plain, lucid.autograd.grad(total, operands, create_graph=True), strict=True):
        np.testing.assert_allclose(b.numpy(force=True), a.numpy(force=True), rtol=1e-10)


def test_parameters():
    """Weights are uniform below 1 / sqrt(hidden_size), of as many rows as there are gates."""
    cell = nn.RNNCellBase(30, 100, True, 3)
    assert [(name, tuple(p.shape)) for name, p in cell.named_parameters()] == [
        ("weight_ih", (300, 30)), ("weight_hh", (300, 100)), ("bias_ih", (300,)), ("bias_hh", (300,))
    ]  # fmt: skip
    assert all(0.08 < abs(p).max().item() <= 0.1 for p in cell.parameters())


def test_what_does_not_fit():
    """Shapes, pairs, sizes and names are checked, and errors say what fits."""
    x, h = lucid.zeros(2, 3), lucid.zeros(2, 4)
    for cell, hx in ((nn.GRUCell(3, 4), h[:1]), (nn.RNNCell(3, 4), h[0]), (nn.LSTMCell(3, 4), (h, h[:, :3]))):
        with pytest.raises(ShapeError, match=r"hx of shape \[2, 4\]"):
            cell(x, hx)
        for bad in (lucid.zeros(2, 4), lucid.zeros(1, 2, 3)):
            with pytest.raises(ShapeError, match="Cell: expected input"):
                cell(bad)
    for hx in (h, lucid.stack([h, h]), (h,), (h, 1.0)):
        with pytest.raises(TypeError):
            nn.LSTMCell(3, 4)(x, hx)
    for make in (lambda: nn.GRUCell(-1, 4), lambda: nn.LSTMCell(3, 0), lambda: nn.RNNCell(3, 4, nonlinearity="elu")):
        with pytest.raises(SettingError):
            make()


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (nn.LSTMCell(3, 4), "LSTMCell(3, 4)"),
        (nn.GRUCell(3, 4, bias=False), "GRUCell(3, 4, bias=False)"),
        (nn.RNNCell(3, 4), "RNNCell(3, 4)"),
        (nn.RNNCell(3, 4, False, "relu"), "RNNCell(3, 4, bias=False, nonlinearity=relu)"),
        (nn.GRU(3, 4), "GRU(3, 4)"),
        (nn.RNN(3, 4, 2, bias=False, dropout=0.5), "RNN(3, 4, num_layers=2, bias=False, dropout=0.5)"),
        (
            nn.LSTM(3, 4, batch_first=True, bidirectional=True, proj_size=2),
            "LSTM(3, 4, proj_size=2, batch_first=True, bidirectional=True)",
        ),
    ],
)
def test_settings_are_shown_where_they_are_not_the_usual(made, text):
    """The repr of a cell or a layer has its sizes, and of the other settings those that were chosen."""
    assert repr(made) == text
