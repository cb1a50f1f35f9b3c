"""Sampling at a grid against PyTorch: all modes and paddings, inside and outside of small images."""

from __future__ import annotations

import itertools

import pytest

from lucid.ops.resampling.grid import PADDINGS
from lucid.ops.resampling.grid_primitives import MOST_ORDERS
from tests.parity.pieces import agree, differentiated


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MOST_ORDERS)
def test_values_and_gradients(mode, padding, aligned, rng):
    """Samples, and the gradients of images and grid, agree."""
    for count, channels in itertools.product((2,) if mode == "bicubic" else (2, 3), (1, 20)):
        for _ in range(3):
            x = rng.standard_normal((2, channels, *rng.integers(1, 6, count)))
            grid = rng.uniform(-2.5, 2.5, (2, *rng.integers(1, 5, count), count))
            upstream = rng.standard_normal((2, channels, *grid.shape[1:-1]))

            def program(lib, arrays=(x, grid), upstream=upstream):
                sampled = lambda x, grid: lib.nn.functional.grid_sample(x, grid, mode, padding, aligned)
                return differentiated(lib, sampled, arrays, upstream)

            agree(program, 1e-10, 1e-12)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 1, 3, 2, 4)])
def test_affine_grid(size, aligned, rng):
    """The points of a grid, and the gradient of its matrices, agree."""
    theta = rng.standard_normal((size[0], len(size) - 2, len(size) - 1))
    upstream = rng.standard_normal((size[0], *size[2:], len(size) - 2))

    def program(lib):
        points = lambda theta: lib.nn.functional.affine_grid(theta, size, aligned)
        return differentiated(lib, points, [theta], upstream)

    agree(lambda lib: program(lib)[:1], 1e-12, 1e-14)
    agree(lambda lib: program(lib)[1:], 1e-12)
