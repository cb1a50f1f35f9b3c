"""Images at the points of a grid, and grids of points."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from lucid.ops.resampling.grid import affine_grid, grid_sample
from tests.sample_rows.linalg.products import normal
from tests.sample_rows.resampling.interpolation import hat, keys
from tests.samples import Sample

KERNELS = {"bilinear": hat, "bicubic": functools.partial(keys, a=-0.75)}


def moved_inside(position, size, padding, aligned):
    """Return a position where the padding has it; in zeros there is nothing to move."""
    if padding == "reflection":
        least, most = (0, size - 1) if aligned else (-0.5, size - 0.5)
        while not least <= position <= most and least < most:
            position = 2 * least - position if position < least else 2 * most - position
    return position if padding == "zeros" else min(max(position, 0), size - 1)


def sampled(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Return the samples, one point at a time: sums over elements weighed by their distances."""
    count = x.ndim - 2
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *point in np.ndindex(grid.shape[:-1]):
        near = []
        for dim in range(count):
            size, place = x.shape[2 + dim], grid[(n, *point, count - 1 - dim)]
            position = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
            if mode != "bicubic":
                position = moved_inside(position, size, padding_mode, align_corners)
            weights = np.zeros(size)
            first = math.floor(position)
            reached = [round(position)] if mode == "nearest" else range(first - 1, first + 3)
            for element in reached:
                at = moved_inside(element, size, padding_mode, align_corners)
                if 0 <= at < size:
                    weights[int(at)] += 1 if mode == "nearest" else KERNELS[mode](position - element)
            near.append(weights)
        for element in itertools.product(*map(range, x.shape[2:])):
            weight = math.prod(near[dim][k] for dim, k in enumerate(element))
            out[(n, slice(None), *point)] += weight * x[(n, slice(None), *element)]
    return out


def away_from_kinks(shape, points):
    """Return images, and a grid whose points, inside and outside, are neither on elements nor half-way between them."""

    def inputs(rng):
        sizes = np.array(shape[:1:-1])
        position = rng.integers(-2, sizes + 1, (*points, len(sizes))) + rng.choice([0.15, 0.6], (*points, len(sizes)))
        position += rng.uniform(0, 0.25, position.shape)
        return rng.standard_normal(shape), (2 * position + 1) / sizes - 1

    return inputs


def aligned(inputs):
    """Return the same points, of which -1 and 1 are the centres of the elements at the ends."""

    def moved(rng):
        x, grid = inputs(rng)
        sizes = np.array(x.shape[:1:-1])
        return x, (((grid + 1) * sizes - 1) / 2) * 2 / (sizes - 1) - 1

    return moved


def near_enough(grid):
    """Refuse points far outside, as NaN and infinity, which lead PyTorch to read beyond the image and crash."""
    if not bool((grid.abs() < 1000).all()):
        raise ValueError("expected points of less than 1000")
    return grid


def row(name, shape, points, **settings):
    """Return the row of one setting."""
    inputs = away_from_kinks(shape, (shape[0], *points))
    return Sample(
        f"grid_sample:{name}",
        functools.partial(grid_sample, **settings),
        aligned(inputs) if settings.get("align_corners") else inputs,
        functools.partial(sampled, **settings),
        lambda torch, x, grid: torch.nn.functional.grid_sample(
            x, near_enough(grid), **{"align_corners": False, **settings}
        ),
        empty=normal((0, *shape[1:]), (0, *points, len(points))),
    )


ROWS = [
    row("bilinear", (2, 2, 3, 4), (3, 2)),
    row("bilinear border", (1, 3, 4, 3), (2, 5), padding_mode="border", align_corners=True),
    row("bilinear reflection", (1, 2, 3, 4), (4, 2), padding_mode="reflection"),
    row("nearest", (2, 2, 4, 3), (3, 2), mode="nearest", padding_mode="reflection", align_corners=True),
    row("bicubic", (1, 2, 4, 5), (3, 2), mode="bicubic"),
    row("bicubic border", (1, 2, 3, 4), (2, 2), mode="bicubic", padding_mode="border", align_corners=True),
    row("bicubic reflection", (1, 2, 3, 4), (2, 3), mode="bicubic", padding_mode="reflection"),
    row("volumes", (1, 2, 3, 2, 4), (2, 1, 3)),
    row("volumes reflection", (2, 1, 2, 3, 3), (1, 2, 2), padding_mode="reflection", align_corners=True),
    *[
        Sample(
            f"affine_grid:{name}",
            lambda theta, size=size, corners=corners: affine_grid(theta, size, corners),
            normal((size[0], len(size) - 2, len(size) - 1)),
            lambda theta, size=size, corners=corners: points_of(theta, size[2:], corners),
            lambda torch, theta, size=size, corners=corners: torch.nn.functional.affine_grid(theta, size, corners),
        )
        for name, size, corners in (("images", (2, 1, 3, 4), False), ("volumes", (1, 3, 2, 4, 3), True))
    ],
]


def points_of(theta, sizes, align_corners):
    """Return the moved points, one at a time."""
    out = np.zeros((len(theta), *sizes, len(sizes)))
    for n, *index in np.ndindex(out.shape[:-1]):
        point = [1.0]
        for k, size in zip(index, sizes, strict=True):
            if align_corners:
                point.insert(0, 2 * k / (size - 1) - 1 if size > 1 else 0.0)
            else:
                point.insert(0, (2 * k + 1) / size - 1)
        out[(n, *index)] = theta[n] @ point
    return out
