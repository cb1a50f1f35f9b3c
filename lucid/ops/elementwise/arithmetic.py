"""Sums, differences and products.

What holds for all elementwise ops says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.cuda.launch.elementwise import ALL, NUMBERS, Elementwise
from lucid.errors import DtypeError
from lucid.ops.base.blocks import rounded_once
from lucid.ops.base.core import ADD
from lucid.ops.base.declaration import REAL, elementwise
from lucid.ops.base.operands import as_factor, is_bool, of_two, refuse, shorten, summed, tensor_operand
from lucid.ops.base.promotion import as_operand, number_in, promote

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


# written out, because one rule for both operands is called once
@primitive(cpu=np.add)
def _add(xp: ModuleType, a: Array, b: Array) -> Array:
    return xp.add(a, b)


_add.cuda(ADD)


@_add.vjp
def _add_vjp(m: Namespace, grad: Array, a_shape: Ints | None, b_shape: Ints | None) -> tuple[Array, Array]:
    return (
        grad if a_shape is None else m.sum_to(grad, shape=a_shape),
        grad if b_shape is None else m.sum_to(grad, shape=b_shape),
    )


of_two(_add)


def add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``input + alpha * other``, elementwise.

    `alpha` is a number that fits the dtype of the operands, an integer for integers; another raises a DtypeError.

    >>> import lucid
    >>> lucid.add(lucid.tensor([1.0, 2.0]), 1)
    tensor([2., 3.])
    """
    if type(alpha) is int and alpha == 1:
        return _add.call(input, other)
    return _with_scaled("add", input, other, alpha)


def _with_scaled(name: str, a: Tensor | Number, b: Tensor | Number, alpha: Number) -> Any:
    """Return the sum, or under another name the difference, of `a` and ``alpha * b``."""
    call, sign = (GRAPH.add, 1) if name == "add" else (GRAPH.sub, -1)
    factor, dtype = as_factor(name, "alpha", alpha, a, b)
    if not isinstance(as_operand(b), TensorBase):
        return call(a, b * factor)
    if is_bool(a) and is_bool(b):
        return call(a, GRAPH.mul(b, factor))
    x, y = promote(a, b)
    return addcmul(x, y, number_in(sign * factor, dtype, y.array), 1)


def _refuse_bools(a: Any, b: Any) -> None:
    """Refuse to subtract bools, as PyTorch does: a mask would be inverted into numbers in silence."""
    if is_bool(a) or is_bool(b):
        raise DtypeError(
            "sub: got a bool, which it is not defined on; use ~ or logical_not to invert a mask, ^ or logical_xor for "
            "the difference of two, and to() for numbers"
        )


def _not_of_bools(op: Primitive) -> None:
    def general(a: Any, b: Any) -> Any:
        _refuse_bools(a, b)
        return op(*promote(a, b))

    shorten(op, general)


@elementwise(
    np.subtract,
    lambda m, grad, a_shape: m.sum_to(grad, shape=a_shape),
    lambda m, grad, b_shape: m.neg(m.sum_to(grad, shape=b_shape)),
    kernel="elementwise.Sub",
    dtypes=NUMBERS,
    caller=_not_of_bools,
)
def sub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``input - alpha * other``, elementwise; bools raise a DtypeError.

    `alpha` is as for `add`.

    >>> import lucid
    >>> lucid.sub(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]), alpha=2)
    tensor([-5., -6.])
    """
    if type(alpha) is int and alpha == 1:
        return GRAPH.sub(input, other)
    _refuse_bools(input, other)
    return _with_scaled("sub", input, other, alpha)


def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``other - alpha * input``, elementwise; bools raise a DtypeError.

    `alpha` is as for `add`.

    >>> import lucid
    >>> lucid.rsub(lucid.tensor([1.0, 2.0]), 1)
    tensor([ 0., -1.])
    """
    if type(alpha) is int and alpha == 1:
        return GRAPH.sub(other, input)
    _refuse_bools(input, other)
    return _with_scaled("rsub", other, input, alpha)


def _mul_a(m: Namespace, grad: Array, b: Array, a_shape: Ints | None) -> Array:
    product = m.mul(grad, b)
    return product if a_shape is None else m.sum_to(product, shape=a_shape)


def _mul_b(m: Namespace, grad: Array, a: Array, b_shape: Ints | None) -> Array:
    product = m.mul(grad, a)
    return product if b_shape is None else m.sum_to(product, shape=b_shape)


