"""Pooling where PyTorch's edges are hard to guess: every small geometry, ties, NaN, infinities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import lucid
from lucid.ops.pooling.adaptive import adaptive_avg_pool1d
from lucid.ops.pooling.pooling import avg_pool1d, max_pool1d, max_pool2d, max_pool3d

functional = torch.nn.functional


def assert_same_places(got, expected):
    """Refuse values and positions that differ."""
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(mine.numpy(force=True), theirs.numpy())
    assert got[1].dtype == lucid.int64


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_every_small_geometry(ceil_mode, rng):
    """Windows lie where PyTorch's do, for all small sizes, kernels, strides and paddings."""
    for n, k, s in itertools.product(range(1, 15), range(1, 6), range(1, 5)):
        for p in range(k // 2 + 1):
            if n + 2 * p < k:
                continue
            x = rng.standard_normal((1, n))
            mine, theirs = lucid.tensor(x), torch.tensor(x)
            got, expected = (
                max_pool1d(mine, k, s, p, 1, ceil_mode),
                functional.max_pool1d(theirs, k, s, p, 1, ceil_mode),
            )
            np.testing.assert_array_equal(got.numpy(force=True), expected.numpy())
            for padded in (True, False):
                got = avg_pool1d(mine, k, s, p, ceil_mode, padded)
                expected = functional.avg_pool1d(theirs, k, s, p, ceil_mode, padded)
                np.testing.assert_allclose(got.numpy(force=True), expected.numpy(), rtol=1e-12, atol=1e-12)


def test_every_small_adaptive_geometry(rng):
    """Parts are cut where PyTorch cuts them."""
    for n, parts in itertools.product(range(1, 12), range(1, 12)):
        x = rng.standard_normal((1, n))
        got, expected = (
            adaptive_avg_pool1d(lucid.tensor(x), parts),
            functional.adaptive_avg_pool1d(torch.tensor(x), parts),
        )
        np.testing.assert_allclose(got.numpy(force=True), expected.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "settings", [(2,), ((3, 2), (2, 1)), (3, 2, 1), (3, 2, 1, 1, True), ((3, 2), None, (1, 1), 2), (17, 3, 8)]
)
@pytest.mark.parametrize("kind", ["nan", "ties"])
def test_positions(settings, kind, rng):
    """Values and positions are PyTorch's also for NaN, minus infinity and ties."""
    x = rng.integers(0, 3, (2, 3, 9, 8)).astype(np.float32)
    if kind == "nan":
        x[rng.random(x.shape) < 0.2] = np.nan
        x[rng.random(x.shape) < 0.4] = -np.inf
    assert_same_places(
        max_pool2d(lucid.tensor(x), *settings, return_indices=True),
        functional.max_pool2d(torch.tensor(x), *settings, return_indices=True),
    )


@pytest.mark.parametrize("settings", [(2,), ((3, 2, 2), (2, 1, 2), 1, 1, True), ((3, 2, 2), 1, (1, 1, 0), 2)])
@pytest.mark.parametrize("kind", ["nan", "ties"])
def test_positions_in_volumes(settings, kind, rng):
    """Of volumes, whose planes are pooled first, values and positions are PyTorch's for NaN, infinities and ties."""
    x = rng.integers(0, 3, (2, 3, 5, 6, 4)).astype(np.float32)
    if kind == "nan":
        x[rng.random(x.shape) < 0.05] = np.nan
        x[rng.random(x.shape) < 0.6] = -np.inf
    assert_same_places(
        max_pool3d(lucid.tensor(x), *settings, return_indices=True),
        functional.max_pool3d(torch.tensor(x), *settings, return_indices=True),
    )


@pytest.mark.parametrize("sizes", [(9, 4), (6, 9, 4, 6), (5, 6, 4, 2, 6, 3)])
@pytest.mark.parametrize("kind", ["nan", "ties"])
def test_positions_in_parts(sizes, kind, rng):
    """Values and positions of adaptive pooling are PyTorch's for NaN, minus infinity and ties."""
    count = len(sizes) // 2
    x = rng.integers(0, 3, (2, 3, *sizes[:count])).astype(np.float32)
    if kind == "nan":
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.5] = -np.inf
    name, parts = f"adaptive_max_pool{count}d", sizes[count:]
    assert_same_places(
        getattr(lucid.nn.functional, name)(lucid.tensor(x), parts, return_indices=True),
        getattr(functional, name)(torch.tensor(x), parts, return_indices=True),
    )
