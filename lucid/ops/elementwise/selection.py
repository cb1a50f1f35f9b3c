"""Choices between values, elementwise: by a condition, by bounds.

What holds for them says `lucid.ops.base.declaration`.
Bounds are numbers or tensors. Complex operands, which have no order, raise a DtypeError.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.namespace import CUDA, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import Array, Ints, Number, namespace
from lucid.base.dtype import bfloat16, float16, result_type
from lucid.cuda.launch.elementwise import ALL, Elementwise
from lucid.errors import ArgumentError, CallError, DtypeError
from lucid.ops.base.blocks import drop_where, in_blocks, keep_where
from lucid.ops.base.declaration import of_formula
from lucid.ops.base.operands import refuse, summed, tensor_operand
from lucid.ops.base.promotion import array_of, cast_to, promote, tensor_dtype

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.tensor import Tensor


HALVES = (float16.numpy, bfloat16.numpy)


class BoundsError(CallError):
    """No bound was given."""


def _typed(a: Any, b: Any) -> Any:
    """Return a Python number `a` in the half type of an array `b`: NumPy does not know that it is weak there."""
    return b.dtype.type(a) if isinstance(a, int | float) and getattr(b, "dtype", None) in HALVES else a


# what NumPy's types cannot say of arrays of any dtype
numpy: Any = np


def _where_cpu(condition: Array, a: Any, b: Any) -> Array:
    # the case of the derivatives: one side is zero
    if type(b) is int and b == 0 and _fits(a, condition):
        return in_blocks(np, _kept_into, 0, condition, a)
    if type(a) is int and a == 0 and _fits(b, condition):
        return in_blocks(np, _dropped_into, 0, condition, b)
    return numpy.where(condition, _typed(a, b), _typed(b, a))


def _fits(x: Any, condition: Array) -> bool:
    return bool(hasattr(x, "dtype") and x.dtype.kind == "f" and x.itemsize > 2 and x.shape == condition.shape)


def _kept_into(xp: ModuleType, out: Array, condition: Array, a: Array) -> None:
    keep_where(xp, out, a, condition)


def _dropped_into(xp: ModuleType, out: Array, condition: Array, b: Array) -> None:
    drop_where(xp, out, b, condition)


@primitive(cpu=_where_cpu)
def _where(xp: ModuleType, condition: Array, a: Array, b: Array) -> Array:
    return xp.where(condition, _typed(a, b), _typed(b, a))


WHERE = Elementwise("elementwise", "Where", "MTT", dtypes=ALL)
_where.cuda(WHERE)


@_where.vjp("a")
def _where_a(m: Namespace, grad: Array, condition: Any, a_shape: Ints) -> Any:
    return m.sum_to(m.where(condition, grad, 0), shape=a_shape)


@_where.vjp("b")
def _where_b(m: Namespace, grad: Array, condition: Any, b_shape: Ints) -> Any:
    return m.sum_to(m.where(condition, 0, grad), shape=b_shape)


_ABSENT: Any = object()


def places(condition: Tensor) -> tuple[Tensor, ...]:
    """Return for each dimension the indices of the elements of `condition` that are not zero, of shape (count,)."""
    array = array_of(condition)
    return tuple([wrap(part) for part in namespace(array).nonzero(array if array.ndim else array.reshape(1))])


def where(condition: Tensor, input: Any = _ABSENT, other: Any = _ABSENT) -> Any:
    """Return `input` under `condition` and `other` elsewhere; all three broadcast against each other.

    A `condition` that is not of bools raises a DtypeError. Of a condition alone it is ``nonzero(condition,
    as_tuple=True)``.

    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0, 3.0])
    >>> lucid.where(x > 0, x, 0.0)
    tensor([1., 0., 3.])
    >>> lucid.where(x > 0)
    (tensor([0, 2]),)
    """
    if other is _ABSENT:
        if input is _ABSENT:
            return places(condition)
        raise ArgumentError("where: expected a condition, input and other, or a condition alone, got no other")
    if input is _ABSENT:
        raise ArgumentError("where: expected a condition, input and other, or a condition alone, got no input")
    mask = tensor_operand(condition)
    if mask.array.dtype.kind != "b":
        raise DtypeError(f"where: expected a condition of bools, got {tensor_dtype(mask)}; compare it with something")
    if isinstance(input, TensorBase) and isinstance(other, TensorBase) and input.array.dtype == other.array.dtype:
        return _where(mask, input, other)
    a, b = promote(input, other)
    if isinstance(a, TensorBase) or isinstance(b, TensorBase):
        return _where(mask, a, b)
    return cast_to(_where(mask, a, b), result_type(a, b))


@primitive(saved_as={"low": "min", "high": "max"})
def _clamp(xp: ModuleType, x: Array, low: Array, high: Array) -> Array:
    # the upper bound last: it wins where the bounds are the wrong way round
    out = x if low is None else xp.maximum(x, _typed(low, x))
    return out if high is None else xp.minimum(out, _typed(high, x))


CLAMP = of_formula(lambda m, x, low, high: m.clamp(x, low, high), "Clamp", dtypes=ALL)


@_clamp.cuda
def _clamp_cuda(x: Array, low: Any, high: Any) -> Any:
    return CUDA.maximum(x, low) if high is None else CUDA.minimum(x, high) if low is None else CLAMP(x, low, high)


def _clamp_x_cuda(grad: Array, x: Array, low: Any, high: Any, x_shape: tuple[int, ...]) -> Any:
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return _CLAMP_GRAD_X(grad, x, low, high, x_shape)


def _clamp_low_cuda(grad: Array, x: Array, low: Any, high: Any, low_shape: tuple[int, ...]) -> Any:
    return NotImplemented if high is None else _CLAMP_GRAD_LOW(grad, x, low, high, low_shape)


def _clamp_high_cuda(grad: Array, x: Array, low: Any, high: Any, high_shape: tuple[int, ...]) -> Any:
    return _CLAMP_GRAD_HIGH(grad, x, -math.inf if low is None else low, high, high_shape)


@_clamp.vjp("x", cuda=_clamp_x_cuda)
def _clamp_x(m: Namespace, grad: Array, x: Array, low: Array, high: Array, x_shape: Ints) -> Any:
    inside = [m.ge(x, low)] if low is not None else []
    inside += [m.le(x, high)] if high is not None else []
    kept = inside[0] if len(inside) == 1 else m.logical_and(*inside)
    return m.sum_to(m.where(kept, grad, 0), shape=x_shape)


@_clamp.vjp("low", cuda=_clamp_low_cuda)
def _clamp_low(m: Namespace, grad: Array, x: Array, low: Array, high: Array, low_shape: Ints) -> Any:
    below = m.lt(x, low)
    below = below if high is None else m.logical_and(below, m.lt(low, high))
    return m.sum_to(m.where(below, grad, 0), shape=low_shape)


@_clamp.vjp("high", cuda=_clamp_high_cuda)
def _clamp_high(m: Namespace, grad: Array, x: Array, low: Array, high: Array, high_shape: Ints) -> Any:
    above = m.gt(x, high)
    above = above if low is None else m.logical_or(above, m.gt(low, high))
    return m.sum_to(m.where(above, grad, 0), shape=high_shape)


_CLAMP_GRAD_X = summed(of_formula(_clamp_x, "ClampGradX"))
_CLAMP_GRAD_LOW = summed(of_formula(_clamp_low, "ClampGradLow"))
_CLAMP_GRAD_HIGH = summed(of_formula(_clamp_high, "ClampGradHigh"))


def clamp(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Return ``minimum(maximum(input, min), max)``, elementwise; NaN stays.

    A bound of None leaves that side open, both raise a BoundsError. Where `min` is above `max`, the result is `max`. On
    the bounds the gradient is 1.

    >>> import lucid
    >>> lucid.clamp(lucid.tensor([-2.0, 0.5, 3.0]), 0.0, 1.0)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise BoundsError("clamp: expected at least one of min and max, got None for both")
    refuse("clamp", "c", input, min, max, instead="complex numbers have no order")
    x, *bounds = promote(tensor_operand(input), *[bound for bound in (min, max) if bound is not None])
    low = None if min is None else bounds[0]
    high = None if max is None else bounds[-1]
    return _clamp(x, low, high)


def clip(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Return ``minimum(maximum(input, min), max)``, elementwise: `clamp` by NumPy's name, with its `min` and `max`.

    >>> import lucid
    >>> lucid.clip(lucid.tensor([-2.0, 3.0]), max=1.0)
    tensor([-2.,  1.])
    """
    return clamp(input, min, max)


def clamp_min(input: Tensor, min: Tensor | Number) -> Tensor:
    """Return the larger of `input` and `min`, elementwise; NaN stays.

    >>> import lucid
    >>> lucid.clamp_min(lucid.tensor([-2.0, 3.0]), 0.0)
    tensor([0., 3.])
    """
    return clamp(input, min=min)


def clamp_max(input: Tensor, max: Tensor | Number) -> Tensor:
    """Return the smaller of `input` and `max`, elementwise; NaN stays.

    >>> import lucid
    >>> lucid.clamp_max(lucid.tensor([-2.0, 3.0]), 0.0)
    tensor([-2.,  0.])
    """
    return clamp(input, max=max)
