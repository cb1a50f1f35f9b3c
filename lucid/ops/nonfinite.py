"""NaN and infinity: where they are, and numbers in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.primitive import primitive
from lucid.backend.limits import finfo
from lucid.cuda.elementwise import ALL, Elementwise
from lucid.ops.core import clone
from lucid.ops.elementwise import of_one, refuse, tensor_operand
from lucid.ops.promotion import tensor_dtype
from lucid.ops.scalars import as_number

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


@primitive(cpu=np.isnan)
def _isnan(xp: Any, x: Array) -> Array:
    return xp.isnan(x)


_isnan.cuda(Elementwise("nonfinite", "IsNan", out="bool", dtypes=ALL))


of_one(_isnan, at_least_float=False)


def isnan(input: Tensor) -> Tensor:
    """Return where `input` is not a number, elementwise; of a complex number, either part.

    Parameters
    ----------
    input : Tensor
        Of any dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`, bool.

    Examples
    --------
    >>> import lucid
    >>> lucid.isnan(lucid.tensor([1.0, float("inf"), float("nan")]))
    tensor([False, False,  True])
    """
    return _isnan.call(input)


@primitive(cpu=np.isinf)
def _isinf(xp: Any, x: Array) -> Array:
    return xp.isinf(x)


_isinf.cuda(Elementwise("nonfinite", "IsInf", out="bool", dtypes=ALL))


of_one(_isinf, at_least_float=False)


def isinf(input: Tensor) -> Tensor:
    """Return where `input` is infinite, elementwise; of a complex number, either part.

    Parameters
    ----------
    input : Tensor
        Of any dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`, bool.

    Examples
    --------
    >>> import lucid
    >>> lucid.isinf(lucid.tensor([1.0, float("inf"), float("nan")]))
    tensor([False,  True, False])
    """
    return _isinf.call(input)


@primitive(cpu=np.isfinite)
def _isfinite(xp: Any, x: Array) -> Array:
    return xp.isfinite(x)


_isfinite.cuda(Elementwise("nonfinite", "IsFinite", out="bool", dtypes=ALL))


of_one(_isfinite, at_least_float=False)


def isfinite(input: Tensor) -> Tensor:
    """Return where `input` is neither infinite nor NaN, elementwise.

    Parameters
    ----------
    input : Tensor
        Of any dtype.

    Returns
    -------
    Tensor
        Of the shape of `input`, bool.

    Examples
    --------
    >>> import lucid
    >>> lucid.isfinite(lucid.tensor([1.0, float("inf"), float("nan")]))
    tensor([ True, False, False])
    """
    return _isfinite.call(input)


@primitive
def _nan_to_num(xp: Any, x: Array, *, nan: float, posinf: float, neginf: float) -> Array:
    out = xp.where(xp.isnan(x), x.dtype.type(nan), x)
    out[xp.equal(x, np.inf)] = posinf
    out[xp.equal(x, -np.inf)] = neginf
    return out


_NAN_TO_NUM = Elementwise("nonfinite", "NanToNum", "TSSS")


@_nan_to_num.cuda
def _nan_to_num_cuda(x: Array, *, nan: float, posinf: float, neginf: float) -> Any:
    return _NAN_TO_NUM(x, nan, posinf, neginf)


@_nan_to_num.vjp(cuda=Elementwise("nonfinite", "NanToNumGrad", "TT"))
def _nan_to_num_vjp(m: Any, grad: Any, x: Any) -> Any:
    return m.where(m.isfinite(x), grad, 0)


def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return `input` with NaN and infinities replaced by numbers; their gradient is zero.

    Parameters
    ----------
    input : Tensor
        Real; integers come back unchanged.
    nan : float, optional
        What replaces NaN; 0 if left out.
    posinf, neginf : float, optional
        What replaces the infinities; the largest and the smallest finite number of the dtype if left out.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    DtypeError
        If `input` is complex.

    Examples
    --------
    >>> import lucid
    >>> lucid.nan_to_num(lucid.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    x = tensor_operand(input)
    refuse("nan_to_num", "c", x, instead="replace in real and imaginary parts")
    if x.array.dtype.kind not in "fV":
        return clone(x)
    limits = finfo(tensor_dtype(x))
    return _nan_to_num(
        x,
        nan=0.0 if nan is None else float(as_number(nan, "nan")),
        posinf=limits.max if posinf is None else float(as_number(posinf, "posinf")),
        neginf=limits.min if neginf is None else float(as_number(neginf, "neginf")),
    )
