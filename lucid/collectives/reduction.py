"""Reductions over several processes: the operations, and the order of additions in a tree."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import unfit
from lucid.base.arrays import namespace
from lucid.base.dtype import dtype_of
from lucid.errors import DtypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.arrays import Array


class ReduceOp(Enum):
    """How values of several processes become one.

    Attributes
    ----------
    SUM, PRODUCT, MIN, MAX
        Of numbers; of complex ones the first two, of bools SUM and MAX are "or", PRODUCT and MIN "and". MIN and MAX are
        NaN where one of the numbers is, in all processes.
    AVG
        The sum over the number of processes, of floating-point and complex numbers.
    BAND, BOR, BXOR
        Bit by bit, of integers and bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributed.ReduceOp.SUM
    <ReduceOp.SUM: 0>
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


_BITWISE = {ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR}
ORDERED = {ReduceOp.MIN, ReduceOp.MAX}


def check_op(op: object, array: Array) -> ReduceOp:
    """Return `op` if it is defined for the dtype of `array`.

    Raises
    ------
    ArgumentError
        If it is no `ReduceOp`.
    DtypeError
        If it has no meaning there.
    """
    if not isinstance(op, ReduceOp):
        raise unfit(op, "a ReduceOp", "op")
    dtype = dtype_of(array)
    floating = dtype.is_floating_point or dtype.is_complex
    if op in _BITWISE and floating:
        raise DtypeError(f"ReduceOp.{op.name}: expected integers or bools, got {dtype}")
    if op in ORDERED and dtype.is_complex:
        raise DtypeError(f"ReduceOp.{op.name}: complex numbers have no order: expected real ones, got {dtype}")
    if op is ReduceOp.AVG and not floating:
        raise DtypeError(f"ReduceOp.AVG: expected floating-point numbers, got {dtype}: take SUM, and divide as needed")
    return op


def as_ordered(array: Array, op: ReduceOp) -> Array:
    """Return whole numbers in the order of floating-point ones, NaN the last that MIN or MAX goes to.

    What compares NaN with numbers, as MPI and NCCL do, gives each process another result.
    """
    bits = _turned(array.view(f"i{array.itemsize}"))
    ends = np.iinfo(bits.dtype)
    xp = namespace(array)
    return xp.where(xp.isnan(array), bits.dtype.type(ends.max if op is ReduceOp.MAX else ends.min), bits)


def from_ordered(bits: Array) -> Array:
    """Return the floating-point numbers with these bits: the inverse of `as_ordered`."""
    return _turned(bits).view(f"f{bits.itemsize}")


def _turned(bits: Array) -> Array:
    """Return the bits of numbers with those of negative ones reversed but for the sign."""
    return bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.iinfo(bits.dtype).max)


def tree_sum(rows: Sequence[Any]) -> Any:
    """Return the sum of `rows`, the second half added to the first, then the second half of that, and so on.

    The order is fixed by the number of rows alone. Where that is a power of two, process r of p that holds the rows r,
    r + p, r + 2p, ... adds them in the same way, and then all processes their sums: the bits are those of one process
    that holds all rows.
    """
    sums: list[Any] = list(rows)
    while len(sums) > 1:
        half = (len(sums) + 1) // 2
        sums = [sums[i] + sums[i + half] if i + half < len(sums) else sums[i] for i in range(half)]
    return sums[0]
