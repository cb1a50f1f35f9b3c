"""The functions behind the layers, under PyTorch's names."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from lucid.autograd.views import live_edge
from lucid.ops import activation, gelu as gaussian, sigmoid as logistic
from lucid.ops.attention import scaled_dot_product_attention
from lucid.ops.batch_normalisation import batch_norm, instance_norm
from lucid.ops.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from lucid.ops.core import clone
from lucid.ops.linalg import linear
from lucid.ops.normalisation import group_norm, layer_norm, rms_norm
from lucid.ops.norms import cosine_similarity, normalize
from lucid.ops.padding import pad
from lucid.ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from lucid.ops.softmax import log_softmax, softmax, softmin

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_similarity",
    "elu",
    "gelu",
    "group_norm",
    "hardtanh",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "normalize",
    "pad",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "tanh",
]


def with_inplace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op with one more argument, `inplace`: whether its result is written over its input and that returned."""
    count = len(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(input: Any, *settings: Any, inplace: bool = False, **named: Any) -> Any:
        if len(settings) == count:
            *settings, inplace = settings
        if not inplace:
            return function(input, *settings, **named)
        # what the op keeps for backward must not be what is written over
        source = clone(input) if live_edge(input) is not None else input
        return input.copy_(function(source, *settings, **named))

    return call


relu = with_inplace(activation.relu)
relu6 = with_inplace(activation.relu6)
leaky_relu = with_inplace(activation.leaky_relu)
elu = with_inplace(activation.elu)
hardtanh = with_inplace(activation.hardtanh)
silu = with_inplace(logistic.silu)
mish = with_inplace(logistic.mish)
gelu = gaussian.gelu
sigmoid = logistic.sigmoid
tanh = logistic.tanh
softplus = logistic.softplus
logsigmoid = logistic.logsigmoid
