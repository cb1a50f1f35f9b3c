"""Order against PyTorch where rows cannot reach: NaN, ties, dtypes, options, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]


def both(array, dtype=None):
    """Return an array as a tensor of lucid and of PyTorch."""
    kinds = (None, None) if dtype is None else (getattr(lucid, dtype), getattr(torch, dtype))
    return lucid.tensor(array, dtype=kinds[0]), torch.tensor(array, dtype=kinds[1])


def same(ours, theirs):
    """Fail unless values, NaN included, and dtypes agree."""
    assert str(ours.dtype).removeprefix("lucid.") == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(ours.to(lucid.float64).numpy(force=True), theirs.to(torch.float64).numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_stable_sort(dtype, descending, rng):
    """Equal elements keep their order in both directions, in every dtype."""
    ours, theirs = both(rng.integers(0, 4, (5, 40)), dtype)
    got, expected = ours.sort(1, descending), theirs.sort(dim=1, descending=descending, stable=True)
    same(got.values, expected.values)
    same(got.indices, expected.indices)
    same(lucid.argsort(ours, 0, descending), torch.argsort(theirs, dim=0, descending=descending, stable=True))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_largest(dtype, rng):
    """NaN sorts behind infinity, comes first among the largest and last among the smallest."""
    array = rng.permutation([np.nan, np.inf, -np.inf, 0.0, 1.0, -2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    ours, theirs = both(array, dtype)
    for descending in (False, True):
        same(ours.sort(descending=descending).values, theirs.sort(descending=descending).values)
    for k in (2, 9):
        for largest in (False, True):
            same(ours.topk(k, largest=largest).values, theirs.topk(k, largest=largest).values)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
def test_topk_of_ties(dtype, rng):
    """Among ties the values are PyTorch's, and the indices lead to them without repetition."""
    ours, theirs = both(rng.integers(0, 5, (6, 50)), dtype)
    for k in (0, 1, 7, 30, 50):
        got = ours.topk(k, 1)
        same(got.values, theirs.topk(k, 1).values)
        same(lucid.gather(ours, 1, got.indices), theirs.topk(k, 1).values)
        assert all(len(set(row)) == k for row in got.indices.tolist())


def test_scalars():
    """A tensor of no dimension is sorted, chosen from and told apart as one element."""
    ours, theirs = both(3.5)
    same(ours.sort().values, theirs.sort().values)
    same(ours.sort().indices, theirs.sort().indices)
    same(ours.topk(1).values, theirs.topk(1).values)
    same(lucid.unique(ours), torch.unique(theirs))


def test_unique(rng):
    """Distinct elements, NaN being distinct from itself, with every combination of further results."""
    for array in (np.array([np.nan, 1.0, np.nan, -1.0, 1.0]), rng.integers(0, 3, (3, 4))):
        ours, theirs = both(array)
        for inverse in (False, True):
            for counts in (False, True):
                got, expected = lucid.unique(ours, True, inverse, counts), torch.unique(theirs, True, inverse, counts)
                if not (inverse or counts):
                    got, expected = (got,), (expected,)
                assert len(got) == len(expected)
                for one, other in zip(got, expected, strict=True):
                    same(one, other)


@pytest.mark.parametrize("kwargs", [{}, {"right": True}, {"side": "right"}, {"side": "left"}, {"out_int32": True}])
def test_searchsorted(kwargs, rng):
    """Places in sorted rows, before or behind equal elements."""
    rows, values = np.sort(rng.integers(0, 9, (2, 3, 6)).astype(float)), rng.integers(0, 9, (2, 3, 4)).astype(float)
    same(lucid.searchsorted(*[lucid.tensor(a) for a in (rows, values)], **kwargs),
         torch.searchsorted(*[torch.tensor(a) for a in (rows, values)], **kwargs))  # fmt: skip
    same(
        lucid.searchsorted(lucid.tensor(rows[0, 0]), 4.0, **kwargs),
        torch.searchsorted(torch.tensor(rows[0, 0]), 4.0, **kwargs),
    )
    order = np.flip(np.arange(6)) + np.zeros((2, 3, 1), np.int64)
    given = [np.flip(rows, -1).copy(), values, order]
    *ours, sorter = [lucid.tensor(a) for a in given]
    *theirs, their_sorter = [torch.tensor(a) for a in given]
    same(lucid.searchsorted(*ours, sorter=sorter, **kwargs), torch.searchsorted(*theirs, sorter=their_sorter, **kwargs))


@pytest.mark.parametrize("weights", [None, "float32", "float64", "int64"])
def test_bincount(weights, rng):
    """Counts and weighted counts, in PyTorch's dtypes."""
    ours, theirs = both(rng.integers(0, 6, 20))
    if weights is None:
        same(lucid.bincount(ours, minlength=9), torch.bincount(theirs, minlength=9))
        return
    heavy, their_heavy = both(rng.integers(0, 9, 20), weights)
    same(lucid.bincount(ours, heavy), torch.bincount(theirs, their_heavy))


MISTAKES = {
    "complex": (lambda x: x.to(lucid.complex64).sort(), DtypeError, "no order"),
    "dim": (lambda x: x.sort(2), IndexOutOfRangeError, r"\[-1, 0\], but got 2"),
    "k": (lambda x: x.topk(4), IndexOutOfRangeError, "expected 0 to 3, got 4"),
    "rows": (lambda x: lucid.searchsorted(lucid.stack([x, x]), x), ShapeError, "one sorted row"),
    "side": (lambda x: lucid.searchsorted(x, x, side="left", right=True), ValueError, "agrees"),
    "float counts": (lucid.bincount, DtypeError, "integral"),
    "negative counts": (lambda x: lucid.bincount(lucid.tensor([-1])), ShapeError, "non-negative"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    """What has no order, no such place or no count raises and says so."""
    call, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        call(lucid.tensor([1.0, 2.0, 3.0]))
