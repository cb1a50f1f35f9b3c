"""Runs: steps of a sequence on NumPy that are done with the same buffers, as as many rows take part in each."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lucid.base.arrays import Array

# Elements of one buffer for all steps of a run: a handful of float32 buffers stay in the second-level cache.
RUN = 1 << 15
# OpenBLAS multiplies without packing the factors up to as many multiplications, where it has kernels for it.
UNPACKED = 1_000_000


class Run(NamedTuple):
    """Steps in which the same number of rows take part, in the order of time."""

    start: int
    steps: int
    size: int
    backwards: bool

    def of(self, rows: Array) -> Array:
        """Return the rows of each step, in the order in which the steps are done, as a view."""
        part = rows[self.start : self.start + self.steps * self.size]
        part = part.reshape(self.steps, self.size, *rows.shape[1:])
        return part[::-1] if self.backwards else part

    def gates(self, rows: Array, count: int) -> Array:
        """Return as `of` the gates that lie side by side in a row, of each step one behind the other."""
        steps = self.of(rows)
        return steps.reshape(*steps.shape[:2], count, rows.shape[1] // count).swapaxes(1, 2)

    def kept(self, rows: Array) -> Array:
        """Return as `of` what is kept of each step: arrays of shape (size, width), one behind the other in memory."""
        part = rows[self.start : self.start + self.steps * self.size]
        part = part.reshape(self.steps, rows.shape[1], self.size, rows.shape[2])
        return part[::-1] if self.backwards else part


def runs_of(batch_sizes: Iterable[int], width: int, *, backwards: bool) -> list[Run]:
    """Return the runs of a sequence in the order in which they are done."""
    runs: list[Run] = []
    start = 0
    for size, group in groupby(batch_sizes):
        left, most = sum(1 for _ in group), max(1, RUN // max(1, size * width))
        while left:
            steps = min(left, most)
            runs.append(Run(start, steps, size, backwards))
            start += steps * size
            left -= steps
    return runs[::-1] if backwards else runs


def states_before(runs: Sequence[Run], after: Sequence[Array], first: Array) -> Array:
    """Return the state before each step, in rows, from those after the steps of each run and the first ones."""
    rows = np.empty((sum(run.steps * run.size for run in runs), first.shape[1]), first.dtype)
    state = first.copy()
    for run, ends in zip(runs, after, strict=True):
        before, rest = run.of(rows), state[: run.size]
        before[0] = rest
        before[1:] = ends[:-1]
        rest[:] = ends[-1]
    return rows


class Factor:
    """The right factor of products with few rows, in blocks of the columns that are quickest.

    Parameters
    ----------
    matrix : Array
        Of shape (gates, inner, size): the product of each gate comes to lie by itself.
    rows : int
        The most rows of the left factor.
    """

    def __init__(self, matrix: Array, rows: int) -> None:
        gates, inner, size = matrix.shape
        # a single row is no product of matrices for BLAS
        widths = (64, 32) if rows > 1 else ()
        fitting = (width for width in widths if not size % width and rows * inner * width <= UNPACKED)
        self.width = next(fitting, max(size, 1))
        blocks = matrix.reshape(gates, inner, size // self.width, self.width).swapaxes(1, 2)
        self.blocks = np.ascontiguousarray(blocks)

    def room(self, out: Array) -> Array:
        """Return the view of `out`, of shape (gates, rows, size), that ``matmul(x, blocks, view)`` writes."""
        gates, rows, size = out.shape
        return out.reshape(gates, rows, size // self.width, self.width).swapaxes(1, 2)
