"""The same elements in another shape: views if memory allows it, else copies.

What holds for all of it says `lucid.ops.shape`. One of the sizes of a shape may be -1, and is inferred.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import shown
from lucid.autograd.recording.primitive import primitive
from lucid.base.memory import c_copy
from lucid.cuda.launch.elementwise import converted
from lucid.cuda.launch.plans import launches_only
from lucid.errors import ArgumentError, DtypeError, ShapeError
from lucid.ops.base.core import clone as _clone
from lucid.ops.base.dims import along, dim_in, dims_in, shape_for, sizes_in, viewable
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_bool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


@primitive(view=True)
def _view(xp: ModuleType, x: Array, *, shape: Ints) -> Array:
    if not x.flags.c_contiguous and not viewable(x.shape, x.strides, shape):
        raise ShapeError(
            f"view size is not compatible with input tensor's size and stride: memory of shape {list(x.shape)} and "
            f"strides {[s // x.itemsize for s in x.strides]} cannot be seen as shape {list(shape)}. "
            "Use .reshape(...) instead."
        )
    return x.reshape(shape)


# Raw, it may return an alias, which rules may do; recorded, it stands only for shapes that need a copy.
@primitive
def _reshape(xp: ModuleType, x: Array, *, shape: Ints) -> Array:
    if xp is np and not x.flags.c_contiguous and not viewable(x.shape, x.strides, shape):
        x = c_copy(x)
    return x.reshape(shape)


@_reshape.cuda
@launches_only
def _reshape_cuda(x: Array, *, shape: tuple[int, ...]) -> Any:
    if x.flags.c_contiguous or viewable(x.shape, x.strides, shape):
        return x.reshape(shape)
    copy = converted(x, x.dtype)
    return copy if copy is NotImplemented else copy.reshape(shape)


def _reshape_any(x: Tensor, *, shape: tuple[int, ...]) -> Any:
    array = x.array
    if array.flags.c_contiguous or viewable(array.shape, array.strides, shape):
        return _view(x, shape=shape)
    return _reshape(x, shape=shape)


_reshape.call = _reshape_any


@primitive(view=True)
def _squeeze(xp: ModuleType, x: Array, *, dims: Ints) -> Array:
    return x.squeeze(dims)


@_view.vjp
@_reshape.vjp
@_squeeze.vjp
def _reshaped(m: Namespace, grad: Array, x_shape: Ints) -> Any:
    return m.reshape(grad, shape=x_shape)


@primitive(view=True)
def _unsqueeze(xp: ModuleType, x: Array, *, dim: int) -> Array:
    return x[along(dim, None)]


@_unsqueeze.vjp
def _unsqueeze_vjp(m: Namespace, grad: Array, dim: int) -> Any:
    return m.squeeze(grad, dims=(dim,))


ORDERS = (None, "C", "F", "A")


def reshape(input: Tensor, *shape: int | Sequence[int], order: str | None = None, copy: bool | None = None) -> Tensor:
    """Return the elements of `input`, in order, in another `shape`: a view if memory allows it, else a copy.

    `order` and `copy` are those of ``numpy.reshape``.

    >>> import lucid
    >>> lucid.reshape(lucid.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if order is not None or copy is not None:
        if order not in ORDERS:
            raise ArgumentError(f"reshape: order: expected one of {', '.join(map(repr, ORDERS))}, got {shown(order)}")
        if copy is not None:
            copy = as_bool(copy, "copy")
        if order in {"F", "A"} or copy is not None:
            sizes = shape[0] if len(shape) == 1 else shape
            tensor: Any = input
            return tensor._in_numpys_form("reshape", (input, sizes), {"order": order or "C", "copy": copy})  # noqa: SLF001
    return _reshape_any(input, shape=shape_for(sizes_in(shape), array_of(input).size))


def view(input: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Return a view of the elements of `input`, in order, in another `shape`; raise if memory does not allow it.

    Memory is not seen as another dtype: a dtype raises a DtypeError.

    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.view(-1).shape
    lucid.Size([6])
    """
    if len(shape) == 1 and not isinstance(shape[0], int | tuple | list) and not hasattr(shape[0], "__index__"):
        raise DtypeError(
            f"view: shape: expected sizes, got {shape[0]!r}; to convert the values to another dtype use .to(dtype)"
        )
    return _view(input, shape=shape_for(sizes_in(shape), input.array.size))


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view of the elements of `input` in the shape of `other`, as `view` does.

    >>> import lucid
    >>> lucid.arange(4).view_as(lucid.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return view(input, array_of(other).shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the elements of `input` in the shape of `other`: a view if memory allows it, else a copy.

    >>> import lucid
    >>> lucid.arange(4).reshape_as(lucid.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return reshape(input, array_of(other).shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return `input` with the dimensions from `start_dim` to `end_dim`, both included, joined into one.

    It is a view if memory allows it, else a copy; itself if there is nothing to join.

    >>> import lucid
    >>> lucid.flatten(lucid.zeros(2, 3, 4), 1).shape
    lucid.Size([2, 12])
    """
    shape = array_of(input).shape
    start, end = dim_in(start_dim, len(shape)), dim_in(end_dim, len(shape))
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim} in shape {list(shape)}")
    joined = (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])
    return input if joined == shape else _reshape_any(input, shape=joined)


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Return a view of `input` with the dimension `dim` split into `sizes`; one of these may be -1.

    >>> import lucid
    >>> lucid.unflatten(lucid.zeros(2, 6), 1, (3, -1)).shape
    lucid.Size([2, 3, 2])
    """
    shape = array_of(input).shape
    axis = dim_in(dim, len(shape))
    if not sizes:
        raise ShapeError("unflatten: expected at least one size, got none")
    return _view(input, shape=(*shape[:axis], *shape_for(sizes_in((sizes,)), shape[axis]), *shape[axis + 1 :]))


def ravel(input: Tensor, order: str | None = None) -> Tensor:
    """Return the elements of `input` in one dimension: a view if memory allows it, else a copy.

    `order` is that of ``numpy.ravel``.

    >>> import lucid
    >>> lucid.ravel(lucid.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    size = array_of(input).size
    return _reshape_any(input, shape=(size,)) if order is None else reshape(input, size, order=order)


def squeeze(input: Tensor, dim: int | Sequence[int] | None = None, *more: int) -> Tensor:
    """Return a view of `input` without those of its dimensions `dim` and `more` that are of size 1; of all if None.

    >>> import lucid
    >>> lucid.squeeze(lucid.zeros(1, 2, 1)).shape, lucid.squeeze(lucid.zeros(1, 2, 1), 0).shape
    (lucid.Size([2]), lucid.Size([2, 1]))
    """
    shape = array_of(input).shape
    named = range(len(shape)) if dim is None else dims_in((dim, *more) if more else dim, len(shape))
    return _squeeze(input, dims=tuple([d for d in named if d < len(shape) and shape[d] == 1]))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view of `input` with a new dimension of size 1, `dim` of the result.

    >>> import lucid
    >>> lucid.unsqueeze(lucid.zeros(2), -1).shape
    lucid.Size([2, 1])
    """
    return _unsqueeze(input, dim=dim_in(dim, array_of(input).ndim + 1))


def contiguous(input: Tensor) -> Tensor:
    """Return `input` itself if its elements lie in order in memory, else a copy with that order.

    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.contiguous() is x, x.t().contiguous() is x
    (True, False)
    """
    return input if input.array.flags.c_contiguous else _clone(input)


def clone(input: Tensor) -> Tensor:
    """Return a copy of `input` in memory of its own; gradients flow back to `input`.

    >>> import lucid
    >>> lucid.clone(lucid.tensor([1, 2]))
    tensor([1, 2])
    """
    array_of(input)
    return _clone(input)
