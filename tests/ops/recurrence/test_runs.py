"""Runs cover the rows of a sequence once, in the order of its steps, and factors give their products."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.ops.recurrence import runs
from lucid.ops.recurrence.runs import Factor, Run, runs_of, states_before


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("sizes", [(3,), (2, 2, 2, 2, 2), (5, 4, 4, 4, 1, 1), (0, 0)])
def test_runs_cover_the_steps_once(sizes, backwards, monkeypatch):
    """Each step is in one run with those of its size beside it, of as many elements as a block has at most."""
    monkeypatch.setattr(runs, "BLOCK", 24)
    made = runs_of(sizes, 3, backwards=backwards)
    steps = [size for run in made for size in [run.size] * run.steps]
    assert steps == list(sizes[::-1] if backwards else sizes)
    assert all(run.steps * run.size * 3 <= 24 or run.steps == 1 for run in made)
    ordered = made[::-1] if backwards else made
    starts = np.cumsum([0, *(run.steps * run.size for run in ordered)])[:-1]
    assert [run.start for run in ordered] == list(starts)


def test_parts_of_steps():
    """The rows of a run come step by step, as steps are done or in reverse; None stays None."""
    rows = np.arange(20.0).reshape(10, 2)
    for backwards in (False, True):
        run = Run(2, 3, 2, backwards)
        expected = [rows[2:4], rows[4:6], rows[6:8]]
        for reverse in (False, True):
            parts = [*run.zipped(run.of(rows), None, reverse=reverse)]
            for (part, none), rest in zip(parts, expected[:: -1 if backwards != reverse else 1], strict=True):
                np.testing.assert_array_equal(part, rest)
                assert none is None
    assert np.shares_memory(Run(2, 3, 2, False).of(rows), rows)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (4, 3, 3, 1)])
def test_states_before(sizes, backwards, rng):
    """Before a step a sequence has the state after its step before, and at its begin the first one."""
    made = runs_of(sizes, 2, backwards=backwards)
    after, first = rng.standard_normal((sum(sizes), 2)), rng.standard_normal((sizes[0], 2))
    starts = np.cumsum([0, *sizes])
    expected = np.empty_like(after)
    for k, size in enumerate(sizes):
        for row in range(size):
            other = k + (1 if backwards else -1)
            begins = not 0 <= other < len(sizes) or sizes[other] <= row
            expected[starts[k] + row] = first[row] if begins else after[starts[other] + row]
    kept = first.copy()
    got = states_before(made, [run.of(after) for run in made], first)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    ("rows", "size", "width"), [(1, 128, 128), (4, 128, 64), (9, 96, 32), (4, 7, 7), (100, 128, 128)]
)
def test_factors(rows, size, width, rng, monkeypatch):
    """Products come out in place, in blocks of 64 or 32 columns if few rows are multiplied."""
    monkeypatch.setattr(runs, "UNPACKED", 64 * 5 * 32)
    matrix, x = rng.standard_normal((3, 5, size)), rng.standard_normal((rows, 5))
    factor, out = Factor(matrix, rows), np.empty((3, rows, size))
    assert factor.width == width
    np.matmul(x, factor.blocks, factor.room(out))
    np.testing.assert_allclose(out, x @ matrix, rtol=1e-12, atol=1e-14)
