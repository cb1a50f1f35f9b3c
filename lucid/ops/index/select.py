"""Parts of a tensor along its dimensions: views by place, copies by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launchers import copying
from lucid.cuda.launchers import select as kernels
from lucid.cuda.switches import looked_at
from lucid.errors import IndexOutOfRangeError, ShapeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.promotion import accumulation_dtype, array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.index.accumulation import add_at, key_of, picked_shape, sums_at
from lucid.ops.shape.broadcasting import broadcast_to
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


# `index` ends in an Ellipsis: NumPy gives scalars, which are no views, where integers alone pick one element
@primitive(view=True)
def _getitem(xp: Any, x: Array, *, index: tuple[Any, ...]) -> Array:
    return x[index]


@_getitem.vjp
def _getitem_vjp(m: Any, grad: Any, x_shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    return m.getitem_grad(grad, shape=x_shape, index=index)


@primitive
def _getitem_grad(xp: Any, grad: Array, *, shape: tuple[int, ...], index: tuple[Any, ...]) -> Array:
    out = xp.zeros(shape, grad.dtype)
    out[index] = grad
    return out


_getitem_grad.cuda(copying.getitem_grad)


@_getitem_grad.vjp
def _getitem_grad_vjp(m: Any, grad: Any, index: tuple[Any, ...]) -> Any:
    return m.getitem(grad, index=index)


view_at = _getitem


@primitive
def _index(xp: Any, x: Array, *indices: Array, dims: tuple[int, ...]) -> Array:
    return x[key_of(x.ndim, dims, indices)]


@_index.vjp("x")
def _index_x(m: Any, grad: Any, indices: list[Any], x_shape: list[Any], dims: tuple[int, ...]) -> Any:
    return (m.index_grad(grad, *indices, shape=x_shape[0], dims=dims),)


@primitive
def _index_grad(xp: Any, grad: Array, *indices: Array, shape: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    return sums_at(xp, shape, dims, indices, grad)


@_index_grad.vjp("grad")
def _index_grad_grad(m: Any, grad: Any, indices: list[Any], dims: tuple[int, ...]) -> Any:
    return (m.index(grad, *indices, dims=dims),)


@primitive
def _index_put(xp: Any, x: Array, value: Array, *indices: Array, dims: tuple[int, ...], accumulate: bool) -> Array:
    if not accumulate:
        out = xp.array(x, order="C")
        out[key_of(x.ndim, dims, indices)] = value
        return out
    out = xp.array(x, accumulation_dtype(x.dtype), order="C")
    add_at(xp, out, dims, indices, value)
    return out.astype(x.dtype, copy=False)


@_index_put.vjp("x")
def _index_put_x(m: Any, grad: Any, indices: list[Any], dims: tuple[int, ...], accumulate: bool) -> Any:
    return (grad if accumulate else m.index_put(grad, 0.0, *indices, dims=dims, accumulate=False),)


@_index_put.vjp("value")
def _index_put_value(m: Any, grad: Any, indices: list[Any], value_shape: list[Any], dims: tuple[int, ...]) -> Any:
    return (m.sum_to(m.index(grad, *indices, dims=dims), shape=value_shape[0]),)


_index.cuda(kernels.index)
_index_grad.cuda(kernels.index_grad)
_index_put.cuda(kernels.index_put)
pick_at = _index
put = _index_put


def pick(input: Any, dims: tuple[int, ...], indices: tuple[Any, ...]) -> Any:
    """Return what `indices` pick along `dims`."""
    check_indices(input.array.shape, dims, indices)
    return _index(input, *indices, dims=dims)


def check_indices(shape: tuple[int, ...], dims: tuple[int, ...], indices: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of what `indices` pick; on CUDA their values are looked at in debug mode.

    Raises
    ------
    IndexOutOfRangeError
        If an index lies outside of its dimension.
    ShapeError
        If the indices do not broadcast against each other.
    """
    for dim, index in zip(dims, indices, strict=True):
        array = index.array
        if looked_at(array):
            size = shape[dim]
            low, high = int(array.min()), int(array.max())
            if low < -size or high >= size:
                raise IndexOutOfRangeError(
                    f"index {high if high >= size else low} is out of bounds for dimension {dim} with size {size}"
                )
    shapes = [index.array.shape for index in indices]
    if len(shapes) == 1:
        return picked_shape(shape, dims, shapes[0])
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(s)) for s in shapes)
        ) from error
    return picked_shape(shape, dims, common)


