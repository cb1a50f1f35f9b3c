"""Losses of each element on a CUDA device: one kernel for the value, one for each derivative."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.nn import functional as F
from tests.kernels.near import FLOATS, assert_near, rounded

pytestmark = pytest.mark.gpu

PROBABILITIES = (0.05, 0.95)
NUMBERS = (-2.0, 2.0)
# The op, the ranges of its operands, and the functors that do its work.
LOSSES = {
    "mse": (F.mse_loss, (NUMBERS, NUMBERS), ("SquaredDifference", "SquaredDifferenceGrad")),
    "l1": (F.l1_loss, (NUMBERS, NUMBERS), ("SmoothDifference", "SmoothDifferenceGrad")),
    "smooth l1": (F.smooth_l1_loss, (NUMBERS, NUMBERS), ("SmoothDifference", "SmoothDifferenceGrad")),
    "probabilities": (
        F.binary_cross_entropy,
        (PROBABILITIES, PROBABILITIES),
        ("BinaryCrossEntropy", "BinaryCrossEntropyGradX", "BinaryCrossEntropyGradT"),
    ),
    "logits": (
        F.binary_cross_entropy_with_logits,
        (NUMBERS, PROBABILITIES),
        ("LogitsCrossEntropy", "LogitsCrossEntropyGradX", "LogitsCrossEntropyGradT"),
    ),
    "weighed logits": (
        lambda x, t, p, **settings: F.binary_cross_entropy_with_logits(x, t, pos_weight=p, **settings),
        (NUMBERS, PROBABILITIES, (0.5, 2.0)),
        ("WeighedCrossEntropy", "WeighedCrossEntropyGradX", "WeighedCrossEntropyGradT",
         "WeighedCrossEntropyGradPositive"),
    ),
    "divergence": (F.kl_div, (NUMBERS, PROBABILITIES), ("Divergence", "DivergenceGradX", "DivergenceGradT")),
    "log divergence": (
        lambda x, t, **settings: F.kl_div(x, t, log_target=True, **settings),
        (NUMBERS, NUMBERS),
        ("LogDivergence", "LogDivergenceGradX", "LogDivergenceGradT"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradients(name, reduction, dtype, rng, launched):
    """Values and gradients of all operands are those of float64, and come from the kernels that are named."""
    op, ranges, functors = LOSSES[name]
    arrays = [rounded(rng.uniform(*limits, (9, 33)), dtype) for limits in ranges]
    upstream, results = None, {}
    for device, kind in (("cpu", "float64"), ("cuda", dtype)):
        options = {"dtype": getattr(lucid, kind), "device": device}
        tensors = [lucid.tensor(a, **options, requires_grad=True) for a in arrays]
        out = op(*tensors, reduction=reduction)
        upstream = rounded(rng.standard_normal(out.shape), dtype) if upstream is None else upstream
        out.backward(lucid.tensor(upstream, **options))
        results[device] = [out.detach().array, *[tensor.grad.array for tensor in tensors]]
    for got, wanted in zip(results["cuda"], results["cpu"], strict=True):
        assert_near(got, np.asarray(wanted), dtype, slack=2)
    for functor in functors:
        assert any(f" {functor}," in name for name in launched), (functor, launched)
