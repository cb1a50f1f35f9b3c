"""Functions of all parameters of a model at once, of weights made of others, and of sequences of several lengths."""

from __future__ import annotations

from lucid.nn.utils import fusion, parametrizations, parametrize, prune, rnn, stateless
from lucid.nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from lucid.nn.utils.gradients import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
    parameters_to_vector,
    vector_to_parameters,
)
from lucid.nn.utils.hooked_norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval", "fuse_conv_bn_weights",
    "fuse_linear_bn_eval", "fuse_linear_bn_weights", "fusion", "get_total_norm", "parameters_to_vector",
    "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm",
    "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip

_publish(globals())
_document(__all__, globals())
