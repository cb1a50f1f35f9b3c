"""What layers share: settings as they are shown, sizes as they are kept, parameters as they are drawn."""

from __future__ import annotations

import pytest

import lucid
from lucid import nn
from tests.layers import LAYERS
from tests.nn.layers import forms


def test_settings_are_shown_as_they_are_written():
    """The repr of a layer is a call that makes it, text in quotes."""
    for written in (
        "GELU(approximate='tanh')",
        "LeakyReLU(negative_slope=0.2)",
        "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))",
    ):
        assert repr(eval(f"nn.{written}")) == written


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_shown_and_saved(name):
    """A layer shows itself, and names its state in files, as PyTorch's does, of which this is written down."""
    assert forms.form(name, nn) == forms.written()[name]


def test_a_size_is_kept_as_a_tuple():
    """One number stands for all axes; a list stays the caller's."""
    sizes = [3, 2]
    layer = nn.Conv2d(1, 1, sizes, stride=2)
    sizes[0] = 7
    assert (layer.kernel_size, layer.stride, layer.padding) == ((3, 2), (2, 2), (0, 0))
    assert nn.LayerNorm(sizes).normalized_shape == (7, 2)
    assert nn.LayerNorm(4).normalized_shape == (4,)


@pytest.mark.parametrize(
    ("make", "inputs"),
    [(lambda: nn.Linear(25, 2000), 25), (lambda: nn.Conv1d(6, 900, 6, groups=1), 36)],
    ids=["linear", "convolution"],
)
def test_parameters_are_drawn_from_both_sides_of_zero(make, inputs):
    """Weight and bias fill the range of one over the root of the number of inputs, and do not leave it."""
    lucid.manual_seed(0)
    layer, bound = make(), inputs**-0.5
    for parameter in layer.parameters():
        low, high = parameter.min().item(), parameter.max().item()
        assert -bound <= low < -0.98 * bound
        assert 0.98 * bound < high <= bound


def test_a_layer_without_inputs_is_drawn():
    """A bias beside no inputs is zero."""
    with pytest.warns(UserWarning, match="zero-element"):
        layer = nn.Linear(0, 3)
    assert layer.bias.tolist() == [0, 0, 0]
