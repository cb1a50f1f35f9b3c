"""Order: sorting, the largest elements, distinct elements, places in sorted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.primitive import primitive
from lucid.backend.arrays import asarray, namespace
from lucid.backend.device import device_of
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import accumulation_dtype, array_of, tensor_dtype
from lucid.ops.base.scalars import as_bool, as_int

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


class sort_result(NamedTuple):
    """Sorted values and where they came from."""

    values: Any
    indices: Any


class topk_result(NamedTuple):
    """The largest or smallest values and where they came from."""

    values: Any
    indices: Any


def comparable(x: Array) -> Array:
    """Return values that sort as `x` does, in a dtype that NumPy and CuPy sort fast."""
    if x.dtype.kind == "b":
        return x.view(np.uint8)
    return x.astype(accumulation_dtype(x.dtype), copy=False)


def order_of(xp: Any, x: Array, dim: int, *, descending: bool) -> Array:
    """Return the indices that sort `x` along a dimension; equal elements keep their order, NaN counts as largest."""
    if not x.ndim:
        return xp.zeros((), np.int64)
    values = comparable(x)
    if not descending:
        return xp.argsort(values, axis=dim, kind="stable")
    turned = (*(slice(None),) * dim, slice(None, None, -1))
    return x.shape[dim] - 1 - xp.argsort(values[turned], axis=dim, kind="stable")[turned]


def gradient_of_chosen(m: Any, grad: Any, indices: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return the gradient of an input of which each chosen element stands once among the outputs."""
    if not shape:  # one element, or none was asked for
        return m.sum_to(grad, shape=())
    return m.gather_grad(grad, indices, shape=shape, dim=dim, unique=True)


@primitive(outputs=("values", "indices"))
def _sort(xp: Any, x: Array, *, dim: int, descending: bool) -> tuple[Array, Array]:
    order = order_of(xp, x, dim, descending=descending)
    return xp.take_along_axis(x, order, dim) if x.ndim else x.copy(), order


