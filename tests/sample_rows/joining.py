"""Rows of the ops that join tensors and cut them."""

from __future__ import annotations

import numpy as np

from lucid.ops.shape import joining, splitting
from tests.samples import Sample


def normal(*shapes):
    """Return inputs of these shapes."""
    return lambda rng: tuple(rng.standard_normal(s) for s in shapes)


ROWS = [
    Sample(
        "cat",
        lambda *xs: joining.cat(xs, 1),
        normal((2, 3), (2, 1), (2, 2)),
        lambda *xs: np.concatenate(xs, 1),
        lambda t, *xs: t.cat(xs, 1),
        empty=normal((2, 3), (2, 0), (2, 2)),
    ),
    Sample(
        "cat:last",
        lambda *xs: joining.cat(xs, -1),
        normal((3,), (2,)),
        lambda *xs: np.concatenate(xs, -1),
        lambda t, *xs: t.cat(xs, -1),
    ),
    Sample(
        "concat",
        lambda *xs: joining.concat(xs),
        normal((1, 3), (2, 3)),
        lambda *xs: np.concatenate(xs),
        lambda t, *xs: t.concat(xs),
    ),
    Sample(
        "stack",
        lambda *xs: joining.stack(xs, -2),
        normal((2, 3), (2, 3), (2, 3)),
        lambda *xs: np.stack(xs, -2),
        lambda t, *xs: t.stack(xs, -2),
        empty=normal((2, 0), (2, 0)),
    ),
    Sample(
        "hstack",
        lambda *xs: joining.hstack(xs),
        normal((2, 3), (2, 1)),
        lambda *xs: np.hstack(xs),
        lambda t, *xs: t.hstack(xs),
    ),
    Sample(
        "hstack:vectors",
        lambda *xs: joining.hstack(xs),
        normal((2,), (3,)),
        lambda *xs: np.hstack(xs),
        lambda t, *xs: t.hstack(xs),
    ),
    Sample(
        "vstack",
        lambda *xs: joining.vstack(xs),
        normal((3,), (2, 3)),
        lambda *xs: np.vstack(xs),
        lambda t, *xs: t.vstack(xs),
    ),
    Sample(
        "split",
        lambda x: splitting.split(x, 2, 1),
        normal((2, 5)),
        lambda x: tuple(np.split(x, [2, 4], 1)),
        lambda t, x: t.split(x, 2, 1),
        empty=normal((0, 5)),
    ),
    Sample(
        "split:sizes",
        lambda x: splitting.split(x, [1, 0, 4], -1),
        normal((2, 5)),
        lambda x: tuple(np.split(x, [1, 1], -1)),
        lambda t, x: t.split(x, [1, 0, 4], -1),
    ),
    Sample("split:whole", lambda x: splitting.split(x, 7), normal((5, 2)), lambda x: (x,), lambda t, x: t.split(x, 7)),
    Sample(
        "chunk",
        lambda x: splitting.chunk(x, 3),
        normal((5, 2)),
        lambda x: tuple(np.split(x, [2, 4])),
        lambda t, x: t.chunk(x, 3),
    ),
    Sample(
        "tensor_split",
        lambda x: splitting.tensor_split(x, 3, 1),
        normal((2, 5)),
        lambda x: tuple(np.array_split(x, 3, 1)),
        lambda t, x: t.tensor_split(x, 3, 1),
    ),
    Sample(
        "tensor_split:places",
        lambda x: splitting.tensor_split(x, (1, 3)),
        normal((5, 2)),
        lambda x: tuple(np.split(x, [1, 3])),
        lambda t, x: t.tensor_split(x, (1, 3)),
    ),
    Sample(
        "unbind",
        lambda x: splitting.unbind(x, 1),
        normal((2, 3, 4)),
        lambda x: tuple(np.moveaxis(x, 1, 0)),
        lambda t, x: t.unbind(x, 1),
        empty=normal((0, 3)),
    ),
]
