"""Parts of a tensor along its dimensions: views by position, copies by index. The rest says `lucid.ops.index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.base.memory import check_size
from lucid.cuda.launch import copying
from lucid.cuda.switches import looked_at
from lucid.errors import IndexKindError, IndexOutOfRangeError, ShapeError
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.promotion import accumulation_dtype, array_of
from lucid.ops.base.scalars import as_int
from lucid.ops.index import select_cuda as kernels
from lucid.ops.index.accumulation import add_at, key_of, selected_shape, sums_at
from lucid.ops.shape.broadcasting import broadcast_to
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


# `index` ends in an Ellipsis: NumPy gives scalars, which are no views, where integers alone select one element
@primitive(view=True)
def _getitem(xp: ModuleType, x: Array, *, index: tuple[Any, ...]) -> Array:
    return x[index]


@_getitem.vjp
def _getitem_vjp(m: Namespace, grad: Array, x_shape: Ints, index: tuple[Any, ...]) -> Any:
    return m.getitem_grad(grad, shape=x_shape, index=index)


@primitive
def _getitem_grad(xp: ModuleType, grad: Array, *, shape: Ints, index: tuple[Any, ...]) -> Array:
    out = xp.zeros(shape, grad.dtype)
    out[index] = grad
    return out


_getitem_grad.cuda(copying.getitem_grad)


@_getitem_grad.vjp
def _getitem_grad_vjp(m: Namespace, grad: Array, index: tuple[Any, ...]) -> Any:
    return m.getitem(grad, index=index)


view_at = _getitem


@primitive
def _index(xp: ModuleType, x: Array, *indices: Array, dims: Ints) -> Array:
    if xp is np and len(dims) == 1 and dims[0] and x.flags.c_contiguous:
        # a tenth of the time of indexing, which goes through the dimensions in another order
        return x.take(indices[0], dims[0])
    return x[key_of(x.ndim, dims, indices)]


@_index.vjp("x")
def _index_x(m: Namespace, grad: Array, indices: list[Any], x_shape: list[Any], dims: Ints) -> Any:
    return (m.index_grad(grad, *indices, shape=x_shape[0], dims=dims),)


@primitive
def _index_grad(xp: ModuleType, grad: Array, *indices: Array, shape: Ints, dims: Ints) -> Array:
    return sums_at(xp, shape, dims, indices, grad)


@_index_grad.vjp("grad")
def _index_grad_grad(m: Namespace, grad: Array, indices: list[Any], dims: Ints) -> Any:
    return (m.index(grad, *indices, dims=dims),)


@primitive
def _index_put(xp: ModuleType, x: Array, value: Array, *indices: Array, dims: Ints, accumulate: bool) -> Array:
    if not accumulate:
        out = xp.array(x, order="C")
        out[key_of(x.ndim, dims, indices)] = value
        return out
    out = xp.array(x, accumulation_dtype(x.dtype), order="C")
    add_at(xp, out, dims, indices, value)
    return out.astype(x.dtype, copy=False)


@_index_put.vjp("x")
def _index_put_x(m: Namespace, grad: Array, indices: list[Any], dims: Ints, accumulate: bool) -> Any:
    return (grad if accumulate else m.index_put(grad, 0.0, *indices, dims=dims, accumulate=False),)


@_index_put.vjp("value")
def _index_put_value(m: Namespace, grad: Array, indices: list[Any], value_shape: list[Any], dims: Ints) -> Any:
    return (m.sum_to(m.index(grad, *indices, dims=dims), shape=value_shape[0]),)


_index.cuda(kernels.index)
_index_grad.cuda(kernels.index_grad)
_index_put.cuda(kernels.index_put)
select_at = _index
put = _index_put


def select_elements(input: Tensor, dims: tuple[int, ...], indices: tuple[Any, ...]) -> Any:
    """Return the elements that `indices` select along `dims`."""
    if type(input.array) is np.ndarray and input.array.size and all(index.array.size for index in indices):
        # NumPy checks each index itself, if there is an element to be selected
        try:
            return _index(input, *indices, dims=dims)
        except IndexError:
            check_indices(input.array.shape, dims, indices)
            raise
    check_indices(input.array.shape, dims, indices)
    return _index(input, *indices, dims=dims)


def outside(index: Array, lowest: int, size: int) -> int | None:
    """Return the first element of `index` outside of `lowest` to below `size`; None if values are not looked at."""
    if not looked_at(index) or (lowest <= int(index.min()) and int(index.max()) < size):
        return None
    flat = index.reshape(-1)
    return int(flat[int(((flat < lowest) | (flat >= size)).argmax())])


def check_bounds(index: Array, dim: int, size: int, *, lowest: int = 0, name: str = "") -> None:
    """Refuse an element of `index`, in an op of this name, that is outside of a dimension; on CUDA in debug mode."""
    wrong = outside(index, lowest, size)
    if wrong is not None:
        head = f"{name}: " if name else ""
        raise IndexOutOfRangeError(f"{head}index {wrong} is out of bounds for dimension {dim} with size {size}")


def check_indices(shape: tuple[int, ...], dims: tuple[int, ...], indices: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of a selection by `indices`; refuse one out of range, and shapes that do not broadcast."""
    for dim, index in zip(dims, indices, strict=True):
        check_bounds(index.array, dim, shape[dim], lowest=-shape[dim])
    shapes = [index.array.shape for index in indices]
    if len(shapes) == 1:
        return selected_shape(shape, dims, shapes[0])
    try:
        common = np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise IndexKindError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(s)) for s in shapes)
        ) from error
    return selected_shape(shape, dims, common)


