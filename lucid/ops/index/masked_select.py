"""Elements chosen by a mask of bools. Common rules: `lucid.ops.index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.hooks.functions import seen_as_one
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import namespace
from lucid.base.dtype import dtype_of
from lucid.cuda.launch import copying
from lucid.cuda.launch.plans import launches_only
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.core import expand
from lucid.ops.base.dims import common_shape
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import array_of, cast_to
from lucid.ops.base.scalars import as_bool, as_element
from lucid.ops.elementwise.selection import WHERE, places
from lucid.ops.index.select import view_at
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints, Number
    from lucid.tensor import Tensor


@primitive
def _masked_select(xp: ModuleType, x: Array, mask: Array) -> Array:
    return x[mask]


@_masked_select.vjp("x")
def _masked_select_x(m: Namespace, grad: Array, mask: Array) -> Any:
    return m.masked_put(grad, mask)


@primitive
def _masked_put(xp: ModuleType, values: Array, mask: Array) -> Array:
    out = xp.zeros(mask.shape, values.dtype)
    out[mask] = values
    return out


_masked_put.cuda(copying.masked_put)


@primitive
def _masked_fill(xp: ModuleType, x: Array, mask: Array, value: Array) -> Array:
    out = xp.array(x, order="C")
    xp.copyto(out, value, "unsafe", where=mask)
    return out


@_masked_fill.cuda
@launches_only
def _masked_fill_cuda(x: Array, mask: Array, value: Array | Number) -> Any:
    return WHERE(mask, value, x)


@_masked_fill.vjp("value")
def _masked_fill_value(m: Namespace, grad: Array, mask: Array, value_shape: Ints) -> Any:
    return m.sum_to(m.masked_keep(grad, mask), shape=value_shape)


@primitive
def _masked_scatter(xp: ModuleType, x: Array, mask: Array, values: Array) -> Array:
    out = xp.array(x, order="C")
    out[mask] = values
    return out


_masked_scatter.cuda(copying.masked_scatter)


@_masked_fill.vjp("x", planned=True)
@_masked_scatter.vjp("x")
def _outside(m: Namespace, grad: Array, mask: Array) -> Any:
    return m.masked_fill(grad, mask, 0.0)


@_masked_put.vjp("values")
@_masked_scatter.vjp("values")
def _inside(m: Namespace, grad: Array, mask: Array) -> Any:
    return m.masked_select(grad, mask)


@primitive
def _masked_keep(xp: ModuleType, x: Array, mask: Array) -> Array:
    out = xp.zeros(x.shape, x.dtype)
    xp.copyto(out, x, where=mask)
    return out


@_masked_keep.cuda
@launches_only
def _masked_keep_cuda(x: Array, mask: Array) -> Any:
    return WHERE(mask, x, 0)


@_masked_keep.vjp("x")
def _masked_keep_x(m: Namespace, grad: Array, mask: Array) -> Any:
    return m.masked_keep(grad, mask)


def check_bool(mask: Tensor, name: str) -> None:
    """Raise unless `mask` is a tensor of bools."""
    if array_of(mask).dtype.kind != "b":
        raise DtypeError(
            f"{name}: expected a mask of bools, got {mask.array.dtype.name}; compare, or use .to(lucid.bool)"
        )


def covering(input: Tensor, mask: Tensor) -> Any:
    """Return a tensor expanded so far that its mask broadcasts to it."""
    have, other = array_of(input).shape, array_of(mask).shape
    if have == other:
        return input
    shape = common_shape(have, other)
    return input if have == shape else expand(input, shape=shape)


def together(input: Tensor, mask: Tensor) -> tuple[Any, Any]:
    """Return a tensor and its mask broadcast to one shape."""
    whole = covering(input, mask)
    shape = whole.array.shape
    return whole, mask if mask.array.shape == shape else expand(mask, shape=shape)


def masked_fill(input: Tensor, mask: Tensor, value: Number | Tensor) -> Tensor:
    """Return a copy of `input` with `value`, a number or a tensor of no dimension, at the true elements of `mask`.

    It is cast to the dtype of `input`, or a DtypeError says that it does not fit.

    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0])
    >>> lucid.masked_fill(x, lucid.tensor([False, True]), 0)
    tensor([1., 0.])
    """
    check_bool(mask, "masked_fill")
    dtype = dtype_of(array_of(input))
    if isinstance(value, TensorBase):
        if value.array.ndim:
            raise ShapeError(
                f"masked_fill: expected a number or a 0-dim tensor, got shape {tuple(value.array.shape)}; "
                "use lucid.where for values of a shape"
            )
        new = cast_to(value, dtype)
    elif type(value) is float and dtype.is_floating_point:
        new = value
    else:
        new = as_element(value, dtype, "value")
    return _masked_fill(covering(input, mask), mask, new)


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `input` at the true elements of `mask`, in one dimension.

    >>> import lucid
    >>> x = lucid.tensor([1, 2, 3])
    >>> lucid.masked_select(x, lucid.tensor([True, False, True]))
    tensor([1, 3])
    """
    check_bool(mask, "masked_select")
    return _masked_select(*together(input, mask))


@on_one_device
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy of `input` with the elements of `source`, in order, at the true elements of `mask`.

    It has at least as many elements as the mask has true ones, for whose count the call waits on CUDA.

    >>> import lucid
    >>> mask = lucid.tensor([True, False, True])
    >>> lucid.masked_scatter(lucid.zeros(3), mask, lucid.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    check_bool(mask, "masked_scatter")
    if array_of(source).dtype != array_of(input).dtype:
        raise DtypeError(
            f"masked_scatter: expected source of {input.array.dtype.name}, got {source.array.dtype.name}; cast it first"
        )
    whole, where = together(input, mask)
    count = int(where.array.sum())
    if source.array.size < count:
        raise ShapeError(
            f"masked_scatter: the mask has {count} true elements, source has only {source.array.size} elements"
        )
    return _masked_scatter(whole, where, view_at(reshape(source, source.array.size), index=(slice(0, count), ...)))


@seen_as_one
@on_one_device
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of elements of `input` that are not zero: int64, a row for each, shape (count, dimensions).

    With `as_tuple` one tensor of shape (count,) for each dimension, which together index `input`. On CUDA the call
    waits for the count.

    >>> import lucid
    >>> lucid.nonzero(lucid.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if as_bool(as_tuple, "as_tuple"):
        return places(input)
    array = array_of(input)
    xp = namespace(array)
    if not array.ndim:
        return wrap(xp.zeros((int(array != 0), 0), xp.int64))
    return wrap(xp.stack(xp.nonzero(array), axis=1))


def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the elements of `input` that are not zero, one in each row; the same as `nonzero`.

    >>> import lucid
    >>> lucid.argwhere(lucid.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)
