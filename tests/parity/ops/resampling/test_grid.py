"""Sampling at a grid against PyTorch: all modes and paddings, inside and outside of small images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional

import lucid
from lucid.ops.resampling.grid import PADDINGS, affine_grid, grid_sample
from lucid.ops.resampling.grid_primitives import MOST_ORDERS


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MOST_ORDERS)
def test_values_and_gradients(mode, padding, aligned, rng):
    """Samples, and the gradients of images and grid, agree."""
    for count, channels in itertools.product((2,) if mode == "bicubic" else (2, 3), (1, 20)):
        for _ in range(3):
            x = rng.standard_normal((2, channels, *rng.integers(1, 6, count)))
            grid = rng.uniform(-2.5, 2.5, (2, *rng.integers(1, 5, count), count))
            theirs = [torch.tensor(a, requires_grad=True) for a in (x, grid)]
            ours = [lucid.tensor(a, requires_grad=True) for a in (x, grid)]
            expected = functional.grid_sample(*theirs, mode, padding, aligned)
            got = grid_sample(*ours, mode, padding, aligned)
            np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=1e-10, atol=1e-12)
            upstream = rng.standard_normal(got.shape)
            expected.backward(torch.tensor(upstream))
            got.backward(lucid.tensor(upstream))
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(one.grad.numpy(force=True), other.grad.numpy(), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 1, 3, 2, 4)])
def test_affine_grid(size, aligned, rng):
    """The points of a grid, and the gradient of its matrices, agree."""
    theta = rng.standard_normal((size[0], len(size) - 2, len(size) - 1))
    theirs, ours = torch.tensor(theta, requires_grad=True), lucid.tensor(theta, requires_grad=True)
    expected, got = functional.affine_grid(theirs, size, aligned), affine_grid(ours, size, aligned)
    np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=1e-12, atol=1e-14)
    upstream = rng.standard_normal(got.shape)
    expected.backward(torch.tensor(upstream))
    got.backward(lucid.tensor(upstream))
    np.testing.assert_allclose(ours.grad.numpy(force=True), theirs.grad.numpy(), rtol=1e-12)
