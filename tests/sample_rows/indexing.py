"""Rows of indexing, of parts along dimensions, of masks, and of assignment."""

from __future__ import annotations

import numpy as np

from lucid.ops.index import index_select, indexing, masked_select, select
from lucid.ops.shape import reshape
from tests.samples import Sample


def normal(*shapes):
    """Return inputs of these shapes."""
    return lambda rng: tuple(rng.standard_normal(s) for s in shapes)


def with_index(*shapes, high=3, size=4, repeat=True):
    """Return inputs of these shapes and an index of one dimension behind the first."""

    def inputs(rng):
        index = rng.integers(0, high, size) if repeat else rng.permutation(high)[:size]
        first, *others = [rng.standard_normal(s) for s in shapes]
        return (first, index, *others)

    return inputs


def with_mask(*shapes):
    """Return inputs of these shapes and a mask behind the first."""

    def inputs(rng):
        first, *others = [rng.standard_normal(s) for s in shapes]
        mask = rng.random(first.shape) < 0.5
        mask.reshape(-1)[:2] = True, False
        return (first, mask, *others)

    return inputs


KEYS = {
    "int": 1,
    "negative": (-1, -2),
    "all": (0, 1, 2),
    "slice": (slice(None), slice(1, None, 2)),
    "none": (None, 0, ..., None),
    "ellipsis": (..., 1),
    "list": [2, 0, 2, -1],
    "two": ([0, 2, 0], [1, 1, 1]),
    "last": (slice(None), slice(None), [3, 0, 0]),
    "apart": ([0, 2], slice(None), [1, -1]),
    "broadcast": ([[0], [2]], [0, 1, 1]),
    "mixed": (slice(1, None), None, [0, 1, 1], slice(0, 3, 2)),
}


def key_of(module, key):
    """Return a key with its lists as tensors or arrays of a module."""
    if isinstance(key, tuple):
        return tuple(key_of(module, part) for part in key)
    return module.asarray(key) if isinstance(key, list) else key


def written(x, key, value):
    """Return a copy of an array after an assignment."""
    out = x.copy()
    out[key] = value.reshape(out[key].shape) if np.size(value) == out[key].size else value
    return out


def assigned(x, index, value):
    """Return a copy of a tensor after an assignment."""
    out = reshape.clone(x)
    indexing.setitem(out, index, value)
    return out


def torch_assigned(x, index, value):
    """Return a copy of a PyTorch tensor after an assignment."""
    out = x.clone()
    out[index] = value
    return out


def added(x, index, source, factor=1.0):
    """Return a copy of an array with rows added."""
    out = x.copy()
    np.add.at(out, index, factor * source)
    return out


def masked(x, mask, value):
    """Return a copy of an array with masked elements replaced."""
    return np.where(mask, value, x)


