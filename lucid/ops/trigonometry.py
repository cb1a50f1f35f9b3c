"""Trigonometric functions and their inverses, elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.cuda.elementwise import Elementwise
from lucid.ops.elementwise import of_one, of_two, refuse, summed

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive(cpu=np.sin)
def _sin(xp: Any, x: Array) -> Array:
    return xp.sin(x)


_sin.cuda(Elementwise("trigonometry", "Sin"))


@_sin.vjp(cuda=Elementwise("trigonometry", "SinGrad", "TT"))
def _sin_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.mul(grad, m.cos(x))


of_one(_sin)


def sin(input: Tensor) -> Tensor:
    """Return the sine of angles in radians, elementwise.

    Parameters
    ----------
    input : Tensor
        Integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Examples
    --------
    >>> import lucid
    >>> lucid.sin(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """
    return _sin.call(input)


@primitive(cpu=np.cos)
def _cos(xp: Any, x: Array) -> Array:
    return xp.cos(x)


_cos.cuda(Elementwise("trigonometry", "Cos"))


@_cos.vjp(cuda=Elementwise("trigonometry", "CosGrad", "TT"))
def _cos_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.neg(m.mul(grad, m.sin(x)))


of_one(_cos)


def cos(input: Tensor) -> Tensor:
    """Return the cosine of angles in radians, elementwise.

    Parameters
    ----------
    input : Tensor
        Integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Examples
    --------
    >>> import lucid
    >>> lucid.cos(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """
    return _cos.call(input)


@primitive(cpu=np.tan)
def _tan(xp: Any, x: Array) -> Array:
    return xp.tan(x)


_tan.cuda(Elementwise("trigonometry", "Tan"))


@_tan.vjp(cuda=Elementwise("trigonometry", "TanGrad", "TT"))
def _tan_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.mul(grad, m.add(m.square(out), 1.0))


of_one(_tan)


def tan(input: Tensor) -> Tensor:
    """Return the tangent of angles in radians, elementwise.

    Parameters
    ----------
    input : Tensor
        Integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Examples
    --------
    >>> import lucid
    >>> lucid.tan(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """
    return _tan.call(input)


@primitive(cpu=np.arcsin)
def _asin(xp: Any, x: Array) -> Array:
    return xp.arcsin(x)


_asin.cuda(Elementwise("trigonometry", "Asin"))


@_asin.vjp(cuda=Elementwise("trigonometry", "AsinGrad", "TT"))
def _asin_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, m.sqrt(m.sub(1.0, m.square(x))))


of_one(_asin)


def asin(input: Tensor) -> Tensor:
    """Return the angle in [-pi/2, pi/2] whose sine is `input`, elementwise; NaN outside of [-1, 1].

    Parameters
    ----------
    input : Tensor
        Integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Examples
    --------
    >>> import lucid
    >>> lucid.asin(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """
    return _asin.call(input)


@primitive(cpu=np.arccos)
def _acos(xp: Any, x: Array) -> Array:
    return xp.arccos(x)


_acos.cuda(Elementwise("trigonometry", "Acos"))


@_acos.vjp(cuda=Elementwise("trigonometry", "AcosGrad", "TT"))
def _acos_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.neg(m.div(grad, m.sqrt(m.sub(1.0, m.square(x)))))


of_one(_acos)


def acos(input: Tensor) -> Tensor:
    """Return the angle in [0, pi] whose cosine is `input`, elementwise; NaN outside of [-1, 1].

    Parameters
    ----------
    input : Tensor
        Integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Examples
    --------
    >>> import lucid
    >>> lucid.acos(lucid.tensor([0.0, 1.0]))
    tensor([1.5708, 0.0000])
    """
    return _acos.call(input)


@primitive(cpu=np.arctan)
def _atan(xp: Any, x: Array) -> Array:
    return xp.arctan(x)


_atan.cuda(Elementwise("trigonometry", "Atan"))


@_atan.vjp(cuda=Elementwise("trigonometry", "AtanGrad", "TT"))
def _atan_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, m.add(m.square(x), 1.0))


of_one(_atan)


def atan(input: Tensor) -> Tensor:
    """Return the angle in (-pi/2, pi/2) whose tangent is `input`, elementwise.

    Parameters
    ----------
    input : Tensor
        Integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Examples
    --------
    >>> import lucid
    >>> lucid.atan(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """
    return _atan.call(input)


@primitive(cpu=np.arctan2)
def _atan2(xp: Any, a: Array, b: Array) -> Array:
    return xp.arctan2(a, b)


_atan2.cuda(Elementwise("trigonometry", "Atan2", "TT"))


def _over_square(m: Any, x: Any, a: Any, b: Any) -> Any:
    """Return ``x / (a**2 + b**2)``, zero at the origin, where the angle jumps."""
    size = m.add(m.square(a), m.square(b))
    return m.where(m.eq(size, 0), 0, m.div(x, size))


@_atan2.vjp("a", cuda=summed(Elementwise("trigonometry", "Atan2GradA", "TTT")))
def _atan2_a(m: Any, grad: Any, a: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(m.mul(grad, _over_square(m, b, a, b)), shape=a_shape)


@_atan2.vjp("b", cuda=summed(Elementwise("trigonometry", "Atan2GradB", "TTT")))
def _atan2_b(m: Any, grad: Any, a: Any, b: Any, b_shape: tuple[int, ...]) -> Any:
    return m.neg(m.sum_to(m.mul(grad, _over_square(m, a, a, b)), shape=b_shape))


of_two(_atan2, at_least_float=True)


def atan2(input: Tensor, other: Any) -> Tensor:
    """Return the angle in [-pi, pi] of the point with ordinate `input` and abscissa `other`, elementwise.

    Parameters
    ----------
    input : Tensor
        Ordinates, real.
    other : Tensor or number
        Abscissas, broadcast against the ordinates.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype, floating point.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.
    DtypeError
        If an operand is complex.

    Examples
    --------
    >>> import lucid
    >>> lucid.atan2(lucid.tensor([1.0, -1.0]), lucid.tensor([1.0, -1.0]))
    tensor([ 0.7854, -2.3562])
    """
    refuse("atan2", "c", input, other, instead="it is defined on real numbers")
    return _atan2.call(input, other)
