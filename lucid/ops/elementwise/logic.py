"""Logical and bitwise operations, elementwise.

The logical ones take any dtype, zero for false and anything else for true, and give bools. The bitwise ones take
integers and bools, the shifts integers; other operands raise a DtypeError. What holds for all elementwise ops says
`lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH
from lucid.cuda.launch.elementwise import ALL, BOOL, INTEGERS
from lucid.errors import DtypeError
from lucid.ops.base.declaration import elementwise
from lucid.ops.base.operands import refuse
from lucid.ops.base.promotion import promote

if TYPE_CHECKING:
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Number
    from lucid.tensor import Tensor

TO_INTEGERS = "convert to an integer dtype first"


def of_integers(op: Primitive, refused: str = "fVc") -> None:
    """Give a primitive of two integers its caller."""

    def general(*operands: Any) -> Any:
        for operand in operands:
            if isinstance(operand, float | complex):
                raise DtypeError(f"{op.name}: expected integers, got {operand!r}")
        refuse(op.name, refused, *operands, instead=TO_INTEGERS)
        return op(*promote(*operands))

    op.call = general


def of_integers_alone(op: Primitive) -> None:
    """Give a primitive of two integers, but no bools, its caller."""
    of_integers(op, "bfVc")


@elementwise(np.logical_and, dtypes=ALL, out="bool")
def logical_and(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return whether both operands are true, elementwise.

    >>> import lucid
    >>> lucid.logical_and(lucid.tensor([True, False]), lucid.tensor([True, True]))
    tensor([ True, False])
    """
    return GRAPH.logical_and(input, other)


@elementwise(np.logical_or, dtypes=ALL, out="bool")
def logical_or(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return whether at least one operand is true, elementwise.

    >>> import lucid
    >>> lucid.logical_or(lucid.tensor([True, False]), lucid.tensor([True, True]))
    tensor([True, True])
    """
    return GRAPH.logical_or(input, other)


@elementwise(np.logical_xor, dtypes=ALL, out="bool")
def logical_xor(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return whether just one operand is true, elementwise.

    >>> import lucid
    >>> lucid.logical_xor(lucid.tensor([True, False]), lucid.tensor([True, True]))
    tensor([False,  True])
    """
    return GRAPH.logical_xor(input, other)


@elementwise(np.logical_not, dtypes=ALL, out="bool")
def logical_not(input: Tensor) -> Tensor:
    """Return whether `input` is zero or false, elementwise.

    >>> import lucid
    >>> lucid.logical_not(lucid.tensor([0.0, 2.0]))
    tensor([ True, False])
    """
    return GRAPH.logical_not(input)


@elementwise(np.bitwise_and, dtypes=INTEGERS + BOOL, caller=of_integers)
def bitwise_and(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the bits set in both operands, elementwise.

    >>> import lucid
    >>> lucid.bitwise_and(lucid.tensor([12, 5]), 6)
    tensor([4, 4])
    """
    return GRAPH.bitwise_and(input, other)


@elementwise(np.bitwise_or, dtypes=INTEGERS + BOOL, caller=of_integers)
def bitwise_or(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the bits set in at least one operand, elementwise.

    >>> import lucid
    >>> lucid.bitwise_or(lucid.tensor([12, 5]), 6)
    tensor([14,  7])
    """
    return GRAPH.bitwise_or(input, other)


@elementwise(np.bitwise_xor, dtypes=INTEGERS + BOOL, caller=of_integers)
def bitwise_xor(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the bits set in just one operand, elementwise.

    >>> import lucid
    >>> lucid.bitwise_xor(lucid.tensor([12, 5]), 6)
    tensor([10,  3])
    """
    return GRAPH.bitwise_xor(input, other)


@elementwise(np.left_shift, kernel="logic.LeftShift", dtypes=INTEGERS, caller=of_integers_alone)
def bitwise_left_shift(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input * 2 ** other`` by a shift of the bits, elementwise.

    >>> import lucid
    >>> lucid.bitwise_left_shift(lucid.tensor([12, 5]), 1)
    tensor([24, 10])
    """
    return GRAPH.bitwise_left_shift(input, other)


@elementwise(np.right_shift, kernel="logic.RightShift", dtypes=INTEGERS, caller=of_integers_alone)
def bitwise_right_shift(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input`` divided by ``2 ** other`` and rounded down, by a shift of the bits, elementwise.

    >>> import lucid
    >>> lucid.bitwise_right_shift(lucid.tensor([12, 5]), 1)
    tensor([6, 2])
    """
    return GRAPH.bitwise_right_shift(input, other)


@elementwise(np.invert, kernel="logic.BitwiseNot", dtypes=INTEGERS + BOOL, refused=("fVc", TO_INTEGERS))
def bitwise_not(input: Tensor) -> Tensor:
    """Return `input` with all bits inverted, elementwise; of bools the negation.

    >>> import lucid
    >>> lucid.bitwise_not(lucid.tensor([0, 5]))
    tensor([-1, -6])
    """
    return GRAPH.bitwise_not(input)
