"""Logical and bitwise operations, elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.cuda.elementwise import ALL, BOOL, INTEGERS, Elementwise
from lucid.errors import DtypeError
from lucid.ops.elementwise import refuse, tensor_operand
from lucid.ops.promotion import promote

if TYPE_CHECKING:
    from lucid.autograd.primitive import Primitive
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def of_integers(op: Primitive, refused: str = "fVc") -> Primitive:
    """Give a primitive of integers its caller."""

    def general(*operands: Any) -> Any:
        for operand in operands:
            if isinstance(operand, float | complex):
                raise DtypeError(f"{op.name}: expected integers, got {operand!r}")
        refuse(op.name, refused, *operands, instead="convert to an integer dtype first")
        return op(*promote(*operands))

    op.call = general
    return op


@primitive(cpu=np.logical_and)
def _logical_and(xp: Any, a: Array, b: Array) -> Array:
    return xp.logical_and(a, b)


_logical_and.cuda(Elementwise("logic", "LogicalAnd", "TT", out="bool", dtypes=ALL))


def logical_and(input: Tensor, other: Any) -> Tensor:
    """Return where both operands are true, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand; what is not zero counts as true.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.logical_and(lucid.tensor([True, False]), lucid.tensor([True, True]))
    tensor([ True, False])
    """
    return _logical_and(*promote(input, other))


@primitive(cpu=np.logical_or)
def _logical_or(xp: Any, a: Array, b: Array) -> Array:
    return xp.logical_or(a, b)


_logical_or.cuda(Elementwise("logic", "LogicalOr", "TT", out="bool", dtypes=ALL))


def logical_or(input: Tensor, other: Any) -> Tensor:
    """Return where at least one operand is true, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand; what is not zero counts as true.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.logical_or(lucid.tensor([True, False]), lucid.tensor([True, True]))
    tensor([True, True])
    """
    return _logical_or(*promote(input, other))


@primitive(cpu=np.logical_xor)
def _logical_xor(xp: Any, a: Array, b: Array) -> Array:
    return xp.logical_xor(a, b)


_logical_xor.cuda(Elementwise("logic", "LogicalXor", "TT", out="bool", dtypes=ALL))


def logical_xor(input: Tensor, other: Any) -> Tensor:
    """Return where just one operand is true, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand; what is not zero counts as true.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape, bool.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.logical_xor(lucid.tensor([True, False]), lucid.tensor([True, True]))
    tensor([False,  True])
    """
    return _logical_xor(*promote(input, other))


@primitive(cpu=np.logical_not)
def _logical_not(xp: Any, x: Array) -> Array:
    return xp.logical_not(x)


_logical_not.cuda(Elementwise("logic", "LogicalNot", out="bool", dtypes=ALL))


def logical_not(input: Tensor) -> Tensor:
    """Return where `input` is zero or false, elementwise.

    Parameters
    ----------
    input : Tensor
        Of any dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`, bool.

    Examples
    --------
    >>> import lucid
    >>> lucid.logical_not(lucid.tensor([0.0, 2.0]))
    tensor([ True, False])
    """
    return _logical_not(tensor_operand(input))


@primitive(cpu=np.bitwise_and)
def _bitwise_and(xp: Any, a: Array, b: Array) -> Array:
    return xp.bitwise_and(a, b)


_bitwise_and.cuda(Elementwise("logic", "BitwiseAnd", "TT", dtypes=INTEGERS + BOOL))


of_integers(_bitwise_and)


def bitwise_and(input: Tensor, other: Any) -> Tensor:
    """Return the bits set in both operands, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, of integers or bools.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    DtypeError
        If an operand is not of integers or bools.
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.bitwise_and(lucid.tensor([12, 5]), 6)
    tensor([4, 4])
    """
    return _bitwise_and.call(input, other)


@primitive(cpu=np.bitwise_or)
def _bitwise_or(xp: Any, a: Array, b: Array) -> Array:
    return xp.bitwise_or(a, b)


_bitwise_or.cuda(Elementwise("logic", "BitwiseOr", "TT", dtypes=INTEGERS + BOOL))


of_integers(_bitwise_or)


def bitwise_or(input: Tensor, other: Any) -> Tensor:
    """Return the bits set in at least one operand, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, of integers or bools.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    DtypeError
        If an operand is not of integers or bools.
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.bitwise_or(lucid.tensor([12, 5]), 6)
    tensor([14,  7])
    """
    return _bitwise_or.call(input, other)


@primitive(cpu=np.bitwise_xor)
def _bitwise_xor(xp: Any, a: Array, b: Array) -> Array:
    return xp.bitwise_xor(a, b)


_bitwise_xor.cuda(Elementwise("logic", "BitwiseXor", "TT", dtypes=INTEGERS + BOOL))


of_integers(_bitwise_xor)


def bitwise_xor(input: Tensor, other: Any) -> Tensor:
    """Return the bits set in just one operand, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, of integers or bools.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    DtypeError
        If an operand is not of integers or bools.
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.bitwise_xor(lucid.tensor([12, 5]), 6)
    tensor([10,  3])
    """
    return _bitwise_xor.call(input, other)


@primitive(cpu=np.left_shift)
def _bitwise_left_shift(xp: Any, a: Array, b: Array) -> Array:
    return xp.left_shift(a, b)


_bitwise_left_shift.cuda(Elementwise("logic", "LeftShift", "TT", dtypes=INTEGERS))


of_integers(_bitwise_left_shift, "bfVc")


def bitwise_left_shift(input: Tensor, other: Any) -> Tensor:
    """Return ``input * 2 ** other`` by a shift of the bits, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, of integers.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    DtypeError
        If an operand is not of integers.
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.bitwise_left_shift(lucid.tensor([12, 5]), 1)
    tensor([24, 10])
    """
    return _bitwise_left_shift.call(input, other)


@primitive(cpu=np.right_shift)
def _bitwise_right_shift(xp: Any, a: Array, b: Array) -> Array:
    return xp.right_shift(a, b)


_bitwise_right_shift.cuda(Elementwise("logic", "RightShift", "TT", dtypes=INTEGERS))


of_integers(_bitwise_right_shift, "bfVc")


def bitwise_right_shift(input: Tensor, other: Any) -> Tensor:
    """Return ``input`` divided by ``2 ** other`` and rounded down, by a shift of the bits, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand, of integers.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    DtypeError
        If an operand is not of integers.
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.bitwise_right_shift(lucid.tensor([12, 5]), 1)
    tensor([6, 2])
    """
    return _bitwise_right_shift.call(input, other)


@primitive(cpu=np.invert)
def _bitwise_not(xp: Any, x: Array) -> Array:
    return xp.invert(x)


_bitwise_not.cuda(Elementwise("logic", "BitwiseNot", dtypes=INTEGERS + BOOL))


def bitwise_not(input: Tensor) -> Tensor:
    """Return `input` with all bits inverted, elementwise; of bools the negation.

    Parameters
    ----------
    input : Tensor
        Of integers or bools.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is not of integers or bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.bitwise_not(lucid.tensor([0, 5]))
    tensor([-1, -6])
    """
    x = tensor_operand(input)
    refuse("bitwise_not", "fVc", x, instead="convert to an integer dtype first")
    return _bitwise_not(x)
