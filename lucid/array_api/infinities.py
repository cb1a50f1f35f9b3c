"""The standard's values at infinities and NaN, if they differ from `lucid`'s, namely PyTorch's.

Each is a choice between the op and what is written here; this has no gradient.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.ops.activation.sigmoid import tanh
from lucid.ops.base.promotion import cast_to
from lucid.ops.creation import filling
from lucid.ops.elementwise import (
    arithmetic,
    comparison,
    division,
    exponential,
    logic,
    nonfinite,
    selection,
    trigonometry,
)
from lucid.ops.elementwise import complex as parts
from lucid.tensor.numpy_calls.operands import tensor_of
from lucid.tensor.numpy_calls.ufuncs import is_complex

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor


def whole_quotient(x1: Tensor, x2: Tensor | float) -> Any:
    """Return ``floor_divide``: with an infinite operand, the quotient."""
    quotient: Any = division.floor_divide(x1, x2)
    if not quotient.is_floating_point():
        return quotient
    first, second = (tensor_of(each, quotient).detach() for each in (x1, x2))
    is_infinite = logic.logical_or(nonfinite.isinf(first), nonfinite.isinf(second))
    return selection.where(is_infinite, division.div(first, second), quotient)


def exponential_less_one(x: Tensor) -> Any:
    """Return ``expm1``; for complex numbers with a part that is not finite, by the standard's table."""
    if not is_complex(x):
        return exponential.expm1(x)
    is_finite = nonfinite.isfinite(x)
    size, angle = parts.real(x.detach()), parts.imag(x.detach())
    turns = nonfinite.isfinite(angle)
    known = selection.where(turns, angle, 0.0)
    along, across = trigonometry.cos(known), trigonometry.sin(known)
    is_small, is_large = comparison.eq(size, -math.inf), comparison.eq(size, math.inf)
    real = selection.where(is_small, -1.0, selection.where(is_large, arithmetic.mul(along, math.inf), math.nan))
    turning = selection.where(logic.logical_and(is_large, turns), arithmetic.mul(across, math.inf), math.nan)
    imag = selection.where(is_small, arithmetic.mul(across, 0.0), turning)
    imag = selection.where(comparison.eq(angle, 0), angle, imag)
    limit = parts.complex(cast_to(real, size.dtype), cast_to(imag, size.dtype))
    made = exponential.expm1(selection.where(is_finite, x, 0.0))
    # the real part of what is zero has no sign
    zeros = filling.zeros_like(size)
    made = arithmetic.add(made, parts.complex(zeros, arithmetic.copysign(zeros, angle)))
    return selection.where(is_finite, made, limit)


def hyperbolic_tangent(x: Tensor) -> Any:
    """Return ``tanh``; of complex numbers 1 beside a zero if the real part is infinite, 0 if it is 0."""
    if not is_complex(x):
        return tanh(x)
    size, angle = parts.real(x.detach()), parts.imag(x.detach())
    is_infinite = nonfinite.isinf(size)
    lost = logic.logical_and(comparison.eq(size, 0), logic.logical_not(nonfinite.isfinite(angle)))
    zero = arithmetic.copysign(filling.zeros_like(size), angle)
    limit = parts.complex(parts.sgn(size), selection.where(is_infinite, zero, math.nan))
    return instead(tanh, x, logic.logical_or(is_infinite, lost), limit)


def inverse_hyperbolic_cosine(x: Tensor) -> Any:
    """Return ``acosh``; of complex numbers with the real part 0 and no imaginary one NaN above a right angle."""
    if not is_complex(x):
        return trigonometry.acosh(x)
    size, angle = parts.real(x.detach()), parts.imag(x.detach())
    lost = logic.logical_and(comparison.eq(size, 0), nonfinite.isnan(angle))
    limit = parts.complex(angle, filling.full_like(size, math.pi / 2))
    return instead(trigonometry.acosh, x, lost, limit)


def logarithm(op: Callable[[Any], Any]) -> Callable[[Tensor], Any]:
    """Return a logarithm; of complex numbers, its real part is infinite if a part of the number is."""

    def function(x: Tensor) -> Any:
        if not is_complex(x):
            return op(x)
        known = x.detach()
        size = filling.full_like(parts.real(known), math.inf)
        one_is_nan = logic.logical_or(nonfinite.isnan(parts.real(known)), nonfinite.isnan(parts.imag(known)))
        lost = logic.logical_and(nonfinite.isinf(known), one_is_nan)
        return instead(op, x, lost, parts.complex(size, arithmetic.mul(size, 0.0)))

    return function


def instead(op: Callable[[Any], Any], x: Tensor, where: Tensor, limit: Tensor) -> Any:
    """Return ``op(x)``, with the standard's values at some elements."""
    return selection.where(where, limit, op(selection.where(where, 0.5, x)))
