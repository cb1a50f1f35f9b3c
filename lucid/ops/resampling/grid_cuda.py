"""Sampling at a grid on a CUDA device: one kernel for each primitive of `lucid.ops.resampling.grid_primitives`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel
from lucid.cuda.launch.windows import LARGEST_INT
from lucid.cuda.source.signature import constant
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_MODES = {mode: f"lucid::{mode.upper()}" for mode in ("bilinear", "nearest", "bicubic")}
_TYPED = tuple((t, mode) for t in FLOATS for mode in _MODES.values())
_sample = Kernel("grid", "lucid::grid_sample", _TYPED)
_spread = Kernel("grid", "lucid::grid_spread", _TYPED)
_drift = Kernel("grid", "lucid::grid_drift", tuple((t, m) for t, m in _TYPED if m != _MODES["nearest"]))

_THREADS = 256
# Threads that keep a device busy: with fewer points than these, blocks share the channels.
_ENOUGH = 1 << 17
_MOST_BLOCKS = 65_535


def _work(x: Array, grid: Array, size: Any, how: Any, orders: Any, *, shared: bool) -> Any:
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


def grid_sampled(x: Array, grid: Array, *, how: Any, orders: Any) -> Any:
    """Return the samples of images `x` at the points of `grid`."""
    work = _work(x, grid, x.shape[2:], how, orders, shared=True)
    if work is None:
        return NotImplemented
    instance, launch, rest = work
    x, grid = map(gpu.cupy().ascontiguousarray, (x, grid))
    out = cupy_functions().empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    _sample[instance](*launch, x.data.ptr, grid.data.ptr, out.data.ptr, *rest)
    return out


def grid_spread(g: Array, grid: Array, *, size: Any, how: Any, orders: Any) -> Any:
    """Return images of a size with the samples `g` added to their elements."""
    work = _work(g, grid, size, how, orders, shared=True)
    if work is None:
        return NotImplemented
    instance, launch, rest = work
    g, grid = map(gpu.cupy().ascontiguousarray, (g, grid))
    out = cupy_functions().zeros((*g.shape[:2], *size), accumulation_dtype(g.dtype))
    _spread[instance](*launch, g.data.ptr, grid.data.ptr, out.data.ptr, *rest)
    return out.astype(g.dtype, copy=False)


def grid_drift(g: Array, x: Array, grid: Array, *, how: Any, orders: Any) -> Any:
    """Return how fast the sum of samples of `x` times `g` grows with each number of the grid."""
    work = _work(x, grid, x.shape[2:], how, orders, shared=False)
    if work is None or how.mode == "nearest":
        return NotImplemented
    instance, launch, rest = work
    g, x, grid = map(gpu.cupy().ascontiguousarray, (g, x, grid))
    out = cupy_functions().empty(grid.shape, grid.dtype)
    _drift[instance](*launch, g.data.ptr, x.data.ptr, grid.data.ptr, out.data.ptr, *rest)
    return out
