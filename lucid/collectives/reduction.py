"""How values of several processes become one: the operations, and the order in which a tree adds."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.backend.dtype import dtype_of
from lucid.errors import DtypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.backend.arrays import Array

__all__ = ["ReduceOp", "check_op", "tree_sum"]


class ReduceOp(Enum):
    """How values of several processes become one.

    Attributes
    ----------
    SUM, PRODUCT, MIN, MAX
        Of numbers; of complex ones the first two, of bools SUM and MAX are "or", PRODUCT and MIN "and".
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
_ORDERED = {ReduceOp.MIN, ReduceOp.MAX}


def check_op(op: object, array: Array) -> ReduceOp:
    """Return `op` where it is defined for the dtype of `array`.

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
    if op in _ORDERED and dtype.is_complex:
        raise DtypeError(f"ReduceOp.{op.name}: complex numbers have no order: expected real ones, got {dtype}")
    if op is ReduceOp.AVG and not floating:
        raise DtypeError(f"ReduceOp.AVG: expected floating-point numbers, got {dtype}: take SUM, and divide as needed")
    return op


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