@_sort.vjp
def _sort_vjp(m: Any, grad: list[Any], indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    return gradient_of_chosen(m, grad[0], indices, x_shape, dim)


@primitive(outputs=("values", "indices"))
def _topk(xp: Any, x: Array, *, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    if not x.ndim:
        return (x.copy(), order_of(xp, x, dim, descending=largest)) if k else (x.reshape(1)[:0], xp.zeros(0, np.int64))
    size = x.shape[dim]
    ahead = (slice(None),) * dim
    # CuPy's partition believes that the lanes of a warp run in step, which CUDA does not promise
    if k and 4 * k < size and xp is np:
        edge = size - k if largest else k - 1
        near = (*ahead, slice(edge, None) if largest else slice(k))
        # ascending places: equal elements stay in order
        places = xp.sort(xp.argpartition(comparable(x), edge, axis=dim)[near], axis=dim)
        chosen = xp.take_along_axis(x, places, dim)
        order = xp.take_along_axis(places, order_of(xp, chosen, dim, descending=largest), dim)
    else:
        order = order_of(xp, x, dim, descending=largest)[(*ahead, slice(k))]
    return xp.take_along_axis(x, order, dim), order


@_topk.vjp
def _topk_vjp(m: Any, grad: list[Any], indices: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    return gradient_of_chosen(m, grad[0], indices, x_shape, dim)


def check_real(input: Any, name: str) -> None:
    """Raise for complex numbers, which have no order."""
    if array_of(input).dtype.kind == "c":
        raise DtypeError(f"{name}: complex numbers have no order, got {input.array.dtype.name}; sort .abs() or .real")


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> sort_result:
    """Return the elements of `input` in order along a dimension, and where they came from.

    Parameters
    ----------
    input : Tensor
        Of real numbers; NaN counts as largest.
    dim : int
        The dimension.
    descending : bool
        Whether the largest comes first.
    stable : bool
        Accepted for compatibility: equal elements always keep their order.

    Returns
    -------
    sort_result
        Named tuple of `values`, of the dtype of `input`, and int64 `indices`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    DtypeError
        If the elements are complex.

    Examples
    --------
    >>> import lucid
    >>> lucid.sort(lucid.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """
    stable = as_bool(stable, "stable")
    check_real(input, "sort")
    axis = dim_in(dim, input.array.ndim)
    return sort_result(*_sort(input, dim=axis, descending=as_bool(descending, "descending")))


@on_one_device
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort `input` along a dimension.

    Parameters
    ----------
    input : Tensor
        Of real numbers; NaN counts as largest.
    dim : int
        The dimension.
    descending : bool
        Whether the largest comes first.
    stable : bool
        Accepted for compatibility: equal elements always keep their order.

    Returns
    -------
    Tensor
        int64, of the shape of `input`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    DtypeError
        If the elements are complex.

    Examples
    --------
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
    """Return the `k` largest or smallest elements along a dimension, in order, and where they came from.

    Parameters
    ----------
    input : Tensor
        Of real numbers; NaN counts as largest. Of equal elements, any may be chosen.
    k : int
        How many.
    dim : int
        The dimension.
    largest : bool
        Whether the largest or the smallest.
    sorted : bool
        Accepted for compatibility: the result is always in order.

    Returns
    -------
    topk_result
        Named tuple of `values`, of the dtype of `input`, and int64 `indices`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension, or it has fewer than `k` elements.
    DtypeError
        If the elements are complex.

    Examples
    --------
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


@on_one_device
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements of `input` in ascending order.

    Parameters
    ----------
    input : Tensor
        Of any shape. Every NaN counts as distinct. On CUDA the call waits for the device to count them.
    sorted : bool
        Accepted for compatibility: the result is always in order.
    return_inverse : bool
        Whether to return also for each element of `input` which of the distinct ones it is.
    return_counts : bool
        Whether to return also how often each occurs.
    dim : int, optional
        Distinct slices along this dimension, in the place of elements.

    Returns
    -------
    Tensor, or tuple of Tensor
        The distinct elements; int64 indices, of the shape of `input`, if `return_inverse`; int64 counts if
        `return_counts`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.

    Examples
    --------
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
    found: Any = namespace(array).unique(values, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    distinct, inverse, counts = found
    shape = array.shape if axis is None else (array.shape[axis],)
    parts = [wrap(distinct.astype(array.dtype, copy=False))]
    if return_inverse:
        parts.append(wrap(inverse.reshape(shape)))
    if return_counts:
        parts.append(wrap(counts))
    return tuple(parts) if len(parts) > 1 else parts[0]


@on_one_device
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None
) -> Tensor:
    """Return where to insert values so that sorted rows stay sorted.

    Parameters
    ----------
    sorted_sequence : Tensor
        Ascending along the last dimension: one row, or as many as `input` has.
    input : Tensor or number
        The values.
    out_int32 : bool
        Whether the result is int32 in place of int64.
    right : bool
        Whether to insert behind equal elements.
    side : str, optional
        ``"left"`` or ``"right"``, the same as `right`.

    Returns
    -------
    Tensor
        Of the shape of `input`.

    Raises
    ------
    ShapeError
        If there are several rows, not as many as in `input`.
    ValueError
        If `side` is something else, or is ``"left"`` with `right`.

    Examples
    --------
    >>> import lucid
    >>> lucid.searchsorted(lucid.tensor([1, 3, 5]), lucid.tensor([3, 6]))
    tensor([1, 3])
    """
    out_int32 = as_bool(out_int32, "out_int32")
    right = as_bool(right, "right")
    if side not in {None, "left", "right"} or (side == "left" and right):
        raise SettingError(
            f"searchsorted: expected side 'left' or 'right' that agrees with right={right}, got {side!r}"
        )
    rows: Array = comparable(array_of(sorted_sequence))
    xp = namespace(rows)
    values: Array = input.array if isinstance(input, TensorBase) else asarray(input, device=device_of(rows))
    values = comparable(values)
    where = "right" if right or side == "right" else "left"
    dtype = xp.int32 if out_int32 else xp.int64
    if rows.ndim == 1:
        return wrap(xp.asarray(xp.searchsorted(rows, values, where)).astype(dtype, copy=False))
    if rows.ndim != values.ndim or rows.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            "searchsorted: expected one sorted row, or as many as input has, got shapes "
            f"{list(rows.shape)} and {list(values.shape)}"
        )
    out = xp.empty(values.shape, dtype)
    for place in np.ndindex(*rows.shape[:-1]):
        out[place] = xp.searchsorted(rows[place], values[place], where)
    return wrap(out)


@on_one_device
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """Return how often each of 0, 1, ... occurs, or the sum of its weights.

    Parameters
    ----------
    input : Tensor
        Integers of zero or more, in one dimension. On CUDA the call waits for the device to find the largest.
    weights : Tensor, optional
        Of the same shape.
    minlength : int
        The least length of the result.

    Returns
    -------
    Tensor
        int64 counts; with weights float32 sums if they are float32, else float64. Not differentiable.

    Raises
    ------
    DtypeError, ShapeError
        If the input does not hold integers of zero or more in one dimension, or the weights differ in shape.

    Examples
    --------
    >>> import lucid
    >>> lucid.bincount(lucid.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    array = array_of(input)
    if array.dtype.kind not in "iu" or array.ndim != 1 or (array.size and int(array.min()) < 0):
        raise ShapeError(
            f"bincount only supports 1-d non-negative integral inputs, got shape {list(array.shape)}, "
            f"{array.dtype.name}"
        )
    minlength = as_int(minlength, "minlength")
    if minlength < 0:
        raise ShapeError(f"bincount: expected minlength of zero or more, got {minlength}")
    heavy = None if weights is None else array_of(weights)
    if heavy is not None and heavy.shape != array.shape:
        raise ShapeError(f"bincount: expected weights of shape {list(array.shape)}, got {list(heavy.shape)}")
    counts = namespace(array).bincount(array, heavy if heavy is None else comparable(heavy), minlength)
    if heavy is None:
        return wrap(counts)
    return wrap(counts.astype(np.float32 if tensor_dtype(weights).name == "float32" else np.float64, copy=False))
