"""The elementwise functions of the array API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.array_api import infinities
from lucid.array_api.operands import checked_tensor, of_one, of_two
from lucid.autograd.base import TensorBase
from lucid.ops.base.promotion import cast_to, tensor_dtype
from lucid.ops.elementwise import (
    arithmetic,
    comparison,
    division,
    exponential,
    logic,
    nonfinite,
    power,
    rounding,
    trigonometry,
)
from lucid.ops.elementwise import complex as parts
from lucid.tensor.numpy_calls.rules.selection import clipped, imaginary
from lucid.tensor.numpy_calls.ufuncs import sign as sign_or_nan
from lucid.tensor.numpy_calls.ufuncs import to_decimals

if TYPE_CHECKING:
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

abs = of_one("abs", parts.abs)
acos = of_one("acos", trigonometry.acos)
acosh = of_one("acosh", infinities.inverse_hyperbolic_cosine)
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
expm1 = of_one("expm1", infinities.exponential_less_one)
floor = of_one("floor", rounding.floor)
floor_divide = of_two("floor_divide", infinities.whole_quotient)
greater = of_two("greater", comparison.gt)
greater_equal = of_two("greater_equal", comparison.ge)
hypot = of_two("hypot", trigonometry.hypot)
imag = of_one("imag", imaginary)
isfinite = of_one("isfinite", nonfinite.isfinite)
isinf = of_one("isinf", nonfinite.isinf)
isnan = of_one("isnan", nonfinite.isnan)
less = of_two("less", comparison.lt)
less_equal = of_two("less_equal", comparison.le)
log = of_one("log", infinities.logarithm(exponential.log))
log1p = of_one("log1p", infinities.logarithm(exponential.log1p))
log2 = of_one("log2", infinities.logarithm(exponential.log2))
log10 = of_one("log10", infinities.logarithm(exponential.log10))
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
tanh = of_one("tanh", infinities.hyperbolic_tangent)
trunc = of_one("trunc", rounding.trunc)


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Return ``clip`` of the array API: bounds come to the dtype of `x`."""
    wanted = tensor_dtype(checked_tensor(x))
    low, high = (cast_to(bound, wanted) if isinstance(bound, TensorBase) else bound for bound in (min, max))
    return clipped(x, min=low, max=high)
