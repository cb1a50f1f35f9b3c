"""Sums, means and tests over dimensions, and the common rules of all reductions.

This holds for every reduction, unless its docstring, which says what is particular to it, says otherwise:

- It takes a tensor of any shape and strides, and makes one result of all elements, or one of those along `dim`: an int,
  or a tuple of them. None and an empty tuple name all dimensions, a number below zero counts from the last.
- With `keepdim` the reduced dimensions stay, with size 1.
- The result has the dtype of `input`. `dtype` converts `input` before it is reduced.
- float16 and bfloat16 are accumulated in float32, and rounded once.
- A dimension that is not there raises an IndexOutOfRangeError, one that is named twice a ShapeError, and a dtype that
  the reduction is not defined on a DtypeError that says what to do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.modes.state import unusual
from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.base.arrays import astype
from lucid.base.dtype import as_dtype, dtype_of, int64, uint8
from lucid.cuda.launch.kernels import C_TYPES
from lucid.cuda.launch.plans import launches_only
from lucid.cuda.launch.reduction import Reduction, sum_over
from lucid.errors import DtypeError
from lucid.ops.base.dims import dims_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.rows import array_sum
from lucid.ops.base.scalars import as_bool
from lucid.ops.elementwise.comparison import ne
from lucid.ops.elementwise.nonfinite import isnan
from lucid.ops.elementwise.selection import where

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.base.dtype import dtype as Dtype
    from lucid.ops.base.dims import Dims
    from lucid.tensor import Tensor


def reduced_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dimensions that `dim` names, counted from the left; None and an empty tuple name all of them."""
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return tuple(range(ndim))
    named = dims_in(dim, ndim)
    return named if ndim else ()


def axis_of(x: Array, dim: Ints) -> Any:
    """Return `dim` as NumPy's reductions take it fastest: None if it names all dimensions."""
    return None if len(dim) == x.ndim else dim


def count_of(shape: Ints, dim: Ints) -> int:
    """Return how many elements go into each result of a reduction."""
    return math.prod([shape[d] for d in dim])


def kept_shape(shape: Ints, dim: Ints) -> tuple[int, ...]:
    """Return `shape` with size 1 in the reduced dimensions."""
    return tuple([1 if d in dim else size for d, size in enumerate(shape)])


def unreduced(m: Namespace, x: Array, shape: Ints, dim: Ints, *, keepdim: bool) -> Any:
    """Return the result of a reduction of `shape`, or its gradient, so that it broadcasts against the operand."""
    return x if keepdim or len(dim) == len(shape) else m.reshape(x, shape=kept_shape(shape, dim))


def expanded(m: Namespace, grad: Array, shape: Ints, dim: Ints, *, keepdim: bool) -> Any:
    """Return the gradient of a sum: the same for each element that went into it."""
    return m.expand(unreduced(m, grad, shape, dim, keepdim=keepdim), shape=shape)


def float_dtype_of(x: Tensor, name: str, dtype: Dtype | None = None) -> Any:
    """Return lucid's dtype of an op of floating-point and complex numbers; a DtypeError for integers and bools."""
    wanted = dtype_of(x.array) if dtype is None else as_dtype(dtype)
    if wanted.category < 2:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise DtypeError(
            f"{name}(): could not infer output dtype. {what} must be either a floating point or complex dtype. "
            f"Got: {wanted}; convert the input, or pass dtype="
        )
    return wanted


def _sum_cpu(x: Array, *, dim: Ints, keepdim: bool, dtype: np.dtype[Any]) -> Array:
    total = array_sum(x, axis_of(x, dim), accumulation_dtype(dtype), keepdim)
    return total if total.dtype == dtype else astype(total, dtype)


@primitive(cpu=_sum_cpu)
def _sum(xp: ModuleType, x: Array, *, dim: Ints, keepdim: bool, dtype: np.dtype[Any]) -> Array:
    return astype(xp.sum(x, axis_of(x, dim), accumulation_dtype(dtype), None, keepdim), dtype)


_sum.cuda(sum_over)


@_sum.vjp
def _sum_vjp(
    m: Namespace, grad: Array, x_shape: Ints, x_dtype: np.dtype[Any], dim: Ints, keepdim: bool, dtype: np.dtype[Any]
) -> Any:
    if dtype != x_dtype:
        grad = m.cast(grad, dtype=x_dtype)
    return expanded(m, grad, x_shape, dim, keepdim=keepdim)


