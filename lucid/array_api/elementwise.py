"""The elementwise functions of the array API."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.array_api.operands import checked_tensor, of_one, of_two
from lucid.autograd.base import TensorBase
from lucid.ops.activation import sigmoid
from lucid.ops.base.promotion import cast_to, tensor_dtype
from lucid.ops.creation import filling
from lucid.ops.elementwise import (
    arithmetic,
    comparison,
    division,
    exponential,
    logic,
    nonfinite,
    power,
    rounding,
    selection,
    trigonometry,
)
from lucid.ops.elementwise import complex as parts
from lucid.tensor.numpy_calls.operands import tensor_of
from lucid.tensor.numpy_calls.rules.selection import clipped, imaginary
from lucid.tensor.numpy_calls.ufuncs import is_complex, to_decimals
from lucid.tensor.numpy_calls.ufuncs import sign as sign_or_nan

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos",
    "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag",
    "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal",
    "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "trunc",
]  # fmt: skip

# ---- the standard's values at infinities and NaN, if they differ from `lucid`'s, namely PyTorch's ----

# Each is a choice between the op and what is written here; this has no gradient.


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
        return sigmoid.tanh(x)
    size, angle = parts.real(x.detach()), parts.imag(x.detach())
    is_infinite = nonfinite.isinf(size)
    lost = logic.logical_and(comparison.eq(size, 0), logic.logical_not(nonfinite.isfinite(angle)))
    zero = arithmetic.copysign(filling.zeros_like(size), angle)
    limit = parts.complex(parts.sgn(size), selection.where(is_infinite, zero, math.nan))
    return instead(sigmoid.tanh, x, logic.logical_or(is_infinite, lost), limit)


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


# ---- the functions ----

abs = of_one("abs", parts.abs)
acos = of_one("acos", trigonometry.acos)
acosh = of_one("acosh", inverse_hyperbolic_cosine)
add = of_two("add", arithmetic.add)
asin = of_one("asin", trigonometry.asin)
asinh = of_one("asinh", trigonometry.asinh)
atan = of_one("atan", trigonometry.atan)
atan2 = of_two("atan2", trigonometry.atan2)
atanh = of_one("atanh", trigonometry.atanh)
bitwise_and = of_two("bitwise_and", logic.bitwise_and)
bitwise_invert = of_one("bitwise_invert", logic.bitwise_not)
bitwise_left_shift = of_two("bitwise_left_shift", logic.bitwise_left_shift)
bitwise_or = of_two("bitwise_or", logic.bitwise_or)
bitwise_right_shift = of_two("bitwise_right_shift", logic.bitwise_right_shift)
bitwise_xor = of_two("bitwise_xor", logic.bitwise_xor)
ceil = of_one("ceil", rounding.ceil)
conj = of_one("conj", parts.conj)
copysign = of_two("copysign", arithmetic.copysign)
cos = of_one("cos", trigonometry.cos)
cosh = of_one("cosh", trigonometry.cosh)
divide = of_two("divide", division.div)
equal = of_two("equal", comparison.eq)
exp = of_one("exp", exponential.exp)
expm1 = of_one("expm1", exponential_less_one)
floor = of_one("floor", rounding.floor)
floor_divide = of_two("floor_divide", whole_quotient)
greater = of_two("greater", comparison.gt)
greater_equal = of_two("greater_equal", comparison.ge)
hypot = of_two("hypot", trigonometry.hypot)
imag = of_one("imag", imaginary)
isfinite = of_one("isfinite", nonfinite.isfinite)
isinf = of_one("isinf", nonfinite.isinf)
isnan = of_one("isnan", nonfinite.isnan)
less = of_two("less", comparison.lt)
less_equal = of_two("less_equal", comparison.le)
log = of_one("log", logarithm(exponential.log))
log1p = of_one("log1p", logarithm(exponential.log1p))
log2 = of_one("log2", logarithm(exponential.log2))
log10 = of_one("log10", logarithm(exponential.log10))
logaddexp = of_two("logaddexp", exponential.logaddexp)
logical_and = of_two("logical_and", logic.logical_and)
logical_not = of_one("logical_not", logic.logical_not)
logical_or = of_two("logical_or", logic.logical_or)
logical_xor = of_two("logical_xor", logic.logical_xor)
maximum = of_two("maximum", comparison.maximum)
minimum = of_two("minimum", comparison.minimum)
multiply = of_two("multiply", arithmetic.mul)
negative = of_one("negative", arithmetic.neg)
nextafter = of_two("nextafter", arithmetic.nextafter)
not_equal = of_two("not_equal", comparison.ne)
positive = of_one("positive", arithmetic.positive)
pow = of_two("pow", power.pow)
real = of_one("real", parts.real)
reciprocal = of_one("reciprocal", division.reciprocal)
remainder = of_two("remainder", division.remainder)
round = of_one("round", to_decimals)
sign = of_one("sign", sign_or_nan)
signbit = of_one("signbit", nonfinite.signbit)
sin = of_one("sin", trigonometry.sin)
sinh = of_one("sinh", trigonometry.sinh)
sqrt = of_one("sqrt", power.sqrt)
square = of_one("square", power.square)
subtract = of_two("subtract", arithmetic.sub)
tan = of_one("tan", trigonometry.tan)
tanh = of_one("tanh", hyperbolic_tangent)
trunc = of_one("trunc", rounding.trunc)


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Return ``clip`` of the array API: bounds come to the dtype of `x`."""
    wanted = tensor_dtype(checked_tensor(x))
    low, high = (cast_to(bound, wanted) if isinstance(bound, TensorBase) else bound for bound in (min, max))
    return clipped(x, min=low, max=high)
