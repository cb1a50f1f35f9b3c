"""Rows of an array in blocks that stay in the cache: several passes over a block cost one pass over memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lucid.backend.arrays import Array

# Elements of one block, 1 MiB of float32: each call of NumPy on its rows costs microseconds beside its work, which
# weighs more than a second-level cache of half the size. More elements than in `lucid.ops.base.blocks`, where calls
# cost less.
ROWS_BLOCK = 1 << 18
# From this length on a row is worth a loop of its own.
LONG_ROW = 512
# Up to this length rows are added in the order of einsum, which takes a third of the time of NumPy's sum. Its partial
# sums grow with the length and round more, those of NumPy's sum with the logarithm of the length.
SUMMED_AT_ONCE = 1024

# Rows that BLAS adds up one after the other: more would round more.
ROWS_AT_ONCE = 64
_ONES = {char: np.ones(ROWS_AT_ONCE, char) for char in "fd"}


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of at least one row that together cover `rows` rows of `columns` elements."""
    step = max(1, ROWS_BLOCK // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


class by_rows:
    """A context in which a number for each row meets the rows at the speed of one number, where rows are long.

    NumPy copies such a column into a buffer, as often as rows are long, and adds or multiplies two arrays; not so if
    no two rows fit its buffer, which takes half the time.
    """

    __slots__ = ("size",)

    def __init__(self, rows: int, columns: int) -> None:
        self.size = 0 if columns < LONG_ROW or rows == 1 else LONG_ROW

    def __enter__(self) -> None:
        if self.size:
            self.size = np.setbufsize(self.size)

    def __exit__(self, *_: object) -> None:
        if self.size:
            np.setbufsize(self.size)


def row_maxima(x: Array) -> Array:
    """Return the largest number of each row of a matrix of NumPy's, as a column; NaN if there is one."""
    # its place is found in a third of the time in which NumPy's maximum goes through rows of this kind
    return x[np.arange(len(x)), x.argmax(1), None]


def row_sums(x: Array) -> Array:
    """Return the sum of each row of a matrix of NumPy's, as a column."""
    if x.shape[1] > SUMMED_AT_ONCE:
        return np.add.reduce(x, 1, keepdims=True)
    return np.einsum("ij->i", x)[:, None]


def row_products(x: Array, y: Array) -> Array:
    """Return the sum of ``x * y`` of each row of two matrices of NumPy's, as a column."""
    return np.vecdot(x, y)[:, None]


def column_sums(x: Array) -> Array:
    """Return the sum of each column of a matrix of NumPy's, of float32 or float64, as a vector.

    A product with ones, by BLAS, takes a half to a twentieth of the time of NumPy's sum, and rounds less.
    """
    ones, rows = _ONES[x.dtype.char], len(x)
    if rows <= ROWS_AT_ONCE:
        return ones[:rows] @ x
    whole = rows - rows % ROWS_AT_ONCE
    partial = ones @ x[:whole].reshape(-1, ROWS_AT_ONCE, x.shape[1])
    return column_sums(partial) + ones[: rows - whole] @ x[whole:]
