"""Hyperbolic functions and their inverses, elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.cuda.elementwise import Elementwise
from lucid.ops.elementwise import of_one

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive(cpu=np.sinh)
def _sinh(xp: Any, x: Array) -> Array:
    return xp.sinh(x)


_sinh.cuda(Elementwise("hyperbolic", "Sinh"))


@_sinh.vjp(cuda=Elementwise("hyperbolic", "SinhGrad", "TT"))
def _sinh_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.mul(grad, m.cosh(x))


of_one(_sinh)


def sinh(input: Tensor) -> Tensor:
    """Return the hyperbolic sine, elementwise.

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
    >>> lucid.sinh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """
    return _sinh.call(input)


@primitive(cpu=np.cosh)
def _cosh(xp: Any, x: Array) -> Array:
    return xp.cosh(x)


_cosh.cuda(Elementwise("hyperbolic", "Cosh"))


@_cosh.vjp(cuda=Elementwise("hyperbolic", "CoshGrad", "TT"))
def _cosh_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.mul(grad, m.sinh(x))


of_one(_cosh)


def cosh(input: Tensor) -> Tensor:
    """Return the hyperbolic cosine, elementwise.

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
    >>> lucid.cosh(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """
    return _cosh.call(input)


@primitive(cpu=np.arcsinh)
def _asinh(xp: Any, x: Array) -> Array:
    return xp.arcsinh(x)


_asinh.cuda(Elementwise("hyperbolic", "Asinh"))


@_asinh.vjp(cuda=Elementwise("hyperbolic", "AsinhGrad", "TT"))
def _asinh_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, m.sqrt(m.add(m.square(x), 1.0)))


of_one(_asinh)


def asinh(input: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic sine, elementwise.

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
    >>> lucid.asinh(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    return _asinh.call(input)


@primitive(cpu=np.arccosh)
def _acosh(xp: Any, x: Array) -> Array:
    return xp.arccosh(x)


_acosh.cuda(Elementwise("hyperbolic", "Acosh"))


@_acosh.vjp(cuda=Elementwise("hyperbolic", "AcoshGrad", "TT"))
def _acosh_vjp(m: Any, grad: Any, x: Any) -> Any:
    size = x if getattr(x, "array", x).dtype.kind == "c" else m.abs(x)
    return m.div(m.div(grad, m.sqrt(m.sub(size, 1.0))), m.sqrt(m.add(size, 1.0)))


of_one(_acosh)


def acosh(input: Tensor) -> Tensor:
    """Return the non-negative inverse of the hyperbolic cosine, elementwise; NaN below 1.

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
    >>> lucid.acosh(lucid.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    return _acosh.call(input)


@primitive(cpu=np.arctanh)
def _atanh(xp: Any, x: Array) -> Array:
    return xp.arctanh(x)


_atanh.cuda(Elementwise("hyperbolic", "Atanh"))


@_atanh.vjp(cuda=Elementwise("hyperbolic", "AtanhGrad", "TT"))
def _atanh_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, m.sub(1.0, m.square(x)))


of_one(_atanh)


def atanh(input: Tensor) -> Tensor:
    """Return the inverse of the hyperbolic tangent, elementwise; NaN outside of [-1, 1].

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
    >>> lucid.atanh(lucid.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    return _atanh.call(input)
