"""The primitives of pooling: they go over the positions in the window and take all windows at once.

On a CUDA device each is one kernel.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.cpu import pooling as compiled
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.windows import LARGEST_INT, addressable, images, launch_shape, packed
from lucid.ops.base.declaration import adjoint
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import ROWS_AT_ONCE, sum_of
from lucid.ops.layers.windows import FEW_TAPS, Axis, elements_in, taps, window_count, window_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array


# Windows that tile the input are taken as a whole if they have more positions than this, else one by one.
MANY_POSITIONS = 16

# Elements of the positions that are compared at a time on the CPU: their copies stay in the cache.
POOLED_AT_ONCE = 1 << 18

# On CUDA windows of more positions than this are shared by a warp.
_LARGE = 64
# By their bytes, the integers that number the positions in a window.
_NUMBERS = {1: "unsigned char", 2: "unsigned short"}
_TYPED = tuple((t, number) for t in FLOATS for number in _NUMBERS.values())
_MAX_POOL = Kernel("pooling", "lucid::max_pool", _TYPED)
_MAX_POOL_GRAD = Kernel("pooling", "lucid::max_pool_grad", _TYPED)
_MAX_POOL_SELECT = Kernel("pooling", "lucid::max_pool_select", _TYPED)
_AVG_POOL = Kernel("pooling", "lucid::avg_pool", tuple((t, n) for t in FLOATS for n in ("1", "32")))
_AVG_POOL_GRAD = Kernel("pooling", "lucid::avg_pool_grad", EACH_FLOAT)


class Work(NamedTuple):
    """Arguments of a kernel's launch.

    Attributes
    ----------
    dtype : str
        The array's dtype in C.
    launch : tuple
        Grid and block.
    shape : tuple of int
        The shape of the result.
    rest : tuple of int
        Planes, channels, the steps of the array and the windows: the kernel's parameters after its pointers.
    """

    dtype: str
    launch: tuple[Any, Any]
    shape: tuple[int, ...]
    rest: tuple[int, ...]


def _work(x: Array, axes: tuple[Axis, ...], over: str, lanes: int = 1) -> Work | None:
    """Return the launch of a kernel that reads `x` and goes `over` elements ("size") or windows ("out")."""
    dtype = C_TYPES.get(x.dtype)
    read = images(x, len(axes))
    made = tuple([getattr(axis, over) for axis in axes])
    pixels = math.prod(made)
    if dtype not in FLOATS or read is None or not read.planes * pixels:
        return None
    if not addressable(axes) or read.shape[1] > LARGEST_INT:
        return None
    launch = launch_shape(read.planes, pixels, lanes)
    if launch is None:
        return None
    rest = read.planes, read.shape[1], *read.steps, *packed(axes)
    return Work(dtype, launch, (*x.shape[: -len(axes)], *made), rest)


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return the smallest value of a dtype of numbers."""
    return -math.inf if dtype.kind in "fV" else np.iinfo(dtype).min


def tap_dtype(axes: tuple[Axis, ...]) -> Any:
    """Return the smallest integer dtype that numbers the positions in a window."""
    return np.min_scalar_type(window_size(axes) - 1)