@elementwise(np.multiply, _mul_a, _mul_b, kernel="elementwise.Mul", dtypes=ALL)
def mul(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input * other``, elementwise.

    >>> import lucid
    >>> lucid.mul(lucid.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """
    return GRAPH.mul(input, other)


def _sum_and_product(xp: ModuleType, x: Array, a: Array, b: Array, value: Array) -> Array:
    product = xp.multiply(a, b)
    return xp.add(x, product if type(value) is int and value == 1 else xp.multiply(product, value))


@primitive
def addcmul(xp: ModuleType, x: Array, a: Array, b: Array, value: Array) -> Array:
    """Return ``x + value * a * b`` of operands of one dtype."""
    return rounded_once(_sum_and_product, xp, x, a, b, value)


addcmul.cuda(Elementwise("elementwise", "Addcmul", "TTTT", dtypes=NUMBERS))
_PRODUCT = summed(Elementwise("elementwise", "Mul3", "TTT"))


@addcmul.vjp("x")
def _addcmul_x(m: Namespace, grad: Array, x_shape: Ints) -> Any:
    return m.sum_to(grad, shape=x_shape)


@addcmul.vjp("a", cuda=_PRODUCT)
def _addcmul_a(m: Namespace, grad: Array, b: Array, value: Any, a_shape: Ints) -> Any:
    # of two numbers `m` would make a tensor of no device
    return m.sum_to(m.mul(grad, m.mul(b, value) if hasattr(b, "dtype") else b * value), shape=a_shape)


@addcmul.vjp("b", cuda=_PRODUCT)
def _addcmul_b(m: Namespace, grad: Array, a: Array, value: Any, b_shape: Ints) -> Any:
    return m.sum_to(m.mul(grad, m.mul(a, value)), shape=b_shape)


@elementwise(
    np.negative,
    lambda m, grad: m.neg(grad),
    kernel="elementwise.Neg",
    refused=("b", "use ~ or logical_not to invert a mask"),
    dtypes=NUMBERS,
)
def neg(input: Tensor) -> Tensor:
    """Return ``-input``, elementwise, not of bools.

    >>> import lucid
    >>> lucid.neg(lucid.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    return GRAPH.neg(input)


@elementwise(
    np.copysign,
    lambda m, grad, a, out, a_shape: m.sum_to(m.where(m.eq(a, 0), 0, m.mul(grad, m.div(out, a))), shape=a_shape),
    lambda m, grad, b_shape: m.sum_to(m.zeros_like(grad), shape=b_shape),
    refused=REAL,
)
def copysign(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the size of `input` with the sign of `other`, elementwise, of real numbers; zeros have signs, too.

    >>> import lucid
    >>> lucid.copysign(lucid.tensor([1.0, -2.0]), -0.0)
    tensor([-1., -2.])
    """
    return GRAPH.copysign(input, other)


def _of_wide(op: Primitive) -> None:
    """Give a primitive of two numbers of float32 or float64 its caller."""

    def general(*operands: Any) -> Any:
        promoted = promote(*operands, at_least_float=True)
        for operand in promoted:
            if isinstance(operand, TensorBase) and operand.array.dtype not in (np.float32, np.float64):
                raise DtypeError(
                    f"{op.name}: got a tensor of {operand.array.dtype.name}, which it is not defined on; convert to "
                    "float32 first"
                )
        return op(*promoted)

    op.call = general


@elementwise(
    np.nextafter,
    lambda m, grad, a, b, a_shape: m.sum_to(m.where(m.eq(a, b), 0, grad), shape=a_shape),
    lambda m, grad, b_shape: m.sum_to(m.zeros_like(grad), shape=b_shape),
    dtypes=("float", "double"),
    caller=_of_wide,
)
def nextafter(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the floating-point number next to `input` in the direction of `other`, elementwise.

    Defined on float32 and float64. The slope is 1, and 0 where both are equal.

    >>> import lucid
    >>> lucid.nextafter(lucid.tensor([1.0]), 2.0) - 1
    tensor([1.1921e-07])
    """
    return GRAPH.nextafter(input, other)


def positive(input: Tensor) -> Tensor:
    """Return `input` itself; bools have no sign and raise a DtypeError.

    >>> import lucid
    >>> lucid.positive(lucid.tensor([-1.0]))
    tensor([-1.])
    """
    x = tensor_operand(input)
    refuse("positive", "b", x, instead="convert to integers first")
    return x
