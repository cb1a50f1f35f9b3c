"""Error functions, elementwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.primitive import primitive
from lucid.cuda.elementwise import Elementwise
from lucid.ops.elementwise import of_one, refuse
from lucid.ops.fused import in_blocks
from lucid.ops.normal_tail import erf_into, erfc_into, erfinv_into

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor

# erf'(x) = SLOPE * exp(-x**2)
SLOPE = 2 / math.sqrt(math.pi)


@primitive
def _erf(xp: Any, x: Array) -> Array:
    return in_blocks(xp, erf_into, 3, x)


_erf.cuda(Elementwise("special", "Erf"))


@_erf.vjp(cuda=Elementwise("special", "ErfGrad", "TT"))
def _erf_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.mul(grad, m.mul(m.exp(m.neg(m.square(x))), SLOPE))


of_one(_erf)


def erf(input: Tensor) -> Tensor:
    """Return the error function ``2 / sqrt(pi) * integral of exp(-t**2) from 0 to input``, elementwise.

    Parameters
    ----------
    input : Tensor
        Real; integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex.

    Examples
    --------
    >>> import lucid
    >>> lucid.erf(lucid.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    refuse("erf", "c", input, instead="it is defined on real numbers")
    return _erf.call(input)


@primitive
def _erfc(xp: Any, x: Array) -> Array:
    return in_blocks(xp, erfc_into, 0, x)


_erfc.cuda(Elementwise("special", "Erfc"))


@_erfc.vjp(cuda=Elementwise("special", "ErfcGrad", "TT"))
def _erfc_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.mul(grad, m.mul(m.exp(m.neg(m.square(x))), -SLOPE))


of_one(_erfc)


def erfc(input: Tensor) -> Tensor:
    """Return ``1 - erf(input)``, elementwise, exact also where it is small.

    Parameters
    ----------
    input : Tensor
        Real; integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex.

    Examples
    --------
    >>> import lucid
    >>> lucid.erfc(lucid.tensor([0.0, 1.0]))
    tensor([1.0000, 0.1573])
    """
    refuse("erfc", "c", input, instead="it is defined on real numbers")
    return _erfc.call(input)


@primitive
def _erfinv(xp: Any, x: Array) -> Array:
    return in_blocks(xp, erfinv_into, 0, x)


_erfinv.cuda(Elementwise("special", "Erfinv"))


@_erfinv.vjp(cuda=Elementwise("special", "ErfinvGrad", "TT"))
def _erfinv_vjp(m: Any, grad: Any, out: Any) -> Any:
    return m.mul(grad, m.mul(m.exp(m.square(out)), 1 / SLOPE))


of_one(_erfinv)


def erfinv(input: Tensor) -> Tensor:
    """Return the number whose error function is `input`, elementwise; NaN outside of [-1, 1].

    Parameters
    ----------
    input : Tensor
        Real; integers become the default floating-point dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex.

    Examples
    --------
    >>> import lucid
    >>> lucid.erfinv(lucid.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4769])
    """
    refuse("erfinv", "c", input, instead="it is defined on real numbers")
    return _erfinv.call(input)
