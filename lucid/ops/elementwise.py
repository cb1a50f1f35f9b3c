"""Elementwise arithmetic of two operands, with broadcasting and PyTorch's dtype promotion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import Primitive, primitive
from lucid.autograd.recording import binary, unary
from lucid.ops.promotion import float_operand, promote

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def of_two(op: Primitive, *, at_least_float: bool = False) -> Primitive:
    """Give a primitive of two operands its caller: the short path, or promotion and the general one."""

    def general(a: Any, b: Any) -> Any:
        return op(*promote(a, b, at_least_float=at_least_float))

    op.call = binary(op, general)
    return op


def of_one(op: Primitive) -> Primitive:
    """Give a primitive of one floating-point operand its caller; integers become the default dtype."""

    def general(x: Any) -> Any:
        return op(float_operand(x))

    op.call = unary(op, general)
    return op


@primitive(cpu=np.add)
def _add(xp: Any, a: Array, b: Array) -> Array:
    return xp.add(a, b)


@_add.vjp("a")
def _add_a(m: Any, grad: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(grad, shape=a_shape)


@_add.vjp("b")
def _add_b(m: Any, grad: Any, b_shape: tuple[int, ...]) -> Any:
    return m.sum_to(grad, shape=b_shape)


of_two(_add)


def add(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return ``input + alpha * other``, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand.
    other : Tensor or number
        Second operand, broadcast against the first.
    alpha : number
        Factor of `other`.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DeviceError
        If the operands are on different devices.

    Examples
    --------
    >>> import lucid
    >>> lucid.add(lucid.tensor([1.0, 2.0]), 1)
    tensor([2., 3.])
    """
    return _add.call(input, other if alpha == 1 else _mul.call(other, alpha))


@primitive(cpu=np.multiply)
def _mul(xp: Any, a: Array, b: Array) -> Array:
    return xp.multiply(a, b)


@_mul.vjp("a")
def _mul_a(m: Any, grad: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(m.mul(grad, b), shape=a_shape)


@_mul.vjp("b")
def _mul_b(m: Any, grad: Any, a: Any, b_shape: tuple[int, ...]) -> Any:
    return m.sum_to(m.mul(grad, a), shape=b_shape)


of_two(_mul)


def mul(input: Tensor, other: Any) -> Tensor:
    """Return ``input * other``, elementwise.

    Parameters
    ----------
    input : Tensor
        First operand.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DeviceError
        If the operands are on different devices.

    Examples
    --------
    >>> import lucid
    >>> lucid.mul(lucid.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """
    return _mul.call(input, other)


@primitive(cpu=np.exp)
def _exp(xp: Any, x: Array) -> Array:
    return xp.exp(x)


@_exp.vjp
def _exp_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.mul(grad, out)


of_one(_exp)


def exp(input: Tensor) -> Tensor:
    """Return ``e ** input``, elementwise.

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
    >>> lucid.exp(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return _exp.call(input)
