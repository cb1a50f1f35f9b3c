"""Pooling where PyTorch's edges are hard to guess: every small geometry, ties, NaN, infinities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import lucid
from lucid.nn.functional import avg_pool1d, max_pool1d
from tests.parity.pieces import agree, close

functional = torch.nn.functional


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_every_small_geometry(ceil_mode, rng):
    """Windows lie where PyTorch's do, for all small sizes, kernels, strides and paddings."""
    for n, k, s in itertools.product(range(1, 15), range(1, 6), range(1, 5)):
        for p in range(k // 2 + 1):
            if n + 2 * p < k:
                continue
            x = rng.standard_normal((1, n))
            mine, theirs = lucid.tensor(x), torch.tensor(x)
            got = max_pool1d(mine, k, s, p, 1, ceil_mode)
            close([got], [functional.max_pool1d(theirs, k, s, p, 1, ceil_mode)], 0.0)
            for padded in (True, False):
                got = avg_pool1d(mine, k, s, p, ceil_mode, padded)
                close([got], [functional.avg_pool1d(theirs, k, s, p, ceil_mode, padded)], 1e-12, 1e-12)


def test_every_small_adaptive_geometry(rng):
    """Parts are cut where PyTorch cuts them."""
    for n, parts in itertools.product(range(1, 12), range(1, 12)):
        x = rng.standard_normal((1, n))
        agree(lambda lib, x=x, n=parts: [lib.nn.functional.adaptive_avg_pool1d(lib.tensor(x), n)], 1e-12, 1e-12)


# By a name: the shape, how many elements are NaN and how many of the others minus infinity, and settings.
POSITIONS = {
    "max_pool2d": (
        (9, 8), 0.2, 0.4, [(2,), ((3, 2), (2, 1)), (3, 2, 1), (3, 2, 1, 1, True), ((3, 2), None, (1, 1), 2), (17, 3, 8)]
    ),
    "max_pool3d": ((5, 6, 4), 0.05, 0.6, [(2,), ((3, 2, 2), (2, 1, 2), 1, 1, True), ((3, 2, 2), 1, (1, 1, 0), 2)]),
    "adaptive_max_pool1d": ((9,), 0.1, 0.5, [(4,)]),
    "adaptive_max_pool2d": ((6, 9), 0.1, 0.5, [((4, 6),)]),
    "adaptive_max_pool3d": ((5, 6, 4), 0.1, 0.5, [((2, 6, 3),)]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), [(name, row) for name, rows in POSITIONS.items() for row in rows[-1]])
@pytest.mark.parametrize("kind", ["nan", "ties"])
def test_positions(name, settings, kind, rng):
    """Values and positions are PyTorch's for NaN, minus infinity and ties, in volumes and in parts, too."""
    sizes, nans, infinities, _ = POSITIONS[name]
    x = rng.integers(0, 3, (2, 3, *sizes)).astype(np.float32)
    if kind == "nan":
        x[rng.random(x.shape) < nans] = np.nan
        x[rng.random(x.shape) < infinities] = -np.inf
    got, expected = (
        getattr(lib.nn.functional, name)(lib.tensor(x), *settings, return_indices=True) for lib in (lucid, torch)
    )
    close(got, expected, 0.0)
    assert got[1].dtype == lucid.int64
