"""Rows of a table by their numbers."""

from __future__ import annotations

import numpy as np

from lucid.ops.layers.embedding import embedding
from tests.samples import Sample


def draw(rng):
    """Draw numbers of rows, which repeat, and a table."""
    return np.concatenate([np.array([1, 1, 4]), rng.integers(0, 6, 5)]).reshape(2, 4), rng.standard_normal((6, 3))


ROWS = [
    Sample(
        "embedding",
        embedding,
        draw,
        lambda index, table: table[index],
        lambda torch, index, table: torch.nn.functional.embedding(index, table),
        empty=lambda rng: (np.zeros((0, 2), np.int64), rng.standard_normal((6, 3))),
    ),
    # a row that is named nowhere gets no gradient anyway: with others, backward leaves out what finite differences see
    Sample(
        "embedding:padding",
        lambda index, table: embedding(index, table, padding_idx=-1),
        lambda rng: (rng.integers(0, 5, (2, 4)), rng.standard_normal((6, 3))),
        lambda index, table: table[index],
        lambda torch, index, table: torch.nn.functional.embedding(index, table, padding_idx=-1),
    ),
]
