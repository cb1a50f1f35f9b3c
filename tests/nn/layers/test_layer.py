"""What layers share: settings as they are shown, sizes as they are kept, parameters as they are drawn."""

from __future__ import annotations

import functools
import inspect

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


# Layers with a dtype that are no rows of the table; lazy ones have a test of their own, and one is never made.
OTHERS = {
    "AdaptiveLogSoftmaxWithLoss": (4, 8, [2, 5], 2.0, True), "Bilinear": (3, 2, 4), "GRU": (3, 4), "GRUCell": (3, 4),
    "LSTM": (3, 4, 2, True, False, 0.0, True, 2), "LSTMCell": (3, 4), "MultiheadAttention": (4, 2, 0.0, True, True),
    "RNN": (3, 4), "RNNBase": ("GRU", 3, 4), "RNNCell": (3, 4), "RNNCellBase": (3, 4, True, 2),
    "SyncBatchNorm": (3,), "Transformer": (4, 2, 1, 1, 6), "TransformerDecoderLayer": (4, 2, 6),
}  # fmt: skip


def takes_dtype(kind):
    return inspect.isclass(kind) and issubclass(kind, nn.Module) and "dtype" in inspect.signature(kind).parameters


class Typed:
    """A namespace like `nn` that makes its layers of one dtype, and notes those that take one."""

    def __init__(self, dtype):
        self.dtype, self.seen = dtype, set()

    def __getattr__(self, name):
        kind = getattr(nn, name)
        if not takes_dtype(kind):
            return kind
        self.seen.add(name)
        return functools.partial(kind, dtype=self.dtype)


def test_a_dtype_is_that_of_all_parameters_and_buffers():
    """What a layer has of real numbers is of the dtype that it is given: of every layer that takes one."""
    typed = Typed(lucid.float64)
    layers = {name: make(typed) for name, make in LAYERS.items()}
    layers |= {name: getattr(typed, name)(*settings) for name, settings in OTHERS.items()}
    made = [(name, key, value) for name, layer in layers.items() for key, value in layer.state_dict().items()]
    assert not [(name, key) for name, key, value in made if value.dtype not in {lucid.float64, lucid.int64}]
    there = {name for name in nn.__all__ if takes_dtype(getattr(nn, name)) and not name.startswith("Lazy")}
    missing = sorted(there - typed.seen)
    assert not missing, f"no dtype of {missing} is tried: add a row to LAYERS in tests/layers.py, or settings to OTHERS"


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
