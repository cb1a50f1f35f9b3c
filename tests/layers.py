"""The one table of layers and losses: a row for each, on which its values are compared."""

from __future__ import annotations

import numpy as np

LAYERS = {
    "Identity": lambda nn: nn.Identity(),
    "Linear": lambda nn: nn.Linear(6, 4),
    "Linear no bias": lambda nn: nn.Linear(6, 4, bias=False),
    "Conv1d": lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2),
    "Conv2d": lambda nn: nn.Conv2d(4, 6, (3, 2), stride=(1, 2), padding=(1, 0), bias=False),
    "Conv2d same": lambda nn: nn.Conv2d(4, 6, 3, padding="same", dilation=2),
    "Conv2d reflect": lambda nn: nn.Conv2d(4, 6, (3, 2), padding=(1, 2), padding_mode="reflect"),
    "Conv2d circular same": lambda nn: nn.Conv2d(4, 6, (3, 2), padding="same", padding_mode="circular"),
    "Conv2d replicate valid": lambda nn: nn.Conv2d(4, 6, 2, padding="valid", padding_mode="replicate"),
    "ConvTranspose1d": lambda nn: nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
    "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(4, 6, (3, 2), stride=2, padding=1, dilation=2),
    "Conv3d": lambda nn: nn.Conv3d(4, 6, (2, 3, 2), stride=(1, 2, 1), padding=(1, 0, 1), groups=2),
    "Conv3d same": lambda nn: nn.Conv3d(4, 2, (3, 2, 2), padding="same", dilation=(1, 2, 1), bias=False),
    "Conv3d circular": lambda nn: nn.Conv3d(4, 2, 2, padding=(1, 2, 3), padding_mode="circular"),
    "ConvTranspose3d": lambda nn: nn.ConvTranspose3d(4, 2, (1, 2, 3), stride=(1, 2, 3), output_padding=(0, 1, 2)),
    "MaxPool1d": lambda nn: nn.MaxPool1d(2),
    "MaxPool2d": lambda nn: nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
    "AvgPool1d": lambda nn: nn.AvgPool1d(2),
    "AvgPool2d": lambda nn: nn.AvgPool2d((2, 3), stride=1, padding=1, count_include_pad=False),
    "MaxPool3d": lambda nn: nn.MaxPool3d((2, 3, 2), stride=1, padding=(0, 1, 1)),
    "AvgPool3d": lambda nn: nn.AvgPool3d(2, stride=(1, 2, 2), padding=1, divisor_override=3),
    "AdaptiveAvgPool1d": lambda nn: nn.AdaptiveAvgPool1d(3),
    "AdaptiveAvgPool2d": lambda nn: nn.AdaptiveAvgPool2d((3, None)),
    "AdaptiveAvgPool3d": lambda nn: nn.AdaptiveAvgPool3d((2, None, 3)),
    "AdaptiveMaxPool1d": lambda nn: nn.AdaptiveMaxPool1d(4),
    "AdaptiveMaxPool2d": lambda nn: nn.AdaptiveMaxPool2d((3, None)),
    "AdaptiveMaxPool3d": lambda nn: nn.AdaptiveMaxPool3d(2),
    "MaxUnpool1d": lambda nn: nn.MaxUnpool1d(3, stride=2, padding=1),
    "MaxUnpool2d": lambda nn: nn.MaxUnpool2d((2, 3), stride=(1, 2)),
    "MaxUnpool3d": lambda nn: nn.MaxUnpool3d(2),
    "LPPool1d": lambda nn: nn.LPPool1d(2, 3, stride=2),
    "LPPool2d": lambda nn: nn.LPPool2d(4.0, (2, 3), ceil_mode=True),
    "LPPool3d": lambda nn: nn.LPPool3d(2, 2, stride=(1, 2, 1)),
    "FractionalMaxPool2d": lambda nn: nn.FractionalMaxPool2d(3, (3, 4)),
    "FractionalMaxPool3d": lambda nn: nn.FractionalMaxPool3d(2, output_ratio=0.4),
    "BatchNorm1d": lambda nn: nn.BatchNorm1d(4),
    "BatchNorm1d cumulative": lambda nn: nn.BatchNorm1d(4, momentum=None),
    "BatchNorm2d": lambda nn: nn.BatchNorm2d(4, eps=1e-3, momentum=0.3),
    "BatchNorm2d plain": lambda nn: nn.BatchNorm2d(4, affine=False, track_running_stats=False),
    "BatchNorm2d no bias": lambda nn: nn.BatchNorm2d(4, bias=False),
    "BatchNorm3d": lambda nn: nn.BatchNorm3d(4),
    "InstanceNorm1d": lambda nn: nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
    "InstanceNorm1d unbatched": lambda nn: nn.InstanceNorm1d(5, momentum=None, track_running_stats=True),
    "InstanceNorm2d": lambda nn: nn.InstanceNorm2d(4, eps=1e-3, affine=True, bias=False),
    "InstanceNorm3d": lambda nn: nn.InstanceNorm3d(4),
    "LocalResponseNorm": lambda nn: nn.LocalResponseNorm(2, alpha=0.5, beta=0.6, k=1.5),
    "CrossMapLRN2d": lambda nn: nn.CrossMapLRN2d(7, alpha=0.5),
    "LayerNorm": lambda nn: nn.LayerNorm(6),
    "LayerNorm two": lambda nn: nn.LayerNorm((5, 6), bias=False),
    "LayerNorm plain": lambda nn: nn.LayerNorm(6, elementwise_affine=False),
    "RMSNorm": lambda nn: nn.RMSNorm(6),
    "RMSNorm eps": lambda nn: nn.RMSNorm(6, eps=1e-3, elementwise_affine=False),
    "GroupNorm": lambda nn: nn.GroupNorm(2, 4),
    "GroupNorm plain": lambda nn: nn.GroupNorm(2, 4, affine=False),
    "Dropout": lambda nn: nn.Dropout(0.0),
    "Dropout1d": lambda nn: nn.Dropout1d(0.0),
    "Dropout2d": lambda nn: nn.Dropout2d(0.0),
    "Dropout3d": lambda nn: nn.Dropout3d(0.0),
    "AlphaDropout": lambda nn: nn.AlphaDropout(0.0),
    "FeatureAlphaDropout": lambda nn: nn.FeatureAlphaDropout(0.0),
    "TransformerEncoderLayer": lambda nn: nn.TransformerEncoderLayer(6, 2, 5, 0.0),
    "TransformerEncoderLayer norm first": lambda nn: nn.TransformerEncoderLayer(
        6, 3, 5, 0.0, nn.GELU(), 1e-3, batch_first=True, norm_first=True, bias=False
    ),
    "TransformerEncoder": lambda nn: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(6, 2, 5, 0.0, "gelu"), 2, nn.LayerNorm(6), enable_nested_tensor=False
    ),
    "Embedding": lambda nn: nn.Embedding(7, 3),
    "Embedding padding": lambda nn: nn.Embedding(7, 3, padding_idx=-2, scale_grad_by_freq=True),
    "Embedding norm": lambda nn: nn.Embedding(7, 3, max_norm=0.5, norm_type=1.0),
    "EmbeddingBag": lambda nn: nn.EmbeddingBag(7, 3),
    "EmbeddingBag sum": lambda nn: nn.EmbeddingBag(7, 3, max_norm=0.5, norm_type=1.0, mode="sum", padding_idx=-2),
    "EmbeddingBag max": lambda nn: nn.EmbeddingBag(7, 3, mode="max", padding_idx=1),
    "Flatten": lambda nn: nn.Flatten(),
    "Flatten part": lambda nn: nn.Flatten(0, 1),
    "Unflatten": lambda nn: nn.Unflatten(1, (2, 2)),
    "ConstantPad1d": lambda nn: nn.ConstantPad1d((2, -1), 0.5),
    "ConstantPad2d": lambda nn: nn.ConstantPad2d(1, -2.0),
    "ConstantPad3d": lambda nn: nn.ConstantPad3d((1, 0, 0, 1, 2, 1), 3.0),
    "ZeroPad1d": lambda nn: nn.ZeroPad1d(2),
    "ZeroPad2d": lambda nn: nn.ZeroPad2d((1, 2, -1, 0)),
    "ZeroPad3d": lambda nn: nn.ZeroPad3d(1),
    "ReflectionPad1d": lambda nn: nn.ReflectionPad1d((3, 2)),
    "ReflectionPad2d": lambda nn: nn.ReflectionPad2d((-2, 3, 1, 2)),
    "ReflectionPad3d": lambda nn: nn.ReflectionPad3d((2, 1, 0, 3, 1, 2)),
    "ReplicationPad1d": lambda nn: nn.ReplicationPad1d(7),
    "ReplicationPad2d": lambda nn: nn.ReplicationPad2d((1, 0, -1, 2)),
    "ReplicationPad3d": lambda nn: nn.ReplicationPad3d((1, 2, 3, 0, 1, 1)),
    "CircularPad1d": lambda nn: nn.CircularPad1d((6, 5)),
    "CircularPad2d": lambda nn: nn.CircularPad2d((3, -1, 1, 2)),
    "CircularPad3d": lambda nn: nn.CircularPad3d((1, 2, 3, 0, 1, 1)),
    "PixelShuffle": lambda nn: nn.PixelShuffle(2),
    "PixelUnshuffle": lambda nn: nn.Sequential(nn.ZeroPad2d((0, 0, 1, 0)), nn.PixelUnshuffle(2)),
    "ChannelShuffle": lambda nn: nn.ChannelShuffle(2),
    "Upsample": lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"),
    "Upsample 1d": lambda nn: nn.Upsample(size=9, mode="linear", align_corners=True),
    "Upsample 3d": lambda nn: nn.Upsample(scale_factor=(2, 1.5, 1), mode="trilinear", recompute_scale_factor=True),
    "UpsamplingNearest2d": lambda nn: nn.UpsamplingNearest2d(scale_factor=1.7),
    "UpsamplingBilinear2d": lambda nn: nn.UpsamplingBilinear2d(size=(7, 4)),
    "Unfold": lambda nn: nn.Unfold((3, 2), dilation=(1, 2), padding=1, stride=2),
    "Fold": lambda nn: nn.Fold((3, 4), 2),
    "ReLU": lambda nn: nn.ReLU(),
    "ReLU6": lambda nn: nn.ReLU6(),
    "LeakyReLU": lambda nn: nn.LeakyReLU(0.2),
    "ELU": lambda nn: nn.ELU(0.7),
    "GELU": lambda nn: nn.GELU(),
    "GELU tanh": lambda nn: nn.GELU("tanh"),
    "SiLU": lambda nn: nn.SiLU(),
    "Mish": lambda nn: nn.Mish(),
    "Hardtanh": lambda nn: nn.Hardtanh(-0.5, 0.7),
    "SELU": lambda nn: nn.SELU(),
    "CELU": lambda nn: nn.CELU(0.5),
    "Hardsigmoid": lambda nn: nn.Hardsigmoid(),
    "Hardswish": lambda nn: nn.Hardswish(),
    "Hardshrink": lambda nn: nn.Hardshrink(0.3),
    "Softshrink": lambda nn: nn.Softshrink(0.3),
    "Softsign": lambda nn: nn.Softsign(),
    "Tanhshrink": lambda nn: nn.Tanhshrink(),
    "Threshold": lambda nn: nn.Threshold(0.2, -3.0),
    "RReLU": lambda nn: nn.RReLU(0.3, 0.3),
    "GLU": lambda nn: nn.GLU(1),
    "PReLU": lambda nn: nn.PReLU(),
    "PReLU channels": lambda nn: nn.PReLU(4, init=0.1),
    "Softplus": lambda nn: nn.Softplus(beta=2.0, threshold=1.0),
    "Sigmoid": lambda nn: nn.Sigmoid(),
    "Tanh": lambda nn: nn.Tanh(),
    "LogSigmoid": lambda nn: nn.LogSigmoid(),
    "Softmax": lambda nn: nn.Softmax(dim=1),
    "Softmax implicit": lambda nn: nn.Softmax(),
    "LogSoftmax": lambda nn: nn.LogSoftmax(dim=-1),
    "Softmin": lambda nn: nn.Softmin(dim=0),
    "CosineSimilarity": lambda nn: nn.CosineSimilarity(2, 1e-3),
    "PairwiseDistance": lambda nn: nn.PairwiseDistance(3.0, 0.1, keepdim=True),
    "Softmax2d": lambda nn: nn.Softmax2d(),
    "Sequential": lambda nn: nn.Sequential(nn.Conv2d(4, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()),
    "nested": lambda nn: nn.ModuleDict({"a": nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(1, 1)]), "b": nn.Tanh()}),
}
LOSSES = {
    "MSELoss": ("real", {}),
    "L1Loss": ("real", {"reduction": "sum"}),
    "SmoothL1Loss": ("real", {"beta": 0.4}),
    "HuberLoss": ("real", {"delta": 0.4, "reduction": "none"}),
    "NLLLoss": ("classes", {"weight": (3,), "ignore_index": 1}),
    "CrossEntropyLoss": ("classes", {"weight": (3,), "label_smoothing": 0.2}),
    "BCELoss": ("probabilities", {"weight": (5, 3)}),
    "BCEWithLogitsLoss": ("probabilities", {"pos_weight": (3,)}),
    "KLDivLoss": ("probabilities", {"reduction": "batchmean"}),
    "PoissonNLLLoss": ("probabilities", {"full": True, "eps": 0.1, "log_input": False}),
    "GaussianNLLLoss": ("variances", {"full": True, "eps": 0.3}),
    "HingeEmbeddingLoss": ("signs", {"margin": 0.4}),
    "SoftMarginLoss": ("signs", {}),
    "MarginRankingLoss": ("order", {"margin": 0.4}),
    "CosineEmbeddingLoss": ("angles", {"margin": 0.1}),
    "MultiMarginLoss": ("classes", {"p": 2, "margin": 0.4, "weight": (3,)}),
    "MultiLabelMarginLoss": ("labels", {}),
    "MultiLabelSoftMarginLoss": ("probabilities", {"weight": (3,)}),
    "TripletMarginLoss": ("vectors", {"margin": 1.5, "p": 3.0, "eps": 1e-3, "swap": True}),
    "TripletMarginWithDistanceLoss": ("vectors", {"margin": 1.5, "swap": True}),
    "CTCLoss": ("labelled", {"blank": 1}),
}
# By kind: what a loss gets beside an input of shape (5, 3).
TARGETS = {
    "real": lambda rng: [rng.standard_normal((5, 3))],
    "classes": lambda rng: [rng.integers(0, 3, 5)],
    "probabilities": lambda rng: [rng.random((5, 3))],
    "variances": lambda rng: [rng.standard_normal((5, 3)), rng.random((5, 3))],
    "signs": lambda rng: [rng.choice([-1.0, 1.0], (5, 3))],
    "order": lambda rng: [rng.standard_normal((5, 3)), rng.choice([-1.0, 1.0], (5, 3))],
    "angles": lambda rng: [rng.standard_normal((5, 3)), rng.choice([-1.0, 1.0], 5)],
    "labels": lambda rng: [rng.permuted([[0, 1, -1]] * 5, axis=1)],
    "labelled": lambda rng: [np.array([2, 0]), np.array(5), np.array(2)],
    "vectors": lambda rng: [rng.standard_normal((5, 3)), rng.standard_normal((5, 3))],
}


def beside(x):
    """Return the second input of a layer that takes two."""
    return x * x - 0.5


def places(x):
    """Return distinct positions of the elements of each plane."""
    return x.detach().flatten(2).argsort(-1).reshape(x.shape)


# Layers of two inputs, and what makes the second of the first.
OF_TWO = {
    "CosineSimilarity": beside,
    "PairwiseDistance": beside,
    "MaxUnpool1d": places,
    "MaxUnpool2d": places,
    "MaxUnpool3d": places,
}


def input_of(name, rng):
    """Draw an input that suits the layer of a row."""
    if name.startswith("Embedding"):
        return rng.integers(0, 7, (4, 5))
    if "unbatched" in name:
        return rng.standard_normal((5, 6))
    if "3d" in name:
        return rng.standard_normal((2, 4, 3, 4, 5))
    return rng.standard_normal((5, 4, 6) if "1d" in name or name.startswith(("Fold", "Transformer")) else (5, 4, 5, 6))
