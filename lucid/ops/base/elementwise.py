"""Elementwise arithmetic, and how an elementwise op gets its caller.

What holds for all elementwise ops says `lucid.ops.base.declaration`.

The declaration stands on what is here, so these few write out what it makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.recording.namespace import CUDA
from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.autograd.recording.short_path import binary, unary
from lucid.backend.dtype import result_type, scalar_dtype
from lucid.cuda.launch.elementwise import ALL, NUMBERS, Elementwise
from lucid.errors import DtypeError
from lucid.ops.base.blocks import rounded_once
from lucid.ops.base.core import ADD
from lucid.ops.base.promotion import OperandTypeError, as_operand, float_operand, number_in, promote, tensor_dtype
from lucid.ops.base.scalars import as_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.backend.arrays import Array, Number
    from lucid.tensor import Tensor


def of_two(op: Primitive, *, at_least_float: bool = False, refused: tuple[str, str] | None = None) -> Primitive:
    """Give a primitive of two operands its caller: the short path, or promotion and the general one."""

    def general(a: Any, b: Any) -> Any:
        if refused is not None:
            refuse(op.name, refused[0], a, b, instead=refused[1])
        return op(*promote(a, b, at_least_float=at_least_float))

    op.call = binary(op, general)
    return op


def of_one(op: Primitive, *, at_least_float: bool = True, refused: tuple[str, str] | None = None) -> Primitive:
    """Give a primitive of one operand its caller: the short path, or the general one.

    Integers and bools become the default dtype, unless the op is defined on them. With settings there is no short path.
    """

    def general(x: Any, **settings: Any) -> Any:
        if refused is not None:
            refuse(op.name, refused[0], x, instead=refused[1])
        return op(float_operand(x) if at_least_float else tensor_operand(x), **settings)

    if op.settings:
        op.seal()
        op.call = general
    else:
        op.call = unary(op, general)
    return op


def summed(kernel: Callable[..., Any], *, exchanged: bool = False) -> Callable[..., Any]:
    """Return the kernel of a derivative rule whose last parameter is the shape that the gradient is summed to.

    With `exchanged` the given kernel takes the operands in reverse order.
    """

    def run(grad: Any, *arguments: Any) -> Any:
        *operands, shape = arguments
        if exchanged:
            operands.reverse()
        out = kernel(grad, *operands)
        return out if out is NotImplemented or shape is None or out.shape == shape else CUDA.sum_to(out, shape=shape)

    return run


def tensor_operand(x: Any) -> Any:
    """Return `x` as a tensor.

    Raises
    ------
    OperandTypeError
        If it is neither a tensor nor an array.
    """
    operand = as_operand(x)
    if not isinstance(operand, TensorBase):
        raise unfit(x, "a Tensor", kind=OperandTypeError)
    return operand


def is_bool(x: Any) -> bool:
    """Return whether `x` is a bool or a tensor of bools."""
    return isinstance(x, bool) or (isinstance(x, TensorBase) and x.array.dtype.kind == "b")


def refuse(name: str, kinds: str, *operands: Any, instead: str) -> None:
    """Refuse operands of dtypes that an op does not have.

    Parameters
    ----------
    name : str
        The op.
    kinds : str
        The kinds that it refuses, as NumPy's letters: ``"b"`` bool, ``"iu"`` integers, ``"fV"`` floating, ``"c"``
        complex.
    *operands : Tensor or other
        Only tensors are looked at.
    instead : str
        What to do, for the message.

    Raises
    ------
    DtypeError
        If a tensor is of one of the kinds.
    """
    for operand in operands:
        if isinstance(operand, TensorBase) and operand.array.dtype.kind in kinds:
            raise DtypeError(f"{name}: got a tensor of {tensor_dtype(operand)}, which it is not defined on; {instead}")


def as_factor(name: str, word: str, value: Any, *operands: Any) -> tuple[Any, Any]:
    """Return the number by which some of the operands are multiplied, and the common dtype of all.

    Raises
    ------
    DtypeError
        If the factor is a fraction and the operands are integers, or a bool and they are numbers.
    ArgumentError
        If it is no number.
    """
    factor = as_number(value, word)
    dtype = result_type(*[o.array if isinstance(o, TensorBase) else o for o in map(as_operand, operands)])
    if isinstance(factor, bool) and dtype.category:
        raise DtypeError(f"{name}: expected {word} to be a number for operands of {dtype}, got {factor}")
    if scalar_dtype(factor).category > max(dtype.category, 1):
        raise DtypeError(
            f"{name}: expected {word} to be an integer for operands of {dtype}, got {factor!r}; "
            "convert them to a floating-point dtype first"
        )
    return factor, dtype


def _with_scaled(op: Primitive, name: str, a: Any, b: Any, alpha: Any) -> Any:
    """Return the sum or difference of `a` and ``alpha * b``."""
    alpha, dtype = as_factor(name, "alpha", alpha, a, b)
    if not isinstance(as_operand(b), TensorBase):
        return op.call(a, b * alpha)
    if is_bool(a) and is_bool(b):
        return op.call(a, _mul.call(b, alpha))
    x, y = promote(a, b)
    return addcmul(x, y, number_in(alpha if op is _add else -alpha, dtype, y.array), 1)


@primitive(cpu=np.add)
def _add(xp: Any, a: Array, b: Array) -> Array:
    return xp.add(a, b)


_add.cuda(ADD)


@_add.vjp
def _add_vjp(m: Any, grad: Any, a_shape: tuple[int, ...] | None, b_shape: tuple[int, ...] | None) -> Any:
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
    return _with_scaled(_add, "add", input, other, alpha)


@primitive(cpu=np.subtract)
def _sub(xp: Any, a: Array, b: Array) -> Array:
    return xp.subtract(a, b)


_sub.cuda(Elementwise("elementwise", "Sub", "TT", dtypes=NUMBERS))


@_sub.vjp("a")
def _sub_a(m: Any, grad: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(grad, shape=a_shape)


@_sub.vjp("b")
def _sub_b(m: Any, grad: Any, b_shape: tuple[int, ...]) -> Any:
    return m.neg(m.sum_to(grad, shape=b_shape))


def _refuse_bools(a: Any, b: Any) -> None:
    """Refuse to subtract bools, as PyTorch does: a mask would be inverted into numbers in silence."""
    if is_bool(a) or is_bool(b):
        raise DtypeError(
            "sub: got a bool, which it is not defined on; use ~ or logical_not to invert a mask, ^ or logical_xor for "
            "the difference of two, and to() for numbers"
        )


def _sub_general(a: Any, b: Any) -> Any:
    _refuse_bools(a, b)
    return _sub(*promote(a, b))


_sub.call = binary(_sub, _sub_general)


def sub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``input - alpha * other``, elementwise; bools raise a DtypeError.

    `alpha` is as for `add`.

    >>> import lucid
    >>> lucid.sub(lucid.tensor([1.0, 2.0]), lucid.tensor([3.0, 4.0]), alpha=2)
    tensor([-5., -6.])
    """
    if type(alpha) is int and alpha == 1:
        return _sub.call(input, other)
    _refuse_bools(input, other)
    return _with_scaled(_sub, "sub", input, other, alpha)


