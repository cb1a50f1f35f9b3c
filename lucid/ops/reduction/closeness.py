"""Whether tensors are equal, exactly or up to a tolerance.

What holds for all elementwise ops says `lucid.ops.base.declaration`; here dtypes that differ raise a DtypeError, except
in `equal`, which promotes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.hooks.functions import seen_as_one
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch.elementwise import ALL, Elementwise
from lucid.errors import CallError, DtypeError
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import tensor_dtype
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.elementwise.comparison import eq

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


@primitive
def _isclose(xp: ModuleType, a: Array, b: Array, *, rtol: float, atol: float, equal_nan: bool) -> Array:
    close = xp.equal(a, b)
    if a.dtype.kind in "biu":
        a, b = a.astype(np.float64), b.astype(np.float64)
    elif a.dtype.kind == "V":
        a, b = a.astype(np.float32), b.astype(np.float32)
    distance = xp.abs(a - b)
    close |= xp.isfinite(distance) & (distance <= atol + xp.abs(rtol * b))
    if equal_nan:
        close |= xp.isnan(a) & xp.isnan(b)
    return close


_CLOSE = Elementwise("comparison", "IsClose", "TTSS", out="bool", dtypes=ALL)
_CLOSE_OR_NAN = Elementwise("comparison", "IsCloseOrNan", "TTSS", out="bool", dtypes=ALL)


@_isclose.cuda
def _isclose_cuda(a: Array, b: Array, *, rtol: float, atol: float, equal_nan: bool) -> Any:
    return (_CLOSE_OR_NAN if equal_nan else _CLOSE)(a, b, rtol, atol)


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return whether ``|input - other| <= atol + rtol * |other|``, elementwise; equal infinities are close.

    With `equal_nan` two NaNs are close. A tolerance, `rtol` or `atol`, below zero or NaN raises a ToleranceError.

    >>> import lucid
    >>> lucid.isclose(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    equal_nan = as_bool(equal_nan, "equal_nan")
    a, b = tensor_operand(input), tensor_operand(other)
    if a.array.dtype != b.array.dtype:
        raise DtypeError(
            f"isclose: expected two tensors of one dtype, got {tensor_dtype(a)} and {tensor_dtype(b)}; convert one"
        )
    rtol, atol = as_number(rtol, "rtol"), as_number(atol, "atol")
    if not (rtol >= 0 and atol >= 0):
        raise ToleranceError(f"isclose: expected tolerances of at least zero, got rtol={rtol} and atol={atol}")
    return _isclose(a, b, rtol=float(rtol), atol=float(atol), equal_nan=bool(equal_nan))


class ToleranceError(CallError):
    """A tolerance is negative or NaN."""


@on_one_device
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether all elements are close, as a bool, after waiting for the device.

    `rtol`, `atol` and `equal_nan` are as for `isclose`.

    >>> import lucid
    >>> lucid.allclose(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 2.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).array.all())


@seen_as_one
@on_one_device
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and elements, as a bool, after waiting for the device.

    >>> import lucid
    >>> lucid.equal(lucid.tensor([1, 2]), lucid.tensor([1, 2]))
    True
    """
    a, b = tensor_operand(input), tensor_operand(other)
    return a.array.shape == b.array.shape and bool(eq(a, b).array.all())
