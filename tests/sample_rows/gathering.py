"""Rows of the ops that pick and place single elements by index."""

from __future__ import annotations

import numpy as np

from lucid.ops.index import gather, scatter
from tests.samples import Sample


def inputs(*shapes, index=(3, 2), high=4, distinct=False):
    """Return inputs of these shapes and an index behind the first, its rows without repetitions if `distinct`."""

    def make(rng):
        first, *others = [rng.standard_normal(s) for s in shapes]
        places = rng.integers(0, high, index)
        if distinct:
            places = np.stack([rng.permutation(high)[: index[1]] for _ in range(index[0])])
        return (first, places, *others)

    return make


def put(x, index, src):
    """Return a copy of a matrix with elements of each row replaced."""
    out = x.copy()
    np.put_along_axis(out[: len(index)], index, src, 1)
    return out


def put_sum(x, index, src):
    """Return a copy of a matrix with elements added to each row."""
    out = x.copy()
    for (r, c), place in np.ndenumerate(index):
        out[r, place] += src[r, c]
    return out


ROWS = [
    Sample(
        "gather",
        lambda x, i: gather.gather(x, 1, i),
        inputs((3, 4)),
        lambda x, i: np.take_along_axis(x, i, 1),
        lambda t, x, i: t.gather(x, 1, i),
        empty=lambda rng: (np.zeros((3, 4)), np.zeros((3, 0), int)),
    ),
    Sample(
        "gather:smaller",
        lambda x, i: gather.gather(x, 0, i),
        inputs((4, 3, 2), index=(5, 2, 1)),
        lambda x, i: np.take_along_axis(x[:, :2, :1], i, 0),
        lambda t, x, i: t.gather(x, 0, i),
    ),
    Sample(
        "scatter",
        lambda x, i, s: scatter.scatter(x, 1, i, s),
        inputs((4, 4), (3, 2), distinct=True),
        put,
        lambda t, x, i, s: t.scatter(x, 1, i, s),
    ),
    # PyTorch has no gradient for a source that is longer than the index
    Sample(
        "scatter:longer source",
        lambda x, i, s: scatter.scatter(x, 1, i, s),
        inputs((4, 4), (4, 4), distinct=True),
        lambda x, i, s: put(x, i, s[:3, :2]),
    ),
    Sample(
        "scatter:value",
        lambda x, i: scatter.scatter(x, 1, i, value=2.0),
        inputs((3, 4)),
        lambda x, i: put(x, i, 2.0),
        lambda t, x, i: t.scatter(x, 1, i, 2.0),
    ),
    Sample("scatter:add", lambda x, i, s: scatter.scatter(x, 1, i, s, reduce="add"), inputs((3, 4), (3, 2)), put_sum),
    Sample(
        "scatter:add value",
        lambda x, i: scatter.scatter(x, 1, i, 0.5, reduce="add"),
        inputs((3, 4)),
        lambda x, i: put_sum(x, i, np.full(i.shape, 0.5)),
    ),
    Sample(
        "scatter_add",
        lambda x, i, s: scatter.scatter_add(x, 1, i, s),
        inputs((3, 4), (3, 2)),
        put_sum,
        lambda t, x, i, s: t.scatter_add(x, 1, i, s),
    ),
    Sample(
        "scatter_add:longer source", lambda x, i, s: scatter.scatter_add(x, 1, i, s), inputs((3, 4), (4, 3)), put_sum
    ),
    Sample(
        "take",
        gather.take,
        lambda rng: (rng.standard_normal((3, 4)), rng.integers(-12, 12, (2, 5))),
        np.take,
        lambda t, x, i: t.take(x, i),
    ),
    Sample(
        "take_along_dim",
        lambda x, i: gather.take_along_dim(x, i, 1),
        inputs((3, 4), index=(1, 5)),
        lambda x, i: np.take_along_axis(x, np.broadcast_to(i, (3, 5)), 1),
        lambda t, x, i: t.take_along_dim(x, i, 1),
    ),
    Sample(
        "take_along_dim:flat",
        gather.take_along_dim,
        inputs((3, 4), index=(5,)),
        lambda x, i: x.reshape(-1)[i],
        lambda t, x, i: t.take_along_dim(x, i),
    ),
    Sample(
        "one_hot",
        lambda i: gather.one_hot(i, 5),
        lambda rng: (rng.integers(0, 5, (2, 3)),),
        lambda i: np.eye(5, dtype=int)[i],
        lambda t, i: t.nn.functional.one_hot(i, 5),
        differentiable=False,
    ),
]