def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Return ``other - alpha * input``, elementwise; bools raise a DtypeError.

    `alpha` is as for `add`.

    >>> import lucid
    >>> lucid.rsub(lucid.tensor([1.0, 2.0]), 1)
    tensor([ 0., -1.])
    """
    if type(alpha) is int and alpha == 1:
        return _sub.call(other, input)
    _refuse_bools(input, other)
    return _with_scaled(_sub, "rsub", other, input, alpha)


@primitive(cpu=np.multiply)
def _mul(xp: Any, a: Array, b: Array) -> Array:
    return xp.multiply(a, b)


_mul.cuda(Elementwise("elementwise", "Mul", "TT", dtypes=ALL))


@_mul.vjp("a")
def _mul_a(m: Any, grad: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    product = m.mul(grad, b)
    return product if a_shape is None else m.sum_to(product, shape=a_shape)


@_mul.vjp("b")
def _mul_b(m: Any, grad: Any, a: Any, b_shape: tuple[int, ...]) -> Any:
    product = m.mul(grad, a)
    return product if b_shape is None else m.sum_to(product, shape=b_shape)


of_two(_mul)


def mul(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input * other``, elementwise.

    >>> import lucid
    >>> lucid.mul(lucid.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """
    return _mul.call(input, other)


def _sum_and_product(xp: Any, x: Array, a: Array, b: Array, value: Array) -> Array:
    product = xp.multiply(a, b)
    return xp.add(x, product if type(value) is int and value == 1 else xp.multiply(product, value))


@primitive
def addcmul(xp: Any, x: Array, a: Array, b: Array, value: Array) -> Array:
    """Return ``x + value * a * b`` of operands of one dtype."""
    return rounded_once(_sum_and_product, xp, x, a, b, value)


addcmul.cuda(Elementwise("elementwise", "Addcmul", "TTTT", dtypes=NUMBERS))
_PRODUCT = summed(Elementwise("elementwise", "Mul3", "TTT"))


@addcmul.vjp("x")
def _addcmul_x(m: Any, grad: Any, x_shape: tuple[int, ...]) -> Any:
    return m.sum_to(grad, shape=x_shape)


@addcmul.vjp("a", cuda=_PRODUCT)
def _addcmul_a(m: Any, grad: Any, b: Any, value: Any, a_shape: tuple[int, ...]) -> Any:
    # of two numbers `m` would make a tensor of no device
    return m.sum_to(m.mul(grad, m.mul(b, value) if hasattr(b, "dtype") else b * value), shape=a_shape)


@addcmul.vjp("b", cuda=_PRODUCT)
def _addcmul_b(m: Any, grad: Any, a: Any, value: Any, b_shape: tuple[int, ...]) -> Any:
    return m.sum_to(m.mul(grad, m.mul(a, value)), shape=b_shape)


@primitive(cpu=np.negative)
def _neg(xp: Any, x: Array) -> Array:
    return xp.negative(x)


_neg.cuda(Elementwise("elementwise", "Neg", dtypes=NUMBERS))


@_neg.vjp
def _neg_vjp(m: Any, grad: Any) -> Any:
    return m.neg(grad)


of_one(_neg, at_least_float=False)


def neg(input: Tensor) -> Tensor:
    """Return ``-input``, elementwise, not of bools.

    >>> import lucid
    >>> lucid.neg(lucid.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """
    refuse("neg", "b", input, instead="use ~ or logical_not to invert a mask")
    return _neg.call(input)
