"""Variance, standard deviation and median over dimensions.

What holds for all reductions says `lucid.ops.reduction.sums`.

Variance and deviation are defined on floating-point numbers. `correction` is what is taken off the number of elements,
1 by default: the result is NaN or infinite where nothing is left. `unbiased` says the same as a bool, also as `dim`:
True is 1, False is 0. Both at once raise a CorrectionError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import Primitive, primitive
from lucid.cuda.launch.elementwise import Elementwise
from lucid.cuda.launch.reduction import Reduction, sum_over, total_bytes
from lucid.errors import CallError, DtypeError
from lucid.ops.base.declaration import of_formula
from lucid.ops.base.dims import dim_in
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, in_float32
from lucid.ops.base.rows import FEW, about_the_mean, sum_of
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.reduction.extremes import ValuesIndices, check_ordered, element_at
from lucid.ops.reduction.sorting import order_of
from lucid.ops.reduction.sums import axis_of, count_of, float_dtype_of, mean_vjp, reduced_dims, unreduced
from lucid.ops.shape.reshape import reshape, unsqueeze

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.ops.base.dims import Dims
    from lucid.tensor import Tensor


class CorrectionError(CallError):
    """`unbiased` and `correction`, two names of one setting, are both given."""


def _freedom(shape: Ints, dim: Ints, correction: float) -> float:
    """Return the divisor of the sum of squares."""
    return max(float(count_of(shape, dim) - correction), 0.0)


# Of sums of squares from here on, what squares below the range of float32 would add makes no difference.
LEAST_SQUARES = 1e-30


def _variance(xp: ModuleType, x: Array, dim: Ints, correction: float, keepdim: bool) -> Any:
    """Return the variance; in float64 if the squares leave the range of float32, as their root may fit it."""
    work = accumulation_dtype(x.dtype)
    axis, count = axis_of(x, dim), count_of(x.shape, dim)
    if xp is np and x.size <= FEW and work == np.float32:
        # the digits of float64 take the place of a second look at the mean and at the range
        wide = x.astype(np.float64)
        wide -= np.add.reduce(wide, axis, keepdims=True) / count
        wide *= wide
        return np.add.reduce(wide, axis, keepdims=keepdim) / _freedom(x.shape, dim, correction)
    mean = sum_of(xp, x, axis, work, keepdims=True) / count

    def squares_in(dtype: Any) -> Any:
        centred = xp.subtract(x, mean, dtype=dtype)
        drift = sum_of(xp, centred, axis, keepdims=keepdim)
        centred *= centred
        return about_the_mean(xp, sum_of(xp, centred, axis, keepdims=keepdim), drift, count)

    squares = squares_in(work if xp is np else np.float64)
    if work == np.float32 and xp is np and out_of_range(squares):
        squares = squares_in(np.float64)
    return squares / _freedom(x.shape, dim, correction)


def out_of_range(squares: Array) -> bool:
    """Whether one of the sums of squares is so small that squares are missing, or infinite."""
    if squares.ndim and squares.size:
        return not (np.minimum.reduce(squares, None) >= LEAST_SQUARES and np.maximum.reduce(squares, None) < np.inf)
    return not squares.ndim and not LEAST_SQUARES <= squares < np.inf


MOMENTS = Reduction("statistics", "Moments", lambda dtype: 8 + -(-3 * total_bytes(dtype) // 8) * 8)
# What the kernel is to give.
VARIANCE, DEVIATION = range(2)


def _spread(name: str, flavour: int) -> tuple[Primitive, Primitive]:
    """Return the primitives of the variance or the deviation, alone and with the mean."""

    def alone(xp: ModuleType, x: Array, *, dim: Ints, correction: float, keepdim: bool) -> Array:
        variance = _variance(xp, x, dim, correction, keepdim)
        return xp.asarray(xp.sqrt(variance) if flavour == DEVIATION else variance, x.dtype)

    def alone_cuda(x: Array, *, dim: Ints, correction: float, keepdim: bool) -> Any:
        return MOMENTS(x, dim, keepdim, x.dtype, _freedom(x.shape, dim, correction), flavour)

    def both(xp: ModuleType, x: Array, *, dim: Ints, correction: float, keepdim: bool) -> tuple[Array, Array]:
        mean = sum_of(xp, x, axis_of(x, dim), accumulation_dtype(x.dtype), keepdims=keepdim) / count_of(x.shape, dim)
        return alone(xp, x, dim=dim, correction=correction, keepdim=keepdim), xp.asarray(mean, x.dtype)

    def both_cuda(x: Array, *, dim: Ints, correction: float, keepdim: bool) -> Any:
        out = alone_cuda(x, dim=dim, correction=correction, keepdim=keepdim)
        mean = sum_over(x, dim, keepdim, x.dtype, float(count_of(x.shape, dim)))
        return NotImplemented if out is NotImplemented or mean is NotImplemented else (out, mean)

    op = Primitive(alone, name=name)
    op.cuda(alone_cuda)
    with_mean = Primitive(both, name=f"{name}_mean", outputs=("out", "mean"), differentiable=(0, 1))
    with_mean.cuda(both_cuda)
    return op, with_mean


_var, _var_mean = _spread("var", VARIANCE)
_std, _std_mean = _spread("std", DEVIATION)


_VARIANCE_GRAD = of_formula(lambda m, grad, x, mean, slope: grad * slope * (x - mean), "VarianceGrad")
_DEVIATION_GRAD = of_formula(
    lambda m, grad, x, mean, out: grad * m.where(m.eq(out, 0), out, (x - mean) / out), "DeviationGrad"
)
_SCALED = Elementwise("elementwise", "Mul", "TS")


def _spread_grad(grad: Array, x: Array, out: Any, dim: Ints, correction: float, keepdim: bool) -> Any:
    """Return the gradient of the deviation `out`, or of the variance if that is None."""
    freedom = _freedom(x.shape, dim, correction)
    mean = sum_over(x, dim, True, x.dtype, float(count_of(x.shape, dim)))
    if not freedom or mean is NotImplemented:
        return NotImplemented
    if out is None:
        return _VARIANCE_GRAD(grad.reshape(mean.shape), x, mean, 2 / freedom)
    return _DEVIATION_GRAD(_SCALED(grad, 1 / freedom).reshape(mean.shape), x, mean, out.reshape(mean.shape))


def _var_grad(grad: Array, x: Array, dim: Ints, correction: float, keepdim: bool) -> Any:
    return _spread_grad(grad, x, None, dim, correction, keepdim)


@_var.vjp("x", cuda=_var_grad)
def _var_vjp(m: Namespace, grad: Array, x: Array, dim: Ints, correction: float, keepdim: bool) -> Any:
    grad = m.div(grad, 0.5 * _freedom(x.shape, dim, correction))
    return m.mul(unreduced(m, grad, x.shape, dim, keepdim=keepdim), m.sub(x, m.mean(x, dim=dim, keepdim=True)))


@_std.vjp("x", cuda=_spread_grad)
def _std_vjp(m: Namespace, grad: Array, x: Array, out: Array, dim: Ints, correction: float, keepdim: bool) -> Any:
    if x.dtype.itemsize == 2:
        # the reciprocal of a small deviation is beyond float16
        return in_float32(_std_vjp, m, (grad, x, out), dim, correction, keepdim)
    grad = m.mul(m.div(grad, _freedom(x.shape, dim, correction)), m.reciprocal_or_zero(out))
    return m.mul(unreduced(m, grad, x.shape, dim, keepdim=keepdim), m.sub(x, m.mean(x, dim=dim, keepdim=True)))


def _added(m: Namespace, one: Array | None, other: Array | None) -> Any:
    return other if one is None else one if other is None else m.add(one, other)


@_var_mean.vjp("x")
def _var_mean_vjp(m: Namespace, grad: list[Array | None], x: Array, dim: Ints, correction: float, keepdim: bool) -> Any:
    spread_part = None if grad[0] is None else _var_vjp(m, grad[0], x, dim, correction, keepdim)
    return _added(m, spread_part, None if grad[1] is None else mean_vjp(m, grad[1], x.shape, dim, keepdim))


@_std_mean.vjp("x")
def _std_mean_vjp(
    m: Namespace, grad: list[Array | None], x: Array, out: Array, dim: Ints, correction: float, keepdim: bool
) -> Any:
    spread_part = None if grad[0] is None else _std_vjp(m, grad[0], x, out, dim, correction, keepdim)
    return _added(m, spread_part, None if grad[1] is None else mean_vjp(m, grad[1], x.shape, dim, keepdim))


@primitive
def _median_index(xp: ModuleType, x: Array, *, dim: int) -> Array:
    """Return the index of the lower median along `dim`; a NaN counts as the median of its line."""
    index = xp.take(order_of(xp, x, dim, descending=False), (x.shape[dim] - 1) // 2, axis=dim)
    if x.dtype.kind not in "fV":
        return index
    unknown = xp.isnan(x)
    return xp.where(xp.any(unknown, dim), xp.argmax(unknown, dim), index)


@primitive
def _median(xp: ModuleType, x: Array) -> Array:
    """Return the lower median of all elements; NaN without elements, and with a NaN among them."""
    flat = x.reshape(-1)
    if not flat.size:
        return xp.full((), np.nan, x.dtype)
    return flat[(_median_index.reference(xp, flat, dim=0), ...)]


@_median.vjp
def _median_vjp(m: Namespace, grad: Array, x: Array, out: Array) -> Any:
    return m.mul(grad, m.share(x, out, dim=tuple(range(len(x.shape)))))


def _spread_of(
    op: Primitive, name: str, input: Tensor, dim: Dims, unbiased: bool | None, keepdim: bool, correction: float | None
) -> Any:
    """Return the variance or the deviation, with the settings in any of PyTorch's forms."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        unbiased = as_bool(unbiased, "unbiased")
    if unbiased is not None and correction is not None:
        raise CorrectionError(f"{name}: got both unbiased and correction; unbiased=True is correction=1")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    divisor, keepdim = as_number(correction, "correction"), as_bool(keepdim, "keepdim")
    x = tensor_operand(input)
    if float_dtype_of(x, name).is_complex:
        raise DtypeError(f"{name}: complex tensors are not supported; take the real and imaginary parts first")
    return op(x, dim=reduced_dims(dim, x.array.ndim), correction=divisor, keepdim=keepdim)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance, the sum of ``(x - mean)**2`` divided by ``n - correction``, of all or along `dim`.

    `unbiased` True is a `correction` of 1, the default, and False one of 0.

    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0, 3.0, 4.0])
    >>> lucid.var(x, correction=0)
    tensor(1.2500)
    """
    return _spread_of(_var, "var", input, dim, unbiased, keepdim, correction)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation, the square root of `var`, of all elements or along `dim`; its gradient at 0 is 0.

    `unbiased` True is a `correction` of 1, the default, and False one of 0.

    >>> import lucid
    >>> lucid.std(lucid.tensor([[1.0, 3.0], [2.0, 2.0]]), 1, correction=0)
    tensor([1., 0.])
    """
    return _spread_of(_std, "std", input, dim, unbiased, keepdim, correction)