def first_taps(xp: ModuleType, axes: tuple[Axis, ...]) -> Array:
    """Return for each window the number of its first position that is not in the padding."""
    number = xp.zeros(window_count(axes), tap_dtype(axes))
    for k, axis in enumerate(axes):
        begin = xp.arange(axis.out) * axis.stride - axis.before
        first = -(xp.minimum(begin, 0) // axis.dilation)
        number = number * axis.kernel + first.reshape(-1, *[1] * (len(axes) - k - 1))
    return number.astype(tap_dtype(axes))


@functools.lru_cache(maxsize=256)
def _first_taps_cpu(axes: tuple[Axis, ...]) -> Array:
    return first_taps(np, axes)


@primitive(outputs=("values", "which"))
def max_pool(xp: ModuleType, x: Array, *, axes: tuple[Axis, ...]) -> tuple[Array, Array]:
    """Return the largest element of each window, and the number of its first position.

    A window with a NaN gives NaN, and the position of its last one.
    """
    if xp is np and (pooled := compiled.max_pool(x, axes, tap_dtype(axes))) is not None:
        return pooled
    shape = (*x.shape[: -len(axes)], *window_count(axes))
    dtype = tap_dtype(axes)
    every = numbered_taps(axes)
    values, which = xp.empty(shape, x.dtype), xp.zeros(shape, dtype)
    if not every:
        values.fill(lowest(x.dtype))
    images = max(1, POOLED_AT_ONCE // max(1, len(every) * values[:1].size)) if xp is np else max(1, len(values))
    for start in range(0, len(values), images):
        block = slice(start, start + images)
        some = max(1, POOLED_AT_ONCE // max(1, values[block].size))
        for first in range(0, len(every), some):
            _take_larger(xp, x[block], values[block], which[block], every[first : first + some], fresh=not first)
    if any(axis.before for axis in axes):
        first = first_taps(xp, axes) if xp is not np else _first_taps_cpu(axes)
        xp.copyto(which, first, where=values == lowest(x.dtype))
    if x.dtype.kind in "fV" and (xp is not np or np.isnan(values).any()):
        # maximum() has passed on each NaN, comparisons have passed them by
        for number, windows, elements in every:
            xp.copyto(which[windows], dtype.type(number), where=xp.isnan(x[elements]))
    return values, which


def _take_larger(xp: ModuleType, x: Array, values: Array, which: Array, taps: Any, *, fresh: bool) -> None:
    """Write into `values` the elements at some positions that are larger, and into `which` the numbers of the first.

    If both are `fresh`, all are. Positions are copied first: rows of windows are short, and a call on them takes as
    long as many on the copies.
    """
    candidates = xp.empty((len(taps), *values.shape), x.dtype)
    for candidate, (_, windows, elements) in zip(candidates, taps, strict=True):
        part = candidate[windows]
        if part.size < candidate.size:
            candidate.fill(lowest(x.dtype))
        part[...] = x[elements]
    # from the last to the first: of zeros of both signs the later operand of maximum() stays
    best = candidates[::-1].max(0)
    # of those that are the largest the first has the largest of numbers that fall
    end = taps[-1][0] + 1
    falling = xp.asarray([end - number for number, _, _ in taps], np.min_scalar_type(end))
    is_best = candidates == best
    number = end - (is_best * falling.reshape(-1, *[1] * values.ndim)).max(0)
    if fresh:
        values[...], which[...] = best, number
    else:
        xp.copyto(which, number.astype(which.dtype), where=best > values)
        xp.maximum(best, values, out=values)


def numbered_taps(axes: tuple[Axis, ...]) -> tuple[tuple[int, Any, Any], ...]:
    """Return each position in the window as its number, and the indices of its windows and of the elements there."""
    return _few_numbered_taps(axes) if window_size(axes) <= FEW_TAPS else tuple(_numbered(axes))


def _numbered(axes: tuple[Axis, ...]) -> Iterator[tuple[int, Any, Any]]:
    sizes = [axis.kernel for axis in axes[1:]]
    for position, windows, elements in taps(axes):
        number = position[0]
        for index, size in zip(position[1:], sizes, strict=True):
            number = number * size + index
        yield number, (..., *windows), (..., *elements)


@functools.lru_cache(maxsize=256)
def _few_numbered_taps(axes: tuple[Axis, ...]) -> tuple[tuple[int, Any, Any], ...]:
    return tuple(_numbered(axes))


@functools.lru_cache(maxsize=256)
def _places(axes: tuple[Axis, ...]) -> tuple[Array, Array] | None:
    """Return the first index of each window in a plane, and the offsets of its positions, over all elements.

    None if a window lies in the padding: it has no element.
    """
    begins, steps, size = np.zeros(1, np.intp), np.zeros(1, np.intp), 1
    for axis in reversed(axes):
        begin = np.arange(axis.out) * axis.stride - axis.before
        first = -(np.minimum(begin, 0) // axis.dilation)
        if np.any((first >= axis.kernel) | (begin + first * axis.dilation >= axis.size)):
            return None
        step = np.arange(axis.kernel) * axis.dilation
        begins, steps = np.add.outer(begin * size, begins).reshape(-1), np.add.outer(step * size, steps).reshape(-1)
        size *= axis.size
    return begins, steps


def _places_of(xp: ModuleType, which: Array, axes: tuple[Axis, ...]) -> Any:
    """Return for each window the index of the element that `which` names, counted over all planes.

    None on a CUDA device, or where there are no such elements.
    """
    places = _places(axes) if xp is np and which.size else None
    if places is None:
        return None
    begins, steps = places
    indices = steps.take(which).reshape(-1, len(begins))
    indices += begins
    indices += np.arange(len(indices))[:, None] * math.prod(axis.size for axis in axes)
    return indices.reshape(-1)


@max_pool.cuda
@planned
def _max_pool_cuda(x: Array, *, axes: tuple[Axis, ...]) -> Any:
    dtype = tap_dtype(axes)
    number, work = _NUMBERS.get(dtype.itemsize), _work(x, axes, "out")
    if work is None or number is None:
        return NotImplemented
    values, which = empty(work.shape, x.dtype), empty(work.shape, dtype)
    _MAX_POOL[work.dtype, number](*work.launch, x.data.ptr, values.data.ptr, which.data.ptr, *work.rest)
    return values, which


@max_pool.vjp("x", planned=True)
def max_pool_vjp(m: Namespace, grad: Array, which: Array, axes: tuple[Axis, ...]) -> Any:
    """Return the gradient, placed at the largest elements."""
    return m.max_pool_grad(grad[0], which, axes=axes)


@primitive
def max_pool_grad(xp: ModuleType, g: Array, which: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return an array of the pooled shape: each element of `g` added at the position that `which` names."""
    if xp is np and (moved := compiled.max_pool_grad(g, which, axes)) is not None:
        return moved
    result = xp.zeros((*g.shape[: -len(axes)], *[axis.size for axis in axes]), g.dtype)
    indices = _places_of(xp, which, axes)
    if indices is not None:
        flat = result.reshape(-1)
        if all(axis.stride > (axis.kernel - 1) * axis.dilation for axis in axes):
            flat[indices] = g.reshape(-1)
        else:
            # from the last window to the first: positions are added to an element in their order
            np.add.at(flat, indices[::-1], g.reshape(-1)[::-1])
        return result
    for number, windows, elements in numbered_taps(axes):
        result[elements] += xp.where(which[windows] == number, g[windows], g.dtype.type(0))
    return result


@max_pool_grad.cuda
@planned
def _max_pool_grad_cuda(g: Array, which: Array, *, axes: tuple[Axis, ...]) -> Any:
    return _by_number(_MAX_POOL_GRAD, g, which, axes, "size")


def _by_number(kernel: Kernel, x: Array, which: Array, axes: tuple[Axis, ...], over: str) -> Any:
    number, work = _NUMBERS.get(tap_dtype(axes).itemsize), _work(x, axes, over)
    if work is None or number is None or not which.flags.c_contiguous:
        return NotImplemented
    out = empty(work.shape, x.dtype)
    kernel[work.dtype, number](*work.launch, x.data.ptr, which.data.ptr, out.data.ptr, *work.rest)
    return out


adjoint(max_pool_grad, "max_pool_select")


@primitive
def max_pool_select(xp: ModuleType, x: Array, which: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return for each window the element at the position that `which` names."""
    if xp is np and (moved := compiled.max_pool_select(x, which, axes)) is not None:
        return moved
    indices = _places_of(xp, which, axes)
    if indices is not None:
        return x.reshape(-1)[indices].reshape(which.shape)
    result = xp.zeros(which.shape, x.dtype)
    for number, windows, elements in numbered_taps(axes):
        xp.copyto(result[windows], x[elements], where=which[windows] == number)
    return result


@max_pool_select.cuda
@planned
def _max_pool_select_cuda(x: Array, which: Array, *, axes: tuple[Axis, ...]) -> Any:
    return _by_number(_MAX_POOL_SELECT, x, which, axes, "out")


adjoint(max_pool_select, "max_pool_grad")


def flat_positions(xp: ModuleType, which: Array, axes: tuple[Axis, ...]) -> Array:
    """Return for each window the index of the element that `which` names, counted over all pooled dimensions."""
    position = xp.zeros(which.shape, np.int64)
    remaining = which.astype(np.int64)
    step = 1
    for k, axis in reversed(list(enumerate(axes))):
        remaining, within = remaining // axis.kernel, remaining % axis.kernel
        start = (xp.arange(axis.out) * axis.stride - axis.before).reshape(-1, *[1] * (len(axes) - k - 1))
        position += (start + within * axis.dilation) * step
        step *= axis.size
    return position


def divided(xp: ModuleType, total: Array, axes: tuple[Axis, ...], divisor: float | None, *, padded: bool) -> Array:
    """Return sums of windows divided in place, by `divisor`, or if that is None by how many elements a window holds.

    Those in the padding count if `padded`.
    """
    if divisor is not None:
        total /= divisor
        return total
    counts = [elements_in(axis, padded=padded) for axis in axes]
    if all(len(set(each)) == 1 for each in counts):
        total /= math.prod(each[0] for each in counts)
        return total
    for k, each in enumerate(counts):
        total /= xp.asarray(each, total.dtype).reshape(-1, *[1] * (len(axes) - k - 1))
    return total


def are_large_tiles(axes: tuple[Axis, ...]) -> bool:
    """Return whether the windows tile the input and are large."""
    return window_size(axes) > MANY_POSITIONS and all(
        axis.kernel == axis.stride and axis.size == axis.kernel * axis.out for axis in axes
    )


@primitive
def avg_pool(xp: ModuleType, x: Array, *, axes: tuple[Axis, ...], divisor: float | None, padded: bool) -> Array:
    """Return the sum of each window, divided; see :func:`divided`."""
    dtype = accumulation_dtype(x.dtype)
    lead = x.shape[: -len(axes)]
    if are_large_tiles(axes):
        tiles = x.reshape(*lead, *[size for axis in axes for size in (axis.out, axis.kernel)])
        total = sum_of(xp, tiles, tuple(range(len(lead) + 1, tiles.ndim, 2)), dtype)
    elif xp is np and (sums := compiled.sum_pool(x.astype(dtype, copy=False), axes, ROWS_AT_ONCE)) is not None:
        total = sums
    else:
        total = xp.zeros((*lead, *window_count(axes)), dtype)
        every = iter(taps(axes))
        large = window_size(axes) > ROWS_AT_ONCE  # then it is summed up in groups, which rounds less
        while group := [*itertools.islice(every, ROWS_AT_ONCE)]:
            part = xp.zeros_like(total) if large else total
            for tap in group:
                part[(..., *tap.windows)] += x[(..., *tap.elements)]
            if large:
                total += part
    return divided(xp, total, axes, divisor, padded=padded).astype(x.dtype, copy=False)


@avg_pool.cuda
@planned
def _avg_pool_cuda(x: Array, *, axes: tuple[Axis, ...], divisor: float | None, padded: bool) -> Any:
    lanes = 32 if window_size(axes) > _LARGE else 1
    work = _work(x, axes, "out", lanes)
    if work is None:
        return NotImplemented
    out = empty(work.shape, x.dtype)
    settings = float(divisor or 0), int(padded)
    _AVG_POOL[work.dtype, str(lanes)](*work.launch, x.data.ptr, out.data.ptr, *work.rest, *settings)
    return out


@avg_pool.vjp("x", planned=True)
def avg_pool_vjp(m: Namespace, grad: Array, axes: tuple[Axis, ...], divisor: float | None, padded: bool) -> Any:
    """Return the gradient, spread evenly over each window."""
    return m.avg_pool_grad(grad, axes=axes, divisor=divisor, padded=padded)


@primitive
def avg_pool_grad(xp: ModuleType, g: Array, *, axes: tuple[Axis, ...], divisor: float | None, padded: bool) -> Array:
    """Return an array of the pooled shape: each element of `g`, divided, added to each element of its window."""
    dtype = accumulation_dtype(g.dtype)
    share = divided(xp, g.astype(dtype), axes, divisor, padded=padded)
    if xp is np and not are_large_tiles(axes) and (spread := compiled.spread(share, axes)) is not None:
        return spread.astype(g.dtype, copy=False)
    lead = g.shape[: -len(axes)]
    result = xp.zeros((*lead, *[axis.size for axis in axes]), dtype)
    if are_large_tiles(axes):
        tiles = result.reshape(*lead, *[size for axis in axes for size in (axis.out, axis.kernel)])
        tiles[...] = share.reshape(*lead, *[size for axis in axes for size in (axis.out, 1)])
    else:
        for tap in taps(axes):
            result[(..., *tap.elements)] += share[(..., *tap.windows)]
    return result.astype(g.dtype, copy=False)


@avg_pool_grad.cuda
@planned
def _avg_pool_grad_cuda(g: Array, *, axes: tuple[Axis, ...], divisor: float | None, padded: bool) -> Any:
    work = _work(g, axes, "size")
    if work is None:
        return NotImplemented
    dx = empty(work.shape, g.dtype)
    _AVG_POOL_GRAD[work.dtype](*work.launch, g.data.ptr, dx.data.ptr, *work.rest, float(divisor or 0), int(padded))
    return dx


adjoint(avg_pool_grad, "avg_pool")
