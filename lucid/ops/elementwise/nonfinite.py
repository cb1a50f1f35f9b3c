"""NaN and infinity, elementwise: tests for them, and numbers instead of them; see `lucid.ops.base.declaration`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.namespace import GRAPH, Namespace
from lucid.base.limits import finfo
from lucid.cuda.launch.elementwise import ALL
from lucid.ops.base.core import clone
from lucid.ops.base.declaration import Formula, Fused, elementwise
from lucid.ops.base.operands import refuse, tensor_operand
from lucid.ops.base.promotion import tensor_dtype
from lucid.ops.base.scalars import as_number
from lucid.ops.elementwise.comparison import eq

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


@elementwise(np.isnan, dtypes=ALL, out="bool")
def isnan(input: Tensor) -> Tensor:
    """Return whether `input` is not a number, elementwise; of a complex number, either part.

    >>> import lucid
    >>> lucid.isnan(lucid.tensor([1.0, float("inf"), float("nan")]))
    tensor([False, False,  True])
    """
    return GRAPH.isnan(input)


@elementwise(np.isinf, dtypes=ALL, out="bool")
def isinf(input: Tensor) -> Tensor:
    """Return whether `input` is infinite, elementwise; of a complex number, either part.

    >>> import lucid
    >>> lucid.isinf(lucid.tensor([1.0, float("inf"), float("nan")]))
    tensor([False,  True, False])
    """
    return GRAPH.isinf(input)


@elementwise(np.isfinite, dtypes=ALL, out="bool")
def isfinite(input: Tensor) -> Tensor:
    """Return whether `input` is neither infinite nor NaN, elementwise.

    >>> import lucid
    >>> lucid.isfinite(lucid.tensor([1.0, float("inf"), float("nan")]))
    tensor([ True, False, False])
    """
    return GRAPH.isfinite(input)


def _nan_to_num(xp: ModuleType, x: Array, *, nan: float, posinf: float, neginf: float) -> Array:
    out = xp.where(xp.isnan(x), x.dtype.type(nan), x)
    out[xp.equal(x, np.inf)] = posinf
    out[xp.equal(x, -np.inf)] = neginf
    return out


def _finite(m: Namespace, x: Any, *, nan: Any, posinf: Any, neginf: Any) -> Any:
    return m.where(m.isfinite(x), x, m.where(m.isnan(x), nan, m.where(x > 0, posinf, neginf)))


@elementwise(Formula(_finite, _nan_to_num), Fused(lambda m, grad, x: m.where(m.isfinite(x), grad, 0)))
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return `input` with NaN and infinities replaced by numbers, elementwise; their gradient is zero.

    NaN becomes `nan`, or 0; infinities become `posinf` and `neginf`, or the largest and the smallest finite number of
    the dtype. Integers come back unchanged; complex numbers raise a DtypeError.

    >>> import lucid
    >>> lucid.nan_to_num(lucid.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    x = tensor_operand(input)
    refuse("nan_to_num", "c", x, instead="replace in real and imaginary parts")
    if x.array.dtype.kind not in "fV":
        return clone(x)
    limits = finfo(tensor_dtype(x))
    return GRAPH.nan_to_num(
        x,
        nan=0.0 if nan is None else float(as_number(nan, "nan")),
        posinf=limits.max if posinf is None else float(as_number(posinf, "posinf")),
        neginf=limits.min if neginf is None else float(as_number(neginf, "neginf")),
    )


def isposinf(input: Tensor) -> Tensor:
    """Return whether `input`, of real numbers, is infinite and above zero, elementwise.

    >>> import lucid
    >>> lucid.isposinf(lucid.tensor([1.0, float("inf"), float("-inf")]))
    tensor([False,  True, False])
    """
    refuse("isposinf", "c", input, instead="complex numbers have no order")
    return eq(tensor_operand(input), math.inf)


def isneginf(input: Tensor) -> Tensor:
    """Return whether `input`, of real numbers, is infinite and below zero, elementwise.

    >>> import lucid
    >>> lucid.isneginf(lucid.tensor([1.0, float("inf"), float("-inf")]))
    tensor([False, False,  True])
    """
    refuse("isneginf", "c", input, instead="complex numbers have no order")
    return eq(tensor_operand(input), -math.inf)


def isreal(input: Tensor) -> Tensor:
    """Return whether `input` has no imaginary part, elementwise: true everywhere if it is not complex.

    >>> import lucid
    >>> lucid.isreal(lucid.tensor([1.0, 1j]))
    tensor([ True, False])
    """
    x = tensor_operand(input).detach()
    return eq(x.imag, 0) if x.array.dtype.kind == "c" else eq(x, x).fill_(True)


@elementwise(
    lambda xp, x: xp.signbit(x) if x.dtype.kind in "fV" else xp.less(x, 0),
    kernel="elementwise.SignBit",
    dtypes=ALL,
    out="bool",
    refused=("c", "complex numbers have no sign; use sgn"),
)
def signbit(input: Tensor) -> Tensor:
    """Return whether `input` is below zero or -0.0, elementwise, of real numbers.

    >>> import lucid
    >>> lucid.signbit(lucid.tensor([1.0, -2.0, -0.0]))
    tensor([False,  True,  True])
    """
    return GRAPH.signbit(input)
