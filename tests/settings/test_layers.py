"""Layers refuse settings out of their ranges where they are made, and say what may be."""

from __future__ import annotations

import inspect
import re
from functools import partial

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import SettingError
from lucid.settings.checks import range_of
from tests.gradients import numbers
from tests.layers import LAYERS, LOSSES

NONSENSE = (-1, 0, 1.5, -0.5, float("nan"), float("inf"), "nonsense", (1, 2, 3, 4, 5, 6, 7))
# Settings that may be anything of their type, or are looked at where they meet an input.
FREE = {
    "cutoffs", "dim", "end_dim", "ignore_index", "modules", "padding_idx", "parameters", "start_dim",
    "unflattened_size", "value", "values",
}  # fmt: skip
CONVOLUTIONS = [name for name in LAYERS if name.startswith("Conv") and " " not in name]
# Settings of which a layer itself says what they may be.
OWN = {
    "activation", "embed_dim", "lower", "max_val", "min_val", "n_classes", "num_heads",
    "output_ratio", "output_size", "proj_size", "upper",
}  # fmt: skip


class Recorder:
    """A namespace like `nn` that makes its layers, and notes each class with the arguments that it was called with."""

    def __init__(self):
        self.seen = {}

    def __getattr__(self, name):
        kind = getattr(nn, name)
        if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
            return kind

        def make(*args, **kwargs):
            self.seen.setdefault(kind, inspect.signature(kind).bind(*args, **kwargs).arguments)
            return kind(*args, **kwargs)

        return make


def rows():
    """Return each layer of the tables with the settings of its first row there."""
    recorder = Recorder()
    for make in LAYERS.values():
        make(recorder)
    losses = {getattr(nn, name): {} for name in LOSSES}
    return sorted([*recorder.seen.items(), *losses.items()], key=lambda row: row[0].__name__)


def refusal(kind, settings):
    """Return how a layer is refused; nothing if it is made."""
    try:
        kind(**settings)
    except (SettingError, TypeError) as error:
        return str(error)
    return ""


def cases():
    """Yield each setting of each layer that is a number or a word."""
    for kind, given in rows():
        for name, parameter in inspect.signature(kind).parameters.items():
            if re.search(r"\b(int|float|str)\b", str(parameter.annotation)) and parameter.kind not in {
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.VAR_KEYWORD,
            }:
                yield pytest.param(kind, given, name, id=f"{kind.__name__}-{name}")


@pytest.mark.filterwarnings("ignore:initializing zero-element tensors")
@pytest.mark.parametrize(("kind", "given", "name"), [*cases()])
def test_nonsense_is_refused_where_the_layer_is_made(kind, given, name):
    """What is no value of a setting raises there, names layer and setting, and says what may be; some value is none."""
    if name in FREE:
        return
    refused = {value: text for value in NONSENSE if (text := refusal(kind, {**given, name: value}))}
    assert refused
    if re.search(r"\bstr\b", str(inspect.signature(kind).parameters[name].annotation)):
        assert "nonsense" in refused
    said = [*refused.values()]
    for text in said:
        pattern = name if name in OWN else rf"\b{kind.__name__}\b.*\b{name}\b.*expected .*, got "
        assert re.search(pattern, text, re.DOTALL), text


@pytest.mark.parametrize(
    ("kind", "given", "name"), [case for case in cases() if range_of(case.values[0], case.values[2])]
)
def test_nan_is_no_setting(kind, given, name):
    """NaN is in no range."""
    with pytest.raises((SettingError, TypeError), match=name):
        kind(**{**given, name: float("nan")})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Conv2d(3, 4, 3, stride=-1), "Conv2d: stride: expected a whole number of at least 1, got int -1"),
        (
            lambda: nn.Conv2d(3, 4, (3, 0)),
            r"Conv2d: kernel_size: expected a whole number of at least 1, got 0 in \(3, 0\)",
        ),
        (lambda: nn.MaxPool2d((2, 2, 2)), "MaxPool2d: kernel_size: expected one number, or one for each of 2 dimen"),
        (lambda: nn.BatchNorm1d(3, eps=-1e-5), "BatchNorm1d: eps: expected a finite number of at least 0, got float"),
        (lambda: nn.BatchNorm1d(3, momentum=1.5), r"BatchNorm1d: momentum: expected a number in \[0, 1\], got float"),
        (lambda: nn.LazyConv2d(4, 3, dilation=0), "LazyConv2d: dilation: expected a whole number of at least 1"),
        (lambda: nn.MSELoss(reduction="none of it"), "MSELoss: reduction: expected one of 'none', 'mean', 'sum', got"),
        (lambda: nn.L1Loss(reduction="batchmean"), "L1Loss: reduction: expected one of"),
        (lambda: nn.CosineEmbeddingLoss(1 + 1e-9), r"CosineEmbeddingLoss: margin: expected a number in \[-1, 1\]"),
        (lambda: nn.CosineEmbeddingLoss(-1 - 1e-9), r"CosineEmbeddingLoss: margin: expected a number in \[-1, 1\]"),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2), r"CrossEntropyLoss: label_smoothing: .* in \[0, 1\]"),
        (lambda: nn.Upsample(scale_factor=(2, -1)), r"Upsample: scale_factor: .* above 0, got -1 in \(2, -1\)"),
        (lambda: nn.Linear(3, True), "Linear: out_features: expected a whole number of at least 0, got bool True"),
        (lambda: nn.Linear(10**30, 3), "Linear: in_features: expected a whole number of at least 0, got int 1000"),
        (lambda: nn.Linear(int, 3), "Linear: in_features: expected a whole number of at least 0, got type"),
        (lambda: nn.CTCLoss(lucid.tensor(0.5)), "CTCLoss: blank: expected a whole number of at least 0, got Tensor"),
        (lambda: nn.AdaptiveAvgPool2d(("a", 2)), r"output_size: expected a whole number of at least 1, got a in"),
        (lambda: nn.AdaptiveMaxPool1d(0), "AdaptiveMaxPool1d: output_size: expected a whole number of at least 1"),
        (lambda: nn.Dropout(10**400), r"Dropout: p: expected a number in \[0, 1\], got int"),
        (lambda: nn.Dropout(np.True_), r"Dropout: p: expected a number in \[0, 1\], got bool"),
        (lambda: nn.Softshrink(-1.0), "Softshrink: lambd: expected a number of at least 0"),
        (
            lambda: nn.FractionalMaxPool2d(2, output_ratio=(0.5, 1)),
            "FractionalMaxPool2d: output_ratio must be between 0",
        ),
        (
            lambda: nn.FractionalMaxPool3d(2, output_ratio=0.0),
            "FractionalMaxPool3d: output_ratio must be between 0 and",
        ),
        *(
            (make, r"FractionalMaxPool\dd: expected one of output_size and output_ratio, and only one")
            for pool in (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)
            for make in (partial(pool, 2), partial(pool, 2, output_size=2, output_ratio=0.5))
        ),
        *(
            (partial(getattr(nn, kind), *channels, 3, groups=2), f"{name} must be divisible by groups: got 3 and 2")
            for kind in CONVOLUTIONS
            for channels, name in (((3, 4), "in_channels"), ((4, 3), "out_channels"))
        ),
        (lambda: nn.Hardtanh(1.0, 1.0), "Hardtanh: expected min_val < max_val, got 1.0 and 1.0"),
        (lambda: nn.Hardtanh(1.0, 0.5), "Hardtanh: expected min_val < max_val, got 1.0 and 0.5"),
        (lambda: nn.Embedding(3, 2, 3), r"padding_idx must be within num_embeddings: expected one in \[-3, 2\], got 3"),
        (lambda: nn.EmbeddingBag(3, 2, padding_idx=-4), r"padding_idx must be within .* in \[-3, 2\], got -4"),
        (
            lambda: nn.TransformerEncoderLayer(8, 2, dim_feedforward=-1),
            "dim_feedforward: expected a whole number of at least 0",
        ),
    ],
)
def test_the_message_says_what_may_be(make, message):
    """The layer, the setting, its range and what was given are in the message."""
    with pytest.raises(SettingError, match=message):
        make()


