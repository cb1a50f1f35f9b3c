"""Rows of the ops about order."""

from __future__ import annotations

import numpy as np

from lucid.ops.reduction import sorting
from tests.samples import Sample


def distinct(*sizes):
    """Return inputs of distinct elements, a hundredth apart at least, in any order."""
    return lambda rng: (rng.permutation(np.arange(np.prod(sizes)) / 8 - 1.0).reshape(sizes),)


def integers(*sizes, high=4):
    """Return inputs of small integers."""
    return lambda rng: (rng.integers(0, high, sizes),)


def largest(x, k, axis=-1):
    """Return the largest elements of rows of distinct ones, and their places."""
    order = np.flip(np.argsort(x, axis), axis).take(range(k), axis)
    return np.take_along_axis(x, order, axis), order


ROWS = [
    Sample(
        "sort",
        sorting.sort,
        distinct(3, 4),
        lambda x: (np.sort(x), np.argsort(x)),
        lambda t, x: t.sort(x),
        empty=lambda rng: (np.zeros((3, 0)),),
    ),
    Sample(
        "sort:descending",
        lambda x: sorting.sort(x, 0, descending=True),
        distinct(4, 3),
        lambda x: largest(x, 4, 0),
        lambda t, x: t.sort(x, 0, descending=True),
    ),
    Sample(
        "argsort",
        lambda x: sorting.argsort(x, 1),
        distinct(3, 4),
        lambda x: np.argsort(x, 1),
        lambda t, x: t.argsort(x, 1),
        differentiable=False,
    ),
    Sample("topk", lambda x: sorting.topk(x, 3), distinct(3, 5), lambda x: largest(x, 3), lambda t, x: t.topk(x, 3)),
    Sample(
        "topk:few of many",
        lambda x: sorting.topk(x, 2, 0),
        distinct(11, 3),
        lambda x: largest(x, 2, 0),
        lambda t, x: t.topk(x, 2, 0),
    ),
    Sample(
        "topk:smallest",
        lambda x: sorting.topk(x, 2, largest=False),
        distinct(2, 9),
        lambda x: (np.sort(x)[:, :2], np.argsort(x)[:, :2]),
        lambda t, x: t.topk(x, 2, largest=False),
    ),
    Sample(
        "unique",
        lambda x: sorting.unique(x, return_inverse=True, return_counts=True),
        integers(3, 4),
        lambda x: np.unique(x, return_inverse=True, return_counts=True),
        lambda t, x: t.unique(x, return_inverse=True, return_counts=True),
        differentiable=False,
    ),
    Sample(
        "unique:dim",
        lambda x: sorting.unique(x, dim=1),
        integers(2, 6, high=2),
        lambda x: np.unique(x, axis=1),
        lambda t, x: t.unique(x, dim=1),
        differentiable=False,
    ),
    Sample(
        "searchsorted",
        sorting.searchsorted,
        lambda rng: (np.arange(5), rng.integers(-1, 7, (3, 4))),
        np.searchsorted,
        lambda t, x, v: t.searchsorted(x, v),
        differentiable=False,
    ),
    Sample(
        "searchsorted:rows",
        lambda x, v: sorting.searchsorted(x, v, right=True),
        lambda rng: (np.sort(rng.integers(0, 9, (3, 5))), rng.integers(0, 9, (3, 2))),
        lambda x, v: np.stack([np.searchsorted(a, b, "right") for a, b in zip(x, v, strict=True)]),
        lambda t, x, v: t.searchsorted(x, v, right=True),
        differentiable=False,
    ),
    Sample(
        "bincount",
        lambda x: sorting.bincount(x, minlength=6),
        integers(9),
        lambda x: np.bincount(x, minlength=6),
        lambda t, x: t.bincount(x, minlength=6),
        differentiable=False,
    ),
]
