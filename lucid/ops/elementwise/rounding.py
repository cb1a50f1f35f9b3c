"""Whole numbers near given ones, elementwise. Common rules: `lucid.ops.base.declaration`.

They take real tensors but no bools. Integers are whole already: they come back as a copy.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.errors import DtypeError
from lucid.ops.base.blocks import rounded_once
from lucid.ops.base.core import clone
from lucid.ops.base.declaration import FLOATING, elementwise, flat, of_formula
from lucid.ops.base.operands import both, floating, refuse, tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, tensor_dtype
from lucid.ops.base.scalars import as_int

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

PARTS = "take real and imaginary parts, or convert to a number type first"


def of_fractions(op: Primitive) -> None:
    """Give a primitive that rounds a caller that copies integers."""

    def general(x: Any) -> Any:
        refuse(op.name, "bc", x, instead=PARTS)
        operand = tensor_operand(x)
        return op(operand) if operand.array.dtype.kind in "fV" else clone(operand)

    op.shorten(general)


@elementwise(np.floor, flat, caller=of_fractions)
def floor(input: Tensor) -> Tensor:
    """Return the largest whole number that is not above `input`, elementwise; its gradient is zero.

    >>> import lucid
    >>> lucid.floor(lucid.tensor([1.7, -1.7]))
    tensor([ 1., -2.])
    """
    return GRAPH.floor(input)


@elementwise(np.ceil, flat, caller=of_fractions)
def ceil(input: Tensor) -> Tensor:
    """Return the smallest whole number that is not below `input`, elementwise; its gradient is zero.

    >>> import lucid
    >>> lucid.ceil(lucid.tensor([1.7, -1.7]))
    tensor([ 2., -1.])
    """
    return GRAPH.ceil(input)


@elementwise(np.trunc, flat, caller=of_fractions)
def trunc(input: Tensor) -> Tensor:
    """Return `input` without its fraction, elementwise; its gradient is zero.

    >>> import lucid
    >>> lucid.trunc(lucid.tensor([1.7, -1.7]))
    tensor([ 1., -1.])
    """
    return GRAPH.trunc(input)


def _power_of_ten(decimals: int) -> float:
    # exact, as the exponent is positive
    return 10.0 ** abs(decimals) if abs(decimals) <= sys.float_info.max_10_exp else math.inf


def _to_decimals(xp: ModuleType, x: Array, *, decimals: int) -> Array:
    ten = x.dtype.type(_power_of_ten(decimals))
    return xp.rint(x * ten) / ten if decimals > 0 else xp.rint(x / ten) * ten


def _round(xp: ModuleType, x: Array, *, decimals: int) -> Array:
    return xp.rint(x) if decimals == 0 else rounded_once(_to_decimals, xp, x, decimals=decimals)


_ROUND = of_formula(lambda m, x: m.rint(x), "Round")
_ROUND_DECIMALS = of_formula(lambda m, x, ten: m.rint(x * ten) / ten, "RoundDecimals")
_ROUND_TENS = of_formula(lambda m, x, ten: m.rint(x / ten) * ten, "RoundTens")


def _round_cuda(x: Array, *, decimals: int) -> Any:
    if decimals == 0:
        return _ROUND(x)
    return (_ROUND_DECIMALS if decimals > 0 else _ROUND_TENS)(x, _power_of_ten(decimals))


@elementwise(_round, flat, kernel=_round_cuda)
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return the nearest number of so many `decimals`, elementwise, the even one of two; its gradient is zero.

    Negative `decimals` round to tens, hundreds and so on; for integers they are zero, or a DtypeError is raised.

    >>> import lucid
    >>> lucid.round(lucid.tensor([0.5, 1.5, -2.7]))
    tensor([ 0.,  2., -3.])
    >>> lucid.round(lucid.tensor([1.26]), decimals=1)
    tensor([1.3000])
    """
    x = tensor_operand(input)
    refuse("round", "bc", x, instead=PARTS)
    decimals = as_int(decimals, "decimals")
    if x.array.dtype.kind in "fV":
        return GRAPH.round(x, decimals=decimals)
    if decimals:
        raise DtypeError(f"round: expected decimals=0 for a tensor of {tensor_dtype(x)}, got {decimals}")
    return clone(x)


@elementwise(lambda xp, x: xp.subtract(x, xp.trunc(x)), lambda m, grad: grad, refused=FLOATING)
def frac(input: Tensor) -> Tensor:
    """Return ``input - trunc(input)``, elementwise, of a floating-point tensor: the fraction, with the sign of `input`.

    >>> import lucid
    >>> lucid.frac(lucid.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """
    return GRAPH.frac(input)


@primitive(outputs=("fraction", "whole"), differentiable=(0, 1))
def _modf(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    return tuple([part.astype(x.dtype, copy=False) for part in xp.modf(x.astype(accumulation_dtype(x.dtype)))])


_FRACTION = of_formula(lambda m, x: m.copysign(m.where(m.isinf(x), 0, m.frac(x)), x), "Fraction")
_modf.cuda(both(_FRACTION, of_formula(lambda m, x: m.trunc(x), "Trunc")))


@_modf.vjp
def _modf_vjp(m: Namespace, grad: list[Array | None]) -> Any:
    return m.zeros_like(grad[1]) if grad[0] is None else grad[0]


def modf(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the fractions, of infinity 0, and the whole numbers before them, both of the sign of `x`, as `numpy.modf`.

    >>> import lucid
    >>> lucid.ops.elementwise.rounding.modf(lucid.tensor([1.5, -2.0]))
    (tensor([0.5000, -0.0000]), tensor([ 1., -2.]))
    """
    return GRAPH.modf(floating("modf", x))
