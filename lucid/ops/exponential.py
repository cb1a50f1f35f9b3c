"""Exponentials and logarithms, elementwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.cuda.elementwise import Elementwise
from lucid.ops.elementwise import of_one, of_two, summed

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor

LN2, LN10 = math.log(2), math.log(10)


@primitive(cpu=np.exp)
def _exp(xp: Any, x: Array) -> Array:
    return xp.exp(x)


_exp.cuda(Elementwise("exponential", "Exp"))


@_exp.vjp
def _exp_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.mul(grad, out)


of_one(_exp)


def exp(input: Tensor) -> Tensor:
    """Return ``e ** input``, elementwise.

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
    >>> lucid.exp(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return _exp.call(input)


@primitive(cpu=np.exp2)
def _exp2(xp: Any, x: Array) -> Array:
    return xp.exp2(x)


_exp2.cuda(Elementwise("exponential", "Exp2"))


@_exp2.vjp(cuda=Elementwise("exponential", "Exp2Grad", "TT"))
def _exp2_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.mul(m.mul(grad, out), LN2)


of_one(_exp2)


def exp2(input: Tensor) -> Tensor:
    """Return ``2 ** input``, elementwise.

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
    >>> lucid.exp2(lucid.tensor([0.0, 3.0]))
    tensor([1., 8.])
    """
    return _exp2.call(input)


@primitive(cpu=np.expm1)
def _expm1(xp: Any, x: Array) -> Array:
    return xp.expm1(x)


_expm1.cuda(Elementwise("exponential", "Expm1"))


@_expm1.vjp(cuda=Elementwise("exponential", "Expm1Grad", "TT"))
def _expm1_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.mul(grad, m.add(out, 1.0))


of_one(_expm1)


def expm1(input: Tensor) -> Tensor:
    """Return ``e ** input - 1``, elementwise, exact for small values.

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
    >>> lucid.expm1(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 1.7183])
    """
    return _expm1.call(input)


@primitive(cpu=np.log)
def _log(xp: Any, x: Array) -> Array:
    return xp.log(x)


_log.cuda(Elementwise("exponential", "Log"))


@_log.vjp
def _log_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, x)


of_one(_log)


def log(input: Tensor) -> Tensor:
    """Return the natural logarithm, elementwise; NaN below zero.

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
    >>> lucid.log(lucid.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    return _log.call(input)


@primitive(cpu=np.log2)
def _log2(xp: Any, x: Array) -> Array:
    return xp.log2(x)


_log2.cuda(Elementwise("exponential", "Log2"))


@_log2.vjp(cuda=Elementwise("exponential", "Log2Grad", "TT"))
def _log2_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, m.mul(x, LN2))


of_one(_log2)


def log2(input: Tensor) -> Tensor:
    """Return the logarithm to base 2, elementwise; NaN below zero.

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
    >>> lucid.log2(lucid.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return _log2.call(input)


@primitive(cpu=np.log10)
def _log10(xp: Any, x: Array) -> Array:
    return xp.log10(x)


_log10.cuda(Elementwise("exponential", "Log10"))


@_log10.vjp(cuda=Elementwise("exponential", "Log10Grad", "TT"))
def _log10_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, m.mul(x, LN10))


of_one(_log10)


def log10(input: Tensor) -> Tensor:
    """Return the logarithm to base 10, elementwise; NaN below zero.

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
    >>> lucid.log10(lucid.tensor([1.0, 10.0]))
    tensor([0., 1.])
    """
    return _log10.call(input)


@primitive(cpu=np.log1p)
def _log1p(xp: Any, x: Array) -> Array:
    return xp.log1p(x)


_log1p.cuda(Elementwise("exponential", "Log1p"))


@_log1p.vjp(cuda=Elementwise("exponential", "Log1pGrad", "TT"))
def _log1p_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.div(grad, m.add(x, 1.0))


of_one(_log1p)


def log1p(input: Tensor) -> Tensor:
    """Return ``log(1 + input)``, elementwise, exact for small values.

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
    >>> lucid.log1p(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.6931])
    """
    return _log1p.call(input)


@primitive(cpu=np.logaddexp)
def _logaddexp(xp: Any, a: Array, b: Array) -> Array:
    return xp.logaddexp(a, b)


_logaddexp.cuda(Elementwise("exponential", "Logaddexp", "TT"))


_LOGADDEXP_GRAD = Elementwise("exponential", "LogaddexpGrad", "TTT")


@_logaddexp.vjp("a", cuda=summed(_LOGADDEXP_GRAD))
def _logaddexp_a(m: Any, grad: Any, a: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return m.sum_to(m.mul(grad, m.sigmoid(m.sub(a, b))), shape=a_shape)


@_logaddexp.vjp("b", cuda=summed(_LOGADDEXP_GRAD, exchanged=True))
def _logaddexp_b(m: Any, grad: Any, a: Any, b: Any, b_shape: tuple[int, ...]) -> Any:
    return m.sum_to(m.mul(grad, m.sigmoid(m.sub(b, a))), shape=b_shape)


of_two(_logaddexp, at_least_float=True)


def logaddexp(input: Tensor, other: Any) -> Tensor:
    """Return ``log(exp(input) + exp(other))``, elementwise, without overflow.

    Parameters
    ----------
    input : Tensor
        First operand, real.
    other : Tensor or number
        Second operand, broadcast against the first.

    Returns
    -------
    Tensor
        Of the broadcast shape and the promoted dtype.

    Raises
    ------
    ShapeError
        If the shapes cannot be broadcast.

    Examples
    --------
    >>> import lucid
    >>> lucid.logaddexp(lucid.tensor([0.0, 10.0]), lucid.tensor([0.0, 10.0]))
    tensor([ 0.6931, 10.6931])
    """
    return _logaddexp.call(input, other)
