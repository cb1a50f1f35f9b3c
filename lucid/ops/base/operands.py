"""Operands of elementwise ops: conversion and refusal by a primitive's caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.recording.namespace import CUDA
from lucid.base.arrays import Array, is_array
from lucid.base.dtype import result_type, scalar_dtype
from lucid.cuda.launch.plans import launches_only
from lucid.errors import DtypeError
from lucid.ops.base.promotion import OperandTypeError, as_operand, float_operand, promote, tensor_dtype
from lucid.ops.base.scalars import as_scalar

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.recording.primitive import Primitive


READY = (TensorBase, int, float, complex, np.complexfloating)
"""What an op takes as it is; NumPy's complex numbers so that they are refused as Python's are."""


def of_two(op: Primitive, *, at_least_float: bool = False, refused: tuple[str, str] | None = None) -> None:
    """Give a primitive of two operands its caller: the short path, or promotion and the general one."""

    def general(a: Any, b: Any) -> Any:
        if refused is not None:
            refuse(op.name, refused[0], a, b, instead=refused[1])
        return op(*promote(a, b, at_least_float=at_least_float))

    shorten(op, general)


def shorten(op: Primitive, general: Callable[[Any, Any], Any]) -> None:
    """Let calls of a primitive of two operands take the short path, an array beside a tensor once it is one."""

    def ready(a: Any, b: Any) -> Any:
        if isinstance(a, READY) and isinstance(b, READY):
            return general(a, b)
        return op.call(as_operand(a, b), as_operand(b, a))

    op.shorten(ready)


def of_one(op: Primitive, *, at_least_float: bool = True, refused: tuple[str, str] | None = None) -> None:
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
        op.shorten(general)


def summed(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a derivative rule with the shape of the summed gradient as its last parameter."""

    def run(grad: Array, *arguments: Any) -> Any:
        *operands, shape = arguments
        out = kernel(grad, *operands)
        return out if out is NotImplemented or shape is None or out.shape == shape else CUDA.sum_to(out, shape=shape)

    return run


def both(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    """Return the launcher of an op with the results of two kernels of one array."""

    def run(x: Array) -> Any:
        out = first(x)
        return NotImplemented if out is NotImplemented else (out, second(x))

    return launches_only(run)


def tensor_operand(x: Any) -> Any:
    """Return `x` as a tensor.

    Raises
    ------
    OperandTypeError
        If it is neither a tensor nor an array.
    """
    if isinstance(x, TensorBase):
        return x
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
    *operands : Tensor, array or other
        Of what is neither, only complex numbers are looked at.
    instead : str
        What to do, for the message.

    Raises
    ------
    DtypeError
        If a tensor is of one of the kinds, or a number is complex and these are among them.
    """
    for value in operands:
        operand = as_operand(value) if not isinstance(value, READY) and is_array(value) else cast("Any", value)
        if isinstance(operand, TensorBase) and operand.array.dtype.kind in kinds:
            raise DtypeError(f"{name}: got a tensor of {tensor_dtype(operand)}, which it is not defined on; {instead}")
        if isinstance(operand, complex | np.complexfloating) and "c" in kinds:
            raise unfit(cast("Any", operand), f"a real number: {instead}", kind=DtypeError)


def floating(name: str, x: Any) -> Any:
    """Return `x` as a floating-point tensor; a DtypeError if it is of another dtype."""
    refuse(name, "biuc", x, instead="convert to a floating-point dtype first")
    return tensor_operand(x)


def as_factor(name: str, word: str, value: Any, *operands: Any) -> tuple[Any, Any]:
    """Return the factor of some of the operands, a number, and the common dtype of all.

    Raises
    ------
    DtypeError
        If the factor is a fraction and the operands are integers, or a bool and they are numbers.
    ArgumentError
        If it is no number.
    """
    factor = as_scalar(value, word)
    dtype = result_type(*[o.array if isinstance(o, TensorBase) else o for o in map(as_operand, operands)])
    if isinstance(factor, bool) and dtype.category:
        raise DtypeError(f"{name}: expected {word} to be a number for operands of {dtype}, got {factor}")
    if scalar_dtype(factor).category > max(dtype.category, 1):
        raise DtypeError(
            f"{name}: expected {word} to be an integer for operands of {dtype}, got {factor!r}; "
            "convert them to a floating-point dtype first"
        )
    return factor, dtype
