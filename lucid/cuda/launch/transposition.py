"""Contiguous copies of arrays whose innermost dimension in memory is another one: tiles through shared memory."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lucid.backend import gpu
from lucid.cuda.launch.kernels import Kernel
from lucid.cuda.launch.reduction import merged_axes
from lucid.cuda.launchers.indexing import MAX_BLOCKS, REMEMBERED, UNITS

if TYPE_CHECKING:
    from lucid.backend.arrays import Array

__all__ = ["transposed"]

# As in kernels/copying.cu.
TILE = 32
BLOCK = (32, 8)
# Dimensions shorter than this fill too little of a tile.
SHORTEST = 16

_transpose = Kernel("copying", "lucid::transpose", "PPqqqqqqq", [(unit,) for unit in UNITS.values()])


@lru_cache(REMEMBERED)
def _plan_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, tuple[int, ...]] | None:
    """Return blocks and numbers of the kernel; None where there is no pair of dimensions to swap, or more than one."""
    axes = merged_axes([(size, stride // itemsize) for size, stride in zip(shape, strides, strict=True)])
    inner = [place for place, (_, step) in enumerate(axes) if step == 1]
    if not 2 <= len(axes) <= 3 or len(inner) != 1 or inner[0] == len(axes) - 1:
        return None
    columns, x_c = axes.pop()
    rows, _ = axes.pop(inner[0])
    batch, x_b = axes[0] if axes else (1, 0)
    if min(rows, columns) < SHORTEST or itemsize not in UNITS:
        return None
    out_r, out_b = (columns, rows * columns) if inner[0] == len(axes) else (batch * columns, columns)
    blocks = batch * math.prod([-(-size // TILE) for size in (rows, columns)])
    return min(blocks, MAX_BLOCKS), (batch, rows, columns, x_b, x_c, out_b, out_r)


def transposed(x: Array) -> Any:
    """Return a copy of `x` in C order; NotImplemented where no two dimensions are to be swapped.

    One dimension is innermost in memory and another in the copy; a third may lie anywhere, and any may be several that
    count as one.
    """
    dtype = x.dtype
    plan = _plan_of(x.shape, x.strides, dtype.itemsize)
    if plan is None:
        return NotImplemented
    blocks, numbers = plan
    out = gpu.cupy().empty(x.shape, dtype)
    if blocks:
        _transpose[UNITS[dtype.itemsize]](blocks, BLOCK, x.data.ptr, out.data.ptr, *numbers)
    return out
