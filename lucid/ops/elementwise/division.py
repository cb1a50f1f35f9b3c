"""Quotients and remainders, elementwise.

Integers divided by zero with a rounding, and remainders of them, raise a DivisionByZeroError on the CPU; a GPU would
have to wait for the answer, and gives whatever the machine makes of it, as in PyTorch. What is rounded, and its
remainder, is of real numbers. What holds for all elementwise ops says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.cuda.launch.elementwise import INTEGERS, NUMBERS
from lucid.errors import CallError, LucidError
from lucid.ops.base.declaration import Fused, declare, elementwise
from lucid.ops.base.operands import refuse, shorten
from lucid.ops.base.promotion import promote
from lucid.ops.elementwise.logic import of_integers_alone

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor

REAL_PARTS = "take the real and imaginary parts first"


class DivisionByZeroError(LucidError, RuntimeError, ZeroDivisionError):
    """An integer was divided by zero."""


class RoundingModeError(CallError):
    """A way of rounding is unknown."""


def of_whole_quotient(op: Primitive) -> None:
    """Give a primitive of two real operands a caller that refuses integers divided by zero on the CPU."""

    def general(a: Any, b: Any) -> Any:
        refuse(op.name, "c", a, b, instead=REAL_PARTS)
        a, b = promote(a, b)
        dividend, divisor = [o.array if isinstance(o, TensorBase) else np.asarray(o) for o in (a, b)]
        whole = dividend.dtype.kind in "biu" and divisor.dtype.kind in "biu"
        if whole and dividend.size and isinstance(divisor, np.ndarray) and not divisor.all():
            raise DivisionByZeroError(f"{op.name}: integer division by zero; convert to a floating-point dtype first")
        return op(a, b)

    shorten(op, general)


def _no_slope_a(m: Namespace, grad: Array, a_shape: Ints) -> Any:
    return m.zeros_like(m.sum_to(grad, shape=a_shape))


def _no_slope_b(m: Namespace, grad: Array, b_shape: Ints) -> Any:
    return m.zeros_like(m.sum_to(grad, shape=b_shape))


def _trunc_divide(xp: ModuleType, a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind in "biu":
        return xp.floor_divide(xp.subtract(a, xp.fmod(a, b)), b)
    return xp.trunc(xp.divide(a, b))


declare(
    "trunc_divide",
    _trunc_divide,
    _no_slope_a,
    _no_slope_b,
    kernel="division.TruncDivide<{T}>",
    dtypes=NUMBERS,
    caller=of_whole_quotient,
)


def _div_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.neg(m.sum_to(m.mul(grad, m.div(m.div(a, b), b)), shape=b_shape))


@elementwise(np.divide, lambda m, grad, b, a_shape: m.sum_to(m.div(grad, b), shape=a_shape), Fused(_div_b))
def div(input: Tensor, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
    """Return ``input / other``, elementwise, as it is or rounded to whole numbers.

    With `rounding_mode` None it is the true quotient, of integers in the default floating-point dtype; ``"floor"``
    rounds down and ``"trunc"`` towards zero, in the promoted dtype and with a gradient of zero; anything else raises a
    ValueError.

    >>> import lucid
    >>> lucid.div(lucid.tensor([7.0, -7.0]), 2)
    tensor([ 3.5000, -3.5000])
    >>> lucid.div(lucid.tensor([7.0, -7.0]), 2, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if rounding_mode is None:
        return GRAPH.div(input, other)
    if rounding_mode == "floor":
        return GRAPH.floor_divide(input, other)
    if rounding_mode == "trunc":
        return GRAPH.trunc_divide(input, other)
    raise RoundingModeError(f"div: expected rounding_mode to be None, 'floor' or 'trunc', got {rounding_mode!r}")


@elementwise(
    np.floor_divide, _no_slope_a, _no_slope_b, kernel="division.FloorDivide", dtypes=NUMBERS, caller=of_whole_quotient
)
def floor_divide(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the largest whole number that is not above ``input / other``, elementwise; its gradient is zero.

    >>> import lucid
    >>> lucid.floor_divide(lucid.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return GRAPH.floor_divide(input, other)


def _keep_a(m: Namespace, grad: Array, a_shape: Ints) -> Any:
    return m.sum_to(grad, shape=a_shape)


def _remainder_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.neg(m.sum_to(m.mul(grad, m.floor_divide(a, b)), shape=b_shape))


@elementwise(
    np.remainder,
    _keep_a,
    Fused(_remainder_b, "division.RemainderGradB"),
    kernel="division.Remainder",
    dtypes=NUMBERS,
    caller=of_whole_quotient,
)
def remainder(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input - other * floor(input / other)``, elementwise: the remainder with the sign of the divisor.

    Of zero, too, as in Python: ``-0.0`` for a divisor below zero.

    >>> import lucid
    >>> lucid.remainder(lucid.tensor([7.0, -7.0]), 3)
    tensor([1., 2.])
    """
    return GRAPH.remainder(input, other)


def _fmod_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.neg(m.sum_to(m.mul(grad, m.trunc_divide(a, b)), shape=b_shape))


@elementwise(
    np.fmod,
    _keep_a,
    Fused(_fmod_b, "division.FmodGradB<{T}>"),
    kernel="division.Fmod",
    dtypes=NUMBERS,
    caller=of_whole_quotient,
)
def fmod(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input - other * trunc(input / other)``, elementwise: the remainder with the sign of the dividend.

    >>> import lucid
    >>> lucid.fmod(lucid.tensor([7.0, -7.0]), 3)
    tensor([ 1., -1.])
    """
    return GRAPH.fmod(input, other)


@elementwise(np.reciprocal, Fused(lambda m, grad, out: m.neg(m.mul(grad, m.square(out)))))
def reciprocal(input: Tensor) -> Tensor:
    """Return ``1 / input``, elementwise.

    >>> import lucid
    >>> lucid.reciprocal(lucid.tensor([2.0, -4.0]))
    tensor([ 0.5000, -0.2500])
    """
    return GRAPH.reciprocal(input)


@elementwise(np.gcd, kernel="division.Gcd", dtypes=INTEGERS, caller=of_integers_alone)
def gcd(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the greatest common divisor of integers, elementwise, at least 0.

    >>> import lucid
    >>> lucid.gcd(lucid.tensor([12, 5]), 8)
    tensor([4, 1])
    """
    return GRAPH.gcd(input, other)


@elementwise(np.lcm, kernel="division.Lcm", dtypes=INTEGERS, caller=of_integers_alone)
def lcm(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the least common multiple of integers, elementwise, at least 0.

    >>> import lucid
    >>> lucid.lcm(lucid.tensor([12, 5]), 8)
    tensor([24, 40])
    """
    return GRAPH.lcm(input, other)
