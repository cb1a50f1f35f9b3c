"""Contiguous copies of transposed arrays: tiles through shared memory."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lucid.cuda.launch.indexing import MAX_BLOCKS, UNITS
from lucid.cuda.launch.kernels import Kernel
from lucid.cuda.launch.layout import merged
from lucid.cuda.launch.plans import REMEMBERED, empty
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from lucid.base.arrays import Array


# Rows of threads that go over a tile together.
ROWS = 8
# Dimensions shorter than this fill too little of a tile.
SHORTEST = 16

_transpose = Kernel("copying", "lucid::transpose", [(unit,) for unit in UNITS.values()])


@lru_cache(REMEMBERED)
def _plan_of(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, tuple[int, int], tuple[int, ...]] | None:
    """Return grid, block and numbers of the kernel; None unless exactly one pair of dimensions is to be swapped."""
    axes = merged([(size, stride // itemsize) for size, stride in zip(shape, strides, strict=True)])
    inner = [dim for dim, (_, step) in enumerate(axes) if step == 1]
    if not 2 <= len(axes) <= 3 or len(inner) != 1 or inner[0] == len(axes) - 1:
        return None
    columns, x_c = axes.pop()
    rows, _ = axes.pop(inner[0])
    batch, x_b = axes[0] if axes else (1, 0)
    if min(rows, columns) < SHORTEST or itemsize not in UNITS:
        return None
    out_r, out_b = (columns, rows * columns) if inner[0] == len(axes) else (batch * columns, columns)
    tile = constant("copying.cu", "TILE")
    blocks = batch * math.prod([-(-size // tile) for size in (rows, columns)])
    return min(blocks, MAX_BLOCKS), (tile, ROWS), (batch, rows, columns, x_b, x_c, out_b, out_r)


def transposed(x: Array) -> Any:
    """Return a copy of `x` in C order; NotImplemented if no two dimensions are to be swapped.

    One dimension is innermost in memory and another in the copy; a third may lie anywhere, and any may be several that
    count as one.
    """
    dtype = x.dtype
    plan = _plan_of(x.shape, x.strides, dtype.itemsize)
    if plan is None:
        return NotImplemented
    blocks, block, numbers = plan
    out = empty(x.shape, dtype)
    if blocks:
        _transpose[UNITS[dtype.itemsize]](blocks, block, x.data.ptr, out.data.ptr, *numbers)
    return out
