"""Single elements of a tensor by an index of its own rank: gather, scatter and their kin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.primitive import primitive
from lucid.backend.arrays import asarray, namespace
from lucid.cuda.launchers import select as kernels
from lucid.cuda.switches import looked_at
from lucid.errors import DtypeError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.ops.base.core import expand
from lucid.ops.base.dims import common_shape, dim_in
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import accumulation_dtype, array_of, tensor_dtype
from lucid.ops.base.scalars import as_int
from lucid.ops.index.accumulation import add_at, sums_at
from lucid.ops.index.select import pick_at, view_at
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def flat_places(xp: Any, index: Array, shape: tuple[int, ...], dim: int) -> Array:
    """Return for each element of `index` the number of the element that it means in a contiguous array of `shape`."""
    stride = 1
    places: Array = 0
    for axis in range(len(shape) - 1, -1, -1):
        if axis == dim:
            places = places + index.astype(xp.int64, copy=False) * stride
        elif index.shape[axis] != 1:
            across = xp.arange(index.shape[axis], dtype=xp.int64) * stride
            places = places + across.reshape(-1, *(1,) * (len(shape) - axis - 1))
        stride *= shape[axis]
    return places


@primitive
def _gather(xp: Any, x: Array, index: Array, *, dim: int) -> Array:
    return x.reshape(-1).take(flat_places(xp, index, x.shape, dim))


@_gather.vjp("x")
def _gather_x(m: Any, grad: Any, index: Any, x_shape: tuple[int, ...], dim: int) -> Any:
    return m.gather_grad(grad, index, shape=x_shape, dim=dim, unique=False)


@primitive
def _gather_grad(xp: Any, grad: Array, index: Array, *, shape: tuple[int, ...], dim: int, unique: bool) -> Array:
    places = flat_places(xp, index, shape, dim)
    if unique:
        out = xp.zeros(shape, grad.dtype)
        out.reshape(-1)[places] = grad
        return out
    return sums_at(xp, (math.prod(shape),), (0,), (places,), grad).reshape(shape)


@_gather_grad.vjp("grad")
def _gather_grad_grad(m: Any, grad: Any, index: Any, dim: int) -> Any:
    return m.gather(grad, index, dim=dim)


@primitive
def _scatter(xp: Any, x: Array, index: Array, src: Array, *, dim: int) -> Array:
    out = xp.array(x, order="C")
    out.reshape(-1)[flat_places(xp, index, x.shape, dim)] = src
    return out


@_scatter.vjp("x")
def _scatter_x(m: Any, grad: Any, index: Any, dim: int) -> Any:
    return m.scatter(grad, index, 0.0, dim=dim)


@_scatter.vjp("src")
def _scatter_src(m: Any, grad: Any, index: Any, src_shape: tuple[int, ...], dim: int) -> Any:
    return m.sum_to(m.gather(grad, index, dim=dim), shape=src_shape)


@primitive
def _scatter_add(xp: Any, x: Array, index: Array, src: Array, *, dim: int) -> Array:
    out = xp.array(x, accumulation_dtype(x.dtype), order="C")
    add_at(xp, out.reshape(-1), (0,), (flat_places(xp, index, x.shape, dim),), src)
    return out.astype(x.dtype, copy=False)


@_scatter_add.vjp("x")
def _scatter_add_x(m: Any, grad: Any) -> Any:
    return grad


@_scatter_add.vjp("src")
def _scatter_add_src(m: Any, grad: Any, index: Any, dim: int) -> Any:
    return m.gather(grad, index, dim=dim)


_gather.cuda(kernels.gather)
_gather_grad.cuda(kernels.gather_grad)
_scatter.cuda(kernels.scatter)
_scatter_add.cuda(kernels.scatter_add)


def check_index(index: Any, name: str) -> None:
    """Raise unless `index` is a tensor of integers."""
    kind = array_of(index).dtype
    if kind.kind != "i":
        raise DtypeError(f"{name}: expected index to be a tensor of int32 or int64, got {kind.name}")


def check_places(index: Any, size: int, name: str, dim: int) -> None:
    """Raise unless all elements of `index` are from 0 to below `size`; on CUDA in debug mode."""
    array = index.array
    if looked_at(array):
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= size:
            raise IndexOutOfRangeError(
                f"{name}: index {low if low < 0 else high} is out of bounds for dimension {dim} with size {size}"
            )


def prepared(input: Any, dim: Any, index: Any, name: str) -> tuple[Any, int, Any]:
    """Return the input, the dimension and the index of an op in which both have the same rank, checked."""
    check_index(index, name)
    shape, places = array_of(input).shape, array_of(index).shape
    axis = dim_in(dim, len(shape))
    if not shape and len(places) <= 1:
        input, shape = reshape(input, 1), (1,)
    if not places and len(shape) == 1:
        index, places = reshape(index, 1), (1,)
    if len(places) != len(shape):
        raise ShapeError(
            f"{name}: expected index of as many dimensions as input, got shapes {list(places)} and {list(shape)}"
        )
    for d, (length, size) in enumerate(zip(places, shape, strict=True)):
        if d != axis and length > size and index.array.size:
            raise ShapeError(
                f"{name}: size of index at dimension {d} must not exceed that of input, got shapes {list(places)} and "
                f"{list(shape)}"
            )
    check_places(index, shape[axis], name, axis)
    return input, axis, index


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the elements of `input` at `index` along a dimension: ``out[i][j] = input[index[i][j]][j]`` for dim 0.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension.
    index : Tensor
        Of integers, of as many dimensions as `input`, and no longer than it along the others.

    Returns
    -------
    Tensor
        Of the shape of `index` and the dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension, or an index lies outside of it; on CUDA only in debug mode.
    ShapeError
        If the shapes do not fit.
    DtypeError
        If the index does not hold integers.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([[1, 2], [3, 4]])
    >>> lucid.gather(x, 1, lucid.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    x, axis, places = prepared(input, dim, index, "gather")
    return shaped(_gather(x, places, dim=axis), index.array.shape)


def shaped(out: Any, shape: tuple[int, ...]) -> Any:
    """Return a result in the shape that it has for operands of no dimension."""
    return out if out.array.shape == shape else reshape(out, shape)


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Tensor:
    """Return a copy of `input` in which ``out[index[i][j]][j] = src[i][j]`` for dim 0, and likewise for others.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension.
    index : Tensor
        Of integers, of as many dimensions as `input`, and no longer than it along the others. If a place is named more
        than once, one of the elements stays.
    src : Tensor or number
        Of the dtype of `input`, at least as long as `index` in each dimension.
    value : number, optional
        In place of `src`.
    reduce : str, optional
        ``"add"`` adds to what is there.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension, or an index lies outside of it; on CUDA only in debug mode.
    ShapeError
        If the shapes do not fit.
    DtypeError
        If the index does not hold integers, or the dtypes differ.
    ValueError
        If neither or both of `src` and `value` are given, or `reduce` is something else.

    Examples
    --------
    >>> import lucid
    >>> lucid.scatter(lucid.zeros(2, 3), 1, lucid.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if (src is None) == (value is None):
        raise SettingError("scatter: expected either src or value")
    if reduce not in {None, "add"}:
        raise SettingError(f"scatter: expected reduce to be None or 'add', got {reduce!r}")
    new: Any = value if src is None else src
    x, axis, places = prepared(input, dim, index, "scatter")
    if isinstance(new, TensorBase):
        new = source_for(input, new, places, "scatter")
    else:
        new = asarray(new, tensor_dtype(input), "cpu").item()
    op = _scatter_add if reduce == "add" else _scatter
    return shaped(op(x, places, new, dim=axis), input.array.shape)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy of `input` in which ``out[index[i][j]][j] += src[i][j]`` for dim 0, and likewise for others.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    dim : int
        The dimension.
    index : Tensor
        Of integers, of as many dimensions as `input`, and no longer than it along the others. Repeated places add up.
    src : Tensor
        Of the dtype of `input`, at least as long as `index` in each dimension.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension, or an index lies outside of it; on CUDA only in debug mode.
    ShapeError
        If the shapes do not fit.
    DtypeError
        If the index does not hold integers, or the dtypes differ.

    Examples
    --------
    >>> import lucid
    >>> lucid.scatter_add(lucid.zeros(3), 0, lucid.tensor([1, 1]), lucid.tensor([2.0, 3.0]))
    tensor([0., 5., 0.])
    """
    x, axis, places = prepared(input, dim, index, "scatter_add")
    return shaped(_scatter_add(x, places, source_for(input, src, places, "scatter_add"), dim=axis), input.array.shape)


def source_for(input: Any, src: Any, index: Any, name: str) -> Any:
    """Return the part of `src` that `index` covers."""
    if array_of(src).dtype != array_of(input).dtype:
        raise DtypeError(
            f"{name}: expected src of {input.array.dtype.name} like input, got {src.array.dtype.name}; cast it first"
        )
    wanted = index.array.shape
    have = src.array.shape or (1,)
    if len(have) != len(wanted) or (index.array.size and any(a < b for a, b in zip(have, wanted, strict=True))):
        raise ShapeError(
            f"{name}: expected src at least as long as index in each dimension, got shapes {list(have)} and "
            f"{list(wanted)}"
        )
    source = shaped(src, have)
    return source if have == wanted else view_at(source, index=(*[slice(size) for size in wanted], ...))


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements of `input`, seen as one row, at `index`.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    index : Tensor
        Of integers, counted from the end if negative.

    Returns
    -------
    Tensor
        Of the shape of `index` and the dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError
        If an index lies outside; on CUDA only in debug mode.
    DtypeError
        If the index does not hold integers.

    Examples
    --------
    >>> import lucid
    >>> lucid.take(lucid.tensor([[1, 2], [3, 4]]), lucid.tensor([0, -1]))
    tensor([1, 4])
    """
    check_index(index, "take")
    size = array_of(input).size
    array = index.array
    if looked_at(array):
        low, high = int(array.min()), int(array.max())
        if low < -size or high >= size:
            raise IndexOutOfRangeError(
                f"take: out of range: tried to access index {high if high >= size else low} on a tensor of {size} "
                "elements"
            )
    return pick_at(reshape(input, size), index, dims=(0,))


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements of `input` at `indices` along a dimension, the other dimensions broadcast.

    Parameters
    ----------
    input : Tensor
        Of any shape.
    indices : Tensor
        Of integers, of as many dimensions as `input`, such as `argsort` gives.
    dim : int, optional
        The dimension; if None, both are seen as one row.

    Returns
    -------
    Tensor
        Of the broadcast shape, along `dim` that of `indices`, and the dtype of `input`.

    Raises
    ------
    IndexOutOfRangeError
        If there is no such dimension, or an index lies outside of it; on CUDA only in debug mode.
    ShapeError
        If the shapes do not fit.
    DtypeError
        If the indices are not integers.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([[2, 1], [3, 4]])
    >>> lucid.take_along_dim(x, lucid.argsort(x, 1), 1)
    tensor([[1, 2],
            [3, 4]])
    """
    check_index(indices, "take_along_dim")
    if dim is None:
        return gather(reshape(input, input.array.size), 0, reshape(indices, indices.array.size))
    shape, places = list(array_of(input).shape), list(array_of(indices).shape)
    if len(shape) != len(places):
        raise ShapeError(
            f"take_along_dim: expected indices of as many dimensions as input, got shapes {places} and {shape}"
        )
    axis = dim_in(dim, len(shape))
    if not shape:
        return gather(input, 0, indices)
    along, across = places[axis], shape[axis]
    shape[axis] = places[axis] = 1
    common = list(common_shape(tuple(shape), tuple(places)))
    common[axis] = across
    x = expand(input, shape=tuple(common))
    common[axis] = along
    return gather(x, axis, expand(indices, shape=tuple(common)))


@on_one_device
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return for each class number a row of zeros with a one at its place.

    Parameters
    ----------
    tensor : Tensor
        Integers of zero or more.
    num_classes : int
        The length of the rows; if -1, one more than the largest number, for which the call waits on CUDA.

    Returns
    -------
    Tensor
        int64, of the shape of `tensor` and a new last dimension.

    Raises
    ------
    DtypeError
        If `tensor` does not hold integers.
    IndexOutOfRangeError
        If a number is negative or not below `num_classes`; on CUDA only in debug mode.
    ShapeError
        If the number of classes cannot be told from an empty tensor.

    Examples
    --------
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
    check_places(tensor, num_classes, "one_hot", array.ndim)
    xp = namespace(array)
    return wrap((array[..., None] == xp.arange(num_classes, dtype=array.dtype)).astype(xp.int64))
