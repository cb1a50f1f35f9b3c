"""The modules in which PyTorch has its layers, and the bases by which tools tell them apart.

`lucid.nn.modules.conv` has `Conv2d` and its fellows, and `_ConvNd`, of which each convolution is an instance. Nothing
is written twice: a name is looked up in `lucid.nn` or `lucid.nn.layers` when it is asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

__all__ = ["LAYERS", "Address"]

# By PyTorch's module: the layers in it, as far as they are there, and bases with the class that each is here.
LAYERS = {
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish "
        "MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink "
        "Softsign Tanh Tanhshrink Threshold"
    ),
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": (
        "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm "
        "_NormBase=normalisation.tracked.Tracked _BatchNorm=normalisation.batch.BatchNorm"
    ),
    "channelshuffle": "ChannelShuffle",
    "container": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": (
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d "
        "LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d "
        "_ConvNd=convolution.Convolution _ConvTransposeNd=convolution.TransposedConvolution"
    ),
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout _DropoutNd=dropout.RandomDrop",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": (
        "InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d "
        "_InstanceNorm=normalisation.instance.InstanceNorm _NormBase=normalisation.tracked.Tracked"
    ),
    "linear": "Bilinear Identity LazyLinear Linear",
    "loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss "
        "HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss "
        "MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss _Loss=losses.loss.Loss _WeightedLoss=losses.loss.WeightedLoss"
    ),
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
        "ZeroPad3d "
        "_CircularPadNd=padding.CircularPad _ConstantPadNd=padding.ConstantPad _ReflectionPadNd=padding.ReflectionPad "
        "_ReplicationPadNd=padding.ReplicationPad"
    ),
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
        "AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxPool1d "
        "MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d "
        "_MaxPoolNd=pooling.MaxPool _AvgPoolNd=pooling.AvgPool _AdaptiveAvgPoolNd=pooling.AdaptiveAvgPool "
        "_AdaptiveMaxPoolNd=pooling.AdaptiveMaxPool "
        "_MaxUnpoolNd=pooling.MaxUnpool _LPPoolNd=pooling.LPPool"
    ),
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer"
    ),
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}


class Address(ModuleType):
    """One of PyTorch's modules of layers; what stands in it is looked up when it is asked for."""

    def __init__(self, name: str, layers: str) -> None:
        super().__init__(f"lucid.nn.modules.{name}", "PyTorch's address of layers of `lucid.nn`.")
        pairs = [entry.partition("=") for entry in layers.split()]
        self._places = {name: place for name, _, place in pairs}

    def __getattr__(self, name: str) -> object:
        place = self.__dict__.get("_places", {}).get(name)
        if name == "__all__":
            return [layer for layer, base in self._places.items() if not base and hasattr(self, layer)]
        if place is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if not place:
            return getattr(sys.modules["lucid.nn"], name)
        path, _, base = place.rpartition(".")
        return getattr(import_module(f"lucid.nn.layers.{path}"), base)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self._places if hasattr(self, name))]


def register(package: dict[str, object]) -> None:
    """Let the import of each of these modules find it, and the package have it."""
    for name, layers in LAYERS.items():
        package[name] = sys.modules[f"lucid.nn.modules.{name}"] = Address(name, layers)
