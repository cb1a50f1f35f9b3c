"""Largest and smallest elements, and their indices. Common rules of reductions: `lucid.ops.reduction.sums`.

They are defined on real numbers. A NaN is larger and smaller than any number: it comes out, or the index of the first
one. Where there is no element along a dimension, an IndexOutOfRangeError is raised.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.indexing import launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.launch.plans import launches_only
from lucid.cuda.launch.reduction import (
    LARGEST,
    SMALLEST,
    Reduction,
    merged_axes,
    packed_axes,
    reduced_as,
    steps_of,
    too_many,
    total_bytes,
)
from lucid.errors import DtypeError, IndexOutOfRangeError
from lucid.ops.base.declaration import of_formula
from lucid.ops.base.dims import dim_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.scalars import as_bool
from lucid.ops.elementwise.comparison import maximum, minimum
from lucid.ops.reduction.sums import axis_of, expanded, reduced_dims, unreduced
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.ops.base.dims import Dims
    from lucid.tensor import Tensor


SHARE_OF_LARGEST = Reduction("extremes", "ShareOfLargest", lambda dtype: 2 * total_bytes(dtype))
SHARE_OF_SMALLEST = Reduction("extremes", "ShareOfSmallest", lambda dtype: 2 * total_bytes(dtype))

_ELEMENT_AT = Kernel("extremes", "lucid::element_at", tuple((name,) for name in C_TYPES.values()))
_ELEMENT_AT_GRAD = Kernel("extremes", "lucid::element_at_grad", EACH_FLOAT)


class ValuesIndices(NamedTuple):
    """Elements that were selected along a dimension, and their indices in it."""

    values: Tensor
    indices: Tensor


@primitive
def element_at(xp: ModuleType, x: Array, index: Array, *, dim: int, keepdim: bool) -> Array:
    """Return the elements of `x` that `index`, of size 1 in `dim` if `keepdim` and without it if not, names there."""
    if not x.ndim:
        return x.copy()
    selected = xp.take_along_axis(x, index if keepdim else xp.expand_dims(index, dim), dim)
    return selected if keepdim else selected.squeeze(dim)


@element_at.cuda
def _element_at_cuda(x: Array, index: Array, *, dim: int, keepdim: bool) -> Any:
    name = C_TYPES.get(x.dtype)
    kept = merged_axes(steps_of(x, [d for d in range(x.ndim) if d != dim]))
    if name is None or not x.ndim or too_many(kept) or index.dtype != np.int64 or not index.flags.c_contiguous:
        return NotImplemented
    out = cupy_functions().empty(index.shape, x.dtype)
    if out.size:
        _ELEMENT_AT[name](
            *launch_for(out.size), x.data.ptr, index.data.ptr, out.data.ptr,
            *packed_axes(kept), out.size, x.shape[dim], x.strides[dim] // x.dtype.itemsize,
        )  # fmt: skip
    return out


@element_at.vjp("x")
def _element_at_vjp(m: Namespace, grad: Array, index: Array, x_shape: Ints, dim: int, keepdim: bool) -> Any:
    return m.element_at_grad(grad, index, dim=dim, keepdim=keepdim, size=x_shape[dim] if x_shape else 0)


@primitive
def element_at_grad(xp: ModuleType, x: Array, index: Array, *, dim: int, keepdim: bool, size: int) -> Array:
    """Return zeros, of `size` in `dim`, with `x` at `index`: the reverse of `element_at`."""
    if not x.ndim and not size:
        return x.copy()
    where, values = (index, x) if keepdim else (xp.expand_dims(index, dim), xp.expand_dims(x, dim))
    out = xp.zeros((*values.shape[:dim], size, *values.shape[dim + 1 :]), x.dtype)
    xp.put_along_axis(out, where, values, dim)
    return out


@element_at_grad.cuda
def _element_at_grad_cuda(grad: Array, index: Array, *, dim: int, keepdim: bool, size: int) -> Any:
    name = C_TYPES.get(grad.dtype)
    # without its dimension of size 1, the gradient is the lines themselves
    kept = merged_axes(steps_of(grad, range(grad.ndim)))
    fits = index.dtype == np.int64 and index.flags.c_contiguous and not too_many(kept)
    if name not in FLOATS or not fits or not (grad.ndim or size):
        return NotImplemented
    before = grad.shape[:dim]
    behind = grad.shape[dim + 1 :] if keepdim else grad.shape[dim:]
    out = cupy_functions().empty((*before, size, *behind), grad.dtype)
    if out.size:
        _ELEMENT_AT_GRAD[name](
            *launch_for(out.size), grad.data.ptr, index.data.ptr, out.data.ptr,
            *packed_axes(kept), math.prod(before), size, math.prod(behind),
        )  # fmt: skip
    return out


@element_at_grad.vjp("x")
def _element_at_grad_vjp(m: Namespace, grad: Array, index: Array, dim: int, keepdim: bool) -> Any:
    return m.element_at(grad, index, dim=dim, keepdim=keepdim)


@primitive
def _share(xp: ModuleType, x: Array, extreme: Array, *, dim: Ints) -> Array:
    """Return for each element its share of the gradient of the extreme that it ties for: 1 / ties, or 0.

    Each NaN ties for the extreme, which is NaN where one of its elements is.
    """
    tied = x == extreme
    if x.dtype.kind in "fV" and (xp is not np or np.isnan(extreme).any()):
        tied |= xp.isnan(x)
    share = xp.divide(tied, xp.sum(tied, axis_of(x, dim), keepdims=True), dtype=accumulation_dtype(x.dtype))
    return share.astype(x.dtype, copy=False)


def _extreme_vjp(m: Namespace, grad: Array, x: Array, out: Array, dim: Ints, keepdim: bool) -> Any:
    share = m.share(x, unreduced(m, out, x.shape, dim, keepdim=keepdim), dim=dim)
    return m.mul(expanded(m, grad, x.shape, dim, keepdim=keepdim), share)


def same(m: Namespace, x: Any, y: Any) -> Any:
    """Return the condition, in a formula, that two numbers are the same, as NaN and NaN are."""
    return m.eq(x, y) | m.logical_and(m.isnan(x), m.isnan(y))


_EXTREME_GRAD = of_formula(lambda m, grad, x, out, share: grad * m.where(same(m, x, out), share, 0), "ExtremeGrad")


def _extreme_of(name: str, function: str, kernel: Reduction, share_of: Reduction) -> Primitive:
    """Return the primitive of the largest or the smallest elements."""

    def reference(xp: ModuleType, x: Array, *, dim: Ints, keepdim: bool) -> Array:
        return getattr(xp, function)(x, axis_of(x, dim), None, keepdim)

    def cuda(x: Array, *, dim: Ints, keepdim: bool) -> Any:
        return reduced_as(kernel, x, dim, keepdim, x.dtype)

    def grad_cuda(grad: Array, x: Array, out: Array, dim: Ints, keepdim: bool) -> Any:
        share = share_of(x, dim, True, x.dtype)
        if share is NotImplemented:
            return NotImplemented
        return _EXTREME_GRAD(grad.reshape(share.shape), x, out.reshape(share.shape), share)

    op = Primitive(reference, name=name)
    op.cuda(launches_only(cuda))
    op.vjp("x", cuda=grad_cuda)(_extreme_vjp)
    return op


def _index_of_extreme(name: str, functor: str) -> Primitive:
    """Return the primitive of the indices of the largest or the smallest elements."""
    kernel = Reduction("extremes", functor, lambda _: 16, C_TYPES.values(), ordered=True)

    def reference(xp: ModuleType, x: Array, *, dim: int, keepdim: bool) -> Array:
        return getattr(xp, name)(x, dim, None, keepdims=keepdim) if x.ndim else xp.zeros((), xp.int64)

    def cuda(x: Array, *, dim: int, keepdim: bool) -> Any:
        return kernel(x, (dim,) if x.ndim else (), keepdim, np.int64)

    op = Primitive(reference, name=name)
    op.cuda(launches_only(cuda))
    return op


_amax = _extreme_of("amax", "max", LARGEST, SHARE_OF_LARGEST)
_amin = _extreme_of("amin", "min", SMALLEST, SHARE_OF_SMALLEST)
_argmax = _index_of_extreme("argmax", "PlaceOfLargest")
_argmin = _index_of_extreme("argmin", "PlaceOfSmallest")


def check_ordered(x: Tensor, name: str, dim: Ints) -> None:
    """Refuse complex numbers, and dimensions without elements: these have no largest element."""
    if x.array.dtype.kind == "c":
        raise DtypeError(f"{name}: complex numbers have no order; take their abs() first")
    shape = x.array.shape
    empty = [d for d in dim if not shape[d]]
    if empty:
        raise IndexOutOfRangeError(
            f"{name}(): Expected reduction dim {empty[0]} to have non-zero size, got a tensor of shape {list(shape)}"
        )


def _extreme(name: str, op: Primitive, input: Tensor, dim: Dims, keepdim: bool) -> Any:
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    dims = reduced_dims(dim, x.array.ndim)
    check_ordered(x, name, dims)
    return op(x, dim=dims, keepdim=keepdim)


def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the largest element, or the largest along `dim`; equal ones share its gradient evenly.

    >>> import lucid
    >>> lucid.amax(lucid.tensor([[1.0, 5.0], [3.0, 2.0]]), 1)
    tensor([5., 3.])
    """
    return _extreme("amax", _amax, input, dim, keepdim)


