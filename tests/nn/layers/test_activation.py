"""Activations as layers: what they begin with, and which dimension they take."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ShapeError
from lucid.nn import functional as F
from tests.gradients import numbers


def test_first_slopes():
    """As many as are asked for, of the number that is given; a quarter unless one is."""
    assert nn.PReLU().weight.tolist() == [0.25]
    assert nn.PReLU(3, 0.5).weight.tolist() == [0.5] * 3
    assert nn.PReLU(2, init=-1.0)(lucid.tensor([[-2.0, 3.0]])).tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize("shape", [(3, 2, 4), (5, 3, 2, 4)])
def test_channels_of_images(shape, rng):
    """`Softmax2d` makes the channels of each place sum to 1, with a batch and without; no other form is an image."""
    x = rng.standard_normal(shape)
    powers = np.exp(x)
    expected = powers / powers.sum(-3, keepdims=True)
    np.testing.assert_allclose(numbers(nn.Softmax2d()(lucid.tensor(x))), expected, rtol=1e-12)
    for other in ((2, 4), (1, *shape, 1, 1)):
        with pytest.raises(ShapeError, match="Softmax2d: expected input to be a 3D or 4D tensor"):
            nn.Softmax2d()(lucid.ones(other))


def test_functions_in_place(rng):
    """`inplace` comes last, by position or by name, after whatever settings there are; the input is the result then."""
    x = rng.standard_normal((3, 4))
    settings = {"leaky_relu": (0.3,), "elu": (0.7,), "celu": (0.7,), "hardtanh": (-0.5, 0.25), "threshold": (0.1, -2.0),
                "rrelu": (0.2, 0.4, False)}  # fmt: skip
    names = ["relu", "relu6", "selu", "silu", "mish", "hardsigmoid", "hardswish", *settings]
    for name in names:
        function, given = getattr(F, name), settings.get(name, ())
        expected = numbers(function(lucid.tensor(x), *given))
        for args, named in (((*given, True), {}), (given, {"inplace": True})):
            changed = lucid.tensor(x)
            assert function(changed, *args, **named) is changed
            np.testing.assert_array_equal(numbers(changed), expected, err_msg=name)
        np.testing.assert_array_equal(numbers(function(lucid.tensor(x), *given, False)), expected)
