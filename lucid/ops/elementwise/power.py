"""Powers and roots, elementwise. Common rules: `lucid.ops.base.declaration`."""

from __future__ import annotations

import cmath
import math
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.base.dtype import complex128, float64
from lucid.cuda.launch.elementwise import NUMBERS, Elementwise
from lucid.cuda.launch.plans import launches_only
from lucid.errors import CallError
from lucid.ops.base.declaration import FLOATING, REAL, Fused, elementwise
from lucid.ops.base.operands import both, is_bool, refuse, shorten, summed, tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, as_operand, cast_to, promote, promote_to_tensors
from lucid.ops.elementwise.arithmetic import mul

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


class NegativePowerError(CallError):
    """An integer was raised to a negative power: the result is no integer."""


def _power_on(xp: ModuleType, a: Array, b: Array) -> Array:
    if isinstance(b, int | float) and type(b) is not np.float64:  # which is what an array without dimensions becomes
        # the library's pow costs ten times a product
        if b == 2:
            return xp.square(a)
        if b == 1:
            return xp.array(a)
        if b == 0:
            return xp.ones_like(a)
        if b == 3 and not (xp is np and a.dtype.kind == "c"):
            return xp.multiply(xp.square(a), a)
        if a.dtype.kind in "fcV":
            if b == 0.5:
                return xp.sqrt(a)
            if b == -1:
                return xp.reciprocal(a)
            if b == -0.5:
                return xp.reciprocal(xp.sqrt(a))
    elif getattr(b, "dtype", None) is not None and b.dtype.kind == "i":
        return _integer_power(xp, a, b)
    elif xp is np and not isinstance(a, int | float | complex) and is_repeated_half(a, b):
        # NumPy takes a root for a power that it repeats, and that of -inf is NaN, and of -0.0 is -0.0
        a = np.where(b == 0.5, np.where(a == -np.inf, np.inf, a + 0.0), a).astype(a.dtype, copy=False)
    return xp.power(a, b)


def is_repeated_half(a: Array, b: Array) -> bool:
    """Whether NumPy may meet 0.5 as the exponent of several real elements."""
    if a.dtype.kind not in "fV" or (b.ndim and b.shape == a.shape and 0 not in b.strides):
        return False
    return bool((b == 0.5).any()) if b.ndim else b.item() == 0.5


def _integer_power(xp: ModuleType, a: Array, b: Array) -> Array:
    """Return integers to the power of integers of any sign: fractions become zero."""
    power = xp.power(a, xp.maximum(b, 0))
    if xp is np and not (b < 0).any():
        return power
    inverse = xp.where(xp.equal(a, 1), 1, xp.where(xp.equal(a, -1), 1 - 2 * (b & 1), 0))
    return xp.where(b < 0, inverse, power).astype(power.dtype)


_POW = Elementwise("power", "Pow", "TT", dtypes=NUMBERS)
_POW_NUMBER = Elementwise("power", "PowNumber", "TT")
_POW_GRAD_A = Elementwise("power", "PowGradA", "TTT")
_POW_NUMBER_GRAD = Elementwise("power", "PowNumberGrad", "TTT")


DOUBLE = np.dtype(np.float64)
_of_arrays: Any = cache(_POW.straight)


def _pow_cuda(a: Any, b: Any) -> Any:
    if type(a) is type(b):
        with suppress(TypeError):
            return _of_arrays()(a, b)
    by_number = isinstance(b, int | float) and a.dtype.kind in "fV"
    return (_POW_NUMBER if by_number else _POW)(a, b)


def _pow_a_cuda(grad: Array, a: Array, b: Any, a_shape: tuple[int, ...]) -> Any:
    kernel = _POW_NUMBER_GRAD if isinstance(b, int | float) else _POW_GRAD_A
    return summed(kernel)(grad, a, b, a_shape)


def _pow_a(m: Namespace, grad: Array, a: Array, b: Array, a_shape: Ints) -> Any:
    if not isinstance(b, int | float | complex):
        # zero where b is and a or 1 / a is no number; elsewhere the product, whose derivative in b = 0 is 1 / a
        endless = m.logical_and(m.eq(b, 0), m.logical_not(m.isfinite(m.add(a, m.reciprocal(a)))))
        slope = m.where(endless, 0, m.mul(b, m.pow(m.where(endless, 1, a), m.sub(b, 1))))
    elif b == 0:
        return m.zeros_like(m.mul(grad, a))
    elif b == 1:
        return grad
    else:
        slope = m.mul(a if b == 2 else m.pow(a, b - 1), b)
    return m.sum_to(m.mul(grad, slope), shape=a_shape)