def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Return the sum of all elements, or of those along `dim`; 0 if there are none.

    Integers and bools are summed in int64.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> lucid.sum(x), lucid.sum(x, 0)
    (tensor(10.), tensor([4., 6.]))
    """
    x = tensor_operand(input)
    if dtype is None and unusual:
        x = wide_in_autocast(x)
    own = x.array.dtype
    wanted = as_dtype(dtype) if dtype is not None else dtype_of(x.array) if own.kind in "fcV" else int64
    # what NumPy would refuse to accumulate there
    if wanted.numpy != own and dtype_of(x.array).category > wanted.category:
        x = cast_to(x, wanted)
    return _sum(x, dim=reduced_dims(dim, x.array.ndim), keepdim=as_bool(keepdim, "keepdim"), dtype=wanted.numpy)


def _mean_cpu(x: Array, *, dim: Ints, keepdim: bool) -> Array:
    mean = np.divide(array_sum(x, axis_of(x, dim), accumulation_dtype(x.dtype), keepdim), count_of(x.shape, dim))
    return mean if mean.dtype == x.dtype else astype(mean, x.dtype)


@primitive(cpu=_mean_cpu)
def _mean(xp: ModuleType, x: Array, *, dim: Ints, keepdim: bool) -> Array:
    total = xp.sum(x, axis_of(x, dim), accumulation_dtype(x.dtype), None, keepdim)
    return astype(total / count_of(x.shape, dim), x.dtype)


@_mean.cuda
@launches_only
def _mean_cuda(x: Array, *, dim: Ints, keepdim: bool) -> Any:
    return sum_over(x, dim, keepdim, x.dtype, float(count_of(x.shape, dim)))


@_mean.vjp
def mean_vjp(m: Namespace, grad: Array, x_shape: Ints, dim: Ints, keepdim: bool) -> Any:
    """Return the gradient of a mean: the same for each element that went into it."""
    return expanded(m, m.div(grad, float(count_of(x_shape, dim))), x_shape, dim, keepdim=keepdim)


def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Return the mean of all elements, or of those along `dim`; NaN if there are none.

    Defined on floating-point and complex numbers.

    >>> import lucid
    >>> lucid.mean(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, keepdim=True)
    tensor([[1.5000],
            [3.5000]])
    """
    x = tensor_operand(input)
    x = cast_to(x, float_dtype_of(x, "mean", dtype))
    return _mean(x, dim=reduced_dims(dim, x.array.ndim), keepdim=as_bool(keepdim, "keepdim"))


def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Return the sum of all elements, or of those along `dim`, with NaN counted as 0, and its gradient as well.

    Defined on real numbers; integers and bools are summed in int64.

    >>> import lucid
    >>> lucid.nansum(lucid.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    x = tensor_operand(input)
    if x.array.dtype.kind == "c":
        raise DtypeError("nansum: complex tensors are not supported; sum the real and imaginary parts")
    return sum(where(isnan(x), 0, x) if x.array.dtype.kind in "fV" else x, dim, keepdim, dtype=dtype)


NONZERO = Reduction("reduction", "NonzeroOver", lambda _: 8, C_TYPES.values())
# What the kernel is to say of the number of elements that are not zero.
HOW_MANY, IS_ANY, ARE_ALL = range(3)


def _test_of(name: str, flavour: int) -> Primitive:
    """Return the primitive of whether any or all elements are not zero."""

    def reference(xp: ModuleType, x: Array, *, dim: Ints, keepdim: bool) -> Array:
        return getattr(xp, name)(x if x.dtype.kind == "b" else x != 0, axis_of(x, dim), None, keepdim)

    def cuda(x: Array, *, dim: Ints, keepdim: bool) -> Any:
        return NONZERO(x, dim, keepdim, np.bool_, float(count_of(x.shape, dim)), flavour)

    op = Primitive(reference, name=name)
    op.cuda(launches_only(cuda))
    return op


_any = _test_of("any", IS_ANY)
_all = _test_of("all", ARE_ALL)


def _tested(test: Primitive, input: Tensor, dim: Dims, keepdim: bool) -> Any:
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    if isinstance(dim, tuple | list) and not dim:
        result: Any = ne(x, 0)
    else:
        result = test(x, dim=reduced_dims(dim, x.array.ndim), keepdim=keepdim)
    return cast_to(result, uint8) if x.array.dtype == uint8.numpy else result


def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether one element, or one along `dim`, is not zero; False if there are none.

    The result is of bools, of uint8 if `input` is. An empty tuple names no dimension here: each element is tested.

    >>> import lucid
    >>> lucid.any(lucid.tensor([[0, 1], [0, 0]]), 1)
    tensor([ True, False])
    """
    return _tested(_any, input, dim, keepdim)


def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether no element, or none along `dim`, is zero; True if there are none.

    The result is of bools, of uint8 if `input` is. An empty tuple names no dimension here: each element is tested.

    >>> import lucid
    >>> lucid.all(lucid.tensor([[0, 1], [1, 1]]), 1)
    tensor([False,  True])
    """
    return _tested(_all, input, dim, keepdim)


@primitive
def _count_nonzero(xp: ModuleType, x: Array, *, dim: Ints) -> Array:
    return xp.sum(x != 0, axis_of(x, dim), np.int64)


@_count_nonzero.cuda
@launches_only
def _count_nonzero_cuda(x: Array, *, dim: Ints) -> Any:
    return NONZERO(x, dim, False, np.int64, 0.0, HOW_MANY)


def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Return how many elements, or how many along `dim`, are not zero, as int64.

    >>> import lucid
    >>> lucid.count_nonzero(lucid.tensor([[0, 1], [2, 3]]), 0)
    tensor([1, 2])
    """
    x = tensor_operand(input)
    return _count_nonzero(x, dim=reduced_dims(dim, x.array.ndim))


def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Return the mean of the elements that are not NaN, or of those along `dim`; NaN if there are none.

    >>> import lucid
    >>> lucid.nanmean(lucid.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    x = tensor_operand(input)
    x = cast_to(x, float_dtype_of(x, "nanmean", dtype))
    # the count may be beyond the range of half precision
    total = nansum(cast_to(x, as_dtype(accumulation_dtype(x.array.dtype))), dim, keepdim)
    return cast_to(total / sum(x.isnan().logical_not(), dim, keepdim), dtype_of(x.array))
