"""Lengths of vectors, logarithms of sums of exponentials, and functions made of lengths.

What holds for all reductions says `lucid.ops.reduction.sums`. Norms are those of floating-point vectors: an integer,
bool or complex dtype raises a DtypeError.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import astype
from lucid.base.dtype import as_dtype, dtype_of
from lucid.cuda.launch.plans import launches_only
from lucid.cuda.launch.reduction import Reduction, total_bytes
from lucid.errors import CallError, DtypeError
from lucid.ops.base.declaration import of_formula
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, cast_to, float_operand, in_float32, promote
from lucid.ops.base.rows import row_products, sum_of
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.elementwise.arithmetic import mul
from lucid.ops.elementwise.division import div
from lucid.ops.elementwise.selection import clamp
from lucid.ops.reduction.extremes import SHARE_OF_LARGEST, SHARE_OF_SMALLEST, check_ordered, same
from lucid.ops.reduction.sums import axis_of, expanded, float_dtype_of, kept_shape, reduced_dims, sum, unreduced
from lucid.ops.shape.broadcasting import broadcast_tensors

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.base.dtype import dtype as Dtype
    from lucid.ops.base.dims import Dims, Sizes
    from lucid.tensor import Tensor


class OrderError(CallError):
    """A norm of this order is unknown."""


@primitive
def _reciprocal_or_zero(xp: ModuleType, x: Array) -> Array:
    """Return ``1 / x``, and 0 for an `x` of 0."""
    return xp.where(x == 0, x, xp.reciprocal(x))


_reciprocal_or_zero.cuda(of_formula(lambda m, x: m.where(m.eq(x, 0), x, 1 / x), "ReciprocalOrZero"))


@_reciprocal_or_zero.vjp
def _reciprocal_or_zero_vjp(m: Namespace, grad: Array, out: Array) -> Any:
    return m.neg(m.mul(grad, m.mul(out, out)))


@primitive
def _logsumexp(xp: ModuleType, x: Array, *, dim: Ints, keepdim: bool) -> Array:
    axis = axis_of(x, dim)
    if not x.size:
        return astype(xp.log(xp.sum(x, axis, accumulation_dtype(x.dtype), None, keepdim)), x.dtype)
    peak = xp.max(x, axis, None, True)
    # where the largest is infinite, what it would be subtracted from is infinite too
    peak = xp.where(xp.isfinite(peak), peak, peak.dtype.type(0))
    shifted = xp.subtract(x, peak, dtype=accumulation_dtype(x.dtype))
    total = sum_of(xp, xp.exp(shifted), axis, keepdims=True)
    out = astype(xp.log(total) + peak, x.dtype)
    return out if keepdim else out.squeeze(axis)


LOG_SUM_EXP = Reduction("norms", "LogSumExp", lambda dtype: 2 * total_bytes(dtype))


@_logsumexp.cuda
@launches_only
def _logsumexp_cuda(x: Array, *, dim: Ints, keepdim: bool) -> Any:
    return LOG_SUM_EXP(x, dim, keepdim, x.dtype)


_LOG_SUM_EXP_GRAD = of_formula(lambda m, grad, x, out: grad * m.exp(x - out), "LogSumExpGrad")


def _logsumexp_grad(grad: Array, x: Array, out: Array, dim: Ints, keepdim: bool) -> Any:
    kept = kept_shape(x.shape, dim)
    return _LOG_SUM_EXP_GRAD(grad.reshape(kept), x, out.reshape(kept))


@_logsumexp.vjp("x", cuda=_logsumexp_grad)
def _logsumexp_vjp(m: Namespace, grad: Array, x: Array, out: Array, dim: Ints, keepdim: bool) -> Any:
    weights = m.exp(m.sub(x, unreduced(m, out, x.shape, dim, keepdim=keepdim)))
    return m.mul(unreduced(m, grad, x.shape, dim, keepdim=keepdim), weights)


def logsumexp(input: Tensor, dim: Sizes, keepdim: bool = False) -> Tensor:
    """Return ``log(sum(exp(x)))`` along `dim`, without overflow; minus infinity without elements.

    Defined on real numbers; integers become the default floating-point dtype.

    >>> import lucid
    >>> lucid.logsumexp(lucid.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    x = float_operand(input)
    check_ordered(x, "logsumexp", ())
    return _logsumexp(x, dim=reduced_dims(dim, x.array.ndim), keepdim=as_bool(keepdim, "keepdim"))


def norm_of(xp: ModuleType, x: Array, p: float, axis: Ints | None, keepdim: bool) -> Any:
    """Return the norm of order `p` over an axis, or all; of half types in float32."""
    work = accumulation_dtype(x.dtype)
    if p == 2:
        if axis is None and not keepdim and x.flags.c_contiguous:
            flat = x.reshape(-1).astype(work, copy=False)
            return xp.sqrt(row_products(flat, flat)[0] if xp is np else xp.dot(flat, flat))
        return xp.sqrt(sum_of(xp, xp.square(x, dtype=work), axis, keepdims=keepdim))
    if p == 0:
        return xp.sum(x != 0, axis, work, None, keepdim)
    size = xp.abs(x)
    if math.isinf(p):
        return (xp.max if p > 0 else xp.min)(size, axis, None, keepdim)
    if p == 1:
        return sum_of(xp, size, axis, work, keepdims=keepdim)
    return xp.power(sum_of(xp, xp.power(size, p, dtype=work), axis, keepdims=keepdim), 1 / p)


@primitive
def _norm(xp: ModuleType, x: Array, *, p: float, dim: Ints, keepdim: bool) -> Array:
    return astype(norm_of(xp, x, p, axis_of(x, dim), keepdim), x.dtype)


NORM = Reduction("norms", "Norm", total_bytes)
LARGEST_SIZE = Reduction("norms", "LargestSize", total_bytes)
SMALLEST_SIZE = Reduction("norms", "SmallestSize", total_bytes)
# The orders that the kernel needs no powers for, by its numbers; 3 is any other.
ORDERS = {0.0: 0, 1.0: 1, 2.0: 2}


@_norm.cuda
@launches_only
def _norm_cuda(x: Array, *, p: float, dim: Ints, keepdim: bool) -> Any:
    if math.isinf(p):
        return (LARGEST_SIZE if p > 0 else SMALLEST_SIZE)(x, dim, keepdim, x.dtype)
    return NORM(x, dim, keepdim, x.dtype, p, ORDERS.get(p, 3))


# What the gradient of a norm gives to each element: of sizes, of their squares, of the largest or smallest size, which
# is the part `share` of those that are the same, and of sizes to a power.


def _to_length(m: Namespace, grad: Any, x: Any, out: Any) -> Any:
    return m.where(m.eq(out, 0), x * grad * out, x * (grad / out))


def _to_power(m: Namespace, grad: Any, x: Any, out: Any, *, p: Any) -> Any:
    size = m.where(m.eq(out, 0), 0, abs(x) / out)
    # of x = 0 a power below 0 is infinite, and the gradient 0
    below = m.where(m.eq(size, 0), 0, m.pow(1 / size, 1 - p))
    return grad * m.sgn(x) * m.where(p > 1, m.pow(size, p - 1), below)


_SUM_OF_SIZES_GRAD = of_formula(lambda m, grad, x: grad * m.sgn(x), "SumOfSizesGrad")
_LENGTH_GRAD = of_formula(_to_length, "LengthGrad")
_EXTREME_SIZE_GRAD = of_formula(
    lambda m, grad, x, out, share: grad * m.sgn(x) * m.where(same(m, abs(x), out), share, 0), "ExtremeSizeGrad"
)
_POWER_NORM_GRAD = of_formula(_to_power, "PowerNormGrad")
# of the absolute values
SIZES = 1
# The orders whose gradient needs no reciprocal of the norm.
WITHOUT_DIVISION = {0.0, 1.0, math.inf, -math.inf}


def _norm_grad(grad: Array, x: Array, out: Array, p: float, dim: Ints, keepdim: bool) -> Any:
    kept = kept_shape(x.shape, dim)
    grad, out = grad.reshape(kept), out.reshape(kept)
    if p == 2:
        return _LENGTH_GRAD(grad, x, out)
    if p == 1:
        return _SUM_OF_SIZES_GRAD(grad, x)
    if math.isinf(p):
        share = (SHARE_OF_LARGEST if p > 0 else SHARE_OF_SMALLEST)(x, dim, True, x.dtype, 0.0, SIZES)
        return share if share is NotImplemented else _EXTREME_SIZE_GRAD(grad, x, out, share)
    return _POWER_NORM_GRAD(grad, x, out, p) if p else NotImplemented


@_norm.vjp("x", cuda=_norm_grad)
def norm_rule(m: Namespace, grad: Array, x: Array, out: Array, p: float, dim: Ints, keepdim: bool) -> Any:
    """Return the gradient of the elements of a norm `out`."""
    if x.dtype.itemsize == 2 and p not in WITHOUT_DIVISION:
        # the reciprocal of a small norm is beyond float16
        return in_float32(norm_rule, m, (grad, x, out), p, dim, keepdim)

    def back(value: Any) -> Any:
        return unreduced(m, value, x.shape, dim, keepdim=keepdim)

    if p == 2:
        return m.mul(x, back(m.mul(grad, m.reciprocal_or_zero(out))))
    if p == 0:
        return m.zeros_like(x)
    sign = m.sgn(x)
    if p == 1:
        return m.mul(expanded(m, grad, x.shape, dim, keepdim=keepdim), sign)
    if math.isinf(p):
        return m.mul(m.mul(back(grad), sign), m.share(m.abs(x), back(out), dim=dim))
    # x / |x| * (|x| / norm) ** (p - 1), and 0 where x is 0: there the power of a p below 1 is infinite
    size = m.mul(m.abs(x), back(m.reciprocal_or_zero(out)))
    slope = m.pow(size, p - 1) if p > 1 else m.pow(m.reciprocal_or_zero(size), 1 - p)
    return m.mul(m.mul(back(grad), sign), slope)


def norm(
    input: Tensor, p: float | str = "fro", dim: Dims = None, keepdim: bool = False, dtype: Dtype | None = None
) -> Tensor:
    """Return the norm ``sum(|x| ** p) ** (1 / p)`` of all elements, or of those along `dim`, as one vector.

    The order `p` is a number, or ``"fro"`` for 2; anything else raises an OrderError. Infinity gives the largest, minus
    infinity the smallest absolute value, 0 the number of elements that are not zero. The gradient of a norm of 0 is 0.

    >>> import lucid
    >>> x = lucid.tensor([[3.0, -4.0], [0.0, 0.0]])
    >>> lucid.norm(x), lucid.norm(x, 1, dim=1), lucid.norm(x, float("inf"))
    (tensor(5.), tensor([7., 0.]), tensor(4.))
    """
    if p == "fro":
        p = 2
    elif isinstance(p, str | bool | None):
        raise OrderError(f"norm: expected p to be a number or 'fro', got {p!r}")
    order = float(as_number(p, "p"))
    x = tensor_operand(input)
    if float_dtype_of(x, "norm", dtype).is_complex:
        raise DtypeError("norm: complex tensors are not supported; take their abs() first")
    if dtype is not None:
        x = cast_to(x, as_dtype(dtype))
    dims = reduced_dims(dim, x.array.ndim)
    if math.isinf(order):
        check_ordered(x, "norm", dims)
    return _norm(x, p=order, dim=dims, keepdim=as_bool(keepdim, "keepdim"))


def normalize(input: Tensor, p: float = 2.0, dim: Sizes = 1, eps: float = 1e-12) -> Tensor:
    """Return `input` divided by its norm of order `p` along `dim`, ``x / max(norm(x), eps)``.

    `eps` is what is divided by at least.

    >>> import lucid
    >>> lucid.nn.functional.normalize(lucid.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return div(input, clamp(norm(input, p, dim, True), min=as_number(eps, "eps")))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Return the cosine of the angle between vectors along `dim`, ``x1 . x2 / (max(|x1|, eps) * max(|x2|, eps))``.

    `x1` and `x2` broadcast against each other; their lengths count as `eps` at least. It is computed in float32
    for half types.

    >>> import lucid
    >>> lucid.cosine_similarity(lucid.tensor([[1.0, 0.0]]), lucid.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    one, other = promote(wide_in_autocast(tensor_operand(x1)), wide_in_autocast(tensor_operand(x2)))
    own = dtype_of(one.array)
    wide = as_dtype(accumulation_dtype(own.numpy))
    # before they are broadcast: the terms of the gradient cancel, each and in sums
    one, other = broadcast_tensors(cast_to(one, wide), cast_to(other, wide))
    return cast_to(sum(mul(normalize(one, 2.0, dim, eps), normalize(other, 2.0, dim, eps)), dim), own)