def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the smallest element, or the smallest along `dim`; equal ones share its gradient evenly.

    >>> import lucid
    >>> lucid.amin(lucid.tensor([[1.0, 5.0], [3.0, 2.0]]), 1)
    tensor([1., 2.])
    """
    return _extreme("amin", _amin, input, dim, keepdim)


def _index_of(name: str, op: Primitive, input: Tensor, dim: int | None, keepdim: bool) -> Any:
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    ndim = x.array.ndim
    if dim is None:
        check_ordered(x, name, reduced_dims(None, ndim))
        array = x.array
        flat = wrap(array.ravel()) if array.flags.c_contiguous else reshape(x.detach(), -1)
        index = op(flat, dim=0, keepdim=False)
        return reshape(index, (1,) * ndim) if keepdim else index
    axis = dim_in(dim, ndim)
    check_ordered(x, name, (axis,) if ndim else ())
    return op(x, dim=axis, keepdim=keepdim)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the largest element, the first of equal ones, as int64.

    `dim` is one dimension, or None for the index in the flattened tensor.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.argmax(x), lucid.argmax(x, 0)
    (tensor(1), tensor([1, 0]))
    """
    return _index_of("argmax", _argmax, input, dim, keepdim)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the smallest element, the first of equal ones, as int64.

    `dim` is one dimension, or None for the index in the flattened tensor.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.argmin(x), lucid.argmin(x, 0)
    (tensor(0), tensor([0, 1]))
    """
    return _index_of("argmin", _argmin, input, dim, keepdim)


def _extreme_or_larger(
    name: str, ops: tuple[Any, Any, Any], input: Tensor, dim: int | Tensor | None, keepdim: bool
) -> Any:
    """Return the extreme of all elements, those along a dimension with their indices, or those of two tensors."""
    of_all, index_of, of_two = ops
    if dim is None:
        return _extreme(name, of_all, input, None, False)
    if isinstance(dim, TensorBase):
        return of_two(input, dim)
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    axis = dim_in(dim, x.array.ndim)
    check_ordered(x, name, (axis,) if x.array.ndim else ())
    indices = index_of(x, dim=axis, keepdim=keepdim)
    return ValuesIndices(element_at(x, indices, dim=axis, keepdim=keepdim), indices)


def max(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False) -> Any:
    """Return the largest element; or the largest along `dim` with their indices; or the larger of two tensors.

    Without `dim` equal elements share the gradient evenly. With an int the result is a named tuple (values, indices),
    indices of int64, and the first of equal elements gets the gradient. With a tensor it is `lucid.maximum` of the two.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.max(x), lucid.max(x, 1).values, lucid.max(x, 1).indices
    (tensor(5.), tensor([5., 3.]), tensor([1, 0]))
    """
    return _extreme_or_larger("max", (_amax, _argmax, maximum), input, dim, keepdim)


def min(input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False) -> Any:
    """Return the smallest element; or the smallest along `dim` with their indices; or the smaller of two tensors.

    Without `dim` equal elements share the gradient evenly. With an int the result is a named tuple (values, indices),
    indices of int64, and the first of equal elements gets the gradient. With a tensor it is `lucid.minimum` of the two.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.min(x), lucid.min(x, 1).values, lucid.min(x, 1).indices
    (tensor(1.), tensor([1., 2.]), tensor([0, 1]))
    """
    return _extreme_or_larger("min", (_amin, _argmin, minimum), input, dim, keepdim)


class aminmax_result(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> aminmax_result:
    """Return the smallest and the largest element, or those along `dim`, as a named tuple (min, max).

    >>> import lucid
    >>> lucid.aminmax(lucid.tensor([3, 1, 2])).max
    tensor(3)
    """
    return aminmax_result(amin(input, dim, keepdim), amax(input, dim, keepdim))
