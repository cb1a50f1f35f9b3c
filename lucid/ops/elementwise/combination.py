"""Combinations of three tensors, elementwise. Common rules: `lucid.ops.base.declaration`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.ops.base.blocks import rounded_once
from lucid.ops.base.declaration import Formula, Fused, elementwise
from lucid.ops.base.operands import as_factor, refuse
from lucid.ops.base.promotion import array_of, number_in, only_tensors, promote

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


def _lerp_start(m: Namespace, grad: Array, weight: Array | Number, start_shape: Ints) -> Array:
    rest = 1 - weight if isinstance(weight, int | float | complex) else m.sub(1, weight)
    return m.sum_to(m.mul(grad, rest), shape=start_shape)


def _between(xp: ModuleType, start: Array, end: Array, weight: Array) -> Array:
    step = end - start
    # from the nearer end, so that weights of 0 and 1 give the ends themselves
    near = start + weight * step
    far = end - (1 - weight) * step
    return xp.where(xp.less(xp.abs(weight), 0.5), near, far)


def _lerp_formula(m: Namespace, start: Any, end: Any, weight: Any) -> Any:
    step = end - start
    return m.where(abs(weight) < 0.5, start + weight * step, end - (1 - weight) * step)


def _lerp(xp: ModuleType, start: Array, end: Array, weight: Array) -> Array:
    return rounded_once(_between, xp, start, end, weight)


@elementwise(
    Formula(_lerp_formula, _lerp),
    Fused(_lerp_start),
    lambda m, grad, weight, end_shape: m.sum_to(m.mul(grad, weight), shape=end_shape),
    Fused(lambda m, grad, start, end, weight_shape: m.sum_to(m.mul(grad, m.sub(end, start)), shape=weight_shape)),
)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Return ``input + weight * (end - input)``, elementwise: weights of 0 and 1 give `input` and `end` themselves.

    `weight` is a tensor or a number; `input` and `end` of integers raise a DtypeError.

    >>> import lucid
    >>> lucid.lerp(lucid.tensor([0.0, 10.0]), lucid.tensor([1.0, 20.0]), 0.25)
    tensor([ 0.2500, 12.5000])
    """
    refuse("lerp", "biu", input, end, instead="convert to a floating-point dtype first")
    return GRAPH.lerp(*promote(input, end, weight))


def _sum_and_quotient(xp: ModuleType, x: Array, a: Array, b: Array, value: Array) -> Array:
    quotient = xp.divide(a, b)
    return xp.add(x, quotient if type(value) is int and value == 1 else xp.multiply(quotient, value))


def _addcdiv(xp: ModuleType, x: Array, a: Array, b: Array, value: Array) -> Array:
    return rounded_once(_sum_and_quotient, xp, x, a, b, value)


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``, elementwise.

    A `value` that does not fit the dtype of `tensor1` and `tensor2`, a fraction for integers, raises a DtypeError; so
    do bools alone.

    >>> import lucid
    >>> lucid.addcmul(lucid.tensor([1.0]), lucid.tensor([2.0]), lucid.tensor([3.0]), value=10)
    tensor([61.])
    """
    only_tensors(input, tensor1, tensor2)
    value, dtype = as_factor("addcmul", "value", value, input, tensor1, tensor2)
    x, a, b = promote(input, tensor1, tensor2)
    refuse("addcmul", "b", x, instead="combine bools by | and &")
    return GRAPH.addcmul(x, a, b, 1 if type(value) is int and value == 1 else number_in(value, dtype, x.array))


@elementwise(
    Formula(lambda m, x, a, b, value: x + a / b * value, _addcdiv),
    lambda m, grad, x_shape: m.sum_to(grad, shape=x_shape),
    Fused(lambda m, grad, b, value, a_shape: m.sum_to(m.div(m.mul(grad, value), b), shape=a_shape)),
    Fused(
        lambda m, grad, a, b, value, b_shape: m.neg(
            m.sum_to(m.mul(m.mul(grad, value), m.div(m.div(a, b), b)), shape=b_shape)
        )
    ),
    None,
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``, elementwise; `value` is a number.

    `tensor1` and `tensor2` both of integers raise a DtypeError.

    >>> import lucid
    >>> lucid.addcdiv(lucid.tensor([1.0]), lucid.tensor([2.0]), lucid.tensor([4.0]), value=10)
    tensor([6.])
    """
    only_tensors(input, tensor1, tensor2)
    if all(array_of(o).dtype.kind in "biu" for o in (tensor1, tensor2)):
        refuse("addcdiv", "biu", tensor1, tensor2, instead="convert one to a floating-point dtype")
    x, a, b = promote(input, tensor1, tensor2, at_least_float=True)
    value, dtype = as_factor("addcdiv", "value", value, x, a, b)
    return GRAPH.addcdiv(x, a, b, 1 if type(value) is int and value == 1 else number_in(value, dtype, x.array))
