"""Activations as layers: what they begin with, and which dimension they take."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ShapeError
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
