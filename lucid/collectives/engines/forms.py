"""Operands and results of NCCL, converted because it has fewer dtypes and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.base.arrays import astype
from lucid.base.dtype import dtype_of
from lucid.collectives.reduction import ORDERED, ReduceOp, as_ordered, from_ordered
from lucid.errors import DtypeError

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_BOOLEANS = {ReduceOp.SUM: "MAX", ReduceOp.MAX: "MAX", ReduceOp.PRODUCT: "MIN", ReduceOp.MIN: "MIN"}
_NAMES = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "AVG", ReduceOp.PRODUCT: "PROD", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX",
}  # fmt: skip
_PARTS = {"complex64": np.float32, "complex128": np.float64}


class Form(NamedTuple):
    """The form of an array and its reduction for NCCL.

    Attributes
    ----------
    name : str
        NCCL's operation.
    view : dtype or None
        As what the memory is seen.
    wide : dtype or None
        As what elements are copied.
    ordered : ReduceOp or None
        By which operation whole numbers in their order are reduced in the place of floating-point ones.
    """

    name: str
    view: Any = None
    wide: Any = None
    ordered: ReduceOp | None = None

    @property
    def copies(self) -> bool:
        """Whether NCCL gets other memory than that of the array."""
        return self.wide is not None or self.ordered is not None

    def operand(self, array: Array) -> Any:
        """Return the operand of NCCL's reduction of a contiguous array."""
        flat: Any = array.reshape(-1)
        if self.view is not None:
            flat = flat.view(self.view)
        if self.wide is not None:
            flat = astype(flat, self.wide)
        return flat if self.ordered is None else as_ordered(flat, self.ordered)

    def store(self, into: Array, result: Any) -> None:
        """Write NCCL's result into `into`, unless it is in the same memory."""
        if self.ordered is not None:
            result = from_ordered(result)
        into.reshape(-1)[...] = astype(result, into.dtype)


def form_of(array: Array, op: ReduceOp) -> Form:
    """Return the form of an array for an operation.

    Raises
    ------
    DtypeError
        If NCCL has no such operation for its dtype.
    """
    dtype = dtype_of(array)
    if op not in _NAMES:
        raise DtypeError(
            f"ReduceOp.{op.name}: NCCL has no operation bit by bit: expected a CPU tensor, which MPI reduces, or "
            "all_gather and the operation of all rows"
        )
    if dtype.name == "bool":
        return Form(_BOOLEANS[op], view=np.uint8)
    if dtype.is_complex:
        if op not in {ReduceOp.SUM, ReduceOp.AVG}:
            raise DtypeError(
                f"ReduceOp.{op.name}: NCCL has no {op.name} of complex numbers, got {dtype}: expected SUM or AVG, a "
                "CPU tensor, or all_gather and the product of all rows"
            )
        return Form(_NAMES[op], view=_PARTS[dtype.name])
    if dtype.name == "int16":
        return Form(_NAMES[op], wide=np.int32)
    if op in ORDERED and dtype.is_floating_point:
        # what compares NaN with numbers, as NCCL does, may give each process another result
        return Form(_NAMES[op], wide=None if dtype.itemsize >= 4 else np.float32, ordered=op)
    return Form(_NAMES[op])
