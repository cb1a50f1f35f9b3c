"""Exponentials and logarithms, elementwise. Common rules: `lucid.ops.base.declaration`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import primitive
from lucid.ops.base.declaration import REAL, Formula, Fused, elementwise
from lucid.ops.base.operands import of_one, refuse
from lucid.ops.base.promotion import float_operand, promote_to_tensors
from lucid.ops.base.scalars import as_number
from lucid.ops.elementwise.arithmetic import add, mul, neg, sub
from lucid.ops.elementwise.comparison import eq, ge, le
from lucid.ops.elementwise.complex import by_parts
from lucid.ops.elementwise.logic import logical_and, logical_or
from lucid.ops.elementwise.selection import clamp, where

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.base.arrays import Array, Number
    from lucid.tensor import Tensor

LN2, LN10 = math.log(2), math.log(10)


@elementwise(np.exp, lambda m, grad, out: m.mul(grad, out))
def exp(input: Tensor) -> Tensor:
    """Return ``e ** input``, elementwise.

    >>> import lucid
    >>> lucid.exp(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return GRAPH.exp(input)


@elementwise(np.exp2, Fused(lambda m, grad, out: m.mul(m.mul(grad, out), LN2)))
def exp2(input: Tensor) -> Tensor:
    """Return ``2 ** input``, elementwise.

    >>> import lucid
    >>> lucid.exp2(lucid.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """
    return GRAPH.exp2(input)


@elementwise(np.expm1, Fused(lambda m, grad, out: m.mul(grad, m.add(out, 1.0))))
def expm1(input: Tensor) -> Tensor:
    """Return ``e ** input - 1``, elementwise, exact for small values.

    >>> import lucid
    >>> lucid.expm1(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    return GRAPH.expm1(input)


@elementwise(np.log, lambda m, grad, x: m.div(grad, x))
def log(input: Tensor) -> Tensor:
    """Return the natural logarithm, elementwise; NaN below zero.

    >>> import lucid
    >>> lucid.log(lucid.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    return GRAPH.log(input)


def _log2(xp: ModuleType, x: Array) -> Array:
    if xp is np or x.dtype.kind != "c":
        return xp.log2(x)
    # CuPy's has no imaginary part where the real one is infinite, as at zero
    return by_parts(xp.multiply, xp, xp.log(x), x.real.dtype.type(1 / LN2))


@elementwise(_log2, Fused(lambda m, grad, x: m.div(grad, m.mul(x, LN2))))
def log2(input: Tensor) -> Tensor:
    """Return the logarithm to base 2, elementwise; NaN below zero.

    >>> import lucid
    >>> lucid.log2(lucid.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return GRAPH.log2(input)


@elementwise(np.log10, Fused(lambda m, grad, x: m.div(grad, m.mul(x, LN10))))
def log10(input: Tensor) -> Tensor:
    """Return the logarithm to base 10, elementwise; NaN below zero.

    >>> import lucid
    >>> lucid.log10(lucid.tensor([1.0, 10.0]))
    tensor([0., 1.])
    """
    return GRAPH.log10(input)


@elementwise(np.log1p, Fused(lambda m, grad, x: m.div(grad, m.add(x, 1.0))))
def log1p(input: Tensor) -> Tensor:
    """Return ``log(1 + input)``, elementwise, exact for small values.

    >>> import lucid
    >>> lucid.log1p(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    return GRAPH.log1p(input)


def _log_of_sum(m: Namespace, a: Any, b: Any) -> Any:
    step = a - b
    # of equal infinities the step is none
    above, below = a + m.log1p(m.exp(-step)), b + m.log1p(m.exp(step))
    return m.where(m.eq(a, b), a + LN2, m.where(step > 0, above, m.where(step <= 0, below, step)))


def _log2_of_sum(m: Namespace, a: Any, b: Any) -> Any:
    step = a - b
    above, below = a + m.log1p(m.exp2(-step)) * (1 / LN2), b + m.log1p(m.exp2(step)) * (1 / LN2)
    return m.where(m.eq(a, b), a + 1, m.where(step > 0, above, m.where(step <= 0, below, step)))


@elementwise(
    Formula(_log_of_sum, np.logaddexp),
    Fused(lambda m, grad, a, b, a_shape: m.sum_to(m.mul(grad, m.sigmoid(m.sub(a, b))), shape=a_shape)),
    Fused(lambda m, grad, a, b, b_shape: m.sum_to(m.mul(grad, m.sigmoid(m.sub(b, a))), shape=b_shape)),
    refused=REAL,
)
def logaddexp(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``log(exp(input) + exp(other))``, elementwise, without overflow.

    >>> import lucid
    >>> lucid.logaddexp(lucid.tensor([0.0, 10.0]), lucid.tensor([0.0, 10.0]))
    tensor([ 0.6931, 10.6931])
    """
    return GRAPH.logaddexp(input, other)


@elementwise(
    Formula(_log2_of_sum, np.logaddexp2),
    Fused(lambda m, grad, a, b, a_shape: m.sum_to(m.mul(grad, m.sigmoid(m.mul(m.sub(a, b), LN2))), shape=a_shape)),
    Fused(lambda m, grad, a, b, b_shape: m.sum_to(m.mul(grad, m.sigmoid(m.mul(m.sub(b, a), LN2))), shape=b_shape)),
    refused=REAL,
)
def logaddexp2(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``log2(2 ** input + 2 ** other)``, elementwise, without overflow.

    >>> import lucid
    >>> lucid.logaddexp2(lucid.tensor([0.0, 10.0]), lucid.tensor([0.0, 10.0]))
    tensor([ 1., 11.])
    """
    return GRAPH.logaddexp2(input, other)


def xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return ``input * log(other)``, elementwise, of real numbers, and 0 for `input` 0 unless `other` is NaN.

    >>> import lucid
    >>> lucid.xlogy(lucid.tensor([0.0, 2.0]), lucid.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    return _times_logarithm("xlogy", input, other, log, 0)


def xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return ``input * log1p(other)``, elementwise, of real numbers, and 0 for `input` 0 unless `other` is NaN.

    >>> import lucid
    >>> lucid.special.xlog1py(lucid.tensor([0.0, 2.0]), lucid.tensor([-1.0, 0.0]))
    tensor([0., 0.])
    """
    return _times_logarithm("xlog1py", input, other, log1p, -1)


def _times_logarithm(name: str, input: Any, other: Any, logarithm: Callable[[Any], Tensor], pole: int) -> Tensor:
    """Return a product with a logarithm that is infinite at `pole`, NaN below, and 0 one above."""
    refuse(name, "c", input, other, instead=REAL[1])
    a, b = promote_to_tensors(input, other, at_least_float=True)
    zero = eq(a, 0)
    nothing = logical_and(zero, logical_or(le(b, pole), eq(b, math.inf)))
    # a product with zero may be -0
    product = mul(a, logarithm(where(nothing, pole + 1, b)))
    return add(product, where(zero, 0.0, -0.0).to(product.dtype))


@primitive
def _entr(xp: ModuleType, x: Array) -> Array:
    # at zero of both signs exactly 0, and what is neither is NaN
    product = -x * xp.log(x)
    return xp.where(x < 0, x.dtype.type(-np.inf), xp.where(x == 0, x.dtype.type(0), product))


@_entr.vjp
def _entr_vjp(m: Namespace, grad: Array, x: Array) -> Any:
    return m.mul(grad, m.sub(-1, m.log(x)))


of_one(_entr, at_least_float=True, refused=REAL)


def entr(input: Tensor) -> Tensor:
    """Return ``-input * log(input)``, elementwise: 0 at 0, and minus infinity below.

    >>> import lucid
    >>> lucid.special.entr(lucid.tensor([-1.0, 0.0, 0.5]))
    tensor([  -inf, 0.0000, 0.3466])
    """
    return GRAPH.entr(input)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return ``log(input / (1 - input))``, elementwise, of real numbers; NaN outside of [0, 1].

    With `eps` numbers are first brought into [eps, 1 - eps].

    >>> import lucid
    >>> lucid.logit(lucid.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    refuse("logit", "c", input, instead=REAL[1])
    x = float_operand(input)
    if eps is not None:
        margin = as_number(eps, "eps")
        x = clamp(x, min=margin, max=1 - margin)
    else:
        # NaN beyond, as it is where the logarithms are, of which the slopes are none
        x = mul(x, where(logical_and(ge(x, 0), le(x, 1)), 1.0, math.nan).to(x.dtype))
    return sub(log(x), log1p(neg(x)))
