"""The primitive behind all normalisation layers: values brought to mean 0 and variance 1 over some dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.ops.base.core import sum_to_array
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import (
    LONG_ROW,
    MOST_DRIFT,
    ROWS_BLOCK,
    about_the_mean,
    array_sum,
    by_rows,
    row_blocks,
    row_products,
    row_sums,
    sum_of,
)  # fmt: skip
from lucid.ops.layers import normalisation_cpu as loops
from lucid.ops.layers import normalisation_cuda as kernels
from lucid.ops.reduction.sums import count_of, kept_shape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints


def _total(xp: ModuleType, x: Array, dim: Ints) -> Any:
    """Return the sum over `dim`, kept with size 1."""
    if xp is np and dim == (1,) and x.ndim == 2:
        return row_sums(x)
    return sum_of(xp, x, dim, keepdims=True)


def _inner(xp: ModuleType, x: Array, y: Array, dim: Ints) -> Any:
    """Return the sum of ``x * y`` over `dim`, kept with size 1."""
    if xp is np and dim == (1,) and x.ndim == 2:
        return row_products(x, y)
    first = x.ndim
    while first and first - 1 in dim:
        first -= 1
    if xp is np and first < x.ndim and x.flags.c_contiguous and y.flags.c_contiguous:
        flat = (*x.shape[:first], math.prod(x.shape[first:]))
        products = row_products(x.reshape(flat), y.reshape(flat))
        return array_sum(products, tuple([d for d in dim if d < first])).reshape(kept_shape(x.shape, dim))
    return sum_of(xp, xp.multiply(x, y), dim, keepdims=True)


def _is_exact(mean: Array, squares: Array, count: int) -> bool:
    """Return whether no mean of `count` numbers, as it is rounded, moves its sum of squares by half a unit.

    A sum of n numbers is off by some ``sqrt(n)`` roundings, here up to eight times that; moving the mean by d adds
    ``n * d**2``. What lies around 0 like most activations needs no second sum.
    """
    most = 1 / (256 * np.finfo(squares.dtype).epsneg * max(count, 1)) - 1
    return bool(np.all(mean * mean * count <= squares * most))


def _forward(
    xp: ModuleType, out: Array, x: Array, weight: Array, bias: Array, dim: Ints, eps: float, center: bool
) -> tuple[Any, Any]:
    """Write the result for `x` into `out` and return mean and variance."""
    count = count_of(x.shape, dim)
    mean: Any = _total(xp, x, dim) / count if center else xp.zeros(kept_shape(x.shape, dim), x.dtype)
    source = xp.subtract(x, mean, out=out) if center else x
    squares = _inner(xp, source, source, dim)
    if center and not (xp is np and _is_exact(mean, squares, count)):
        drift = _total(xp, source, dim)
        if xp is np and np.any(drift / count * drift > MOST_DRIFT * squares):
            mean = mean + drift / count
            source = xp.subtract(x, mean, out=out)
            squares, drift = _inner(xp, source, source, dim), _total(xp, source, dim)
        squares = about_the_mean(xp, squares, drift, count)
    variance = squares / count
    scale = 1 / xp.sqrt(variance + eps)
    if weight is not None and weight.shape == scale.shape:
        scale, weight = scale * weight, None
    xp.multiply(source, scale, out=out)
    if weight is not None:
        xp.multiply(out, weight, out=out)
    if bias is not None:
        xp.add(out, bias, out=out)
    return mean, variance


def _backward(
    xp: ModuleType, out: Array, known: Array, grad: Array, x: Array, weight: Array, mean: Array, variance: Array,
    dim: Ints, eps: float, center: bool, broadcast: Ints, wants: tuple[bool, ...],
) -> tuple[Any, Any]:  # fmt: skip
    """Write the gradient of `x` into `out` and return those of weight and bias, zeros if they are not wanted.

    `known` is room. With ``h = grad * weight`` and ``r = 1 / sqrt(variance + eps)`` the gradient of x is ``r * (h +
    slope * (x - mean) - sum(h) / count)``, where ``slope = -sum(h * (x - mean)) * r ** 2 / count``. Long rows
    of NumPy's take the mean off the sums and not off x: one pass less, and the rounding of PyTorch.
    """
    count = count_of(x.shape, dim)
    scale = 1 / xp.sqrt(variance + eps)
    none = xp.zeros(broadcast, grad.dtype)
    to_weight, to_bias = none, sum_to_array(xp, grad, broadcast) if wants[2] else none
    # a number for each set of values needs these not one by one
    plain = weight is None or weight.shape == scale.shape
    if wants[1] and not (wants[0] and plain):
        y = xp.multiply(xp.subtract(x, mean, out=known) if center else x, scale, out=known)
        # where nothing is summed the products are the result, and need memory of their own
        room = known if not wants[0] else None if grad.shape == broadcast else out
        to_weight = sum_to_array(xp, xp.multiply(grad, y, out=room), broadcast)
    if not wants[0]:
        return to_weight, to_bias
    h = grad if plain else xp.multiply(grad, weight, out=known)
    total = _total(xp, h, dim) if center else 0
    in_sums = center and xp is np and dim == (1,) and x.shape[1] >= LONG_ROW
    centred = x if in_sums or not center else xp.subtract(x, mean, out=out)
    products = _inner(xp, h, centred, dim) - (total * mean if in_sums else 0)
    # no values have no variance, but a sum
    if plain and wants[1] and x.size:
        to_weight = products * scale
    slope = products * (scale * scale / -count)
    # in one place, which stays in the cache
    xp.multiply(centred, slope, out=out)
    xp.add(out, h, out=out)
    if center:
        xp.subtract(out, total / count + (slope * mean if in_sums else 0), out=out)
    xp.multiply(out, scale if weight is None or not plain else scale * weight, out=out)
    return to_weight, to_bias


def _collapsed(shape: tuple[int, ...], dim: tuple[int, ...], broadcast: tuple[int, ...]) -> Any:
    """Return the simplest shape of the same problem, with its dimensions and its shape of weights."""
    first = len(shape) - len(dim)
    if dim == tuple(range(first, len(shape))) and len(broadcast) <= len(dim):
        # rows: layer norm
        return (math.prod(shape[:first]), math.prod(shape[first:])), (1,), (math.prod(broadcast),)
    if len(shape) > 3 and dim == (0, *range(2, len(shape))):
        # channels: batch norm
        return (*shape[:2], math.prod(shape[2:])), (0, 2), (1, math.prod(broadcast), 1)
    return shape, dim, broadcast


def _at_once(xp: ModuleType, x: Array, axes: Ints) -> bool:
    """Whether an array is not taken in blocks of rows: it is small, or values of several rows belong together."""
    return xp is not np or x.size <= ROWS_BLOCK or 0 in axes


def _long_rows(xp: ModuleType, shape: Ints, axes: Ints) -> by_rows:
    return by_rows(shape[0] if xp is np and 0 not in axes else 1, shape[-1])


def _shaped(xp: ModuleType, x: Array, work: np.dtype[Any], shape: Ints) -> Any:
    return None if x is None else x.reshape(shape).astype(work, copy=False)


@primitive(outputs=("out", "mean", "variance"), saved_as={"x": "input"})
def normalise(
    xp: ModuleType,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    dim: Ints,
    eps: float,
    center: bool,
    broadcast: Ints,
) -> tuple[Array, Array, Array]:
    """Return ``(x - mean) / sqrt(variance + eps) * weight + bias`` with mean and variance over `dim`, and these two.

    Without `center` no mean is taken off, and the variance is the mean of the squares. `broadcast` is the shape in
    which weight and bias meet `x`. Mean and variance keep their dimensions, in float32 for half types.
    """
    made = loops.normalised(x, weight, bias, dim, eps, center, broadcast) if xp is np else None
    if made is not None:
        return made
    shape, axes, affine = _collapsed(x.shape, dim, broadcast)
    work = accumulation_dtype(x.dtype)
    rows = x.reshape(shape)
    weight, bias = _shaped(xp, weight, work, affine), _shaped(xp, bias, work, affine)
    stats = kept_shape(x.shape, dim)
    out = xp.empty(shape, x.dtype)
    with _long_rows(xp, shape, axes):
        if _at_once(xp, x, axes):
            whole = out if work == x.dtype else xp.empty(shape, work)
            mean, variance = _forward(xp, whole, rows.astype(work, copy=False), weight, bias, axes, eps, center)
            if whole is not out:
                out[...] = whole
        else:
            kept = kept_shape(shape, axes)
            mean, variance = np.empty(kept, work), np.empty(kept, work)
            for block in row_blocks(shape[0], x.size // shape[0]):
                part = out[block] if work == x.dtype else np.empty(rows[block].shape, work)
                mean[block], variance[block] = _forward(
                    np, part, rows[block].astype(work, copy=False), weight, bias, axes, eps, center
                )
                if work != x.dtype:
                    out[block] = part
    return out.reshape(x.shape), mean.reshape(stats), variance.reshape(stats)


normalise.cuda(kernels.normalise)


@normalise.vjp(*normalise.inputs, planned=True)
def _normalise_vjp(
    m: Namespace, grad: Array, x: Array, weight: Array, mean: Array, variance: Array, weight_shape: Ints,
    bias_shape: Ints, dim: Ints, eps: float, center: bool, broadcast: Ints, needs: tuple[bool, ...],
) -> Any:  # fmt: skip
    grads = m.normalise_grad(
        grad[0], x, weight, mean, variance, dim=dim, eps=eps, center=center, broadcast=broadcast, wants=needs
    )
    shapes = (x.shape, weight_shape, bias_shape)
    return tuple([
        None if not needed else g if g.shape == shape else m.reshape(g, shape=shape)
        for g, shape, needed in zip(grads, shapes, needs, strict=True)
    ])  # fmt: skip


@primitive(outputs=("to_x", "to_weight", "to_bias"), differentiable=(0, 1, 2))
def normalise_grad(
    xp: ModuleType,
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    variance: Array,
    *,
    dim: Ints,
    eps: float,
    center: bool,
    broadcast: Ints,
    wants: tuple[bool, ...],
) -> tuple[Array, Array, Array]:
    """Return the gradients of `normalise` with given mean and variance: those of x, weight and bias.

    With ``y = (x - mean) * r``, ``r = 1 / sqrt(variance + eps)`` and ``h = grad * weight``, that of x is
    ``r * (h - mean(h) - y * mean(h * y))``. What `wants` leaves out is zeros of no use.
    """
    if xp is np:
        made = loops.normalised_grad(grad, x, weight, mean, variance, dim, eps, center, broadcast, wants)
        if made is not None:
            return made
    shape, axes, affine = _collapsed(x.shape, dim, broadcast)
    work = accumulation_dtype(x.dtype)
    kept = kept_shape(shape, axes)
    grad, rows, mean, variance = grad.reshape(shape), x.reshape(shape), mean.reshape(kept), variance.reshape(kept)
    weight = _shaped(xp, weight, work, affine)
    settings = (axes, eps, center, affine, wants)
    out = xp.empty(shape, x.dtype) if wants[0] else xp.zeros(0, x.dtype)
    whole: Any
    if _at_once(xp, x, axes):
        whole = out if work == x.dtype or not wants[0] else xp.empty(shape, work)
        grad, rows = grad.astype(work, copy=False), rows.astype(work, copy=False)
        known = xp.empty(shape, work)
        with _long_rows(xp, shape, axes):
            to_weight, to_bias = _backward(xp, whole, known, grad, rows, weight, mean, variance, *settings)
        if whole is not out:
            out[...] = whole
    else:
        to_weight, to_bias = np.zeros(affine, work), np.zeros(affine, work)
        blocks = list(row_blocks(shape[0], x.size // shape[0]))
        # fresh memory for every block would cost more than the work on it
        spare: Any = np.empty(rows[blocks[0]].shape, work)
        known: Any = np.empty_like(spare)
        with _long_rows(xp, shape, axes):
            for block in blocks:
                size = block.stop - block.start
                part = out[block] if wants[0] and work == x.dtype else spare[:size]
                some_weight, some_bias = _backward(
                    np, part, known[:size], grad[block].astype(work, copy=False), rows[block].astype(work, copy=False),
                    weight, mean[block], variance[block], *settings,
                )  # fmt: skip
                if wants[1]:
                    to_weight += some_weight
                if wants[2]:
                    to_bias += some_bias
                if wants[0] and work != x.dtype:
                    out[block] = part
    return out.reshape(x.shape) if wants[0] else out, to_weight.reshape(broadcast), to_bias.reshape(broadcast)


normalise_grad.cuda(kernels.normalise_grad)


@normalise_grad.vjp("grad", "x", "weight")
def _normalise_grad_vjp(
    m: Namespace, upper: Array, grad: Array, x: Array, weight: Array, mean: Array, variance: Array, weight_shape: Ints,
    dim: Ints, eps: float, center: bool, broadcast: Ints, needs: tuple[bool, ...],
) -> Any:  # fmt: skip
    to_x, to_weight, to_bias = upper
    settings: dict[str, Any] = {"dim": dim, "eps": eps, "center": center, "broadcast": broadcast}
    stats = kept_shape(x.shape, dim)
    count = float(count_of(x.shape, dim))

    def pulled(value: Any) -> Any:
        """Return the gradient of x for one of y; the map is symmetric, so that it is also that of y for one of x."""
        return m.normalise_grad(value, x, None, mean, variance, **settings, wants=(True, False, False))[0]

    # mean and variance belong to x: what is needed of them is taken from x again, so that it can be differentiated
    y = m.normalise(x, None, None, **settings)[0]
    spread = m.var(x, dim=dim, correction=0.0, keepdim=True) if center else m.mean(m.mul(x, x), dim=dim, keepdim=True)
    r = m.pow(m.add(spread, eps), -0.5)
    scale = None if weight is None else m.reshape(weight, shape=broadcast)
    sums: list[Any] = [None, None, None]

    def add(operand: int, value: Any) -> None:
        if needs[operand]:
            sums[operand] = value if sums[operand] is None else m.add(sums[operand], value)

    if to_x is not None:
        h = grad if scale is None else m.mul(grad, scale)
        back = pulled(to_x)
        add(0, back if scale is None else m.mul(back, scale))
        if scale is not None and needs[2]:
            add(2, m.reshape(m.sum_to(m.mul(back, grad), shape=broadcast), shape=weight_shape))
        if needs[1]:
            along_h = m.div(m.sum_to(m.mul(h, y), shape=stats), count)
            along_u = m.div(m.sum_to(m.mul(to_x, y), shape=stats), count)
            bent = m.mul(r, m.add(m.mul(to_x, along_h), m.mul(h, along_u)))
            share = m.div(m.sum_to(m.mul(to_x, pulled(h)), shape=stats), count)
            # y first: of a row of zeros r times the share may be infinite in float16
            add(1, m.neg(m.add(pulled(bent), m.mul(m.mul(y, r), share))))
    if to_weight is not None:
        add(0, m.mul(y, to_weight))
        if needs[1]:
            add(1, pulled(m.mul(grad, to_weight)))
    if to_bias is not None:
        add(0, m.expand(to_bias, shape=x.shape))
    # an operand that only gradients of no interest depend on gets zeros
    return tuple([
        m.zeros_like(operand) if needed and total is None else total
        for total, needed, operand in zip(sums, needs, (grad, x, weight), strict=True)
    ])  # fmt: skip
