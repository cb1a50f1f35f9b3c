"""Rows of a table by their numbers."""

from __future__ import annotations

import numpy as np

import lucid
from lucid.ops.embedding.embedding import embedding
from lucid.ops.embedding.embedding_bag import embedding_bag
from tests.samples import Sample


def draw(rng):
    """Draw numbers of rows, which repeat, and a table."""
    return np.concatenate([np.array([1, 1, 4]), rng.integers(0, 6, 5)]).reshape(2, 4), rng.standard_normal((6, 3))


# where the bags of eight places begin: one of them is empty
STARTS = [0, 2, 2, 3]


def draw_bags(*shares):
    """Return what draws numbers of rows, a table and factors of the places."""

    def inputs(rng):
        index, table = draw(rng)
        return (index.reshape(-1), table, *[rng.uniform(0.5, 1.5, index.size) for _ in shares])

    return inputs


def bags(index, table, reduced, ends, shares=1.0):
    """Return what comes of the rows of each bag, zero of none."""
    rows = table[index] * np.reshape(shares, (-1, 1))
    parts = [rows[start:end] for start, end in zip(STARTS, ends, strict=True)]
    return np.stack([reduced(part, 0) if len(part) else np.zeros(table.shape[1]) for part in parts])


def bag_row(name, reduced, *shares, starts=STARTS, **settings):
    """Return the row of bags of one kind."""
    ends = [*starts[1:], 8][: len(STARTS)]

    def in_bags(function, tensor):
        def call(index, table, *factors):
            offsets = tensor(starts).to(index.device)
            given = {"per_sample_weights": factors[0]} if factors else {}
            return function(index, table, offsets, **settings, **given)

        return call

    return Sample(
        f"embedding_bag:{name}",
        in_bags(embedding_bag, lucid.tensor),
        draw_bags(*shares),
        lambda index, table, *factors: bags(index, table, reduced, ends, *factors),
        # PyTorch's gradient of places behind the last end is what happens to be in memory
        None if ends[-1] < 8 else lambda torch, *a: in_bags(torch.nn.functional.embedding_bag, torch.tensor)(*a),
    )


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
    bag_row("sum", np.sum, "shares", mode="sum"),
    bag_row("sum:ends", np.sum, starts=[*STARTS, 6], mode="sum", include_last_offset=True),
    bag_row("mean", np.mean),
    bag_row("max", np.max, mode="max"),
    Sample(
        "embedding_bag:rows",
        lambda index, table: embedding_bag(index, table, padding_idx=-1),
        lambda rng: (np.concatenate([np.full((3, 1), 1), rng.integers(0, 5, (3, 3))], 1), rng.standard_normal((6, 3))),
        lambda index, table: table[index].mean(1),
        lambda torch, index, table: torch.nn.functional.embedding_bag(index, table, padding_idx=-1),
        empty=lambda rng: (np.zeros((0, 2), np.int64), rng.standard_normal((6, 3))),
    ),
]