@pytest.mark.filterwarnings("ignore:initializing zero-element tensors")
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.ConstantPad2d(-1, float("nan")), lambda: nn.KLDivLoss(reduction="batchmean"),
        lambda: nn.AdaptiveAvgPool2d((None, 1)), lambda: nn.BatchNorm1d(3, momentum=None), lambda: nn.Linear(0, 3),
        lambda: nn.Hardshrink(-1.0), lambda: nn.PairwiseDistance(float("inf")), lambda: nn.Hardtanh(0, float("inf")),
        lambda: nn.Conv2d(3, 4, 3, padding="same"), lambda: nn.MaxPool3d((2,), stride=[1]), lambda: nn.Dropout(1),
        lambda: nn.SmoothL1Loss(beta=0), lambda: nn.AvgPool2d(2, divisor_override=-3), lambda: nn.RNNCell(0, 3),
        lambda: nn.CosineEmbeddingLoss(-1.0), lambda: nn.CosineEmbeddingLoss(1.0), lambda: nn.Embedding(3, 2, -3),
    ],
)  # fmt: skip
def test_the_ends_of_ranges_are_in_them(make):
    """What PyTorch takes and means something is taken."""
    assert isinstance(make(), nn.Module)


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("bias", [None, False, 0, np.False_])
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Linear", (3, 4)), ("Bilinear", (2, 3, 4)), ("Conv2d", (3, 4, 3)), ("ConvTranspose1d", (3, 4, 3)),
        ("LazyLinear", (3,)), ("LazyConv2d", (3, 3)), ("LazyConvTranspose1d", (3, 3)),
    ],
)  # fmt: skip
def test_a_bias_that_is_none_is_none(name, sizes, bias):
    """Scripts write None and 0 for no bias, and a comparison of NumPy's numbers is a flag."""
    assert getattr(nn, name)(*sizes, bias=bias).bias is None


def test_flags_and_factors_are_made_into_what_functions_take(rng):
    """What a constructor takes for a flag or a number, its forward takes too."""
    x = lucid.tensor(rng.standard_normal((2, 3, 4)))
    changed = nn.Dropout(0.0, 1)(x)
    assert changed is x
    factor = lucid.tensor(2.0)
    np.testing.assert_array_equal(numbers(nn.Upsample(scale_factor=factor)(x)), numbers(x).repeat(2, axis=-1))


def test_one_entry_is_that_of_all_axes():
    """A sequence of one entry stands for as many as there are dimensions."""
    assert nn.Conv2d(3, 4, (3,), stride=[2]).kernel_size == (3, 3)


@pytest.mark.parametrize("flag", [1, np.True_])
def test_flags_may_be_numbers_where_layers_are_made(flag):
    """0 and 1, and NumPy's bools, are False and True for layers, and for the functions that these call."""
    x = lucid.ones(1, 1, 4, 4)
    values, indices = nn.MaxPool2d(2, return_indices=flag)(x)
    assert values.shape == indices.shape == (1, 1, 2, 2)
    assert nn.MaxPool2d(3, 2, ceil_mode=flag)(x).shape == nn.MaxPool2d(3, 2, ceil_mode=True)(x).shape
    assert nn.Linear(2, 3, bias=flag).bias.shape == (3,)
