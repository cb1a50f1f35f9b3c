"""Order: sorting, the largest elements, distinct elements, indices in sorted rows; and their common rules.

- `input` holds real numbers, and a NaN counts as larger than any. Complex numbers raise a DtypeError.
- Elements are ordered along one dimension, `dim`, in ascending order, or with `descending` from the largest on. Equal
  elements keep their order, and results are in order: `stable` and `sorted` are accepted for PyTorch's sake.
- Indices and counts are int64. A dimension that is not there raises an IndexOutOfRangeError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.arguments import among
from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.hooks.functions import seen_as_one
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import asarray, namespace
from lucid.base.device import device_of
from lucid.base.memory import c_copy, check_size
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import accumulation_dtype, array_of, tensor_dtype
from lucid.ops.base.scalars import as_bool, as_int

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


class sort_result(NamedTuple):
    """Sorted values and their indices."""

    values: Any
    indices: Array


class topk_result(NamedTuple):
    """The largest or smallest values and their indices."""

    values: Any
    indices: Array


def comparable(x: Array) -> Array:
    """Return values that sort as `x` does, in a dtype that NumPy and CuPy sort fast."""
    if x.dtype.kind == "b":
        return x.view(np.uint8)
    return x.astype(accumulation_dtype(x.dtype), copy=False)


def order_of(xp: ModuleType, x: Array, dim: int, *, descending: bool) -> Array:
    """Return the indices that sort `x` along a dimension; equal elements keep their order, NaN counts as largest."""
    if not x.ndim:
        return xp.zeros((), np.int64)
    values = comparable(x)
    if not descending:
        return xp.argsort(values, axis=dim, kind="stable")
    turned = along(dim, slice(None, None, -1))
    return x.shape[dim] - 1 - xp.argsort(values[turned], axis=dim, kind="stable")[turned]


@primitive(outputs=("values", "indices"))
def _sort(xp: ModuleType, x: Array, *, dim: int, descending: bool) -> tuple[Array, Array]:
    order = order_of(xp, x, dim, descending=descending)
    return xp.take_along_axis(x, order, dim) if x.ndim else x.copy(), order


@_sort.vjp
def _sort_vjp(m: Namespace, grad: list[Array | None], indices: Array, x_shape: Ints, dim: int) -> Any:
    # each chosen element is once among the outputs
    if not x_shape:  # one element, or none was asked for
        return m.sum_to(grad[0], shape=())
    return m.gather_grad(grad[0], indices, shape=x_shape, dim=dim, unique=True)


@primitive(outputs=("values", "indices"))
def _topk(xp: ModuleType, x: Array, *, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    if not x.ndim:
        return (x.copy(), order_of(xp, x, dim, descending=largest)) if k else (x.reshape(1)[:0], xp.zeros(0, np.int64))
    size = x.shape[dim]
    if xp is np and dim < x.ndim - 1 and 4 * k < size:
        # NumPy's partition of lines that lie across takes many times as long
        chosen, order = _topk.cpu(c_copy(x.swapaxes(dim, -1)), k=k, dim=x.ndim - 1, largest=largest)
        return c_copy(chosen.swapaxes(dim, -1)), c_copy(order.swapaxes(dim, -1))
    # CuPy's partition believes that the lanes of a warp run in step, which CUDA does not promise
    if k and 4 * k < size and xp is np:
        edge = size - k if largest else k - 1
        near = along(dim, slice(edge, None) if largest else slice(k))
        # ascending indices: equal elements stay in order
        indices = xp.sort(xp.argpartition(comparable(x), edge, axis=dim)[near], axis=dim)
        chosen = xp.take_along_axis(x, indices, dim)
        order = xp.take_along_axis(indices, order_of(xp, chosen, dim, descending=largest), dim)
    else:
        order = order_of(xp, x, dim, descending=largest)[along(dim, slice(k))]
    return xp.take_along_axis(x, order, dim), order


_topk.vjp(_sort_vjp)


def check_real(input: Tensor, name: str) -> None:
    """Raise for complex numbers: they have no order."""
    if array_of(input).dtype.kind == "c":
        raise DtypeError(f"{name}: complex numbers have no order, got {input.array.dtype.name}; sort .abs() or .real")


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> sort_result:
    """Return the elements of `input` in order along a dimension, and their indices.

    The result is a named tuple (values, indices).

    >>> import lucid
    >>> lucid.sort(lucid.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    stable = as_bool(stable, "stable")
    check_real(input, "sort")
    return sort_result(*_sort(input, dim=dim_in(dim, input.array.ndim), descending=as_bool(descending, "descending")))


@seen_as_one
@on_one_device
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort `input` along a dimension.

    >>> import lucid
    >>> lucid.argsort(lucid.tensor([3, 1, 2]), descending=True)
    tensor([0, 2, 1])
    """
    stable = as_bool(stable, "stable")
    check_real(input, "argsort")
    array = input.array
    axis = dim_in(dim, array.ndim)
    return wrap(order_of(namespace(array), array, axis, descending=as_bool(descending, "descending")))


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> topk_result:
    """Return the `k` largest, or without `largest` smallest, elements along a dimension in order, and their indices.

    The result is a named tuple (values, indices). Of equal elements, any may be chosen; where there are fewer than `k`,
    an IndexOutOfRangeError is raised.

    >>> import lucid
    >>> lucid.topk(lucid.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    largest = as_bool(largest, "largest")
    sorted = as_bool(sorted, "sorted")
    check_real(input, "topk")
    shape = input.array.shape
    axis, count = dim_in(dim, len(shape)), as_int(k, "k")
    size = shape[axis] if shape else 1
    if not 0 <= count <= size:
        raise IndexOutOfRangeError(f"topk: selected index k out of range: expected 0 to {size}, got {count}")
    return topk_result(*_topk(input, k=count, dim=axis, largest=largest))


@seen_as_one
@on_one_device
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements of `input`, or slices along `dim`, in ascending order; every NaN is distinct.

    With `return_inverse` comes for each element of `input` which of them it is, with `return_counts` how often each
    occurs. On CUDA the call waits for the device to count them.

    >>> import lucid
    >>> lucid.unique(lucid.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    sorted = as_bool(sorted, "sorted")
    return_inverse = as_bool(return_inverse, "return_inverse")
    return_counts = as_bool(return_counts, "return_counts")
    array = array_of(input)
    axis = None if dim is None else dim_in(dim, array.ndim)
    values = comparable(array) if array.dtype.kind in "fV" else array
    result: Any = namespace(array).unique(values, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    distinct, inverse, counts = result
    shape = array.shape if axis is None else (array.shape[axis],)
    parts = [wrap(distinct.astype(array.dtype, copy=False))]
    if return_inverse:
        parts.append(wrap(inverse.reshape(shape)))
    if return_counts:
        parts.append(wrap(counts))
    return tuple(parts) if len(parts) > 1 else parts[0]


@seen_as_one
@on_one_device
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return the insertion indices of `input`, a tensor or a number, that keep ascending rows in order, in its shape.

    `sorted_sequence` is one row, or as many along its last dimension as `input` has; else a ShapeError is raised.
    `right`, or the `side` ``"right"`` and not ``"left"``, inserts behind equal elements. With `out_int32` the result is
    int32. `sorter` holds the indices that sort rows that are in no order, as `argsort` gives them.

    >>> import lucid
    >>> lucid.searchsorted(lucid.tensor([1, 3, 5]), lucid.tensor([3, 6]))
    tensor([1, 3])
    """
    out_int32 = as_bool(out_int32, "out_int32")
    right = as_bool(right, "right")
    if not among(side, {None, "left", "right"}) or (side == "left" and right):
        raise SettingError(
            f"searchsorted: expected side 'left' or 'right' that agrees with right={right}, got {side!r}"
        )
    rows: Array = comparable(array_of(sorted_sequence))
    xp = namespace(rows)
    values: Array = comparable(input.array if isinstance(input, TensorBase) else asarray(input, device=device_of(rows)))
    if sorter is not None:
        rows = _in_order(xp, rows, array_of(sorter))
    where = "right" if right or side == "right" else "left"
    dtype = xp.int32 if out_int32 else xp.int64
    if rows.ndim == 1:
        return wrap(xp.asarray(xp.searchsorted(rows, values, where)).astype(dtype, copy=False))
    if not rows.ndim or rows.ndim != values.ndim or rows.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            "searchsorted: expected one sorted row, or as many as input has, got shapes "
            f"{list(rows.shape)} and {list(values.shape)}"
        )
    out = xp.empty(values.shape, dtype)
    for index in np.ndindex(*rows.shape[:-1]):
        out[index] = xp.searchsorted(rows[index], values[index], where)
    return wrap(out)


def _in_order(xp: ModuleType, rows: Array, order: Array) -> Array:
    if order.dtype != np.int64:
        raise DtypeError(f"searchsorted: sorter: expected indices of int64, got {order.dtype.name}")
    if order.shape != rows.shape:
        raise ShapeError(
            f"searchsorted: sorter: expected the shape of the rows, {list(rows.shape)}, got {list(order.shape)}"
        )
    if xp is np and order.size and not (order.min() >= 0 and order.max() < rows.shape[-1]):
        raise IndexOutOfRangeError(f"searchsorted: sorter: index out of range of rows of {rows.shape[-1]} elements")
    return xp.take_along_axis(rows, order, -1)


@seen_as_one
@on_one_device
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of 0, 1, ... occurs in one dimension of integers, or the sum of its `weights`.

    The result has `minlength` elements at least. Sums are float32 if the weights are, else float64, and have no
    derivative. Anything but integers of zero or more, in one dimension, and weights of another shape raise a
    ShapeError. On CUDA the call waits for the device to find the largest.

    >>> import lucid
    >>> lucid.bincount(lucid.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    array = array_of(input)
    if array.dtype.kind not in "iu" or array.ndim != 1 or (array.size and int(array.min()) < 0):
        kind = ShapeError if array.dtype.kind in "iu" else DtypeError
        raise kind(
            f"bincount only supports 1-d non-negative integral inputs, got shape {list(array.shape)}, "
            f"{array.dtype.name}"
        )
    minlength = as_int(minlength, "minlength")
    if minlength < 0:
        raise ShapeError(f"bincount: expected minlength of zero or more, got {minlength}")
    heavy = None if weights is None else array_of(weights)
    if heavy is not None and heavy.shape != array.shape:
        raise ShapeError(f"bincount: expected weights of shape {list(array.shape)}, got {list(heavy.shape)}")
    check_size("bincount", (max(minlength, int(array.max()) + 1 if array.size else 0),), 8)
    counts = namespace(array).bincount(array, heavy if heavy is None else comparable(heavy), minlength)
    if heavy is None:
        return wrap(counts)
    return wrap(counts.astype(np.float32 if tensor_dtype(weights).name == "float32" else np.float64, copy=False))