ROWS = [
    *[
        Sample(
            f"getitem:{name}",
            lambda x, key=key: indexing.getitem(x, key),
            normal((3, 4, 5)),
            lambda x, key=key: x[key_of(np, key)],
            lambda t, x, key=key: x[key_of(t, key)],
        )
        for name, key in KEYS.items()
    ],
    Sample(
        "getitem:int and tensor",
        lambda x: indexing.getitem(x, (0, slice(None), [1, 1])),
        normal((3, 4, 5)),
        lambda x: x[0][:, [1, 1]],
        lambda t, x: x[0, :, [1, 1]],
    ),
    Sample(
        "getitem:mask",
        indexing.getitem,
        with_mask((3, 4)),
        lambda x, mask: x[mask],
        lambda t, x, mask: x[mask],
        empty=lambda rng: (np.zeros((0, 2)), np.zeros((0, 2), bool)),
    ),
    Sample(
        "getitem:mask of rows",
        indexing.getitem,
        lambda rng: (rng.standard_normal((3, 4)), np.array([True, False, True])),
        lambda x, mask: x[mask],
        lambda t, x, mask: x[mask],
    ),
    Sample(
        "getitem:mask and index",
        lambda x, mask: indexing.getitem(x, (slice(None), mask, [0, 1])),
        lambda rng: (rng.standard_normal((2, 3, 4)), np.array([True, False, True])),
        lambda x, mask: x[:, mask, [0, 1]],
        lambda t, x, mask: x[:, mask, [0, 1]],
    ),
    *[
        Sample(
            f"setitem:{name}",
            lambda x, value, key=key: assigned(x, key, value),
            lambda rng, key=key: (
                rng.standard_normal((3, 4, 5)),
                rng.standard_normal(np.zeros((3, 4, 5))[key_of(np, key)].shape or (1,)),
            ),
            lambda x, value, key=key: written(x, key_of(np, key), value),
            lambda t, x, value, key=key: torch_assigned(x, key_of(t, key), value),
        )
        for name, key in KEYS.items()
        if name not in {"list", "two", "last", "broadcast", "mixed"}
    ],
    Sample(
        "setitem:distinct",
        lambda x, value: assigned(x, (slice(None), [3, 0]), value),
        normal((3, 4), (1, 2)),
        lambda x, value: written(x, (slice(None), [3, 0]), value),
        lambda t, x, value: torch_assigned(x, (slice(None), [3, 0]), value),
    ),
    Sample(
        "setitem:mask",
        lambda x, mask, value: assigned(x, mask, reshape.reshape(value, ())),
        with_mask((3, 4), (1,)),
        lambda x, mask, value: written(x, mask, value[0]),
        lambda t, x, mask, value: torch_assigned(x, mask, value[0]),
    ),
    Sample(
        "setitem:masked rows",
        lambda x, mask, value: assigned(x, mask, value),
        lambda rng: (rng.standard_normal((3, 4)), np.array([True, False, True]), rng.standard_normal((2, 4))),
        lambda x, mask, value: written(x, mask, value),
        lambda t, x, mask, value: torch_assigned(x, mask, value),
    ),
    Sample(
        "setitem:number",
        lambda x: assigned(x, (slice(None), 1), 0.5),
        normal((3, 4)),
        lambda x: written(x, (slice(None), 1), np.array(0.5)),
        lambda t, x: torch_assigned(x, (slice(None), 1), 0.5),
    ),
    Sample(
        "index_put",
        lambda x, i, j, v: indexing.index_put(x, (i, j), v),
        lambda rng: (rng.standard_normal((3, 4)), np.array([0, 2]), np.array([1, 1]), rng.standard_normal(2)),
        lambda x, i, j, v: written(x, (i, j), v),
        lambda t, x, i, j, v: x.index_put((i, j), v),
    ),
    Sample(
        "index_put:accumulate",
        lambda x, i, v: indexing.index_put(x, (i,), v, accumulate=True),
        with_index((3, 2), (1, 2)),
        lambda x, i, v: added(x, i, v),
        lambda t, x, i, v: x.index_put((i,), v, True),
    ),
    Sample(
        "select",
        lambda x: select.select(x, 1, -1),
        normal((2, 3, 4)),
        lambda x: x[:, -1],
        lambda t, x: t.select(x, 1, -1),
    ),
    Sample(
        "narrow",
        lambda x: select.narrow(x, -1, 1, 2),
        normal((2, 4)),
        lambda x: x[:, 1:3],
        lambda t, x: t.narrow(x, -1, 1, 2),
    ),
    Sample(
        "unfold",
        lambda x: select.unfold(x, 1, 3, 2),
        normal((2, 8, 2)),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1)[:, ::2],
        lambda t, x: x.unfold(1, 3, 2),
    ),
    Sample(
        "index_select",
        lambda x, i: index_select.index_select(x, 1, i),
        with_index((2, 3)),
        lambda x, i: x[:, i],
        lambda t, x, i: t.index_select(x, 1, i),
        empty=lambda rng: (np.zeros((2, 3)), np.zeros(0, int)),
    ),
    Sample(
        "index_add",
        lambda x, i, s: index_select.index_add(x, 0, i, s, alpha=0.5),
        with_index((3, 2), (4, 2)),
        lambda x, i, s: added(x, i, s, 0.5),
        lambda t, x, i, s: t.index_add(x, 0, i, s, alpha=0.5),
    ),
    Sample(
        "index_copy",
        lambda x, i, s: index_select.index_copy(x, 0, i, s),
        with_index((3, 2), (2, 2), size=2, repeat=False),
        lambda x, i, s: written(x, i, s),
        lambda t, x, i, s: t.index_copy(x, 0, i, s),
    ),
    Sample(
        "index_fill",
        lambda x, i: index_select.index_fill(x, 1, i, 2.0),
        with_index((2, 3)),
        lambda x, i: written(x, (slice(None), i), np.array(2.0)),
        lambda t, x, i: t.index_fill(x, 1, i, 2.0),
    ),
    Sample(
        "masked_fill",
        lambda x, mask: masked_select.masked_fill(x, mask, 2.0),
        with_mask((3, 4)),
        lambda x, mask: masked(x, mask, 2.0),
        lambda t, x, mask: t.masked_fill(x, mask, 2.0),
        empty=lambda rng: (np.zeros((0, 2)), np.zeros((0, 2), bool)),
        broadcasts=True,
    ),
    Sample(
        "masked_fill:tensor",
        lambda x, mask, value: masked_select.masked_fill(x, mask, reshape.reshape(value, ())),
        with_mask((3, 4), (1,)),
        masked,
        lambda t, x, mask, value: t.masked_fill(x, mask, value[0]),
    ),
    Sample(
        "masked_select",
        masked_select.masked_select,
        with_mask((3, 4)),
        lambda x, mask: x[mask],
        lambda t, x, mask: t.masked_select(x, mask),
        empty=lambda rng: (np.zeros((0, 2)), np.zeros((0, 2), bool)),
    ),
    Sample(
        "masked_select:broadcast",
        masked_select.masked_select,
        lambda rng: (rng.standard_normal((2, 1)), np.array([True, False, True])),
        lambda x, mask: np.broadcast_to(x, (2, 3))[np.broadcast_to(mask, (2, 3))],
        lambda t, x, mask: t.masked_select(x, mask),
    ),
    Sample(
        "masked_scatter",
        masked_select.masked_scatter,
        with_mask((3, 4), (4, 4)),
        lambda x, mask, s: written(x, mask, s.reshape(-1)[: mask.sum()]),
        lambda t, x, mask, s: t.masked_scatter(x, mask, s),
    ),
    Sample(
        "nonzero",
        masked_select.nonzero,
        lambda rng: (rng.integers(0, 2, (3, 4)),),
        lambda x: np.argwhere(x),
        lambda t, x: t.nonzero(x),
        differentiable=False,
        empty=lambda rng: (np.zeros((0, 2), int),),
    ),
    Sample(
        "nonzero:tuple",
        lambda x: masked_select.nonzero(x, as_tuple=True),
        lambda rng: (rng.integers(0, 2, (3, 4)),),
        lambda x: np.nonzero(x),
        lambda t, x: t.nonzero(x, as_tuple=True),
        differentiable=False,
    ),
    Sample(
        "argwhere",
        masked_select.argwhere,
        lambda rng: (rng.integers(0, 2, 5),),
        lambda x: np.argwhere(x),
        lambda t, x: t.argwhere(x),
        differentiable=False,
    ),
]
