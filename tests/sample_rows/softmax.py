"""Softmax and its relatives."""

from __future__ import annotations

import numpy as np

from lucid.ops.activation import softmax as family
from tests.samples import Sample

SHAPE = (3, 4, 5)


def draw(rng):
    """Draw one array."""
    return (2 * rng.standard_normal(SHAPE),)


def shares(x, axis):
    """Return the softmax."""
    powers = np.exp(x)
    return powers / powers.sum(axis=axis, keepdims=True)


def rows(op, reference):
    """Return the rows of one op along each dimension."""
    return [
        Sample(
            f"{op.__name__}:{dim}",
            lambda x, dim=dim: op(x, dim),
            draw,
            lambda x, dim=dim: reference(x, dim),
            lambda torch, x, dim=dim: getattr(torch.nn.functional, op.__name__)(x, dim),
            empty=lambda rng: (np.zeros((3, 0, 5)),),
        )
        for dim in (0, 1, -1)
    ]


ROWS = [
    *rows(family.softmax, shares),
    *rows(family.log_softmax, lambda x, axis: np.log(shares(x, axis))),
    *rows(family.softmin, lambda x, axis: shares(-x, axis)),
    Sample(
        "softmax:scalar",
        lambda x: family.softmax(x.sum(), 0),
        draw,
        lambda x: np.ones(()),
        lambda torch, x: torch.softmax(x.sum(), 0),
    ),
    Sample(
        "softmax:dtype",
        lambda x: family.softmax(x, 1, dtype="float64"),
        draw,
        lambda x: shares(x, 1),
        lambda torch, x: torch.softmax(x, 1, dtype=torch.float64),
        dtypes=("float64",),
    ),
]