def fitted(value: Any, shape: tuple[int, ...]) -> Any:
    """Return `value` broadcast to `shape`, without dimensions of size 1 in front that are too many."""
    have = value.array.shape
    if have == shape:
        return value
    extra = len(have) - len(shape)
    if extra > 0 and all(size == 1 for size in have[:extra]):
        value = reshape(value, have[extra:])
    try:
        return broadcast_to(value, shape)
    except ShapeError as error:
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(have)} cannot be broadcast to indexing result of shape "
            f"{list(shape)}"
        ) from error


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of `input` at one place of a dimension, which is left out.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension.
    index : int
        The place, counted from the end if negative.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension or place.

    Examples
    --------
    >>> import lucid
    >>> lucid.select(lucid.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    shape = array_of(input).shape
    if not shape:
        raise IndexOutOfRangeError("select: a 0-dim tensor has nothing to select from; read it with .item()")
    axis, place = dim_in(dim, len(shape)), as_int(index, "index")
    if not -shape[axis] <= place < shape[axis]:
        raise IndexOutOfRangeError(
            f"select(): index {place} out of range for tensor of size {list(shape)} at dimension {axis}"
        )
    return _getitem(input, index=(*(slice(None),) * axis, place % shape[axis], ...))


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` places of a dimension of `input`, from `start` on.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dim : int
        The dimension.
    start : int
        The first place, counted from the end if negative.
    length : int
        How many places.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension, or `start` lies outside of it.
    ShapeError
        If `length` is negative or reaches beyond the end.

    Examples
    --------
    >>> import lucid
    >>> lucid.narrow(lucid.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    shape = array_of(input).shape
    if not shape:
        raise ShapeError("narrow: expected a tensor of at least one dimension, got a 0-dim tensor")
    axis, first = dim_in(dim, len(shape)), as_int(start, "start")
    count = as_int(length, "length")
    size = shape[axis]
    if not -size <= first <= size:
        raise IndexOutOfRangeError(
            f"narrow: start out of range (expected to be in range of [{-size}, {size}], but got {first})"
        )
    first = first + size if first < 0 else first
    if count < 0 or first + count > size:
        raise ShapeError(f"narrow: start ({first}) + length ({count}) exceeds dimension size ({size})")
    return _getitem(input, index=(*(slice(None),) * axis, slice(first, first + count), ...))


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of `size` places along a dimension, `step` places apart.

    Parameters
    ----------
    input : Tensor
        Of at least one dimension.
    dimension : int
        Along which the window moves.
    size, step : int
        Length of the window, and how far it moves.

    Returns
    -------
    Tensor
        A view whose windows share memory. `dimension` counts the windows, and a new last dimension the places in one.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension.
    ShapeError
        If the window is longer than the dimension, or the step is not above zero.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([1, 2, 3, 4]).unfold(0, 2, 1)
    tensor([[1, 2],
            [2, 3],
            [3, 4]])
    """
    shape = input.array.shape
    axis = dim_in(dimension, len(shape))
    size, step = as_int(size, "size"), as_int(step, "step")
    have = shape[axis] if shape else 1
    if not 0 <= size <= have:
        raise ShapeError(f"unfold: expected a window of at most {have} places along dimension {axis}, got size {size}")
    if step <= 0:
        raise ShapeError(f"unfold: expected a step above zero, got {step}")
    return _unfold(input if shape else reshape(input, 1), dim=axis, size=size, step=step)


@primitive(view=True)
def _unfold(xp: Any, x: Array, *, dim: int, size: int, step: int) -> Array:
    shape = (*x.shape[:dim], (x.shape[dim] - size) // step + 1, *x.shape[dim + 1 :], size)
    strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim])
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


@_unfold.vjp
def _unfold_vjp(m: Any, grad: Any, x_shape: tuple[int, ...], dim: int, size: int, step: int) -> Any:
    return m.unfold_grad(grad, shape=x_shape, dim=dim, size=size, step=step)


@primitive
def _unfold_grad(xp: Any, grad: Array, *, shape: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    out = xp.zeros(shape, accumulation_dtype(grad.dtype))
    count = grad.shape[dim]
    for place in range(size):
        out[(*(slice(None),) * dim, slice(place, place + (count - 1) * step + 1, step))] += grad[..., place]
    return out.astype(grad.dtype, copy=False)


_unfold_grad.cuda(copying.unfold_grad)


@_unfold_grad.vjp
def _unfold_grad_vjp(m: Any, grad: Any, dim: int, size: int, step: int) -> Any:
    return m.unfold(grad, dim=dim, size=size, step=step)
