"""Each row of `tests.layers` gives what its function gives with the layer's parameters and the row's settings."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.nn import functional as F
from tests.gradients import numbers
from tests.layers import LAYERS, LOSSES, OF_TWO, TARGETS, beside, input_of, places


def running(m):
    """Return the statistics of a batch normalisation, as they are now."""
    return (None, None) if m.running_mean is None else (m.running_mean.clone(), m.running_var.clone())


def batch_norm(m, x, momentum=0.1, eps=1e-5):
    """Return the function of a batch normalisation: with statistics of its own in evaluation, where it keeps any."""
    return F.batch_norm(x, *running(m), m.weight, m.bias, m.training or m.running_mean is None, momentum, eps)


def instance_norm(m, x, momentum=0.1, eps=1e-5):
    """Return the function of an instance normalisation, with the statistics of its input unless it has others."""
    return F.instance_norm(x, *running(m), m.weight, m.bias, m.training or m.running_mean is None, momentum, eps)


def encoded(m, x, activation):
    """Return the function of a layer of an encoder."""
    y = m.norm1(x + m.self_attn(x, x, x)[0])
    return m.norm2(y + m.linear2(activation(m.linear1(y))))


def encoded_norm_first(m, x):
    """Return the function of a layer with its norms before what is added."""
    y = m.norm1(x)
    y = x + m.self_attn(y, y, y)[0]
    return y + m.linear2(F.gelu(m.linear1(m.norm2(y))))


FUNCTIONS = {
    "Identity": lambda m, x: x,
    "Linear": lambda m, x: F.linear(x, m.weight, m.bias),
    "Linear no bias": lambda m, x: F.linear(x, m.weight),
    "Conv1d": lambda m, x: F.conv1d(x, m.weight, m.bias, stride=2, padding=1, dilation=2, groups=2),
    "Conv2d": lambda m, x: F.conv2d(x, m.weight, stride=(1, 2), padding=(1, 0)),
    "Conv2d same": lambda m, x: F.conv2d(x, m.weight, m.bias, padding=2, dilation=2),
    "Conv2d reflect": lambda m, x: F.conv2d(F.pad(x, (2, 2, 1, 1), mode="reflect"), m.weight, m.bias),
    "Conv2d circular same": lambda m, x: F.conv2d(F.pad(x, (0, 1, 1, 1), mode="circular"), m.weight, m.bias),
    "Conv2d replicate valid": lambda m, x: F.conv2d(x, m.weight, m.bias),
    "ConvTranspose1d": lambda m, x: F.conv_transpose1d(
        x, m.weight, m.bias, stride=2, padding=1, output_padding=1, groups=2
    ),
    "ConvTranspose2d": lambda m, x: F.conv_transpose2d(x, m.weight, m.bias, stride=2, padding=1, dilation=2),
    "Conv3d": lambda m, x: F.conv3d(x, m.weight, m.bias, stride=(1, 2, 1), padding=(1, 0, 1), groups=2),
    "Conv3d same": lambda m, x: F.conv3d(F.pad(x, (0, 1, 1, 1, 1, 1)), m.weight, dilation=(1, 2, 1)),
    "Conv3d circular": lambda m, x: F.conv3d(F.pad(x, (3, 3, 2, 2, 1, 1), "circular"), m.weight, m.bias),
    "ConvTranspose3d": lambda m, x: F.conv_transpose3d(x, m.weight, m.bias, stride=(1, 2, 3), output_padding=(0, 1, 2)),
    "MaxPool1d": lambda m, x: F.max_pool1d(x, 2),
    "MaxPool2d": lambda m, x: F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True),
    "AvgPool1d": lambda m, x: F.avg_pool1d(x, 2),
    "AvgPool2d": lambda m, x: F.avg_pool2d(x, (2, 3), stride=1, padding=1, count_include_pad=False),
    "MaxPool3d": lambda m, x: F.max_pool3d(x, (2, 3, 2), stride=1, padding=(0, 1, 1)),
    "AvgPool3d": lambda m, x: F.avg_pool3d(x, 2, stride=(1, 2, 2), padding=1, divisor_override=3),
    "AdaptiveAvgPool1d": lambda m, x: F.adaptive_avg_pool1d(x, 3),
    "AdaptiveAvgPool2d": lambda m, x: F.adaptive_avg_pool2d(x, (3, None)),
    "AdaptiveAvgPool3d": lambda m, x: F.adaptive_avg_pool3d(x, (2, 4, 3)),
    "AdaptiveMaxPool1d": lambda m, x: F.adaptive_max_pool1d(x, 4),
    "AdaptiveMaxPool2d": lambda m, x: F.adaptive_max_pool2d(x, (3, 6)),
    "AdaptiveMaxPool3d": lambda m, x: F.adaptive_max_pool3d(x, 2),
    "MaxUnpool1d": lambda m, x: F.max_unpool1d(x, places(x), 3, stride=2, padding=1),
    "MaxUnpool2d": lambda m, x: F.max_unpool2d(x, places(x), (2, 3), stride=(1, 2)),
    "MaxUnpool3d": lambda m, x: F.max_unpool3d(x, places(x), 2),
    "LPPool1d": lambda m, x: F.lp_pool1d(x, 2, 3, stride=2),
    "LPPool2d": lambda m, x: F.lp_pool2d(x, 4, (2, 3), ceil_mode=True),
    "LPPool3d": lambda m, x: F.lp_pool3d(x, 2, 2, stride=(1, 2, 1)),
    "FractionalMaxPool2d": lambda m, x: F.max_pool2d(x, 3, 1),
    "FractionalMaxPool3d": lambda m, x: F.max_pool3d(x[..., -2:, -2:, :], 2, (1, 1, 3)),
    "BatchNorm1d": batch_norm,
    "BatchNorm1d cumulative": batch_norm,
    "BatchNorm2d": lambda m, x: batch_norm(m, x, eps=1e-3),
    "BatchNorm2d plain": batch_norm,
    "BatchNorm2d no bias": batch_norm,
    "BatchNorm3d": batch_norm,
    "InstanceNorm1d": instance_norm,
    "InstanceNorm1d unbatched": lambda m, x: instance_norm(m, x.unsqueeze(0)).squeeze(0),
    "InstanceNorm2d": lambda m, x: instance_norm(m, x, eps=1e-3),
    "InstanceNorm3d": instance_norm,
    "LocalResponseNorm": lambda m, x: F.local_response_norm(x, 2, 0.5, 0.6, 1.5),
    "CrossMapLRN2d": lambda m, x: F.local_response_norm(x, 7, 0.5),
    "LayerNorm": lambda m, x: F.layer_norm(x, 6, m.weight, m.bias),
    "LayerNorm two": lambda m, x: F.layer_norm(x, (5, 6), m.weight),
    "LayerNorm plain": lambda m, x: F.layer_norm(x, 6),
    "RMSNorm": lambda m, x: F.rms_norm(x, 6, m.weight),
    "RMSNorm eps": lambda m, x: F.rms_norm(x, 6, eps=1e-3),
    "GroupNorm": lambda m, x: F.group_norm(x, 2, m.weight, m.bias),
    "GroupNorm plain": lambda m, x: F.group_norm(x, 2),
    "Dropout": lambda m, x: x,
    "TransformerEncoderLayer": lambda m, x: encoded(m, x, F.relu),
    "TransformerEncoderLayer norm first": encoded_norm_first,
    "TransformerEncoder": lambda m, x: m.norm(encoded(m.layers[1], encoded(m.layers[0], x, F.gelu), F.gelu)),
    "Dropout1d": lambda m, x: x,
    "Dropout2d": lambda m, x: x,
    "Dropout3d": lambda m, x: x,
    "AlphaDropout": lambda m, x: x,
    "FeatureAlphaDropout": lambda m, x: x,
    "Embedding": lambda m, x: F.embedding(x, m.weight),
    "Embedding padding": lambda m, x: F.embedding(x, m.weight, 5, scale_grad_by_freq=True),
    "Embedding norm": lambda m, x: F.embedding(x, m.weight, max_norm=0.5, norm_type=1.0),
    "EmbeddingBag": lambda m, x: F.embedding(x, m.weight).mean(1),
    "EmbeddingBag sum": lambda m, x: (F.embedding(x, m.weight, 5) * (x != 5)[..., None]).sum(1),
    "EmbeddingBag max": lambda m, x: F.embedding_bag(x, m.weight, mode="max", padding_idx=1),
    "Flatten": lambda m, x: x.flatten(1),
    "Flatten part": lambda m, x: x.flatten(0, 1),
    "Unflatten": lambda m, x: x.reshape(5, 2, 2, 5, 6),
    "ConstantPad1d": lambda m, x: F.pad(x, (2, -1), value=0.5),
    "ConstantPad2d": lambda m, x: F.pad(x, (1, 1, 1, 1), value=-2.0),
    "ConstantPad3d": lambda m, x: F.pad(x, (1, 0, 0, 1, 2, 1), value=3.0),
    "ZeroPad1d": lambda m, x: F.pad(x, (2, 2)),
    "ZeroPad2d": lambda m, x: F.pad(x, (1, 2, -1, 0)),
    "ZeroPad3d": lambda m, x: F.pad(x, (1,) * 6),
    "ReflectionPad1d": lambda m, x: F.pad(x, (3, 2), "reflect"),
    "ReflectionPad2d": lambda m, x: F.pad(x, (-2, 3, 1, 2), "reflect"),
    "ReflectionPad3d": lambda m, x: F.pad(x, (2, 1, 0, 3, 1, 2), "reflect"),
    "ReplicationPad1d": lambda m, x: F.pad(x, (7, 7), "replicate"),
    "ReplicationPad2d": lambda m, x: F.pad(x, (1, 0, -1, 2), "replicate"),
    "ReplicationPad3d": lambda m, x: F.pad(x, (1, 2, 3, 0, 1, 1), "replicate"),
    "CircularPad1d": lambda m, x: F.pad(x, (6, 5), "circular"),
    "CircularPad2d": lambda m, x: F.pad(x, (3, -1, 1, 2), "circular"),
    "CircularPad3d": lambda m, x: F.pad(x, (1, 2, 3, 0, 1, 1), "circular"),
    "PixelShuffle": lambda m, x: F.pixel_shuffle(x, 2),
    "PixelUnshuffle": lambda m, x: F.pixel_unshuffle(F.pad(x, (0, 0, 1, 0)), 2),
    "ChannelShuffle": lambda m, x: F.channel_shuffle(x, 2),
    "Upsample": lambda m, x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "Upsample 1d": lambda m, x: F.interpolate(x, 9, mode="linear", align_corners=True),
    "Upsample 3d": lambda m, x: F.interpolate(x, (6, 6, 5), mode="trilinear"),
    "UpsamplingNearest2d": lambda m, x: F.interpolate(x, scale_factor=1.7),
    "UpsamplingBilinear2d": lambda m, x: F.interpolate(x, (7, 4), mode="bilinear", align_corners=True),
    "Unfold": lambda m, x: F.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=2),
    "Fold": lambda m, x: F.fold(x, (3, 4), 2),
    "ReLU": lambda m, x: F.relu(x),
    "ReLU6": lambda m, x: F.relu6(x),
    "LeakyReLU": lambda m, x: F.leaky_relu(x, 0.2),
    "ELU": lambda m, x: F.elu(x, 0.7),
    "GELU": lambda m, x: F.gelu(x),
    "GELU tanh": lambda m, x: F.gelu(x, "tanh"),
    "SiLU": lambda m, x: F.silu(x),
    "Mish": lambda m, x: F.mish(x),
    "Hardtanh": lambda m, x: F.hardtanh(x, -0.5, 0.7),
    "SELU": lambda m, x: F.selu(x),
    "CELU": lambda m, x: F.celu(x, 0.5),
    "Hardsigmoid": lambda m, x: F.hardsigmoid(x),
    "Hardswish": lambda m, x: F.hardswish(x),
    "Hardshrink": lambda m, x: F.hardshrink(x, 0.3),
    "Softshrink": lambda m, x: F.softshrink(x, 0.3),
    "Softsign": lambda m, x: F.softsign(x),
    "Tanhshrink": lambda m, x: F.tanhshrink(x),
    "Threshold": lambda m, x: F.threshold(x, 0.2, -3.0),
    "RReLU": lambda m, x: F.leaky_relu(x, 0.3),
    "GLU": lambda m, x: x[:, :2] * F.sigmoid(x[:, 2:]),
    "PReLU": lambda m, x: lucid.where(x > 0, x, m.weight * x),
    "PReLU channels": lambda m, x: lucid.where(x > 0, x, m.weight.reshape(4, 1, 1) * x),
    "Softplus": lambda m, x: F.softplus(x, 2.0, 1.0),
    "Sigmoid": lambda m, x: F.sigmoid(x),
    "Tanh": lambda m, x: F.tanh(x),
    "LogSigmoid": lambda m, x: F.logsigmoid(x),
    "Softmax": lambda m, x: F.softmax(x, dim=1),
    "Softmax implicit": lambda m, x: F.softmax(x, dim=1),
    "LogSoftmax": lambda m, x: F.log_softmax(x, dim=-1),
    "Softmin": lambda m, x: F.softmin(x, dim=0),
    "CosineSimilarity": lambda m, x: F.cosine_similarity(x, beside(x), 2, 1e-3),
    "PairwiseDistance": lambda m, x: (abs(x - beside(x) + 0.1) ** 3).sum(-1, keepdim=True) ** (1 / 3),
    "Softmax2d": lambda m, x: F.softmax(x, dim=1),
    "Sequential": lambda m, x: m[3](m[2](m[1](m[0](x)))),
}


@pytest.mark.filterwarnings("ignore:Implicit dimension")
@pytest.mark.parametrize("name", [name for name in LAYERS if name != "nested"])
def test_layers(name, rng):
    """Outputs and gradients are those of the function, in training and evaluation, in which no buffer changes."""
    assert name in FUNCTIONS, f'"{name}" is a row of tests/layers.py: say in FUNCTIONS what its layer computes'
    m = LAYERS[name](nn).double()
    for parameter in m.parameters():
        parameter.data = lucid.tensor(rng.standard_normal(parameter.shape))
    for mode in (True, False):
        m.train(mode)
        before = {key: numbers(value).copy() for key, value in m.named_buffers()}
        x = lucid.tensor(input_of(name, rng))
        x.requires_grad_(x.is_floating_point())
        found, upstream = [], None
        called = (lambda x: m(x, OF_TWO[name](x))) if name in OF_TWO else m
        for function in (called, lambda x: FUNCTIONS[name](m, x)):
            out = function(x)
            upstream = lucid.tensor(rng.standard_normal(out.shape)) if upstream is None else upstream
            wanted = [t for t in (x, *m.parameters()) if t.requires_grad]
            found.append([out, *lucid.autograd.grad(out, wanted, upstream)])
        for got, expected in zip(*found, strict=True):
            np.testing.assert_allclose(numbers(got), numbers(expected), rtol=1e-10, atol=1e-12)
    for key, value in m.named_buffers():
        np.testing.assert_array_equal(numbers(value), before[key], err_msg=key)


LOSS_FUNCTIONS = {
    "MSELoss": F.mse_loss,
    "L1Loss": F.l1_loss,
    "SmoothL1Loss": F.smooth_l1_loss,
    "HuberLoss": F.huber_loss,
    "NLLLoss": F.nll_loss,
    "CrossEntropyLoss": F.cross_entropy,
    "BCELoss": F.binary_cross_entropy,
    "BCEWithLogitsLoss": F.binary_cross_entropy_with_logits,
    "KLDivLoss": F.kl_div,
    "PoissonNLLLoss": F.poisson_nll_loss,
    "GaussianNLLLoss": F.gaussian_nll_loss,
    "HingeEmbeddingLoss": F.hinge_embedding_loss,
    "SoftMarginLoss": F.soft_margin_loss,
    "MarginRankingLoss": F.margin_ranking_loss,
    "CosineEmbeddingLoss": F.cosine_embedding_loss,
    "MultiMarginLoss": F.multi_margin_loss,
    "MultiLabelMarginLoss": F.multilabel_margin_loss,
    "MultiLabelSoftMarginLoss": F.multilabel_soft_margin_loss,
    "TripletMarginLoss": F.triplet_margin_loss,
    "CTCLoss": F.ctc_loss,
    "TripletMarginWithDistanceLoss": F.triplet_margin_with_distance_loss,
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction, rng):
    """A loss is its function, with the same settings."""
    assert name in LOSS_FUNCTIONS, f'"{name}" is a row of tests/layers.py: say in LOSS_FUNCTIONS what it computes'
    kind, settings = LOSSES[name]
    settings = {key: lucid.tensor(rng.random(v)) if isinstance(v, tuple) else v for key, v in settings.items()}
    settings["reduction"] = reduction
    x = lucid.tensor(rng.random((5, 3)))
    rest = [lucid.tensor(array) for array in TARGETS[kind](rng)]
    got, expected = getattr(nn, name)(**settings)(x, *rest), LOSS_FUNCTIONS[name](x, *rest, **settings)
    np.testing.assert_allclose(numbers(got), numbers(expected), rtol=1e-12)


def test_older_reductions():
    """`size_average` and `reduce` of every loss that takes them mean a reduction: all of it, the sum or the mean."""
    kinds = [kind for kind in map(partial(getattr, nn), LOSSES) if "reduce" in inspect.signature(kind).parameters]
    ways = {(None, None): "none", (False, None): "sum", (True, None): "mean", (None, True): "mean",
            (None, False): "none", (False, True): "sum", (True, False): "none", (False, False): "none"}  # fmt: skip
    for kind in kinds:
        found = {way: kind(size_average=way[0], reduce=way[1], reduction="none").reduction for way in ways}
        assert found == ways, kind
    assert len(kinds) == 17


def taken(layer, args, monkeypatch, **named):
    """Return by name what one call of a layer hands to each function of `F`, which is not computed."""
    calls = []

    def noting(function):
        signature = inspect.signature(function)

        def call(*args, **kwargs):
            # what one wrapper takes for all functions is in none of their signatures
            more = {key: kwargs.pop(key) for key in {"inplace"} & kwargs.keys() - signature.parameters.keys()}
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            calls.append({**bound.arguments, **more})
            return args[0]

        return call

    with monkeypatch.context() as patch:
        for name, function in vars(F).items():
            if inspect.isfunction(function):
                patch.setattr(F, name, noting(function))
        layer(*args, **named)
    return calls


def test_settings_reach_the_function(monkeypatch, rng):
    """What a layer keeps of a setting, and what its call is given, is what the function of that name gets."""
    lost, seen = [], 0
    layers = {}
    for name in [name for name in LAYERS if name != "nested" and not name.startswith("Transformer")]:
        x = lucid.tensor(input_of(name, rng))
        layers[name] = LAYERS[name](nn).double(), [x, OF_TWO[name](x)] if name in OF_TWO else [x]
    for name, (kind, settings) in LOSSES.items():
        settings = {key: lucid.tensor(rng.random(v)) if isinstance(v, tuple) else v for key, v in settings.items()}
        rest = [lucid.tensor(array) for array in TARGETS[kind](rng)]
        layers[name] = getattr(nn, name)(**settings), [lucid.tensor(rng.random((5, 3))), *rest]
    for name, (layer, args) in layers.items():
        calls = taken(layer, args, monkeypatch)
        if len(calls) != 1:
            continue  # a function that is no name of `F`, or several
        for setting in calls[0].keys() & inspect.signature(type(layer)).parameters.keys() & vars(layer).keys():
            before, seen = getattr(layer, setting), seen + 1
            setattr(layer, setting, 0.123)
            if taken(layer, args, monkeypatch)[0][setting] != 0.123:
                lost.append((name, setting))
            setattr(layer, setting, before)
        given = inspect.signature(layer.forward).parameters.items()
        for argument in [key for key, value in given if value.default is None and key in calls[0]]:
            seen += 1
            if taken(layer, args, monkeypatch, **{argument: 0.123})[0][argument] != 0.123:
                lost.append((name, argument))
    assert not lost, f"(layer, setting) that forward does not pass on to its function: {lost}"
    assert seen > 150


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Linear(np.int64(4), np.int32(2)), "Linear(in_features=4, out_features=2, bias=True)"),
        (nn.LeakyReLU(np.float64(0.5), inplace=True), "LeakyReLU(negative_slope=0.5, inplace=True)"),
        (nn.AvgPool1d(np.int64(2)), "AvgPool1d(kernel_size=(np.int64(2),), stride=(np.int64(2),), padding=(0,))"),
        (nn.ZeroPad1d(np.int64(2)), "ZeroPad1d((np.int64(2), np.int64(2)))"),
        (nn.Flatten(np.int64(0)), "Flatten(start_dim=0, end_dim=-1)"),
        (nn.GELU("tanh"), "GELU(approximate='tanh')"),
        (nn.Dropout(np.float32(0.5)), "Dropout(p=0.5, inplace=False)"),
    ],
)
def test_numbers_of_numpy_are_shown_as_numbers(layer, text):
    """A layer shows its settings as PyTorch's does: a number without the name of its type."""
    assert repr(layer) == text
