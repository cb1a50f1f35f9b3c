"""The functions behind the layers, under PyTorch's names.

A docstring says what is particular to its function. What holds for every one of its kind says `help` of a page:

- `lucid.ops.base.declaration`: activation functions; `lucid.ops.activation.softmax`: functions along a dimension
- `lucid.ops.layers.convolution`, `lucid.ops.pooling.pooling`: `stride`, `padding` and `dilation` of windows
- `lucid.ops.pooling.unpooling`, `lucid.ops.pooling.lp_pooling`, `lucid.ops.pooling.fractional`: rarer pools
- `lucid.ops.resampling`: other sizes and places of images; `lucid.ops.resampling.folding`: windows as columns;
  `lucid.ops.resampling.grid`: points of a grid
- `lucid.ops.layers.normalisation`, `lucid.ops.layers.multi_head_attention`, and `lucid.ops.layers`: other layers
- `lucid.ops.loss`: `reduction`, `weight` and `target` of losses
- `lucid.ops.linalg`, `lucid.ops.index`, `lucid.ops.shape`, `lucid.ops.reduction.sums`: `linear`, `one_hot`, `pad`,
  `normalize` and their like
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.views import live_edge

# imports, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
from lucid.ops.activation import elu as _elu
from lucid.ops.activation import hard as _hard
from lucid.ops.activation import mish as _mish
from lucid.ops.activation import prelu as _prelu
from lucid.ops.activation import relu as _relu
from lucid.ops.activation import sigmoid as _sigmoid
from lucid.ops.activation.bias_activation import bias_activation
from lucid.ops.activation.gelu import gelu
from lucid.ops.activation.glu import glu
from lucid.ops.activation.gumbel import gumbel_softmax
from lucid.ops.activation.hard import hardshrink, softshrink
from lucid.ops.activation.prelu import prelu
from lucid.ops.activation.sigmoid import logsigmoid, sigmoid, softplus, tanh
from lucid.ops.activation.soft import softsign, tanhshrink
from lucid.ops.activation.softmax import log_softmax, softmax, softmin
from lucid.ops.base.core import clone
from lucid.ops.embedding.embedding import embedding
from lucid.ops.embedding.embedding_bag import embedding_bag
from lucid.ops.index.gather import one_hot
from lucid.ops.layers.attention import scaled_dot_product_attention
from lucid.ops.layers.batch_normalisation import batch_norm, instance_norm
from lucid.ops.layers.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from lucid.ops.layers.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from lucid.ops.layers.linear import bilinear, linear
from lucid.ops.layers.multi_head_attention import multi_head_attention_forward
from lucid.ops.layers.normalisation import group_norm, layer_norm, local_response_norm, rms_norm
from lucid.ops.linalg.distances import pairwise_distance, pdist
from lucid.ops.loss.counts import gaussian_nll_loss, poisson_nll_loss
from lucid.ops.loss.cross_entropy import cross_entropy
from lucid.ops.loss.ctc import ctc_loss
from lucid.ops.loss.likelihood import nll_loss
from lucid.ops.loss.margin import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from lucid.ops.loss.older_reduction import OLDER_PLACES, with_older_reduction
from lucid.ops.loss.probability_loss import binary_cross_entropy, binary_cross_entropy_with_logits, kl_div
from lucid.ops.loss.regression import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from lucid.ops.pooling.adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from lucid.ops.pooling.fractional import fractional_max_pool2d, fractional_max_pool3d
from lucid.ops.pooling.lp_pooling import lp_pool1d, lp_pool2d, lp_pool3d
from lucid.ops.pooling.pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from lucid.ops.pooling.unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from lucid.ops.reduction.norms import cosine_similarity, normalize
from lucid.ops.resampling.folding import fold, unfold
from lucid.ops.resampling.grid import affine_grid, grid_sample
from lucid.ops.resampling.interpolation import interpolate
from lucid.ops.shape.padding import pad
from lucid.ops.shape.shuffling import channel_shuffle, pixel_shuffle, pixel_unshuffle
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document
from lucid.tensor.inplace_methods import celu_, elu_, hardtanh_, leaky_relu_, relu_, rrelu_, selu_, threshold_

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bias_activation", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_",
    "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "elu", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool3d", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss",
    "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss",
    "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss",
    "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle",
    "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rrelu", "rrelu_",
    "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
    "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold",
]  # fmt: skip


def with_inplace(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op with one more argument, `inplace`: whether its input is changed and returned."""
    count = len(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(input: Any, *settings: Any, inplace: bool = False, **named: Any) -> Any:
        if len(settings) == count:
            settings, inplace = settings[:-1], settings[-1]
        if not inplace:
            return function(input, *settings, **named)
        # what the op keeps for backward must not be what is written over
        source = clone(input) if live_edge(input) is not None else input
        return input.copy_(function(source, *settings, **named))

    # where pickle finds it: a layer may keep it as its activation
    call.__module__ = __name__
    return call


# with a parameter `inplace`, of tests/namespaces/ops.txt by `python -m tests.namespaces.exports`
# activation
celu = with_inplace(_elu.celu)
selu = with_inplace(_elu.selu)
elu = with_inplace(_elu.elu)
hardsigmoid = with_inplace(_hard.hardsigmoid)
hardswish = with_inplace(_hard.hardswish)
threshold = with_inplace(_hard.threshold)
mish = with_inplace(_mish.mish)
rrelu = with_inplace(_prelu.rrelu)
hardtanh = with_inplace(_relu.hardtanh)
leaky_relu = with_inplace(_relu.leaky_relu)
relu6 = with_inplace(_relu.relu6)
relu = with_inplace(_relu.relu)
silu = with_inplace(_sigmoid.silu)

for _loss in OLDER_PLACES:
    globals()[_loss] = with_older_reduction(globals()[_loss], __name__)

_publish(globals())
_document(__all__, globals())
