"""Membership of elements among others, their place between bounds, and their counts.

What holds for them says `lucid.ops.reduction.sorting`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.hooks.functions import seen_as_one
from lucid.base.arrays import asarray, namespace
from lucid.base.device import device_of
from lucid.base.dtype import result_type
from lucid.base.memory import check_size
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_bool, as_int, as_number, as_scalar
from lucid.ops.reduction.sorting import check_real, comparable, searchsorted

if TYPE_CHECKING:
    from lucid.base.arrays import Array, Number
    from lucid.tensor import Tensor


@seen_as_one
@on_one_device
def isin(
    elements: Tensor | Number, test_elements: Tensor | Number, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Return whether each of `elements` is among `test_elements`, or with `invert` is not; NaN is among none.

    One of the two may be a number. `assume_unique` is accepted for PyTorch's sake.

    >>> import lucid
    >>> lucid.isin(lucid.tensor([1, 2, 3]), lucid.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    as_bool(assume_unique, "assume_unique")
    turned = as_bool(invert, "invert")
    tensors = [x for x in (elements, test_elements) if isinstance(x, TensorBase)]
    if not tensors:
        raise DtypeError("isin: expected elements or test_elements to be a Tensor, got numbers only")
    for tensor in tensors:
        check_real(tensor, "isin")
    operands = [
        x.array if isinstance(x, TensorBase) else as_scalar(x, name)
        for x, name in ((elements, "elements"), (test_elements, "test_elements"))
    ]
    dtype = result_type(*operands)
    values, others = [comparable(asarray(x, dtype, device_of(tensors[0].array))) for x in operands]
    xp = namespace(values)
    others = xp.sort(others.reshape(-1))
    if not others.size:
        return wrap(xp.full(values.shape, turned))
    places = xp.minimum(xp.searchsorted(others, values.reshape(-1)), others.size - 1)
    equal = (others[places] == values.reshape(-1)).reshape(values.shape)
    return wrap(~equal if turned else equal)


def bucketize(input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return the number of the ascending `boundaries`, one row, below each element.

    With `right` an element equal to a boundary lies behind it. With `out_int32` the result is int32.

    >>> import lucid
    >>> lucid.bucketize(lucid.tensor([0, 3, 9]), lucid.tensor([1, 3, 5]))
    tensor([0, 1, 3])
    """
    if array_of(boundaries).ndim != 1:
        raise ShapeError(f"bucketize: boundaries tensor must be 1 dimension, got shape {list(boundaries.array.shape)}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@seen_as_one
@on_one_device
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements lie in each of `bins` parts of equal width from `min` to `max`, both included.

    If both are 0, they are the smallest and the largest element. The counts have the dtype of `input`, which is
    floating-point; what lies outside, and NaN, counts nowhere.

    >>> import lucid
    >>> lucid.histc(lucid.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    array: Array = array_of(input)
    if array.dtype.kind not in "fV":
        raise DtypeError(f"histc: expected a floating-point dtype, got {array.dtype.name}: convert it first")
    count, low, high = as_int(bins, "bins"), as_number(min, "min"), as_number(max, "max")
    if count <= 0:
        raise SettingError(f"histc: bins must be > 0, got {count}")
    check_size("histc", (count + 1,), 8)
    if high < low:
        raise SettingError(f"histc: max must be larger than min, got {low} and {high}")
    xp = namespace(array)
    values: Any = array.reshape(-1).astype(xp.float64)
    if low == high == 0 and values.size:
        low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise SettingError(f"histc: range of [{low}, {high}] is not finite: give min and max that are")
    if low == high:
        low, high = low - 1, high + 1
    inside = (values >= low) & (values <= high)
    # what is outside goes to a part of its own
    part = xp.where(inside, xp.minimum((values - low) * (count / (high - low)), count - 1), count).astype(xp.int64)
    return wrap(xp.bincount(part, minlength=count + 1)[:count].astype(array.dtype))


@seen_as_one
@on_one_device
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return `input` without elements, or slices along `dim`, that are equal to the one before.

    With `return_inverse` comes for each element which of them it is, with `return_counts` how many were one. On CUDA
    the call waits for the device to count them.

    >>> import lucid
    >>> lucid.unique_consecutive(lucid.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    inverse, counts = as_bool(return_inverse, "return_inverse"), as_bool(return_counts, "return_counts")
    array: Array = array_of(input)
    xp = namespace(array)
    axis = 0 if dim is None else dim_in(dim, array.ndim)
    lines = array.reshape(-1) if dim is None or not array.ndim else array
    size = lines.shape[axis]
    changes = lines[along(axis, slice(1, None))] != lines[along(axis, slice(None, -1))]
    rest = tuple([d for d in range(lines.ndim) if d != axis])
    begins = xp.concatenate([xp.ones(min(size, 1), bool), changes.any(axis=rest) if rest else changes])
    first = xp.flatnonzero(begins)
    parts = [wrap(xp.take(lines, first, axis))]
    if inverse:
        which = xp.cumsum(begins.astype(xp.int64)) - 1
        parts.append(wrap(which.reshape(array.shape) if dim is None else which))
    if counts:
        parts.append(wrap(xp.diff(xp.concatenate([first, xp.full(1, size, first.dtype)]))))
    return tuple(parts) if len(parts) > 1 else parts[0]
