"""Softmax against PyTorch where rows cannot reach: infinities, NaN, no dimension."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid

INF = float("inf")


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1])
def test_infinities(name, dim, rng):
    """Infinite elements, whole rows of them and NaN give PyTorch's values and gradients."""
    array = np.array([[1.0, -INF, 2.0], [-INF, -INF, -INF], [INF, 0.0, 1.0], [np.nan, 0.0, 1.0], [0.5, 0.25, 4.0]])
    upstream = rng.standard_normal(array.shape)
    found = []
    for module in (lucid, torch):
        x = module.tensor(array, requires_grad=True)
        out = getattr(module, name)(x, dim)
        (grad,) = module.autograd.grad(out, x, module.tensor(upstream))
        found.append((out.numpy(force=True), grad.numpy(force=True)))
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15, equal_nan=True)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_no_dimension(name):
    """A number is the only one along its dimension 0."""
    for dim in (0, -1):
        assert float(getattr(lucid, name)(lucid.tensor(3.0), dim)) == float(
            getattr(torch, name)(torch.tensor(3.0), dim)
        )
