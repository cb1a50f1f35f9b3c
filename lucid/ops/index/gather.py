"""Single elements of a tensor by an index of its own rank: gather, scatter and their kin.

What holds for all of them says `lucid.ops.index`. `index` has as many dimensions as `input`, and is no longer than it
but along `dim`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.hooks.functions import seen_as_one
from lucid.autograd.recording.namespace import GRAPH
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import namespace
from lucid.base.dtype import int64
from lucid.base.memory import check_size
from lucid.cpu import running
from lucid.errors import DtypeError, IndexOutOfRangeError, ShapeError
from lucid.ops.base.core import expand
from lucid.ops.base.dims import common_shape, dim_in, sizes_in
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.operands import refuse, tensor_operand
from lucid.ops.base.promotion import array_of, cast_to
from lucid.ops.base.scalars import as_int
from lucid.ops.index import select_cuda as kernels
from lucid.ops.index.accumulation import sums_at
from lucid.ops.index.select import check_bounds, outside, select_at
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.tensor import Tensor


def flat_indices(xp: ModuleType, index: Array, shape: Ints, dim: int) -> Array:
    """Return for each element of `index` the number of the element that it means in a contiguous array of `shape`."""
    stride = 1
    indices: Array = 0
    for axis in range(len(shape) - 1, -1, -1):
        if axis == dim:
            own = index.astype(xp.int64, copy=False)
            indices = own if stride == 1 else indices + own * stride
        elif index.shape[axis] != 1:
            across = xp.arange(index.shape[axis], dtype=xp.int64) * stride
            indices = indices + across.reshape(-1, *(1,) * (len(shape) - axis - 1))
        stride *= shape[axis]
    return indices


@primitive
def _gather(xp: ModuleType, x: Array, index: Array, *, dim: int) -> Array:
    numbers = flat_indices(xp, index, x.shape, dim)
    return running.take(x.reshape(-1), numbers) if xp is np else x.reshape(-1).take(numbers)


@_gather.vjp("x")
def _gather_x(m: Namespace, grad: Array, index: Array, x_shape: Ints, dim: int) -> Any:
    return m.gather_grad(grad, index, shape=x_shape, dim=dim, unique=False)


@primitive
def _gather_grad(xp: ModuleType, grad: Array, index: Array, *, shape: Ints, dim: int, unique: bool) -> Array:
    indices = flat_indices(xp, index, shape, dim)
    if unique:
        out = xp.zeros(shape, grad.dtype)
        out.reshape(-1)[indices] = grad
        return out
    return sums_at(xp, (math.prod(shape),), (0,), (indices,), grad).reshape(shape)


@_gather_grad.vjp("grad")
def gathered(m: Namespace, grad: Array, index: Array, dim: int) -> Any:
    """Return the gradient of values added by an index."""
    return m.gather(grad, index, dim=dim)


_gather.cuda(kernels.gather)
_gather_grad.cuda(kernels.gather_grad)


def check_index(index: Tensor, name: str) -> None:
    """Raise unless `index` is a tensor of integers."""
    kind = array_of(index).dtype
    if kind.kind != "i":
        raise DtypeError(f"{name}: expected index to be a tensor of int32 or int64, got {kind.name}")


def prepared(input: Tensor, dim: int, index: Tensor, name: str) -> tuple[Any, int, Any]:
    """Return the input, the dimension and the index of an op that needs both of one rank, checked."""
    check_index(index, name)
    shape, index_shape = array_of(input).shape, array_of(index).shape
    axis = dim_in(dim, len(shape))
    if not shape and len(index_shape) <= 1:
        input, shape = reshape(input, 1), (1,)
    if not index_shape and len(shape) == 1:
        index, index_shape = reshape(index, 1), (1,)
    if len(index_shape) != len(shape):
        raise ShapeError(
            f"{name}: expected index of as many dimensions as input, got shapes {list(index_shape)} and {list(shape)}"
        )
    for d, (length, size) in enumerate(zip(index_shape, shape, strict=True)):
        if d != axis and length > size and index.array.size:
            raise ShapeError(
                f"{name}: size of index at dimension {d} must not exceed that of input, got shapes {list(index_shape)} "
                f"and {list(shape)}"
            )
    check_bounds(index.array, axis, shape[axis], name=name)
    return input, axis, index


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the elements of `input` at `index` along a dimension: ``out[i][j] = input[index[i][j]][j]`` for `dim` 0.

    >>> import lucid
    >>> x = lucid.tensor([[1, 2], [3, 4]])
    >>> lucid.gather(x, 1, lucid.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    x, axis, indices = prepared(input, dim, index, "gather")
    return shaped(_gather(x, indices, dim=axis), index.array.shape)


def shaped(out: Tensor, shape: tuple[int, ...]) -> Any:
    """Return a result in the shape that it has for operands of no dimension."""
    return out if out.array.shape == shape else reshape(out, shape)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements of `input`, seen as one row, at `index`, of any shape; below zero it counts from the end.

    >>> import lucid
    >>> lucid.take(lucid.tensor([[1, 2], [3, 4]]), lucid.tensor([0, -1]))
    tensor([1, 4])
    """
    check_index(index, "take")
    size = array_of(input).size
    wrong = outside(index.array, -size, size)
    if wrong is not None:
        raise IndexOutOfRangeError(f"take: out of range: tried to access index {wrong} on a tensor of {size} elements")
    return select_at(reshape(input, size), index, dims=(0,))


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements of `input` at `indices`, such as `argsort` gives, along `dim`; the others broadcast.

    If `dim` is None, both are seen as one row.

    >>> import lucid
    >>> x = lucid.tensor([[2, 1], [3, 4]])
    >>> lucid.take_along_dim(x, lucid.argsort(x, 1), 1)
    tensor([[1, 2],
            [3, 4]])
    """
    check_index(indices, "take_along_dim")
    if dim is None:
        return gather(reshape(input, input.array.size), 0, reshape(indices, indices.array.size))
    shape, index_shape = list(array_of(input).shape), list(array_of(indices).shape)
    if len(shape) != len(index_shape):
        raise ShapeError(
            f"take_along_dim: expected indices of as many dimensions as input, got shapes {index_shape} and {shape}"
        )
    axis = dim_in(dim, len(shape))
    if not shape:
        return gather(input, 0, indices)
    shape[axis] = index_shape[axis] = 1
    common = common_shape(tuple(shape), tuple(index_shape))
    x, places = [
        expand(each, shape=(*common[:axis], each.array.shape[axis], *common[axis + 1 :])) for each in (input, indices)
    ]
    return gather(x, axis, places)


@seen_as_one
@on_one_device
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return for each class in `tensor` a row of zeros with a one at its index, along a new last dimension; int64.

    Rows are `num_classes` long; if it is -1, one more than the largest number, for which the call waits on CUDA.

    >>> import lucid
    >>> lucid.nn.functional.one_hot(lucid.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    check_index(tensor, "one_hot")
    array = tensor.array
    num_classes = as_int(num_classes, "num_classes")
    if num_classes == -1:
        if not array.size:
            raise ShapeError("one_hot: expected num_classes for a tensor without elements")
        num_classes = int(array.max()) + 1
        if num_classes <= 0:
            raise IndexOutOfRangeError(f"one_hot: expected classes of at least 0, got {num_classes - 1}")
    if num_classes <= 0:
        raise ShapeError(f"one_hot: expected num_classes above zero, or -1, got {num_classes}")
    check_size("one_hot", (*array.shape, num_classes), 8)
    check_bounds(array, array.ndim, num_classes, name="one_hot")
    xp = namespace(array)
    return wrap((array[..., None] == xp.arange(num_classes, dtype=array.dtype)).astype(xp.int64))


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return for places `indices` in the order of memory the indices along each dimension of `shape`.

    They are a tensor of int64 each. `indices` are integers, or a DtypeError is raised; a size below zero raises a
    ShapeError. Places beyond the shape count from its beginning again.

    >>> import lucid
    >>> lucid.unravel_index(lucid.tensor([0, 4, 5]), (2, 3))
    (tensor([0, 1, 1]), tensor([0, 1, 2]))
    """
    places = tensor_operand(indices)
    refuse("unravel_index", "bfcV", places, instead="expected integers")
    places = cast_to(places, int64)
    sizes = sizes_in((shape,))
    if min(sizes, default=0) < 0:
        raise ShapeError(f"unravel_index: expected no negative size, got shape {list(sizes)}")
    check_size("unravel_index", sizes)
    if 0 in sizes:
        if places.array.size:
            raise ShapeError(f"unravel_index: there are no places in shape {list(sizes)}")
        return tuple([GRAPH.clone(places) for _ in sizes])
    return tuple([
        GRAPH.remainder(GRAPH.floor_divide(places, math.prod(sizes[d + 1 :])), size) for d, size in enumerate(sizes)
    ])  # fmt: skip