def _pow_b(m: Namespace, grad: Array, a: Array, b: Array, out: Array, b_shape: Ints) -> Any:
    if not isinstance(a, int | float | complex):
        # a power of 0 has the slope 0, and the logarithm of 1 has no infinite derivatives
        slope = m.mul(out, m.log(m.where(m.logical_and(m.eq(a, 0), m.ge(m.real(b), 0)), 1, a)))
    elif a == 0:
        slope = m.where(m.ge(m.real(b), 0), 0, m.where(m.lt(m.real(b), 0), -math.inf, b))
    elif isinstance(a, complex):
        slope = m.mul(out, cmath.log(a))
    else:
        slope = m.mul(out, math.log(a) if a > 0 else math.nan)
    return m.sum_to(m.mul(grad, slope), shape=b_shape)


def _of_powers(op: Primitive) -> None:
    def general(a: Any, b: Any) -> Any:
        if is_bool(a) and is_bool(b) and isinstance(b, TensorBase):
            refuse("pow", "b", a, b, instead="use logical_or(a, ~b), or convert to integers first")
        integral = isinstance(a, TensorBase) and a.array.dtype.kind in "biu"
        if integral and isinstance(b, int) and b < 0:
            raise NegativePowerError(
                f"pow: integers cannot be raised to the negative power {b}; convert to a floating-point dtype first"
            )
        return op(*promote(a, b))

    shorten(op, general)


