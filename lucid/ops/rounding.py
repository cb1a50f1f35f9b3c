"""Whole numbers near given ones, elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.autograd.recording import unary
from lucid.cuda.elementwise import Elementwise
from lucid.errors import DtypeError
from lucid.ops.core import clone
from lucid.ops.elementwise import refuse, tensor_operand, without_slope
from lucid.ops.fused import rounded_once
from lucid.ops.promotion import tensor_dtype
from lucid.ops.scalars import as_int

if TYPE_CHECKING:
    from lucid.autograd.primitive import Primitive
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def of_fractions(op: Primitive) -> Primitive:
    """Give a primitive that rounds its caller; integers are whole already and come back as a copy."""

    def general(x: Any) -> Any:
        refuse(op.name, "bc", x, instead="take real and imaginary parts, or convert to a number type first")
        operand = tensor_operand(x)
        return op(operand) if operand.array.dtype.kind in "fV" else clone(operand)

    # the caller looks at the rules, so they come first
    without_slope(op)
    op.call = unary(op, general)
    return op


@primitive(cpu=np.floor)
def _floor(xp: Any, x: Array) -> Array:
    return xp.floor(x)


_floor.cuda(Elementwise("rounding", "Floor"))


of_fractions(_floor)


def floor(input: Tensor) -> Tensor:
    """Return the largest whole number that is not above `input`, elementwise; its gradient is zero.

    Parameters
    ----------
    input : Tensor
        Real, not of bools; integers come back unchanged.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex or of bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.floor(lucid.tensor([1.7, -1.7]))
    tensor([ 1., -2.])
    """
    return _floor.call(input)


@primitive(cpu=np.ceil)
def _ceil(xp: Any, x: Array) -> Array:
    return xp.ceil(x)


_ceil.cuda(Elementwise("rounding", "Ceil"))


of_fractions(_ceil)


def ceil(input: Tensor) -> Tensor:
    """Return the smallest whole number that is not below `input`, elementwise; its gradient is zero.

    Parameters
    ----------
    input : Tensor
        Real, not of bools; integers come back unchanged.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex or of bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.ceil(lucid.tensor([1.7, -1.7]))
    tensor([ 2., -1.])
    """
    return _ceil.call(input)


@primitive(cpu=np.trunc)
def _trunc(xp: Any, x: Array) -> Array:
    return xp.trunc(x)


_trunc.cuda(Elementwise("rounding", "Trunc"))


of_fractions(_trunc)


def trunc(input: Tensor) -> Tensor:
    """Return `input` without its fraction, elementwise; its gradient is zero.

    Parameters
    ----------
    input : Tensor
        Real, not of bools; integers come back unchanged.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex or of bools.

    Examples
    --------
    >>> import lucid
    >>> lucid.trunc(lucid.tensor([1.7, -1.7]))
    tensor([ 1., -1.])
    """
    return _trunc.call(input)


def _to_decimals(xp: Any, x: Array, *, decimals: int) -> Array:
    # powers of ten with a positive exponent are exact
    ten = x.dtype.type(10.0 ** abs(decimals))
    return xp.rint(x * ten) / ten if decimals > 0 else xp.rint(x / ten) * ten


@primitive
def _round(xp: Any, x: Array, *, decimals: int) -> Array:
    return xp.rint(x) if decimals == 0 else rounded_once(_to_decimals, xp, x, decimals=decimals)


_ROUND = Elementwise("rounding", "Round")
_ROUND_DECIMALS = Elementwise("rounding", "RoundDecimals", "TS")
_ROUND_TENS = Elementwise("rounding", "RoundTens", "TS")


@_round.cuda
def _round_cuda(x: Array, *, decimals: int) -> Any:
    if decimals == 0:
        return _ROUND(x)
    return (_ROUND_DECIMALS if decimals > 0 else _ROUND_TENS)(x, 10.0 ** abs(decimals))


without_slope(_round)


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return the nearest number of so many decimals, elementwise, the even one of two; its gradient is zero.

    Parameters
    ----------
    input : Tensor
        Real, not of bools; integers come back unchanged.
    decimals : int
        Digits after the point; negative ones round to tens, hundreds and so on.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex or of bools, or of integers while `decimals` is not zero.

    Examples
    --------
    >>> import lucid
    >>> lucid.round(lucid.tensor([0.5, 1.5, -2.7]))
    tensor([ 0.,  2., -3.])
    >>> lucid.round(lucid.tensor([1.26]), decimals=1)
    tensor([1.3000])
    """
    x = tensor_operand(input)
    refuse("round", "bc", x, instead="take real and imaginary parts, or convert to a number type first")
    decimals = as_int(decimals, "decimals")
    if x.array.dtype.kind in "fV":
        return _round(x, decimals=decimals)
    if decimals:
        raise DtypeError(f"round: expected decimals=0 for a tensor of {tensor_dtype(x)}, got {decimals}")
    return clone(x)


@primitive
def _frac(xp: Any, x: Array) -> Array:
    return xp.subtract(x, xp.trunc(x))


_frac.cuda(Elementwise("rounding", "Frac"))


@_frac.vjp
def _frac_vjp(m: Any, grad: Any) -> Any:
    return grad


def frac(input: Tensor) -> Tensor:
    """Return ``input - trunc(input)``, elementwise: the fraction, with the sign of `input`.

    Parameters
    ----------
    input : Tensor
        Floating point.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is not floating point.

    Examples
    --------
    >>> import lucid
    >>> lucid.frac(lucid.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """
    x = tensor_operand(input)
    refuse("frac", "biuc", x, instead="convert to a floating-point dtype first")
    return _frac(x)
