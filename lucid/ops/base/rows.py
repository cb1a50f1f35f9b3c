"""Rows of an array in blocks that stay in the cache: several passes over a block cost one pass over memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Elements of one block; 256 KiB of float32, so that an operand or two and the result fit a core's second-level cache.
# Reductions along rows cost NumPy more per call than elementwise work, hence more elements than in
# `lucid.ops.base.blocks`.
ROWS_BLOCK = 65536


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of at least one row that together cover `rows` rows of `columns` elements."""
    step = max(1, ROWS_BLOCK // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
