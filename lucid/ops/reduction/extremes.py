"""Largest and smallest elements, and where they are; what holds for all reductions says `lucid.ops.reduction.sums`.

They are defined on real numbers. A NaN is larger and smaller than any number: it comes out, or the place of the first
one. Where there is no element along a dimension, an IndexOutOfRangeError is raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.autograd.base import TensorBase
from lucid.autograd.recording.primitive import primitive
from lucid.cuda.launch.elementwise import Elementwise
from lucid.cuda.launch.reduction import LARGEST, SMALLEST, reduced_as
from lucid.cuda.launchers import extremes as kernels
from lucid.errors import DtypeError, IndexOutOfRangeError
from lucid.ops.base.dims import dim_in
from lucid.ops.base.elementwise import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.scalars import as_bool
from lucid.ops.elementwise.comparison import maximum, minimum
from lucid.ops.reduction.sums import axis_of, reduced_dims, spread, unreduced
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


class ValuesIndices(NamedTuple):
    """Elements that were picked along a dimension, and their places in it."""

    values: Tensor
    indices: Tensor


@primitive
def element_at(xp: Any, x: Array, index: Array, *, dim: int, keepdim: bool) -> Array:
    """Return the elements of `x` that `index`, of size 1 in `dim` if `keepdim` and without it if not, names there."""
    if not x.ndim:
        return x.copy()
    picked = xp.take_along_axis(x, index if keepdim else xp.expand_dims(index, dim), dim)
    return picked if keepdim else picked.squeeze(dim)


@element_at.cuda
def _element_at_cuda(x: Any, index: Any, *, dim: int, keepdim: bool) -> Any:
    return kernels.element_at(x, index, dim)


@element_at.vjp("x")
def _element_at_vjp(m: Any, grad: Any, index: Any, x_shape: Any, dim: Any, keepdim: Any) -> Any:
    return m.element_at_grad(grad, index, dim=dim, keepdim=keepdim, size=x_shape[dim] if x_shape else 0)


@primitive
def element_at_grad(xp: Any, x: Array, index: Array, *, dim: int, keepdim: bool, size: int) -> Array:
    """Return zeros, of `size` in `dim`, with `x` where `index` says: the reverse of `element_at`."""
    if not x.ndim and not size:
        return x.copy()
    where, values = (index, x) if keepdim else (xp.expand_dims(index, dim), xp.expand_dims(x, dim))
    placed = xp.zeros((*values.shape[:dim], size, *values.shape[dim + 1 :]), x.dtype)
    xp.put_along_axis(placed, where, values, dim)
    return placed


@element_at_grad.cuda
def _element_at_grad_cuda(x: Any, index: Any, *, dim: int, keepdim: bool, size: int) -> Any:
    return kernels.element_at_grad(x, index, dim, keepdim=keepdim, size=size)


@element_at_grad.vjp("x")
def _element_at_grad_vjp(m: Any, grad: Any, index: Any, dim: Any, keepdim: Any) -> Any:
    return m.element_at(grad, index, dim=dim, keepdim=keepdim)


@primitive
def _share(xp: Any, x: Array, extreme: Array, *, dim: tuple[int, ...]) -> Array:
    """Return for each element its share of the gradient of the extreme that it ties for: 1 / ties, or 0.

    Each NaN ties for the extreme, which is NaN where one of its elements is.
    """
    tied = x == extreme
    if x.dtype.kind in "fV" and (xp is not np or np.isnan(extreme).any()):
        tied |= xp.isnan(x)
    share = xp.divide(tied, xp.sum(tied, axis_of(x, dim), keepdims=True), dtype=accumulation_dtype(x.dtype))
    return share.astype(x.dtype, copy=False)


def _extreme_vjp(m: Any, grad: Any, x: Any, out: Any, dim: Any, keepdim: Any) -> Any:
    share = m.share(x, unreduced(m, out, x.shape, dim, keepdim=keepdim), dim=dim)
    return m.mul(spread(m, grad, x.shape, dim, keepdim=keepdim), share)


@primitive
def _amax(xp: Any, x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Array:
    return xp.max(x, axis_of(x, dim), None, keepdim)


@primitive
def _amin(xp: Any, x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Array:
    return xp.min(x, axis_of(x, dim), None, keepdim)


@_amax.cuda
def _amax_cuda(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    return reduced_as(LARGEST, x, dim, keepdim, x.dtype)


@_amin.cuda
def _amin_cuda(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    return reduced_as(SMALLEST, x, dim, keepdim, x.dtype)


def _extreme_grad(share_of: Any) -> Any:
    def grad_cuda(grad: Any, x: Any, out: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
        share = share_of(x, dim, True, x.dtype)
        if share is NotImplemented:
            return NotImplemented
        return _EXTREME_GRAD(grad.reshape(share.shape), x, out.reshape(share.shape), share)

    return grad_cuda


_EXTREME_GRAD = Elementwise("spread", "ExtremeGrad", "TTTT")
_amax.vjp("x", cuda=_extreme_grad(kernels.SHARE_OF_LARGEST))(_extreme_vjp)
_amin.vjp("x", cuda=_extreme_grad(kernels.SHARE_OF_SMALLEST))(_extreme_vjp)


@primitive
def _argmax(xp: Any, x: Array, *, dim: int, keepdim: bool) -> Array:
    return xp.argmax(x, dim, None, keepdims=keepdim) if x.ndim else xp.zeros((), xp.int64)


@primitive
def _argmin(xp: Any, x: Array, *, dim: int, keepdim: bool) -> Array:
    return xp.argmin(x, dim, None, keepdims=keepdim) if x.ndim else xp.zeros((), xp.int64)


@_argmax.cuda
def _argmax_cuda(x: Any, *, dim: int, keepdim: bool) -> Any:
    return kernels.PLACE_OF_LARGEST(x, (dim,) if x.ndim else (), keepdim, np.int64)


@_argmin.cuda
def _argmin_cuda(x: Any, *, dim: int, keepdim: bool) -> Any:
    return kernels.PLACE_OF_SMALLEST(x, (dim,) if x.ndim else (), keepdim, np.int64)


def check_ordered(x: Any, name: str, dim: tuple[int, ...]) -> None:
    """Refuse what has no largest element.

    Raises
    ------
    DtypeError
        If the elements are complex.
    IndexOutOfRangeError
        If there are none along one of the dimensions.
    """
    if x.array.dtype.kind == "c":
        raise DtypeError(f"{name}: complex numbers have no order; take their abs() first")
    shape = x.array.shape
    empty = [d for d in dim if not shape[d]]
    if empty:
        raise IndexOutOfRangeError(
            f"{name}(): Expected reduction dim {empty[0]} to have non-zero size, got a tensor of shape {list(shape)}"
        )


def _extreme(name: str, op: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    dims = reduced_dims(dim, x.array.ndim)
    check_ordered(x, name, dims)
    return op(x, dim=dims, keepdim=keepdim)


def amax(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the largest element, or the largest along `dim`; equal ones share its gradient evenly.

    >>> import lucid
    >>> lucid.amax(lucid.tensor([[1.0, 5.0], [3.0, 2.0]]), 1)
    tensor([5., 3.])
    """
    return _extreme("amax", _amax, input, dim, keepdim)


