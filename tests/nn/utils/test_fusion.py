"""Batch normalisation as part of the layer before it."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import SettingError, ShapeError
from lucid.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval, fuse_linear_bn_weights
from tests.gradients import numbers


def drawn(norm, rng):
    """Return the normalisation with other statistics and parameters, in evaluation."""
    for tensor in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
        if tensor is not None:
            tensor.data = lucid.tensor(rng.uniform(0.5, 2, tensor.shape))
    return norm.eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_fused_layers(affine, bias, rng):
    """One layer gives what both give; it is a new one, whose bias requires grad where that of the first did."""
    for layer, norm, shape, settings in (
        (nn.Conv2d(3, 4, 2, bias=bias), nn.BatchNorm2d(4, affine=affine, eps=0.1), (2, 3, 4, 4), {}),
        (nn.ConvTranspose1d(3, 5, 2, bias=bias), nn.BatchNorm1d(5, affine=affine), (2, 3, 4), {"transpose": True}),
        (nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4, affine=affine), (2, 3), None),
        (nn.Linear(3, 4, bias=True), nn.BatchNorm1d(1, affine=affine), (2, 3), None),
    ):
        layer.double().eval()
        before = numbers(layer.weight).copy()
        drawn(norm.double(), rng)
        fused = fuse_linear_bn_eval(layer, norm) if settings is None else fuse_conv_bn_eval(layer, norm, **settings)
        x = lucid.tensor(rng.standard_normal(shape))
        out = layer(x)
        wanted = norm(out) if norm.num_features == out.shape[1] else norm(out[:, None])[:, 0]
        np.testing.assert_allclose(numbers(fused(x)), numbers(wanted), rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(numbers(layer.weight), before)
        assert (layer.bias is None) is (fused.bias is not None and not fused.bias.requires_grad)
        assert fused.weight.requires_grad


def test_mistakes():
    """Training, no statistics, and other numbers of features are refused."""
    conv, linear = nn.Conv1d(2, 3, 1), nn.Linear(2, 3)
    with pytest.raises(SettingError, match="in evaluation"):
        fuse_conv_bn_eval(conv, nn.BatchNorm1d(3).eval())
    with pytest.raises(SettingError, match="in evaluation"):
        fuse_linear_bn_eval(linear.eval(), nn.BatchNorm1d(3))
    with pytest.raises(SettingError, match="running statistics"):
        fuse_conv_bn_eval(conv.eval(), nn.BatchNorm1d(3, track_running_stats=False).eval())
    with pytest.raises(ShapeError, match="num_features=2, out_features=3"):
        fuse_linear_bn_eval(linear, nn.BatchNorm1d(2).eval())


def test_dtypes_are_those_of_the_first_layer():
    """Statistics in float32 leave a layer in float64 as wide as it is, also where the bias is new."""
    weight, ones = lucid.ones(2, 3, dtype=lucid.float64), lucid.ones(2)
    for bias in (None, lucid.ones(2, dtype=lucid.float64)):
        fused = fuse_linear_bn_weights(weight, bias, ones, ones, 1e-5, ones, ones)
        assert [part.dtype for part in fused] == [lucid.float64] * 2
