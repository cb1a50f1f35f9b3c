"""Runs: steps of a sequence on NumPy that are done with the same buffers, as as many rows take part in each."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lucid.ops.base.blocks import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lucid.base.arrays import Array

# OpenBLAS multiplies without packing the factors up to as many multiplications, where it has kernels for it.
UNPACKED = 1_000_000


class Run(NamedTuple):
    """Steps that follow each other in time, in each of which as many rows take part."""

    start: int
    steps: int
    size: int
    backwards: bool

    def of(self, rows: Array) -> Array:
        """Return the rows of the run as a view of shape (steps, size, ...)."""
        return self._part(rows).reshape(self.steps, self.size, *rows.shape[1:])

    def kept(self, rows: Array) -> Array:
        """Return the memory of the run's rows, of shape (rows, arrays, width), as (arrays, steps, size, width)."""
        return self._part(rows).reshape(rows.shape[1], self.steps, self.size, rows.shape[2])

    def _part(self, rows: Array) -> Array:
        return rows[self.start : self.start + self.steps * self.size]

    def in_order(self, steps: Array) -> Array:
        """Return what has the steps for its first dimension, in the order in which they are done."""
        return steps[::-1] if self.backwards else steps

    def in_reverse(self, steps: Array) -> Array:
        """Return what has the steps for its first dimension, the one that is done last first."""
        return steps if self.backwards else steps[::-1]


def runs_of(batch_sizes: Iterable[int], width: int, *, backwards: bool) -> list[Run]:
    """Return the runs of a sequence in the order in which they are done; all steps of one fill a block of memory."""
    runs: list[Run] = []
    start = 0
    for size, group in groupby(batch_sizes):
        left, most = sum(1 for _ in group), max(1, BLOCK // max(1, size * width))
        while left:
            steps = min(left, most)
            runs.append(Run(start, steps, size, backwards))
            start += steps * size
            left -= steps
    return runs[::-1] if backwards else runs


def states_before(runs: Sequence[Run], after: Sequence[Array], first: Array) -> Array:
    """Return the state before each step, in rows, from those after the steps of each run and from the first ones."""
    rows = np.empty((sum(run.steps * run.size for run in runs), first.shape[1]), first.dtype)
    state = first.copy()
    for run, ends in zip(runs, after, strict=True):
        before, ends, rest = run.in_order(run.of(rows)), run.in_order(ends), state[: run.size]
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