def amin(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the smallest element, or the smallest along `dim`; equal ones share its gradient evenly.

    >>> import lucid
    >>> lucid.amin(lucid.tensor([[1.0, 5.0], [3.0, 2.0]]), 1)
    tensor([1., 2.])
    """
    return _extreme("amin", _amin, input, dim, keepdim)


def _place_of(name: str, op: Any, input: Any, dim: int | None, keepdim: bool) -> Any:
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    ndim = x.array.ndim
    if dim is None:
        check_ordered(x, name, reduced_dims(None, ndim))
        place = op(reshape(x.detach(), -1), dim=0, keepdim=False)
        return reshape(place, (1,) * ndim) if keepdim else place
    axis = dim_in(dim, ndim)
    check_ordered(x, name, (axis,) if ndim else ())
    return op(x, dim=axis, keepdim=keepdim)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return where the largest element is, the first of equal ones, as int64.

    `dim` is one dimension, or None for the place in the flattened tensor.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.argmax(x), lucid.argmax(x, 0)
    (tensor(1), tensor([1, 0]))
    """
    return _place_of("argmax", _argmax, input, dim, keepdim)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return where the smallest element is, the first of equal ones, as int64.

    `dim` is one dimension, or None for the place in the flattened tensor.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.argmin(x), lucid.argmin(x, 0)
    (tensor(0), tensor([0, 1]))
    """
    return _place_of("argmin", _argmin, input, dim, keepdim)


def _extreme_along(name: str, place_of: Any, input: Any, dim: int, keepdim: bool) -> ValuesIndices:
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    axis = dim_in(dim, x.array.ndim)
    check_ordered(x, name, (axis,) if x.array.ndim else ())
    indices = place_of(x, dim=axis, keepdim=keepdim)
    return ValuesIndices(element_at(x, indices, dim=axis, keepdim=keepdim), indices)


def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the largest element; or the largest along `dim` with their places; or the larger of two tensors.

    Without `dim` equal elements share the gradient evenly. With an int the result is a named tuple (values, indices),
    indices of int64, and the first of equal elements gets the gradient. With a tensor it is `lucid.maximum` of the two.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.max(x), lucid.max(x, 1).values, lucid.max(x, 1).indices
    (tensor(5.), tensor([5., 3.]), tensor([1, 0]))
    """
    if dim is None:
        return _extreme("max", _amax, input, None, False)
    if isinstance(dim, TensorBase):
        return maximum(input, cast("Tensor", dim))
    return _extreme_along("max", _argmax, input, dim, keepdim)


def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the smallest element; or the smallest along `dim` with their places; or the smaller of two tensors.

    Without `dim` equal elements share the gradient evenly. With an int the result is a named tuple (values, indices),
    indices of int64, and the first of equal elements gets the gradient. With a tensor it is `lucid.minimum` of the two.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 5.0], [3.0, 2.0]])
    >>> lucid.min(x), lucid.min(x, 1).values, lucid.min(x, 1).indices
    (tensor(1.), tensor([1., 2.]), tensor([0, 1]))
    """
    if dim is None:
        return _extreme("min", _amin, input, None, False)
    if isinstance(dim, TensorBase):
        return minimum(input, cast("Tensor", dim))
    return _extreme_along("min", _argmin, input, dim, keepdim)