@elementwise(
    _power_on,
    Fused(_pow_a, _pow_a_cuda),
    Fused(_pow_b),
    kernel=_pow_cuda,
    caller=_of_powers,
    saved_as={"b": "exponent"},
)
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Return `input` to the power of `exponent`, elementwise; one of the two is a tensor.

    The gradient of the base is zero where the exponent is zero, that of the exponent where the base is zero and the
    exponent is not negative. Integers with a negative integer as exponent raise a NegativePowerError, two tensors of
    bools a DtypeError.

    >>> import lucid
    >>> lucid.pow(lucid.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """
    return GRAPH.pow(input, exponent)


@elementwise(
    np.square,
    Fused(lambda m, grad, x: m.mul(m.mul(grad, x), 2)),
    kernel="elementwise.Square",
    refused=("b", "convert to integers first"),
    dtypes=NUMBERS,
)
def square(input: Tensor) -> Tensor:
    """Return ``input ** 2``, elementwise, not of bools.

    >>> import lucid
    >>> lucid.square(lucid.tensor([1.0, -3.0]))
    tensor([1., 9.])
    """
    return GRAPH.square(input)


@elementwise(np.sqrt, Fused(lambda m, grad, out: m.div(grad, m.mul(out, 2))))
def sqrt(input: Tensor) -> Tensor:
    """Return the square root, elementwise; NaN below zero.

    >>> import lucid
    >>> lucid.sqrt(lucid.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """
    return GRAPH.sqrt(input)


def _rsqrt(xp: ModuleType, x: Array) -> Array:
    root = xp.sqrt(x)
    return np.divide(1, root, out=root) if xp is np and root.shape else xp.reciprocal(root)


@elementwise(_rsqrt, Fused(lambda m, grad, out: m.mul(m.mul(grad, -0.5), m.mul(m.square(out), out))))
def rsqrt(input: Tensor) -> Tensor:
    """Return ``1 / sqrt(input)``, elementwise; NaN below zero.

    >>> import lucid
    >>> lucid.rsqrt(lucid.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
    """
    return GRAPH.rsqrt(input)


@elementwise(np.cbrt, Fused(lambda m, grad, out: m.div(grad, m.mul(m.square(out), 3.0))), refused=REAL)
def cbrt(input: Tensor) -> Tensor:
    """Return the cube root, elementwise, of negative numbers too, as ``numpy.cbrt``; its slope at zero is infinite.

    >>> import lucid
    >>> lucid.ops.elementwise.power.cbrt(lucid.tensor([-2.0, 16.0]))
    tensor([-1.2599,  2.5198])
    """
    return GRAPH.cbrt(input)


@primitive
def _float_power(xp: ModuleType, a: Array, b: Array) -> Array:
    return _power_on(xp, *[x.astype(np.float64, copy=False) for x in (a, b)])


_float_power.cuda(launches_only(Elementwise("power", "FloatPow", "TT", out="double")))


@_float_power.vjp("a")
def _float_power_a(m: Namespace, grad: Array, a: Array, b: Array, a_shape: Ints, a_dtype: Any) -> Any:
    slope = _pow_a(m, grad, m.cast(a, dtype=DOUBLE), m.cast(b, dtype=DOUBLE), a_shape)
    return m.cast(slope, dtype=a_dtype)


@_float_power.vjp("b")
def _float_power_b(m: Namespace, grad: Array, a: Array, b: Array, out: Array, b_shape: Ints, b_dtype: Any) -> Any:
    slope = _pow_b(m, grad, m.cast(a, dtype=DOUBLE), m.cast(b, dtype=DOUBLE), out, b_shape)
    return m.cast(slope, dtype=b_dtype)


def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Return `input` to the power of `exponent`, elementwise, in float64, or complex128 if one is complex.

    >>> import lucid
    >>> lucid.float_power(lucid.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333], dtype=lucid.float64)
    """
    operands = [as_operand(input, exponent), as_operand(exponent, input)]
    if all(isinstance(o, TensorBase) and o.array.dtype.kind in "fV" for o in operands):
        return GRAPH.float_power(*operands)
    is_complex = [o.array.dtype.kind == "c" if isinstance(o, TensorBase) else isinstance(o, complex) for o in operands]
    dtype = complex128 if any(is_complex) else float64
    base, power = (cast_to(o, dtype) if isinstance(o, TensorBase) else o for o in operands)
    return pow(base, power)


def ldexp(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``input * 2 ** other``, elementwise.

    >>> import lucid
    >>> lucid.ldexp(lucid.tensor([1.0, 3.0]), lucid.tensor([4, -1]))
    tensor([16.0000,  1.5000])
    """
    exponent = other if isinstance(other, TensorBase) else promote_to_tensors(input, other)[1]
    return mul(input, pow(2.0, exponent))


@primitive
def _scale(xp: ModuleType, x: Array, exponent: Array) -> Array:
    return xp.ldexp(x.astype(accumulation_dtype(x.dtype), copy=False), exponent).astype(x.dtype, copy=False)


_scale.cuda(launches_only(Elementwise("power", "Ldexp", "TI")))


@_scale.vjp("x")
def _scale_vjp(m: Namespace, grad: Array, x_shape: Ints, exponent: Array) -> Any:
    return m.sum_to(m.scale(grad, exponent), shape=x_shape)


def scale(x: Tensor, exponent: Tensor) -> Tensor:
    """Return ``x * 2 ** exponent`` for whole exponents, as `numpy.ldexp`: the power may be beyond the dtype of `x`.

    >>> import lucid
    >>> lucid.ops.elementwise.power.scale(lucid.tensor([1e-30]), lucid.tensor([200]))
    tensor([1.6069e+30])
    """
    return GRAPH.scale(x, exponent)


class MantissaExponent(NamedTuple):
    """The two parts of floating-point numbers."""

    mantissa: Tensor
    exponent: Tensor


@primitive(outputs=("mantissa", "exponent"))
def _frexp(xp: ModuleType, x: Array) -> tuple[Array, Array]:
    mantissa, exponent = xp.frexp(x.astype(accumulation_dtype(x.dtype), copy=False))
    return mantissa.astype(x.dtype, copy=False), exponent.astype(np.int32, copy=False)


_frexp.cuda(both(Elementwise("power", "Mantissa"), Elementwise("power", "Exponent", out="int")))


@_frexp.vjp
def _frexp_vjp(m: Namespace, grad: Array, exponent: Array) -> Any:
    return m.scale(grad[0], m.neg(exponent))


def frexp(input: Tensor) -> MantissaExponent:
    """Return floating-point numbers as ``mantissa * 2 ** exponent``, a named tuple, elementwise.

    The size of the mantissa is at least a half and below 1, or 0; infinity and NaN are mantissas. Other numbers raise a
    DtypeError.

    >>> import lucid
    >>> lucid.frexp(lucid.tensor([1.0, -6.0]))
    MantissaExponent(mantissa=tensor([ 0.5000, -0.7500]), exponent=tensor([1, 3], dtype=lucid.int32))
    """
    x = tensor_operand(input)
    refuse("frexp", "biuc", x, instead=FLOATING[1])
    return MantissaExponent(*_frexp(x))
