"""Distances of vectors and of all rows with all."""

from __future__ import annotations

import math

import numpy as np

from lucid.ops.linalg.distances import cdist, dist, pairwise_distance, pdist
from tests.samples import Sample


def norms(differences, p):
    """Return the norms along the last axis."""
    return np.linalg.norm(differences, p, -1)


def rows(*shapes):
    """Return what draws matrices, no two elements of which are near each other."""

    def inputs(rng):
        count = sum(math.prod(shape) for shape in shapes)
        numbers = rng.permutation(count) / count * 4 + rng.uniform(0, 0.5 / count, count)
        parts = np.split(numbers, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
        return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))

    return inputs


def steep(*shapes):
    """Return what draws matrices whose rows differ most in their last element."""

    def inputs(rng):
        a, b = (rng.uniform(-0.3, 0.3, shape) for shape in shapes)
        return a, b + np.arange(1, shapes[1][-1] + 1)

    return inputs


def of_all(p, *shapes, **settings):
    """Return the row of all distances of order `p`."""
    name = "".join(f":{key}" for key in settings.values())
    return Sample(
        f"cdist:{p}{name}:{len(shapes[0])}",
        lambda a, b: cdist(a, b, p, **settings),
        (steep if p == math.inf else rows)(*shapes),
        lambda a, b: norms(a[..., :, None, :] - b[..., None, :, :], p),
        lambda torch, a, b: torch.cdist(a, b, p, **settings),
        empty=(lambda rng: (np.zeros((0, 3)), rng.standard_normal((2, 3)))) if len(shapes[0]) == 2 else None,
        # a difference of squares cancels
        tolerance={"float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2} if settings else {},
    )


def above(torch, x, p):
    """Return PyTorch's distances of all pairs; its pdist ends the process where there is no column."""
    places = torch.triu_indices(len(x), len(x), 1)
    return torch.cdist(x, x, p, "donot_use_mm_for_euclid_dist")[places[0], places[1]]


ROWS = [
    *(of_all(p, (4, 3), (5, 3)) for p in (0.5, 1, 2, 3, math.inf)),
    of_all(2, (3, 1, 2, 3), (2, 4, 3)),
    of_all(2, (4, 3), (5, 3), compute_mode="use_mm_for_euclid_dist"),
    Sample(
        "pdist",
        pdist,
        rows((4, 3)),
        lambda x: norms(x[:, None] - x, 2)[np.triu_indices(4, 1)],
        lambda torch, x: above(torch, x, 2.0),
    ),
    Sample(
        "pdist:1",
        lambda x: pdist(x, 1),
        rows((4, 3)),
        lambda x: norms(x[:, None] - x, 1)[np.triu_indices(4, 1)],
        lambda torch, x: above(torch, x, 1.0),
    ),
    Sample(
        "dist", dist, rows((4, 3), (3,)), lambda a, b: norms((a - b).ravel(), 2), lambda torch, a, b: torch.dist(a, b)
    ),
    Sample(
        "dist:3",
        lambda a, b: dist(a, b, 3),
        rows((4, 3), (4, 3)),
        lambda a, b: norms((a - b).ravel(), 3),
        lambda torch, a, b: torch.dist(a, b, 3),
    ),
    Sample(
        "pairwise_distance",
        pairwise_distance,
        rows((4, 3), (4, 3)),
        lambda a, b: norms(a - b + 1e-6, 2),
        lambda torch, a, b: torch.pairwise_distance(a, b),
    ),
    Sample(
        "pairwise_distance:1",
        lambda a, b: pairwise_distance(a, b, 1.0, 0.0, True),
        rows((4, 3), (3,)),
        lambda a, b: norms(a - b, 1)[:, None],
        lambda torch, a, b: torch.pairwise_distance(a, b, 1.0, 0.0, keepdim=True),
    ),
]
