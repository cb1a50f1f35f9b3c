"""Quotients and remainders, elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.primitive import primitive
from lucid.autograd.recording import binary
from lucid.cuda.elementwise import NUMBERS, Elementwise
from lucid.errors import LucidError
from lucid.ops.elementwise import of_one, of_two, refuse, summed
from lucid.ops.promotion import promote

if TYPE_CHECKING:
    from lucid.autograd.primitive import Primitive
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor

REAL_PARTS = "take the real and imaginary parts first"


class DivisionByZeroError(LucidError, RuntimeError, ZeroDivisionError):
    """An integer was divided by zero."""


def _has_zero(divisor: Any) -> bool:
    return isinstance(divisor, np.ndarray | np.generic | int) and not np.all(cast("Any", divisor))


def of_whole_quotient(op: Primitive) -> Primitive:
    """Give a primitive of two real operands its caller, which looks for integers divided by zero.

    On the CPU only: the GPU would have to wait for the answer, and gives whatever the machine makes of it, as PyTorch.
    """

    def general(a: Any, b: Any) -> Any:
        refuse(op.name, "c", a, b, instead=REAL_PARTS)
        a, b = promote(a, b)
        whole = all((o.array if isinstance(o, TensorBase) else np.asarray(o)).dtype.kind in "biu" for o in (a, b))
        if whole and _has_zero(b.array if isinstance(b, TensorBase) else b):
            raise DivisionByZeroError(f"{op.name}: integer division by zero; convert to a floating-point dtype first")
        return op(a, b)

    op.call = binary(op, general)
    return op


@primitive(cpu=np.divide)
def _div(xp: Any, a: Array, b: Array) -> Array:
    return xp.divide(a, b)


_div.cuda(Elementwise("division", "Div", "TT"))


@_div.vjp("a")
def _div_a(m: Any, grad: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(m.div(grad, b), shape=a_shape)


@_div.vjp("b", cuda=summed(Elementwise("division", "DivGradB", "TTT")))
def _div_b(m: Any, grad: Any, a: Any, b: Any, b_shape: tuple[int, ...]) -> Any:
    return m.neg(m.sum_to(m.mul(grad, m.div(m.div(a, b), b)), shape=b_shape))


of_two(_div, at_least_float=True)


@primitive(cpu=np.floor_divide)
def _floor_divide(xp: Any, a: Array, b: Array) -> Array:
    return xp.floor_divide(a, b)


_floor_divide.cuda(Elementwise("division", "FloorDivide", "TT", dtypes=NUMBERS))


def _trunc_divide_on(xp: Any, a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind in "biu":
        return xp.floor_divide(xp.subtract(a, xp.fmod(a, b)), b)
    return xp.trunc(xp.divide(a, b))


@primitive
def _trunc_divide(xp: Any, a: Array, b: Array) -> Array:
    return _trunc_divide_on(xp, a, b)


_trunc_divide.cuda(Elementwise("division", "TruncDivide<{T}>", "TT", dtypes=NUMBERS))


def _no_slope_a(m: Any, grad: Any, a_shape: tuple[int, ...]) -> Any:
    return m.zeros_like(m.sum_to(grad, shape=a_shape))


def _no_slope_b(m: Any, grad: Any, b_shape: tuple[int, ...]) -> Any:
    return m.zeros_like(m.sum_to(grad, shape=b_shape))


for _op in (_floor_divide, _trunc_divide):
    _op.vjp("a")(_no_slope_a)
    _op.vjp("b")(_no_slope_b)
    of_whole_quotient(_op)


def div(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return ``input / other``, elementwise, as it is or rounded to whole numbers.

    Parameters
    ----------
    input : Tensor
        Dividend.
    other : Tensor or number
        Divisor, broadcast against the dividend.
    rounding_mode : None, ``"floor"`` or ``"trunc"``
        None gives the true quotient, and a floating-point dtype for integers; ``"floor"`` rounds down, ``"trunc"``
        towards zero, both in the promoted dtype and with a gradient of zero.

    Returns
    -------
    Tensor
        Of the broadcast shape.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DivisionByZeroError
        If integers are divided by zero with a rounding mode, on the CPU.
    ValueError
        If `rounding_mode` is something else.

    Examples
    --------
    >>> import lucid
    >>> lucid.div(lucid.tensor([7.0, -7.0]), 2)
    tensor([ 3.5000, -3.5000])
    >>> lucid.div(lucid.tensor([7.0, -7.0]), 2, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if rounding_mode is None:
        return _div.call(input, other)
    if rounding_mode == "floor":
        return _floor_divide.call(input, other)
    if rounding_mode == "trunc":
        return _trunc_divide.call(input, other)
    raise RoundingModeError(f"div: expected rounding_mode to be None, 'floor' or 'trunc', got {rounding_mode!r}")


class RoundingModeError(LucidError, RuntimeError, ValueError):
    """A way of rounding is unknown."""


def floor_divide(input: Tensor, other: Any) -> Tensor:
    """Return the largest whole number that is not above ``input / other``, elementwise.

    Parameters
    ----------
    input : Tensor
        Dividend.
    other : Tensor or number
        Divisor, broadcast against the dividend.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype; its gradient is zero.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DivisionByZeroError
        If integers are divided by zero, on the CPU.

    Examples
    --------
    >>> import lucid
    >>> lucid.floor_divide(lucid.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return _floor_divide.call(input, other)


@primitive(cpu=np.remainder)
def _remainder(xp: Any, a: Array, b: Array) -> Array:
    return xp.remainder(a, b)


_remainder.cuda(Elementwise("division", "Remainder", "TT", dtypes=NUMBERS))


@primitive(cpu=np.fmod)
def _fmod(xp: Any, a: Array, b: Array) -> Array:
    return xp.fmod(a, b)


_fmod.cuda(Elementwise("division", "Fmod", "TT", dtypes=NUMBERS))


def _keep_a(m: Any, grad: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(grad, shape=a_shape)


@_remainder.vjp("b", cuda=summed(Elementwise("division", "RemainderGradB", "TTT")))
def _remainder_b(m: Any, grad: Any, a: Any, b: Any, b_shape: tuple[int, ...]) -> Any:
    return m.neg(m.sum_to(m.mul(grad, m.floor_divide(a, b)), shape=b_shape))


@_fmod.vjp("b", cuda=summed(Elementwise("division", "FmodGradB<{T}>", "TTT")))
def _fmod_b(m: Any, grad: Any, a: Any, b: Any, b_shape: tuple[int, ...]) -> Any:
    return m.neg(m.sum_to(m.mul(grad, m.trunc_divide(a, b)), shape=b_shape))


for _op in (_remainder, _fmod):
    _op.vjp("a")(_keep_a)
    of_whole_quotient(_op)


def remainder(input: Tensor, other: Any) -> Tensor:
    """Return ``input - other * floor(input / other)``, elementwise: the remainder with the sign of the divisor.

    Of zero, too, as in Python: ``-0.0`` for a divisor below zero.

    Parameters
    ----------
    input : Tensor
        Dividend.
    other : Tensor or number
        Divisor, broadcast against the dividend.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DivisionByZeroError
        If integers are divided by zero, on the CPU.

    Examples
    --------
    >>> import lucid
    >>> lucid.remainder(lucid.tensor([7.0, -7.0]), 3)
    tensor([1., 2.])
    """
    return _remainder.call(input, other)


def fmod(input: Tensor, other: Any) -> Tensor:
    """Return ``input - other * trunc(input / other)``, elementwise: the remainder with the sign of the dividend.

    Parameters
    ----------
    input : Tensor
        Dividend.
    other : Tensor or number
        Divisor, broadcast against the dividend.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DivisionByZeroError
        If integers are divided by zero, on the CPU.

    Examples
    --------
    >>> import lucid
    >>> lucid.fmod(lucid.tensor([7.0, -7.0]), 3)
    tensor([ 1., -1.])
    """
    return _fmod.call(input, other)


@primitive(cpu=np.reciprocal)
def _reciprocal(xp: Any, x: Array) -> Array:
    return xp.reciprocal(x)


_reciprocal.cuda(Elementwise("division", "Reciprocal"))


@_reciprocal.vjp(cuda=Elementwise("division", "ReciprocalGrad", "TT"))
def _reciprocal_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.neg(m.mul(grad, m.square(out)))


of_one(_reciprocal)


def reciprocal(input: Tensor) -> Tensor:
    """Return ``1 / input``, elementwise.

    Parameters
    ----------
    input : Tensor
        Integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Examples
    --------
    >>> import lucid
    >>> lucid.reciprocal(lucid.tensor([2.0, -4.0]))
    tensor([ 0.5000, -0.2500])
    """
    return _reciprocal.call(input)
