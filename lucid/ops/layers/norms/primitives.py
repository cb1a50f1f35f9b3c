"""The primitive behind all normalisation layers: values brought to mean 0 and variance 1 over some dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.ops.base.core import sum_to_array
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import (
    MOST_DRIFT,
    about_the_mean,
    array_sum,
    by_rows,
    column_products,
    row_blocks,
    row_products,
    row_sums,
    sum_of,
)  # fmt: skip
from lucid.ops.layers.norms import cpu as loops
from lucid.ops.layers.norms import cuda as kernels
from lucid.ops.reduction.sums import count_of, kept_shape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints


# Elements that are computed at a time on the CPU: four arrays of as many lie in a second-level cache of 2 MiB.
BLOCK = 1 << 17


def _over_lines(xp: ModuleType, x: Array, dim: Ints) -> bool:
    """Return whether the last dimension of an array on the CPU is summed over: it is first, line by line."""
    return xp is np and dim[-1:] == (x.ndim - 1,)


def _total(xp: ModuleType, x: Array, dim: Ints) -> Any:
    """Return the sum over `dim`, kept with size 1."""
    if _over_lines(xp, x, dim):
        return array_sum(row_sums(x), dim[:-1], None, keepdims=True)
    return sum_of(xp, x, dim, keepdims=True)


def _inner(xp: ModuleType, x: Array, y: Array, dim: Ints) -> Any:
    """Return the sum of ``x * y`` over `dim`, kept with size 1."""
    if _over_lines(xp, x, dim):
        return array_sum(row_products(x, y), dim[:-1], None, keepdims=True)
    return sum_of(xp, xp.multiply(x, y), dim, keepdims=True)


def _of_lines(weight: Ints, x: Array) -> bool:
    """Return whether by weights of that shape all elements of a line, along the last dimension, have one weight."""
    return len(weight) == x.ndim and weight[-1] == 1


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
    if weight is not None and (weight.shape == scale.shape or _of_lines(weight.shape, x)):
        scale, weight = scale * weight, None
    xp.multiply(source, scale, out=out)
    if weight is not None:
        xp.multiply(out, weight, out=out)
    if bias is not None:
        xp.add(out, bias, out=out)
    return mean, variance


def _backward(
    xp: ModuleType, out: Array | None, known: Array, grad: Array, x: Array, weight: Array, mean: Array,
    variance: Array, dim: Ints, eps: float, center: bool, broadcast: Ints, wants: tuple[bool, ...],
) -> tuple[Any, Any]:  # fmt: skip
    """Write the gradient of `x` into `out`, if there is one, and return those of weight and bias, or zeros.

    `known` is room. With ``h = grad * weight`` and ``r = 1 / sqrt(variance + eps)`` the gradient of x is ``r * (h +
    slope * (x - mean) - sum(h) / count)``, where ``slope = -sum(h * (x - mean)) * r ** 2 / count``.
    """
    count = count_of(x.shape, dim)
    scale = 1 / xp.sqrt(variance + eps)
    # a number for each set of values is a factor of its sums
    plain = weight is None or weight.shape == scale.shape
    to_weight, to_bias = [xp.zeros(broadcast, grad.dtype) for _ in range(2)]
    centred = xp.subtract(x, mean, out=known) if center else x
    lines = _over_lines(xp, x, dim)
    if lines and (_of_lines(broadcast, x) or (weight is None and not any(wants[1:]))):
        sums, products = row_sums(grad), row_products(grad, centred)
        # no values have no variance, but a sum
        if wants[1] and x.size:
            to_weight = sum_to_array(xp, products * scale, broadcast)
        if wants[2]:
            to_bias = sum_to_array(xp, sums, broadcast)
        if not plain:
            sums, products = sums * weight, products * weight
        total, products = [array_sum(each, dim[:-1], None, keepdims=True) for each in (sums, products)]
    else:
        if wants[2]:
            to_bias = sum_to_array(xp, grad, broadcast)
        if lines:
            each = xp.multiply(grad, centred, out=known if out is None else out)
            if wants[1]:
                to_weight = column_products(each, scale)
            total, products = [row_sums(e) if weight is None else row_products(e, weight) for e in (grad, each)]
        else:
            h = grad if plain else grad * weight
            total, products = _total(xp, h, dim), _inner(xp, h, centred, dim)
            if wants[1]:
                each = products * scale if plain and x.size else grad * centred * scale
                to_weight = sum_to_array(xp, each, broadcast)
    if out is not None:
        # in one place, which stays in the cache
        xp.multiply(centred, products * (scale * scale / -count), out=out)
        xp.add(out, grad if plain else xp.multiply(grad, weight, out=known), out=out)
        if center:
            xp.subtract(out, total / count, out=out)
        xp.multiply(out, scale if weight is None or not plain else scale * weight, out=out)
    return to_weight, to_bias


def _collapsed(shape: tuple[int, ...], dim: tuple[int, ...], broadcast: tuple[int, ...]) -> Any:
    """Return the simplest shape of the same problem, with its dimensions and its shape of weights."""
    first = len(shape) - len(dim)
    if dim == tuple(range(first, len(shape))) and len(broadcast) <= len(dim):
        # rows: layer norm
        return (math.prod(shape[:first]), math.prod(shape[first:])), (1,), (math.prod(broadcast),)
    first = len(shape)
    while first - 1 in dim and len(broadcast) == len(shape) and broadcast[first - 1] == 1:
        first -= 1
    if first < len(shape) - 1:
        # lines: batch norm and instance norm
        dim = (*[d for d in dim if d < first], first)
        return (*shape[:first], math.prod(shape[first:])), dim, (*broadcast[:first], 1)
    return shape, dim, broadcast


def _blocks(xp: ModuleType, shape: tuple[int, ...], axes: Ints) -> list[Any]:
    """Return the indices of blocks: of rows or, if the values of several rows belong together, of channels."""
    size = math.prod(shape)
    if xp is np and size > BLOCK:
        if 0 not in axes:
            return [(block,) for block in row_blocks(shape[0], size // shape[0], BLOCK)]
        if axes == (0, 2):
            return [(slice(None), block) for block in row_blocks(shape[1], size // shape[1], BLOCK)]
    return [(...,)]


def _long_rows(xp: ModuleType, shape: Ints, axes: Ints) -> by_rows:
    return by_rows(math.prod(shape[:-1]) if xp is np and len(shape) - 1 in axes else 1, shape[-1])


def _shaped(xp: ModuleType, x: Array, work: np.dtype[Any], shape: Ints) -> Any:
    return None if x is None else x.reshape(shape).astype(work, copy=False)


def _in_block(operand: Any, index: Any, axes: Ints) -> Any:
    """Return the part of weights, or of their gradient, that belongs to a block: of channels, as a view."""
    return operand if operand is None or 0 not in axes or len(index) == 1 else operand[index]


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
    mean, variance = [xp.empty(kept_shape(shape, axes), work) for _ in range(2)]
    with _long_rows(xp, shape, axes):
        for index in _blocks(xp, shape, axes):
            values = rows[index].astype(work, copy=False)
            part = out[index] if work == x.dtype else xp.empty(values.shape, work)
            factor, offset = _in_block(weight, index, axes), _in_block(bias, index, axes)
            mean[index], variance[index] = _forward(xp, part, values, factor, offset, axes, eps, center)
            if work != x.dtype:
                out[index] = part
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
    out = xp.empty(shape if wants[0] else 0, x.dtype)
    to_weight, to_bias = [xp.zeros(affine, work) for _ in range(2)]
    known: Any = None
    wide: Any = None
    with _long_rows(xp, shape, axes):
        for index in _blocks(xp, shape, axes):
            values, upper = rows[index].astype(work, copy=False), grad[index].astype(work, copy=False)
            # a gradient of a sum is one number, repeated by strides of 0
            upper = upper if upper.shape[-1:] == (1,) or upper.strides[-1:] == (upper.itemsize,) else xp.array(upper)
            if known is None:
                # fresh memory for every block would cost more than the work on it
                known = xp.empty(values.shape, work)
                wide = xp.empty(values.shape, work) if wants[0] and work != x.dtype else None
            within = tuple(map(slice, values.shape))
            part: Any = None if not wants[0] else out[index] if wide is None else wide[within]
            factor = _in_block(weight, index, axes)
            sums = _in_block(to_weight, index, axes), _in_block(to_bias, index, axes)
            settings = axes, eps, center, sums[0].shape, wants
            some = _backward(
                xp, part, known[within], upper, values, factor, mean[index], variance[index], *settings
            )  # fmt: skip
            for total, each in zip(sums, some, strict=True):
                xp.add(total, each, out=total)
            if wide is not None:
                out[index] = part
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
