"""Trigonometric and hyperbolic functions and their inverses, elementwise.

What holds for them all says `lucid.ops.base.declaration`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.ops.base.declaration import REAL, Fused, Slope, elementwise
from lucid.ops.base.operands import refuse
from lucid.ops.base.promotion import float_operand
from lucid.ops.elementwise.arithmetic import mul

if TYPE_CHECKING:
    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


@elementwise(np.sin, Fused(lambda m, grad, x: m.mul(grad, m.cos(x))))
def sin(input: Tensor) -> Tensor:
    """Return the sine of angles in radians, elementwise.

    >>> import lucid
    >>> lucid.sin(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """
    return GRAPH.sin(input)


@elementwise(np.cos, Fused(lambda m, grad, x: m.neg(m.mul(grad, m.sin(x)))))
def cos(input: Tensor) -> Tensor:
    """Return the cosine of angles in radians, elementwise.

    >>> import lucid
    >>> lucid.cos(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """
    return GRAPH.cos(input)


@elementwise(np.tan, Fused(lambda m, grad, out: m.mul(grad, m.add(m.square(out), 1.0))))
def tan(input: Tensor) -> Tensor:
    """Return the tangent of angles in radians, elementwise.

    >>> import lucid
    >>> lucid.tan(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """
    return GRAPH.tan(input)


def _other_leg(m: Namespace, x: Array) -> Any:
    """Return ``sqrt(1 - x**2)``, on the side of its cuts that the sign of a complex number's zero names."""
    if getattr(x, "array", x).dtype.kind == "c":
        return m.mul(m.sqrt(m.neg(m.sub(x, 1.0))), m.sqrt(m.add(x, 1.0)))
    return m.sqrt(m.sub(1.0, m.square(x)))


@elementwise(np.arcsin, Fused(lambda m, grad, x: m.div(grad, _other_leg(m, x))))
def asin(input: Tensor) -> Tensor:
    """Return the angle in [-pi/2, pi/2] of the sine `input`, elementwise; NaN outside of [-1, 1].

    >>> import lucid
    >>> lucid.asin(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """
    return GRAPH.asin(input)


@elementwise(np.arccos, Fused(lambda m, grad, x: m.neg(m.div(grad, _other_leg(m, x)))))
def acos(input: Tensor) -> Tensor:
    """Return the angle in [0, pi] of the cosine `input`, elementwise; NaN outside of [-1, 1].

    >>> import lucid
    >>> lucid.acos(lucid.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """
    return GRAPH.acos(input)


@elementwise(np.arctan, Fused(lambda m, grad, x: m.div(grad, m.add(m.square(x), 1.0))))
def atan(input: Tensor) -> Tensor:
    """Return the angle in (-pi/2, pi/2) of the tangent `input`, elementwise.

    >>> import lucid
    >>> lucid.atan(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """
    return GRAPH.atan(input)


def _over_square(m: Namespace, x: Array, a: Array, b: Array) -> Any:
    """Return ``x / (a**2 + b**2)``, zero at the origin, a jump of the angle; one of `a` and `b` may be a number."""
    squares = [x * x if isinstance(x, int | float) else m.square(x) for x in (a, b)]
    size = m.add(*squares)
    # `x` is one of the two: at the origin 0 over 1, and no derivative of 0 over 0
    return m.div(x, m.where(m.eq(size, 0), 1, size))


def _atan2_a(m: Namespace, grad: Array, a: Array, b: Array, a_shape: Ints) -> Any:
    return m.sum_to(m.mul(grad, _over_square(m, b, a, b)), shape=a_shape)


def _atan2_b(m: Namespace, grad: Array, a: Array, b: Array, b_shape: Ints) -> Any:
    return m.neg(m.sum_to(m.mul(grad, _over_square(m, a, a, b)), shape=b_shape))


@elementwise(np.arctan2, Fused(_atan2_a), Fused(_atan2_b), refused=REAL)
def atan2(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the angle in [-pi, pi] of the point with ordinate `input` and abscissa `other`, elementwise.

    Defined on real numbers.

    >>> import lucid
    >>> lucid.atan2(lucid.tensor([1.0, -1.0]), lucid.tensor([1.0, -1.0]))
    tensor([ 0.7854, -2.3562])
    """
    return GRAPH.atan2(input, other)


# ---- hyperbolic ----


@elementwise(np.sinh, Fused(lambda m, grad, x: m.mul(grad, m.cosh(x))))
def sinh(input: Tensor) -> Tensor:
    """Return the hyperbolic sine, elementwise.

    >>> import lucid
    >>> lucid.sinh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    return GRAPH.sinh(input)


@elementwise(np.cosh, Fused(lambda m, grad, x: m.mul(grad, m.sinh(x))))
def cosh(input: Tensor) -> Tensor:
    """Return the hyperbolic cosine, elementwise.

    >>> import lucid
    >>> lucid.cosh(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    return GRAPH.cosh(input)


@elementwise(np.arcsinh, Fused(lambda m, grad, x: m.div(grad, m.sqrt(m.add(m.square(x), 1.0)))))
def asinh(input: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic sine, elementwise.

    >>> import lucid
    >>> lucid.asinh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    return GRAPH.asinh(input)


def _acosh_vjp(m: Namespace, grad: Array, x: Array) -> Any:
    size = x if getattr(x, "array", x).dtype.kind == "c" else m.abs(x)
    return m.div(m.div(grad, m.sqrt(m.sub(size, 1.0))), m.sqrt(m.add(size, 1.0)))


@elementwise(np.arccosh, Fused(_acosh_vjp))
def acosh(input: Tensor) -> Tensor:
    """Return the non-negative inverse of the hyperbolic cosine, elementwise; NaN below 1.

    >>> import lucid
    >>> lucid.acosh(lucid.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    return GRAPH.acosh(input)


@elementwise(np.arctanh, Fused(lambda m, grad, x: m.div(grad, m.sub(1.0, m.square(x)))))
def atanh(input: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic tangent, elementwise; NaN outside of [-1, 1].

    >>> import lucid
    >>> lucid.atanh(lucid.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    return GRAPH.atanh(input)


# ---- angles and lengths ----


def deg2rad(input: Tensor) -> Tensor:
    """Return angles in radians of angles in degrees, ``input * pi / 180``, elementwise, of real numbers.

    >>> import lucid
    >>> lucid.deg2rad(lucid.tensor([180.0]))
    tensor([3.1416])
    """
    refuse("deg2rad", "c", input, instead=REAL[1])
    return mul(float_operand(input), math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Return angles in degrees of angles in radians, ``input * 180 / pi``, elementwise, of real numbers.

    >>> import lucid
    >>> lucid.rad2deg(lucid.tensor([1.0]))
    tensor([57.2958])
    """
    refuse("rad2deg", "c", input, instead=REAL[1])
    return mul(float_operand(input), 180 / math.pi)


def _sinc(m: Namespace, x: Any) -> Any:
    turns = x * math.pi
    return m.where(m.eq(x, 0), 1, m.sin(turns) / turns, rare=True)


# (cos t - sin t / t) / t in powers of t: t times the sum of these times powers of t^2, of float64 where |t| < 1
_SINC_SLOPES = tuple((-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 10))


def _sinc_slope(m: Namespace, g: Any, x: Any) -> Any:
    turns = x * math.pi
    square, series = m.square(turns), _SINC_SLOPES[-1]
    for factor in _SINC_SLOPES[-2::-1]:
        series = series * square + factor
    # near zero the terms cancel, and overflow
    far = (m.cos(turns) - m.sin(turns) / turns) / turns
    return g * math.pi * m.where(abs(turns) < 1, series * turns, far)


def _sinc_curve(m: Namespace, grad: Array, g: Array, x: Array) -> Any:
    near = m.lt(m.abs(x), 0.01)
    small, far = m.where(near, x, 0), m.where(near, 1, x)
    square = m.mul(m.mul(small, small), math.pi**2)
    series = m.mul(square, 1 / 6480)
    for factor in (-1 / 168, 1 / 10):
        series = m.mul(m.add(series, factor), square)
    series = m.mul(m.mul(g, math.pi**2), m.add(series, -1 / 3))
    beyond = m.add(m.mul(m.mul(g, m.sinc(far)), math.pi**2), m.div(m.mul(m.sinc_grad(g, far), 2.0), far))
    return m.mul(grad, m.where(near, series, m.neg(beyond)))


@elementwise(_sinc, Slope(_sinc_slope, _sinc_curve))
def sinc(input: Tensor) -> Tensor:
    """Return ``sin(pi input) / (pi input)``, elementwise, and 1 at zero, with a gradient of zero.

    >>> import lucid
    >>> lucid.sinc(lucid.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return GRAPH.sinc(input)


@elementwise(
    np.hypot,
    lambda m, grad, a, out, a_shape: m.sum_to(m.mul(grad, m.div(a, out)), shape=a_shape),
    lambda m, grad, b, out, b_shape: m.sum_to(m.mul(grad, m.div(b, out)), shape=b_shape),
    refused=REAL,
)
def hypot(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return ``sqrt(input ** 2 + other ** 2)``, elementwise, without overflow, of real numbers.

    >>> import lucid
    >>> lucid.hypot(lucid.tensor([3.0]), lucid.tensor([4.0]))
    tensor([5.])
    """
    return GRAPH.hypot(input, other)
