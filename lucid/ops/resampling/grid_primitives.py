"""The primitives of sampling at a grid: they are linear in images, and each derivative is one of them again.

A sample is a sum over elements near its position, each times a weight for each dimension. The derivative by the
position is the same sum with the derivatives of weights; `orders` says how often those of each dimension, the first
one first, are differentiated by the grid. So there are three sums, and no others come out of them:

    sampled      out[n, c, p] = sum over elements e of weight[n, p, e] * x[n, c, e]
    spread       dx[n, c, e] = sum over points p of weight[n, p, e] * g[n, c, p]
    drift        dgrid[n, p, d] = sum over channels c and elements e of g[n, c, p] * x[n, c, e] * weight[n, p, e], whose
                 dimension d is differentiated once more

A grid names the last dimension of images first. Positions that are no finite numbers are far outside. On a CUDA device
each sum is one kernel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel
from lucid.cuda.launch.windows import LARGEST_INT
from lucid.cuda.source.signature import constant
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.index.accumulation import add_at

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints

# How often weights can be differentiated before all are zero.
MOST_ORDERS = {"bilinear": 1, "nearest": 0, "bicubic": 3}
# Numbers that are taken at once on the CPU, so that they stay in the cache.
BLOCK = 1 << 17
# Up to so many channels are read and added to one by one there, more of them as rows.
FEW_CHANNELS = 16
FAR = 1e9

_MODES = {mode: f"lucid::{mode.upper()}" for mode in ("bilinear", "nearest", "bicubic")}
_TYPED = tuple((t, mode) for t in FLOATS for mode in _MODES.values())
_SAMPLE = Kernel("grid", "lucid::grid_sample", _TYPED)
_SPREAD = Kernel("grid", "lucid::grid_spread", _TYPED)
_DRIFT = Kernel("grid", "lucid::grid_drift", tuple((t, m) for t, m in _TYPED if m != _MODES["nearest"]))

_THREADS = 256
# Threads that keep a device busy: with fewer points than these, blocks share the channels.
_ENOUGH = 1 << 17
_MOST_BLOCKS = 65_535


class Sampling(NamedTuple):
    """How a grid is read.

    Attributes
    ----------
    mode : str
        "bilinear", "nearest" or "bicubic".
    padding : str
        What is outside: "zeros", "border" or "reflection".
    aligned : bool
        Whether -1 and 1 are the centres of the first and last element, or their outer edges.
    """

    mode: str
    padding: str
    aligned: bool


def raised(orders: Ints, dim: int) -> tuple[int, ...]:
    """Return the orders with that of one dimension one higher."""
    return (*orders[:dim], orders[dim] + 1, *orders[dim + 1 :])


def _work(x: Array, grid: Array, size: Ints, how: Sampling, orders: Ints, *, shared: bool) -> Any:
    """Return the kernel's dtype and mode, its launch, and its parameters after the pointers; None without a kernel."""
    name = C_TYPES.get(x.dtype)
    images, channels = x.shape[:2]
    points = math.prod(grid.shape[1:-1])
    if name not in FLOATS or max(*size, channels) > LARGEST_INT or not images * channels * points:
        return None
    blocks = min(-(-images * points // _THREADS), LARGEST_INT)
    across = min(channels, -(-_ENOUGH // (images * points)), _MOST_BLOCKS) if shared else 1
    # the numbers of a point are those of the last dimension first
    reads = [*zip(reversed(size), reversed(orders), strict=True), (1, 0)][:3]
    padding = constant("grid.cu", how.padding.upper())
    rest = (images, channels, points, *[n for read in reads for n in read], len(size), padding, int(how.aligned))
    return (name, _MODES[how.mode]), ((blocks, across), (_THREADS,)), rest


def _launched(kernel: Kernel, work: Any, out: Array, *operands: Array) -> Array:
    """Return `out`, written by a kernel of the operands."""
    instance, launch, rest = work
    arrays = [*map(gpu.cupy().ascontiguousarray, operands), out]
    kernel[instance](*launch, *[array.data.ptr for array in arrays], *rest)
    return out


@primitive
def grid_sampled(xp: ModuleType, x: Array, grid: Array, *, how: Sampling, orders: Ints) -> Array:
    """Return the samples of images `x` at the points of `grid`."""
    wide = accumulation_dtype(x.dtype)
    out = xp.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    points = math.prod(grid.shape[1:-1])
    block = max(BLOCK // max(x.shape[1], 1), 1024)
    for n in range(x.shape[0]):
        image, across = gatherable(xp, x[n], wide)
        places = grid[n].reshape(points, grid.shape[-1]).astype(wide, copy=False)
        result = xp.empty((x.shape[1], points), wide)
        for begin in range(0, points, block):
            part = slice(begin, begin + block)
            near = nearby(xp, places[part], x.shape[2:], how, orders)
            elements = list(zip(indices(near, x.shape[2:]), weights(near, orders), strict=True))
            total = sum_of_taps(xp, image, elements, across, masked=xp is not np)
            if xp is np and not np.isfinite(total.sum()):
                # 0 times infinity or NaN is NaN
                total = sum_of_taps(xp, image, elements, across, masked=True)
            result[:, part] = total if across else total.T
        out[n] = result.reshape(out.shape[1:])
    return out


@grid_sampled.cuda
def _grid_sampled_cuda(x: Array, grid: Array, *, how: Sampling, orders: Ints) -> Any:
    work = _work(x, grid, x.shape[2:], how, orders, shared=True)
    if work is None:
        return NotImplemented
    out = cupy_functions().empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    return _launched(_SAMPLE, work, out, x, grid)


@grid_sampled.vjp("x")
def grid_sampled_x(m: Namespace, grad: Array, grid: Array, x_shape: Ints, how: Sampling, orders: Ints) -> Any:
    """Return the gradient of images."""
    return m.grid_spread(grad, grid, size=x_shape[2:], how=how, orders=orders)


@grid_sampled.vjp("grid")
def drift_of(m: Namespace, g: Any, x: Any, grid: Any, how: Sampling, orders: Ints) -> Any:
    """Return the drift; zeros if weights are the same all around."""
    if min(orders) >= MOST_ORDERS[how.mode]:
        return m.zeros_like(grid)
    return m.grid_drift(g, x, grid, how=how, orders=orders)


@primitive
def grid_spread(xp: ModuleType, g: Array, grid: Array, *, size: Ints, how: Sampling, orders: Ints) -> Array:
    """Return images of a size with the samples `g` added to their elements, by the weights of sampling."""
    wide = accumulation_dtype(g.dtype)
    out = xp.empty((*g.shape[:2], *size), g.dtype)
    points = math.prod(grid.shape[1:-1])
    masked = xp is not np or not np.isfinite(g.astype(wide, copy=False).sum())
    for n in range(g.shape[0]):
        near = nearby(xp, grid[n].reshape(points, grid.shape[-1]).astype(wide, copy=False), size, how, orders)
        index, weight = xp.stack(indices(near, size)), xp.stack(weights(near, orders))
        image, across = gatherable(xp, g[n], wide)
        if across:
            for c in range(g.shape[1]):
                values = weighed(xp, image[c], weight, masked=masked)
                out[n, c] = np.bincount(index.ravel(), values.ravel(), math.prod(size)).reshape(size)
            continue
        total = xp.zeros((math.prod(size), g.shape[1]), wide)
        for k in range(len(index)):
            add_at(xp, total, (0,), (index[k],), weighed(xp, image, weight[k][:, None], masked=masked))
        out[n] = total.T.reshape(out.shape[1:])
    return out


@grid_spread.cuda
def _grid_spread_cuda(g: Array, grid: Array, *, size: Ints, how: Sampling, orders: Ints) -> Any:
    work = _work(g, grid, size, how, orders, shared=True)
    if work is None:
        return NotImplemented
    out = cupy_functions().zeros((*g.shape[:2], *size), accumulation_dtype(g.dtype))
    return _launched(_SPREAD, work, out, g, grid).astype(g.dtype, copy=False)


@grid_spread.vjp("g")
def grid_spread_g(m: Namespace, grad: Array, grid: Array, how: Sampling, orders: Ints) -> Any:
    """Return the gradient of samples."""
    return m.grid_sampled(grad, grid, how=how, orders=orders)


@grid_spread.vjp("grid")
def grid_spread_grid(m: Namespace, grad: Array, g: Array, grid: Array, how: Sampling, orders: Ints) -> Any:
    """Return the gradient of the grid."""
    return drift_of(m, g, grad, grid, how, orders)


@primitive
def grid_drift(xp: ModuleType, g: Array, x: Array, grid: Array, *, how: Sampling, orders: Ints) -> Array:
    """Return how fast the sum of samples of `x` times `g` grows with each number of the grid."""
    wide = accumulation_dtype(x.dtype)
    size, count, points = x.shape[2:], grid.shape[-1], math.prod(grid.shape[1:-1])
    out = xp.empty(grid.shape, grid.dtype)
    block = max(BLOCK // max(x.shape[1], 1), 1024)
    for n in range(x.shape[0]):
        (image, across), (factors, _) = gatherable(xp, x[n], wide), gatherable(xp, g[n], wide)
        places = grid[n].reshape(points, grid.shape[-1]).astype(wide, copy=False)
        total = xp.empty((points, count), wide)
        for begin in range(0, points, block):
            part = slice(begin, begin + block)
            near = nearby(xp, places[part], size, how, orders, more=1)
            by = factors[:, part] if across else factors[part]
            terms = "cp,cp->p" if across else "pc,pc->p"
            dots = [xp.einsum(terms, by, image.take(index, axis=int(across))) for index in indices(near, size)]
            for dim in range(count):
                moved = zip(dots, weights(near, raised(orders, dim)), strict=True)
                total[part, count - 1 - dim] = sum(weighed(xp, dot, weight, masked=True) for dot, weight in moved)
        out[n] = total.reshape(grid.shape[1:])
    return out


@grid_drift.cuda
def _grid_drift_cuda(g: Array, x: Array, grid: Array, *, how: Sampling, orders: Ints) -> Any:
    work = _work(x, grid, x.shape[2:], how, orders, shared=False)
    if work is None or how.mode == "nearest":
        return NotImplemented
    return _launched(_DRIFT, work, cupy_functions().empty(grid.shape, grid.dtype), g, x, grid)


@grid_drift.vjp("g")
def grid_drift_g(m: Namespace, grad: Array, x: Array, grid: Array, g_shape: Ints, how: Sampling, orders: Ints) -> Any:
    """Return the gradient of the samples' factors."""
    terms = [
        m.mul(part, m.grid_sampled(x, grid, how=how, orders=more))
        for part, more in parts_of(m, grad, (g_shape[0], 1, *g_shape[2:]), how, orders)
    ]
    return sum_of(m, terms, x, g_shape)


@grid_drift.vjp("x")
def grid_drift_x(m: Namespace, grad: Array, g: Array, grid: Array, x_shape: Ints, how: Sampling, orders: Ints) -> Any:
    """Return the gradient of images."""
    terms = [
        m.grid_spread(m.mul(g, part), grid, size=x_shape[2:], how=how, orders=more)
        for part, more in parts_of(m, grad, (x_shape[0], 1, *grad.shape[1:-1]), how, orders)
    ]
    return sum_of(m, terms, g, x_shape)


@grid_drift.vjp("grid")
def grid_drift_grid(m: Namespace, grad: Array, g: Array, x: Array, grid: Array, how: Sampling, orders: Ints) -> Any:
    """Return the gradient of the grid."""
    terms = [
        m.mul(part, drift_of(m, g, x, grid, how, more))
        for part, more in parts_of(m, grad, (*grad.shape[:-1], 1), how, orders)
    ]
    return sum_of(m, terms, grid, grad.shape)


def parts_of(m: Namespace, grad: Any, shape: Ints, how: Sampling, orders: Ints) -> list[tuple[Any, tuple[int, ...]]]:
    """Return the part of a drift's gradient for each dimension, in a shape, with the orders of its weights."""
    parts: list[tuple[Any, tuple[int, ...]]] = []
    for dim in range(len(orders)):
        more = raised(orders, dim)
        if more[dim] <= MOST_ORDERS[how.mode]:
            at = len(orders) - 1 - dim
            parts.append((m.reshape(m.getitem(grad, index=(..., slice(at, at + 1))), shape=shape), more))
    return parts


def sum_of(m: Namespace, terms: list[Any], like: Any, shape: Ints) -> Any:
    """Return the sum of terms; zeros of a shape if there are none."""
    if not terms:
        return m.expand(m.zeros_like(m.getitem(like, index=(*[0] * len(like.shape), ...))), shape=shape)
    total = terms[0]
    for term in terms[1:]:
        total = m.add(total, term)
    return total


# ---- elements and weights ----


class Near(NamedTuple):
    """The elements near each point in one dimension.

    Attributes
    ----------
    indices : list of Array
        Of the first, second, ... element.
    weights : dict of int to list of Array
        By their order: their weights.
    """

    indices: list[Array]
    weights: dict[int, list[Array]]


def gatherable(xp: ModuleType, x: Array, dtype: Any) -> tuple[Array, bool]:
    """Return an image as (channels, elements) and True for few channels, else its transpose and False."""
    across = xp is np and x.shape[0] <= FEW_CHANNELS
    flat = x.reshape(x.shape[0], math.prod(x.shape[1:])).astype(dtype, copy=False)
    return xp.ascontiguousarray(flat if across else flat.T), across


def sum_of_taps(
    xp: ModuleType, image: Array, elements: list[tuple[Array, Array]], across: bool, *, masked: bool
) -> Array:
    """Return the sums of elements, of all channels, times their weights."""
    total = None
    for index, weight in elements:
        part = image.take(index, axis=int(across))
        part = weighed(xp, part, weight if across else weight[:, None], masked=masked)
        # the first is added to 0, so that nothing times a negative element is not -0
        total = xp.add(part, 0 if total is None else total, out=part)
    return total


def weighed(xp: ModuleType, values: Array, weight: Array, *, masked: bool) -> Array:
    """Return values times weights; with `masked` 0 for a weight of 0, whatever the value."""
    return xp.where(weight == 0, values.dtype.type(0), values * weight) if masked else values * weight


def nearby(xp: ModuleType, places: Array, size: Ints, how: Sampling, orders: Ints, more: int = 0) -> list[Near]:
    """Return the elements near points in each dimension, with weights of the orders, and of `more` above."""
    along = [xp.ascontiguousarray(places[:, len(size) - 1 - dim]) for dim in range(len(size))]
    ranges = [range(order, order + more + 1) for order in orders]
    return [nearby_along(xp, *each, how) for each in zip(along, size, ranges, strict=True)]


def indices(near: list[Near], size: Ints) -> list[Array]:
    """Return the indices, over all dimensions, of each element near the points."""
    result = near[0].indices
    for along, length in zip(near[1:], size[1:], strict=True):
        result = [index * length + more for index in result for more in along.indices]
    return result


def weights(near: list[Near], orders: Ints) -> list[Array]:
    """Return the weights of the same elements."""
    result = near[0].weights[orders[0]]
    for along, order in zip(near[1:], orders[1:], strict=True):
        result = [weight * factor for weight in result for factor in along.weights[order]]
    return result


def nearby_along(xp: ModuleType, place: Array, size: int, orders: range, how: Sampling) -> Near:
    """Return the elements near places in one dimension."""
    slope = (size - 1 if how.aligned else size) / 2
    position = place * slope + (slope - (0 if how.aligned else 0.5))
    slopes: Any = place.dtype.type(slope)
    if how.mode != "bicubic":
        position, sign = inside(xp, position, size, how)
        slopes = slope * sign
    if xp is not np or not np.abs(position).max(initial=0) < FAR:
        far = ~(xp.abs(position) < FAR)
        away = xp.where(position > 0, place.dtype.type(size + 100), place.dtype.type(-100))
        position = xp.where(far, away, position)
        slopes = xp.where(far, place.dtype.type(0), slopes)
    first = xp.rint(position) if how.mode == "nearest" else xp.floor(position)
    by_order: dict[int, list[Array]] = {}
    for order in orders:
        by_order[order] = weights_of(xp, how.mode, position - first, order)
        if order:
            by_order[order] = [weight * slopes**order for weight in by_order[order]]
    if how.mode == "bicubic":
        first = first - 1
    elements: list[Array] = []
    for k in range(len(by_order[orders[0]])):
        element = first + k
        if how.mode == "bicubic":
            element, _ = inside(xp, element, size, how)
        if how.padding != "zeros":
            # one behind the last has the weight 0
            elements.append(xp.minimum(element.astype(np.int64), size - 1))
            continue
        inner = (element >= 0) & (element <= size - 1)
        elements.append(element.astype(np.int64) * inner)
        for of_order in by_order.values():
            of_order[k] = of_order[k] * inner
    return Near(elements, by_order)


def weights_of(xp: ModuleType, mode: str, between: Array, order: int) -> list[Array]:
    """Return the weights of elements, or their derivatives, by the position between the first two."""
    if mode == "nearest":
        return [xp.ones_like(between) if order == 0 else xp.zeros_like(between)]
    return linear_weights(xp, between, order) if mode == "bilinear" else cubic_weights(xp, between, order)


def inside(xp: ModuleType, position: Array, size: int, how: Sampling) -> tuple[Array, Any]:
    """Return positions with those outside brought inside, as the padding says, and how fast they move: 1, -1 or 0."""
    if how.padding == "zeros":
        return position, 1
    sign: Any = 1
    if how.padding == "reflection":
        least, span = (0, size - 1) if how.aligned else (-0.5, size)
        if not span:
            return xp.zeros_like(position), 0
        distance = xp.abs(position - least)
        extra = xp.fmod(distance, span)
        odd = xp.floor(distance / span) % 2 == 1
        sign = xp.where(odd, -1, 1) * xp.where(position < least, -1, 1)
        position = xp.where(odd, span - extra, extra) + least
    stays = (position > 0) & (position < size - 1)
    # NaN, too, is at the first element
    position = xp.where(position > 0, xp.minimum(position, size - 1), position.dtype.type(0))
    return position, xp.where(stays, sign, 0).astype(position.dtype)


def linear_weights(xp: ModuleType, between: Array, order: int) -> list[Array]:
    """Return the weights of the elements before and behind, or their derivatives."""
    if order == 0:
        return [1 - between, between]
    step = xp.ones_like(between) if order == 1 else xp.zeros_like(between)
    return [-step, step]


def cubic_weights(xp: ModuleType, between: Array, order: int) -> list[Array]:
    """Return the weights of the four elements around, by cubic convolution with a = -0.75, or their derivatives."""
    a = -0.75
    near, far = (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)
    values: list[Array] = []
    for k, polynomial in enumerate((far, near, near, far)):
        side = 1 if k < 2 else -1
        distance = (between - (k - 1)) * side
        coefficients = np.polyder(polynomial, order) * side**order
        value = xp.zeros_like(between)
        for coefficient in coefficients.tolist():
            value = value * distance + coefficient
        values.append(value)
    return values
