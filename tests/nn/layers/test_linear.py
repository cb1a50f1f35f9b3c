"""Linear layers of two inputs."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.nn import functional as F
from tests.gradients import numbers


def test_bilinear(rng):
    """Each output is a bilinear form of both inputs, plus its bias, also of several leading dimensions."""
    for bias in (True, False):
        layer = nn.Bilinear(3, 2, 4, bias=bias, dtype=lucid.float64)
        x, y = rng.standard_normal((2, 5, 3)), rng.standard_normal((2, 5, 2))
        expected = np.einsum("...i,oij,...j->...o", x, numbers(layer.weight), y)
        expected += numbers(layer.bias) if bias else 0
        np.testing.assert_allclose(numbers(layer(lucid.tensor(x), lucid.tensor(y))), expected, rtol=1e-12)
        assert list(layer.state_dict()) == (["weight", "bias"] if bias else ["weight"])
        assert repr(layer) == f"Bilinear(in1_features=3, in2_features=2, out_features=4, bias={bias})"


def test_first_parameters_of_bilinear(rng):
    """They are uniform below 1 / sqrt(in1_features), the bias too."""
    lucid.manual_seed(int(rng.integers(1000)))
    layer = nn.Bilinear(16, 20, 30)
    for parameter in layer.parameters():
        values = numbers(parameter)
        assert 0.2 < np.abs(values).max() <= 0.25
        assert values.min() < 0 < values.max()
    assert np.abs(numbers(layer.weight)).max() > 0.249


def test_bilinear_refuses():
    """No features, and inputs, weights and biases whose shapes or dtypes do not fit."""
    with pytest.raises(SettingError, match="in1_features: expected a whole number of at least 1, got int 0"):
        nn.Bilinear(0, 2, 3)
    weight = lucid.ones(4, 3, 2)
    for x, y in (((5, 3), (5, 3)), ((5, 3), (4, 2)), ((3,), (1, 2)), ((), ())):
        with pytest.raises(ShapeError, match=r"bilinear: expected inputs of shapes \(\*, 3\) and \(\*, 2\)"):
            F.bilinear(lucid.ones(x), lucid.ones(y), weight)
    with pytest.raises(ShapeError, match="expected weight of shape"):
        F.bilinear(lucid.ones(3), lucid.ones(2), lucid.ones(3, 2))
    with pytest.raises(ShapeError, match=r"expected bias of shape \[4\]"):
        F.bilinear(lucid.ones(3), lucid.ones(2), weight, lucid.ones(1))
    with pytest.raises(DtypeError, match="bilinear"):
        F.bilinear(lucid.ones(3), lucid.ones(2, dtype=lucid.float64), weight)