def var_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean, of all elements or along `dim`.

    `unbiased` and `correction` are as for `var`.

    >>> import lucid
    >>> lucid.var_mean(lucid.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return _spread_of(_var_mean, "var_mean", input, dim, unbiased, keepdim, correction)


def std_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean, of all elements or along `dim`.

    `unbiased` and `correction` are as for `std`.

    >>> import lucid
    >>> lucid.std_mean(lucid.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    return _spread_of(_std_mean, "std_mean", input, dim, unbiased, keepdim, correction)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median, of an even number of elements the lower of the two in the middle; NaN if one of them is.

    Defined on real numbers. Without `dim` it stands alone, and equal elements share its gradient evenly; with an int it
    is a named tuple (values, indices), indices of int64. Of no elements it is NaN; an IndexOutOfRangeError is raised
    for integers, and along a dimension without elements.

    >>> import lucid
    >>> lucid.median(lucid.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    """
    x, keepdim = tensor_operand(input), as_bool(keepdim, "keepdim")
    if dim is None:
        if x.array.dtype.kind not in "fV":
            check_ordered(reshape(x, -1), "median", (0,))
        return _median(x)
    ndim = x.array.ndim
    axis = dim_in(dim, ndim)
    check_ordered(x, "median", (axis,) if ndim else ())
    index = _median_index(x if ndim else reshape(x, 1), dim=axis)
    values = element_at(x, index, dim=axis, keepdim=False)
    if keepdim and ndim:
        return ValuesIndices(unsqueeze(values, axis), unsqueeze(index, axis))
    return ValuesIndices(values, index)
