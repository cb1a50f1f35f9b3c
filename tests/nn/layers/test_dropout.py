"""What rows cannot say of the dropout layers, where nothing is dropped: that they draw as their functions do."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.nn import functional as F
from tests.gradients import numbers

FUNCTIONS = {
    "Dropout": F.dropout,
    "Dropout1d": F.dropout1d,
    "Dropout2d": F.dropout2d,
    "Dropout3d": F.dropout3d,
    "AlphaDropout": F.alpha_dropout,
    "FeatureAlphaDropout": F.feature_alpha_dropout,
}


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_layers_are_their_functions(name, inplace, rng):
    """From one seed a layer gives what its function does, in training only; in place it changes its input."""
    shape = {"Dropout1d": (5, 8, 3), "Dropout3d": (5, 8, 3, 1, 2)}.get(name, (5, 8, 3, 2))
    given = rng.standard_normal(shape)
    layer = getattr(nn, name)(0.4, inplace)
    lucid.manual_seed(3)
    expected = FUNCTIONS[name](lucid.tensor(given), 0.4, True)
    lucid.manual_seed(3)
    x = lucid.tensor(given)
    out = layer(x)
    np.testing.assert_array_equal(numbers(out), numbers(expected))
    assert (out is x) is inplace
    np.testing.assert_array_equal(numbers(x), numbers(expected) if inplace else given)
    assert layer.eval()(x) is x
