"""The one table of layers and losses: a row for each, on which its values are compared."""

from __future__ import annotations

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
    "MaxPool1d": lambda nn: nn.MaxPool1d(2),
    "MaxPool2d": lambda nn: nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
    "AvgPool1d": lambda nn: nn.AvgPool1d(2),
    "AvgPool2d": lambda nn: nn.AvgPool2d((2, 3), stride=1, padding=1, count_include_pad=False),
    "AdaptiveAvgPool1d": lambda nn: nn.AdaptiveAvgPool1d(3),
    "AdaptiveAvgPool2d": lambda nn: nn.AdaptiveAvgPool2d((3, None)),
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
    "Embedding": lambda nn: nn.Embedding(7, 3),
    "Embedding padding": lambda nn: nn.Embedding(7, 3, padding_idx=-2, scale_grad_by_freq=True),
    "Embedding norm": lambda nn: nn.Embedding(7, 3, max_norm=0.5, norm_type=1.0),
    "EmbeddingBag": lambda nn: nn.EmbeddingBag(7, 3),
    "EmbeddingBag sum": lambda nn: nn.EmbeddingBag(7, 3, max_norm=0.5, norm_type=1.0, mode="sum", padding_idx=-2),
    "EmbeddingBag max": lambda nn: nn.EmbeddingBag(7, 3, mode="max", padding_idx=1),
    "Flatten": lambda nn: nn.Flatten(),
    "Flatten part": lambda nn: nn.Flatten(0, 1),
    "Unflatten": lambda nn: nn.Unflatten(1, (2, 2)),
    "ReLU": lambda nn: nn.ReLU(),
    "ReLU6": lambda nn: nn.ReLU6(),
    "LeakyReLU": lambda nn: nn.LeakyReLU(0.2),
    "ELU": lambda nn: nn.ELU(0.7),
    "GELU": lambda nn: nn.GELU(),
    "GELU tanh": lambda nn: nn.GELU("tanh"),
    "SiLU": lambda nn: nn.SiLU(),
    "Mish": lambda nn: nn.Mish(),
    "Hardtanh": lambda nn: nn.Hardtanh(-0.5, 0.7),
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
}


def input_of(name, rng):
    """Draw an input that suits the layer of a row."""
    if name.startswith("Embedding"):
        return rng.integers(0, 7, (4, 5))
    if "unbatched" in name:
        return rng.standard_normal((5, 6))
    if "3d" in name:
        return rng.standard_normal((2, 4, 3, 5, 6))
    return rng.standard_normal((5, 4, 6) if "1d" in name else (5, 4, 5, 6))
