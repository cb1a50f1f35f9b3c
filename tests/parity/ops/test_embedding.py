"""Embedding against PyTorch where rows cannot reach: padding, frequencies, shortened rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.nn import functional as F


@pytest.mark.parametrize(
    "settings",
    [
        {"padding_idx": 2},
        {"padding_idx": -1},
        {"scale_grad_by_freq": True},
        {"padding_idx": 0, "scale_grad_by_freq": True},
        {"max_norm": 1.0},
        {"max_norm": 0.7, "norm_type": 1.0, "padding_idx": 1},
    ],
)
def test_settings(settings, rng):
    """Values, gradients and the table afterwards are PyTorch's."""
    index, table, upstream = rng.integers(0, 6, (4, 5)), rng.standard_normal((6, 3)), rng.standard_normal((4, 5, 3))
    found = []
    for functional, module in ((F, lucid), (torch.nn.functional, torch)):
        weight = module.tensor(table, requires_grad=True)
        out = functional.embedding(module.tensor(index), weight, **settings)
        out.backward(module.tensor(upstream))
        found.append([t.numpy(force=True) for t in (out, weight.grad, weight)])
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-12)
