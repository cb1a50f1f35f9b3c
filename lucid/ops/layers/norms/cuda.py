"""Normalisation on a CUDA device: of rows (layer, RMS, group and instance norm), or of channels (batch norm)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.cuda.launch.kernels import Kernel, address_of
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.reduction import power_of_two
from lucid.cuda.source.signature import constant
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.layers.norms import batch_cuda as channels

if TYPE_CHECKING:
    from lucid.base.arrays import Array


MAX_LENGTH = 2**31 - 1
# Of so many tiles of rows, one after the other, a block adds up gradients of weights: more would round more.
TILES_AT_ONCE = 128

_rows_forward = Kernel("normalisation", "lucid::rows_forward", channels.WEIGHTED)
_long_rows_forward = Kernel("normalisation", "lucid::long_rows_forward", channels.WEIGHTED)
_BY_COLUMNS = tuple((*names, columns) for names in channels.WEIGHTED for columns in ("false", "true"))
_rows_backward = Kernel("normalisation", "lucid::rows_backward", _BY_COLUMNS)
_long_rows_backward = Kernel("normalisation", "lucid::long_rows_backward", channels.WEIGHTED)


class Problem(NamedTuple):
    """How an array is cut for a normalisation: into three runs of dimensions, each as one.

    Attributes
    ----------
    by_channel : bool
        Whether statistics are of channels, over samples and pixels; else of rows.
    cuts : tuple of int
        Where the second and the third run begin: samples; groups or channels; elements of a row or pixels.
    sizes : tuple of int
        How many elements each run has.
    affine_cuts : tuple of int
        Where the weighted dimensions begin, and those over which a weight stays the same.
    channels, inner : int
        How many weights a group has, and how many neighbours share one.
    statistics : tuple of int
        The shape of mean and variance.
    """

    by_channel: bool
    cuts: tuple[int, int]
    sizes: tuple[int, int, int]
    affine_cuts: tuple[int, int]
    channels: int
    inner: int
    statistics: tuple[int, ...]


@lru_cache(channels.REMEMBERED)
def problem_of(shape: tuple[int, ...], dim: tuple[int, ...], broadcast: tuple[int, ...]) -> Problem | None:
    """Return how to normalise over `dim` with weights that meet the array in `broadcast`; None without a kernel."""
    ndim = len(shape)
    kept = [d for d in range(ndim) if d not in dim]
    affine = (1,) * (ndim - len(broadcast)) + broadcast
    own = [d for d in range(ndim) if affine[d] != 1]
    first = len(kept)
    statistics = tuple([1 if d in dim else size for d, size in enumerate(shape)])
    if kept == list(range(first)):
        low, high = (min(own[0], first), own[-1] + 1) if own else (first, first)
        if high < first or affine[low:high] != shape[low:high]:
            return None
        sizes = channels.sizes_of(shape, (low, first))
        weights = math.prod(shape[first:high])
        if sizes[1] * weights > MAX_LENGTH:
            return None
        return Problem(False, (low, first), sizes, (low, high), weights, math.prod(shape[high:]), statistics)
    low, high = kept[0], kept[-1] + 1
    if kept != list(range(low, high)) or affine != (*[1] * low, *shape[low:high], *[1] * (ndim - high)):
        return None
    sizes = channels.sizes_of(shape, (low, high))
    return Problem(True, (low, high), sizes, (low, high), 1, sizes[2], statistics)


@lru_cache(channels.REMEMBERED)
def _row_block(length: int, rows: int, vec: int, name: str) -> tuple[int, int] | None:
    """Return threads of a row and rows of a block; None if a row does not fit into the registers of a block."""
    items = constant("normalisation.cuh", f"items_of_thread<{name}>")
    # enough neighbours that what they read at once is 128 bytes
    threads = max(power_of_two(-(-length // items)), min(power_of_two(-(-length // vec)), 8 if vec > 1 else 32))
    if threads > constant("normalisation.cu", "MAX_THREADS"):
        return None
    return threads, max(32 // threads, min(256 // threads, power_of_two(rows)), 1)


def _normalise_rows(
    names: tuple[str, str], x: Array, weight: Array | None, bias: Array | None, outs: tuple[Array, Array, Array],
    problem: Problem, eps: float, center: bool,
) -> None:  # fmt: skip
    part = channels.cut(x, problem.cuts)
    samples, groups, length = problem.sizes
    rows = samples * groups
    vec = channels.vec_of(length, part, weights=(weight, bias))
    arguments = (
        part.array.data.ptr, address_of(weight), address_of(bias), *[out.data.ptr for out in outs],
        rows, length, groups, problem.channels, problem.inner, *part.strides, eps, int(center),
    )  # fmt: skip
    block = _row_block(length, rows, vec, names[0])
    if block is None:
        _long_rows_forward[(*names, str(vec))](rows, constant("normalisation.cu", "MAX_THREADS"), *arguments)
    else:
        _rows_forward[(*names, str(vec))](-(-rows // block[1]), block, *arguments)


def _rows_grad(
    names: tuple[str, str], grad: Array, x: Array, weight: Array | None, stats: tuple[Array, Array],
    outs: tuple[Array, Array, Array], problem: Problem, eps: float, center: bool,
) -> None:  # fmt: skip
    """Write the wanted gradients: those with elements in their arrays."""
    to_x, to_weight, to_bias = outs
    affine = bool(to_weight.size or to_bias.size)
    samples, groups, length = problem.sizes
    rows = samples * groups
    grads, values = channels.cut(grad, problem.cuts), channels.cut(x, problem.cuts)
    vec = channels.vec_of(length, grads, values, weights=(weight,))
    block = _row_block(length, rows, vec, names[0])
    columns = affine and groups == problem.inner == 1 and block is not None
    shape = (rows, length, groups, problem.channels, problem.inner)
    pointers = (grads.array.data.ptr, values.array.data.ptr, address_of(weight), *[s.data.ptr for s in stats])
    rest = (*shape, *grads.strides, *values.strides, eps, int(center))
    wanted = to_x.data.ptr if to_x.size else 0
    if block is None:
        if wanted:
            _long_rows_backward[(*names, str(vec))](
                rows, constant("normalisation.cu", "MAX_THREADS"), *pointers, wanted, *rest
            )
    elif columns or wanted:
        tiles = -(-rows // block[1])
        blocks = min(tiles, max(channels.BLOCKS, -(-tiles // TILES_AT_ONCE))) if columns else tiles
        parts = empty((2, blocks, length) if columns else 0, accumulation_dtype(x.dtype))
        sums = _two(parts, to_weight, to_bias, blocks * length)
        shared = block[0] * block[1] * vec * parts.dtype.itemsize if columns else 0
        launch = _rows_backward[(*names, str(vec), "true" if columns else "false")]
        launch(blocks, block, *pointers, wanted, *sums, *rest, shared=shared)
        if columns:
            channels.merge_sums(names[0], sums, to_weight, to_bias, length, blocks, 1)
    if affine and not columns:
        sizes = (samples, groups * problem.channels, problem.inner)
        sides = channels.cut(grad, problem.affine_cuts), channels.cut(x, problem.affine_cuts)
        channels.channel_sums(names[0], *sides, sizes, stats, to_weight, to_bias, groups, problem.channels, eps)


def _two(parts: Array, first: Array, second: Array, step: int) -> tuple[int, int]:
    """Return the addresses of two arrays of parts, 0 for sums that nobody wants."""
    start = parts.data.ptr
    return start if first.size else 0, start + step * parts.dtype.itemsize if second.size else 0


@planned
def normalise(
    x: Array, weight: Array | None, bias: Array | None, *, dim: tuple[int, ...], eps: float, center: bool,
    broadcast: tuple[int, ...],
) -> Any:  # fmt: skip
    """Return the normalised array, mean and variance: the kernels of `normalise`."""
    names = channels.names_of(x, weight, bias)
    problem = problem_of(x.shape, dim, broadcast)
    if names is None or problem is None or not x.size or problem.sizes[2] > MAX_LENGTH:
        return NotImplemented
    if problem.by_channel and not center:
        return NotImplemented
    real = accumulation_dtype(x.dtype)
    out, mean, variance = empty(x.shape, x.dtype), empty(problem.statistics, real), empty(problem.statistics, real)
    weight, bias = channels.side_by_side(weight), channels.side_by_side(bias)
    if problem.by_channel:
        part = channels.cut(x, problem.cuts)
        channels.moments(names[0], part, problem.sizes, mean, variance)
        channels.apply(names, part, problem.sizes, mean, variance, weight, bias, out, eps)
    else:
        _normalise_rows(names, x, weight, bias, (out, mean, variance), problem, eps, center)
    return out, mean, variance


@planned
def normalise_grad(
    grad: Array, x: Array, weight: Array | None, mean: Array, variance: Array, *, dim: tuple[int, ...], eps: float,
    center: bool, broadcast: tuple[int, ...], wants: tuple[bool, ...],
) -> Any:  # fmt: skip
    """Return the gradients of x, weight and bias: the kernels of `normalise_grad`.

    What is not wanted is an array without elements.
    """
    names = channels.names_of(x, weight)
    problem = problem_of(x.shape, dim, broadcast)
    if names is None or problem is None or not x.size or problem.sizes[2] > MAX_LENGTH or grad.dtype != x.dtype:
        return NotImplemented
    of_weights = [empty(broadcast if want else 0, accumulation_dtype(x.dtype)) for want in wants[1:]]
    outs = empty(x.shape if wants[0] else 0, x.dtype), of_weights[0], of_weights[1]
    weight, stats = channels.side_by_side(weight), (mean, variance)
    if problem.by_channel:
        parts = channels.cut(grad, problem.cuts), channels.cut(x, problem.cuts)
        channels.channels_grad(names, *parts, problem.sizes, weight, stats, outs, eps, center)
    else:
        _rows_grad(names, grad, x, weight, stats, outs, problem, eps, center)
    return outs
