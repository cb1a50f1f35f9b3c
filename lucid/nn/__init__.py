"""Modules, parameters, layers, losses, initialisation, and the hooks of modules.

The settings of a layer are those of its function in `lucid.nn.functional`, whose `help` names the pages that explain
them.
"""

from __future__ import annotations

from lucid.nn import functional, hooks, init, modules, parallel, utils
from lucid.nn.hooks import Hook
from lucid.nn.layers.activation import (
    ELU,
    GELU,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Tanh,
)
from lucid.nn.layers.container import ModuleDict, ModuleList, Sequential
from lucid.nn.layers.convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from lucid.nn.layers.dropout import Dropout
from lucid.nn.layers.embedding import Embedding, EmbeddingBag
from lucid.nn.layers.flatten import Flatten, Unflatten
from lucid.nn.layers.linear import Bilinear, Identity, Linear
from lucid.nn.layers.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from lucid.nn.layers.normalisation.batch import BatchNorm1d, BatchNorm2d, BatchNorm3d
from lucid.nn.layers.normalisation.features import GroupNorm, LayerNorm, RMSNorm
from lucid.nn.layers.normalisation.instance import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from lucid.nn.layers.normalisation.response import CrossMapLRN2d, LocalResponseNorm
from lucid.nn.layers.normalisation.synchronised import SyncBatchNorm
from lucid.nn.layers.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from lucid.nn.layers.parameter_containers import ParameterDict, ParameterList
from lucid.nn.layers.pooling import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d
from lucid.nn.layers.resampling import (
    ChannelShuffle,
    Fold,
    PixelShuffle,
    PixelUnshuffle,
    Unfold,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)
from lucid.nn.module.module import Module
from lucid.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from lucid.nn.parallel import DataParallel
from lucid.nn.parameter import Buffer, Parameter

__all__ = [
    "ELU",
    "GELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "Buffer",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CrossEntropyLoss",
    "CrossMapLRN2d",
    "DataParallel",
    "Dropout",
    "Embedding",
    "EmbeddingBag",
    "Flatten",
    "Fold",
    "GroupNorm",
    "Hardtanh",
    "Hook",
    "HuberLoss",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool1d",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "PReLU",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "RMSNorm",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softmin",
    "Softplus",
    "SyncBatchNorm",
    "Tanh",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "functional",
    "hooks",
    "init",
    "modules",
    "parallel",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "utils",
]
