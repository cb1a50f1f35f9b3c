"""Runs: steps of a sequence on NumPy that share their buffers, as the same number of rows takes part in each."""

from __future__ import annotations

from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.ops.base.blocks import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lucid.base.arrays import Array

# Multiplications of a product up to which OpenBLAS does not pack its factors, on processors for which it has such
# kernels. To pack the weights costs as much as the product of few rows: 20 by 256 x 1024 take 105 us, in 16 blocks 63.
UNPACKED = 1_000_000


class Run(NamedTuple):
    """Steps that follow each other in time, each of `size` rows; those of the first one begin at `start`."""

    start: int
    steps: int
    size: int
    backwards: bool

    def of(self, rows: Array) -> Array:
        """Return the rows of the run as a view of shape (steps, size, ...), in the order of time."""
        return self._part(rows).reshape(self.steps, self.size, *rows.shape[1:])

    def kept(self, rows: Array) -> Array:
        """Return the memory of the run's rows, of shape (rows, arrays, width), as (arrays, steps, size, width)."""
        return self._part(rows).reshape(rows.shape[1], self.steps, self.size, rows.shape[2])

    def _part(self, rows: Array) -> Array:
        return rows[self.start : self.start + self.steps * self.size]

    def zipped(self, *parts: Array | None, reverse: bool = False) -> Iterator[tuple[Any, ...]]:
        """Return the parts of each step, as steps are done or in reverse; of None always None."""
        order = -1 if self.backwards is not reverse else 1
        return zip(*[repeat(None, self.steps) if part is None else part[::order] for part in parts], strict=True)


def runs_of(batch_sizes: Iterable[int], width: int, *, backwards: bool) -> list[Run]:
    """Return the runs of a sequence as they are done; the arrays of one have the size of a block at most."""
    runs: list[Run] = []
    start = 0
    for size, group in groupby(batch_sizes):
        remaining, most = sum(1 for _ in group), max(1, BLOCK // max(1, size * width))
        while remaining:
            steps = min(remaining, most)
            runs.append(Run(start, steps, size, backwards))
            start += steps * size
            remaining -= steps
    return runs[::-1] if backwards else runs


def states_before(runs: Sequence[Run], after: Sequence[Array], first: Array) -> Array:
    """Return the state before each step, in rows, from those after the steps of each run and from the first ones."""
    rows = np.empty((sum(run.steps * run.size for run in runs), first.shape[1]), first.dtype)
    state = first.copy()
    for run, ends in zip(runs, after, strict=True):
        before, done = (steps[::-1] if run.backwards else steps for steps in (run.of(rows), ends))
        before[0] = state[: run.size]
        before[1:] = done[:-1]
        state[: run.size] = done[-1]
    return rows


class Factor:
    """The right factor of products with few rows, in blocks of columns.

    Parameters
    ----------
    matrix : Array
        Of shape (gates, inner, size): the product of each gate comes to lie by itself.
    rows : int
        The most rows of the left factor.
    """

    def __init__(self, matrix: Array, rows: int) -> None:
        gates, inner, size = matrix.shape
        # the product of a single row is one with a vector, which packs nothing
        widths = (64, 32) if rows > 1 else ()
        fitting = (width for width in widths if not size % width and rows * inner * width <= UNPACKED)
        self.width = next(fitting, size)
        blocks = matrix.reshape(gates, inner, size // self.width, self.width).swapaxes(1, 2)
        self.blocks = np.ascontiguousarray(blocks)

    def room(self, out: Array) -> Array:
        """Return the view of `out`, of shape (gates, rows, size), that ``matmul(x, blocks, view)`` writes."""
        gates, rows, size = out.shape
        return out.reshape(gates, rows, size // self.width, self.width).swapaxes(1, 2)
