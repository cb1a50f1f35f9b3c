"""The language model of `examples/models/lstm.py` reads a text in pieces as it reads it whole, and goes on with it."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from examples.models.lstm import LSTMConfig, LSTMLanguageModel


@pytest.mark.parametrize("tied", [False, True])
def test_a_text_in_pieces(tied, rng):
    """The state that a piece leaves is all that the next one needs; tied, there is one table of words."""
    model = LSTMLanguageModel(LSTMConfig(vocabulary=11, width=4, tied=tied)).eval()
    assert (model.linear.weight is model.embedding.weight) is tied
    tokens = lucid.tensor(rng.integers(0, 11, (2, 5)))
    first, state = model.go_on(tokens[:, :2])
    second, _ = model.go_on(tokens[:, 2:], state)
    whole = model(tokens)
    assert whole.shape == (2, 5, 11)
    np.testing.assert_allclose(lucid.cat([first, second], 1).numpy(force=True), whole.numpy(force=True), 1e-5, 1e-6)


def test_sampling():
    """What is drawn at a temperature near zero has the best score, given all before it."""
    model = LSTMLanguageModel(LSTMConfig(vocabulary=7, width=4, layers=1))
    lucid.nn.init.normal_(model.linear.weight)
    text = model.sample(lucid.tensor([[1, 2], [3, 4]]), 4, temperature=1e-6)
    assert model.training
    assert text[:, :2].tolist() == [[1, 2], [3, 4]]
    assert text[:, 2:].tolist() == model.eval()(text[:, :-1])[:, 1:].argmax(-1).tolist()
