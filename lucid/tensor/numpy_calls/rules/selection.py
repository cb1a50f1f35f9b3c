"""NumPy's functions that choose among elements: by conditions, indices, order and bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import registered
from lucid.autograd.borrowing import borrowed
from lucid.base.arrays import asarray
from lucid.base.device import device_of
from lucid.base.dtype import as_dtype
from lucid.base.gpu import is_gpu_array
from lucid.errors import IndexKindError, SettingError
from lucid.ops.base.promotion import cast_to
from lucid.ops.elementwise import arithmetic, comparison, division, nonfinite, rounding, selection
from lucid.ops.elementwise.complex import complex as of_parts
from lucid.ops.elementwise.complex import imag, real
from lucid.ops.index.gather import take_along_dim
from lucid.ops.index.indexing import getitem, setitem
from lucid.ops.reduction import sorting
from lucid.ops.shape import reshape
from lucid.tensor.numpy_calls.definition import enter, rule
from lucid.tensor.numpy_calls.operands import (
    NumpyCallError,
    in_native_order,
    is_tensor,
    operand,
    same_kind,
    tensor_of,
    tensors_in,
    written_as,
    zeros_for,
)
from lucid.tensor.numpy_calls.rules.places import plain
from lucid.tensor.numpy_calls.rules.reductions import along, running_along
from lucid.tensor.numpy_calls.ufuncs import UFUNCS, is_complex, to_decimals

if TYPE_CHECKING:
    from lucid.tensor import Tensor
    from lucid.tensor.numpy_calls.operands import Indices, Operand, Sizes


def index_beside(value: object, like: Tensor) -> Any:
    """Return indices, of any kind, as a tensor on the device of `like`."""
    if is_tensor(value):
        return value
    array: Any = value if is_gpu_array(value) else in_native_order(np.asarray(value))
    array = array.astype(np.int64) if array.dtype.kind == "u" else array
    return borrowed(asarray(array, device=device_of(like.array)))


@rule("where", "?condition *x *y")
def where(condition: Tensor, x: Operand | None = None, y: Operand | None = None) -> Any:
    """Return ``numpy.where``; with a condition alone, its indices."""
    condition = operand(condition, next(tensors_in((x, y)), None), strong=True)
    truth = comparison.ne(condition, 0) if condition.array.dtype.kind != "b" else condition
    return selection.where(truth) if x is None and y is None else selection.where(truth, x, y)


@rule("piecewise", "*x +condlist +funclist +args +kw")
def piecewise(x: Tensor, condlist: Any, funclist: Any, args: tuple[Any, ...] = (), kw: Any = None) -> Any:
    """Return ``numpy.piecewise``: for each element, the function of the last condition that is true."""
    conditions = plain(condlist)
    if np.ndim(conditions) == 0 or (not isinstance(conditions[0], list | np.ndarray) and x.array.ndim):
        conditions = [conditions]  # a single one
    stack = np.asarray(conditions, bool)
    if len(funclist) == len(stack) + 1:
        stack = np.concatenate([stack, ~stack.any(0, keepdims=True)])
    if len(funclist) != len(stack):
        count = len(stack)
        raise SettingError(
            f"numpy.piecewise: with {count} condition(s), either {count} or {count + 1} functions are expected, "
            f"got {len(funclist)}"
        )
    result = zeros_for(x)
    for truth, function in zip(stack, funclist, strict=True):
        if not truth.any():
            continue
        value = function
        if callable(function):
            part = getitem(x, np.nonzero(truth) if truth.ndim else truth)
            value = function(same_kind(part, x), *args, **(kw or {}))
        line = reshape.reshape(written_as(operand(value, x, strong=True), as_dtype(x.array.dtype)), -1)
        # each element has its turn in the order of its place
        turn = np.zeros(truth.shape, int)
        if line.array.size > 1:
            turn = np.maximum(np.cumsum(truth.ravel()) - 1, 0).reshape(truth.shape)
        if line.array.size:
            result = selection.where(index_beside(truth, x), getitem(line, index_beside(turn, x)), result)
    return result


@rule("take", "*a indices axis mode")
def taken(a: Tensor, indices: Indices, axis: int | None = None, mode: Any = "raise") -> Any:
    """Return ``numpy.take``."""
    if mode != "raise":
        np.take([0], 0, mode=mode)  # refuses what NumPy refuses
        mode = {0: "clip", 1: "wrap"}.get(mode, mode)  # NumPy's numbers of the modes
    line, k = running_along(a, axis)
    size = line.array.shape[k]
    index: Any = indices.array if is_tensor(indices) else indices
    if not is_gpu_array(index):
        index = np.asarray(plain(index))
    if index.dtype.kind not in "iu":
        index = index.astype(np.int64, casting="safe") if index.size else index.astype(np.int64)
    if mode in {"clip", "wrap"}:
        index = index % size if mode == "wrap" else index.clip(0, size - 1)
    elements = getitem(line, (*(slice(None),) * k, index_beside(index, a)))
    # at a single place an index gives a view
    return elements if index.ndim else reshape.clone(elements)


@rule("take_along_axis", "*arr indices axis")
def taken_along(arr: Tensor, indices: Indices, axis: int | None = -1) -> Any:
    """Return ``numpy.take_along_axis``."""
    line, k = along(arr, axis)
    index = index_beside(indices, arr)
    if index.array.dtype.kind != "i":
        raise IndexKindError(f"numpy.take_along_axis: `indices` must be an integer array, got {index.array.dtype}")
    size = line.array.shape[k]
    return take_along_dim(line, selection.where(comparison.lt(index, 0), arithmetic.add(index, size), index), k)


@rule("clip", "*a *a_min *a_max *min *max")
def clipped(a: Tensor, **bounds: Operand | None) -> Any:
    """Return ``numpy.clip``, with both of its older names of bounds, or any of its newer ones."""
    older = bounds.keys() & {"a_min", "a_max"}
    if len(older) == 1:
        raise NumpyCallError(f"numpy.clip: expected both a_min and a_max, got {older.pop()} alone: use min= or max=")
    if older and len(bounds) > 2:
        raise SettingError("numpy.clip: expected a_min and a_max, or min and max, got both")
    low, high = (bounds.get(f"a_{name}", bounds.get(name)) for name in ("min", "max"))
    if low is None and high is None:
        return reshape.clone(a)
    if not any(is_complex(x) for x in (a, low, high)):
        return selection.clamp(a, low, high)
    above = a if low is None else UFUNCS["maximum"](a, low)
    return above if high is None else UFUNCS["minimum"](above, high)


@rule("nan_to_num", "*x copy nan posinf neginf")
def numbers_only(
    x: Tensor, copy: bool = True, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """Return ``numpy.nan_to_num``, or `x` after it was written into that; a scalar is always copied."""
    if any(map(np.ndim, map(plain, (nan, posinf, neginf)))):
        raise NumpyCallError(
            "numpy.nan_to_num: expected numbers with a Tensor, got an array: np.where(np.isnan(x), array, x)"
        )

    def finite(part: Tensor) -> Any:
        if copy:
            return nonfinite.nan_to_num(part, nan, posinf, neginf)
        # needs no values of `part` for its gradient, which are written over
        return selection.where(nonfinite.isfinite(part), part, nonfinite.nan_to_num(part.detach(), nan, posinf, neginf))

    result = of_parts(finite(real(x)), finite(imag(x))) if is_complex(x) else finite(x)
    if copy or (type(x) is not registered.tensor and not x.array.ndim and x.origin is None):
        return result
    setitem(x, ..., result)
    return x


@rule("sort", "*a axis kind stable")
def sorted_values(a: Tensor, axis: int | None = -1, kind: Any = None, stable: Any = None) -> Any:
    """Return ``numpy.sort``: always stable."""
    if kind is not None or stable is not None:
        np.sort([0], kind=kind, stable=stable)  # refuses what NumPy refuses
    line, k = along(a, axis)
    return take_along_dim(line, order_of(line, k), k) if is_complex(line) else sorting.sort(line, k)[0]


@rule("argsort", "*a axis kind stable")
def order_of(a: Tensor, axis: int | None = -1, kind: Any = None, stable: Any = None) -> Any:
    """Return ``numpy.argsort``: always stable."""
    if kind is not None or stable is not None:
        np.argsort([0], kind=kind, stable=stable)  # refuses what NumPy refuses
    line, k = along(a, axis)
    if is_complex(line):
        return index_beside(np.argsort(plain(line), k, "stable"), line)
    return sorting.argsort(line, k)


@rule("partition", "*a kth axis")
def partitioned(a: Tensor, kth: Sizes, axis: int | None = -1) -> Any:
    """Return ``numpy.partition``."""
    line, k = along(a, axis)
    return take_along_dim(line, index_beside(np.argpartition(plain(line), kth, k), line), k)


@rule("sort_complex", "*a")
def sorted_complex(a: Tensor) -> Any:
    """Return ``numpy.sort_complex``."""
    wide = np.complex64 if a.array.dtype.char in "bBhHF" else np.complex128
    return sorted_values(cast_to(a, as_dtype(wide)))


@rule("unique", "*ar return_index return_inverse return_counts axis equal_nan")
def unique(ar: Tensor, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, equal_nan: bool = True) -> Any:  # fmt: skip
    """Return ``numpy.unique``: the gradient of each value goes to the first of its kind."""
    unique_of: Any = np.unique
    _, first, *rest = unique_of(plain(ar), True, return_inverse, return_counts, axis, equal_nan=equal_nan)
    values = taken(ar, first, axis)
    rest = [*([first] if return_index else []), *rest]
    return (values, *(asarray(each, device=device_of(ar.array)) for each in rest)) if rest else values


@rule("unique_values", "*x")
def unique_values(x: Tensor) -> Any:
    """Return ``numpy.unique_values``."""
    return unique(x, equal_nan=False)


@rule("unique_all", "*x")
def unique_all(x: Tensor) -> Any:
    """Return ``numpy.unique_all``."""
    kind: Any = type(np.unique_all(np.zeros(0)))
    return kind(*unique(x, True, True, True, equal_nan=False))


@rule("real_if_close", "*a tol")
def real_if_close(a: Tensor, tol: float = 100) -> Any:
    """Return ``numpy.real_if_close``."""
    if not is_complex(a):
        return a
    rest = cast("Any", np.real_if_close(plain(a), tol))
    return real(a) if rest.dtype.kind != "c" else a


@rule("imag", "*val")
def imaginary(val: Tensor) -> Any:
    """Return ``numpy.imag``; zeros of real numbers."""
    return imag(val) if val.array.dtype.kind == "c" else zeros_for(val)


@rule("round around", "*a decimals")
def rounded(a: Tensor, decimals: int = 0) -> Any:
    """Return ``numpy.round``."""
    if a.array.dtype.char == "e" and decimals:
        # in half precision, too, where the products overflow
        ten = tensor_of(10.0 ** abs(decimals), a)
        scale, unscale = (arithmetic.mul, division.div) if decimals > 0 else (division.div, arithmetic.mul)
        return unscale(rounding.round(scale(a, ten)), ten)
    return to_decimals(a, decimals)


enter("fix", "*x:input", rounding.trunc)
enter("real", "*val:input", real)