def fitted(value: Tensor, shape: tuple[int, ...]) -> Any:
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
    """Return a view of `input` at `index` along a dimension, without that; below zero from the end.

    >>> import lucid
    >>> lucid.select(lucid.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    shape = array_of(input).shape
    if not shape:
        raise IndexOutOfRangeError("select: a 0-dim tensor has nothing to select from; read it with .item()")
    axis, position = dim_in(dim, len(shape)), as_int(index, "index")
    if not -shape[axis] <= position < shape[axis]:
        raise IndexOutOfRangeError(
            f"select(): index {position} out of range for tensor of size {list(shape)} at dimension {axis}"
        )
    return _getitem(input, index=along(axis, position % shape[axis]))


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` elements along a dimension of `input`, from `start` on; below zero from the end.

    A `length` that reaches beyond the end raises a ShapeError.

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
    return _getitem(input, index=along(axis, slice(first, first + count)))


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of `size` elements along a `dimension`, `step` elements apart.

    It counts the windows, and a new last dimension the elements in one. Windows share memory. Of a tensor without
    dimensions, which has one window, the result has the last one alone.

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
    if not shape:
        return narrow(reshape(input, 1), 0, 0, size)
    windows = (*shape[:axis], (have - size) // step + 1, *shape[axis + 1 :], size)
    check_size("unfold", windows, input.array.itemsize)
    return _unfold(input, dim=axis, size=size, step=step)


@primitive(view=True)
def _unfold(xp: ModuleType, x: Array, *, dim: int, size: int, step: int) -> Array:
    shape = (*x.shape[:dim], (x.shape[dim] - size) // step + 1, *x.shape[dim + 1 :], size)
    strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim])
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


@_unfold.vjp
def _unfold_vjp(m: Namespace, grad: Array, x_shape: Ints, dim: int, size: int, step: int) -> Any:
    return m.unfold_grad(grad, shape=x_shape, dim=dim, size=size, step=step)


@primitive
def _unfold_grad(xp: ModuleType, grad: Array, *, shape: Ints, dim: int, size: int, step: int) -> Array:
    out = xp.zeros(shape, accumulation_dtype(grad.dtype))
    count = grad.shape[dim]
    for position in range(size):
        out[along(dim, slice(position, position + (count - 1) * step + 1, step))] += grad[..., position]
    return out.astype(grad.dtype, copy=False)


_unfold_grad.cuda(copying.unfold_grad)


@_unfold_grad.vjp
def _unfold_grad_vjp(m: Namespace, grad: Array, dim: int, size: int, step: int) -> Any:
    return m.unfold(grad, dim=dim, size=size, step=step)
