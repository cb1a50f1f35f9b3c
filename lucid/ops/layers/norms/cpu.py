"""Normalisation and its gradient on the CPU by ``kernels/cpu/norms.cpp``."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lucid.cpu.functions import BUILD, Function, address, dense
from lucid.cuda.launch.indexing import REMEMBERED
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.reduction.sums import kept_shape

if TYPE_CHECKING:
    from lucid.base.arrays import Array, Ints

_NAMES = [f"normalise_{those}{grad}" for those in ("rows", "planes", "columns") for grad in ("", "_grad")]
_FUNCTIONS = {name: Function("norms.cpp", name) for name in (*_NAMES, "rescale_planes")}
_FLOAT32 = np.dtype(np.float32)


class Layout(NamedTuple):
    """How values that are normalised together lie in a dense array."""

    function: str
    """The loop for it."""
    sizes: tuple[int, ...]
    """Those that it takes."""
    stats: tuple[int, ...]
    """The shape of mean and variance."""
    affine: int
    """How many weights there are."""
    room: int
    """How many numbers of eight bytes its gradient needs."""


def _rows(rows: int, columns: int, stats: tuple[int, ...], affine: int) -> Layout:
    return Layout("normalise_rows", (rows, columns, affine), stats, affine, columns // 2 + 1 + affine)


@lru_cache(REMEMBERED)
def _layout_of(shape: tuple[int, ...], dim: tuple[int, ...], broadcast: tuple[int, ...]) -> Layout | None:
    """Return the layout of values of dimensions `dim` with weights of the shape `broadcast`; None without a loop."""
    stats, affine, ndim = kept_shape(shape, dim), math.prod(broadcast), len(shape)
    if not math.prod(shape):
        return None
    first = ndim - len(dim)
    trailing = dim == tuple(range(first, ndim))
    if trailing and len(broadcast) <= len(dim):
        rows, columns = math.prod(shape[:first]), math.prod(shape[first:])
        return _rows(rows, columns, stats, affine) if affine == columns else None
    # the dimensions of a plane, in which the weight is one
    inner = max([d + 1 for d, size in enumerate(broadcast) if size != 1], default=0)
    if len(broadcast) != ndim or broadcast[0] != 1 or broadcast[1:inner] != shape[1:inner]:
        return None
    if trailing:
        inner = max(inner, first)
        sets, pixels = math.prod(shape[:first]), math.prod(shape[inner:])
        count = math.prod(shape[first:inner])
        if pixels == 1:
            return _rows(sets, count, stats, affine)
        sizes = sets, count, 1, count, affine, pixels
    elif dim == (0, *range(2, ndim)) and inner <= 2:
        count = shape[0]
        if affine == math.prod(shape[1:]):
            return Layout("normalise_columns", (count, affine), stats, affine, 0)
        sizes = shape[1], count, shape[1], 1, affine, math.prod(shape[2:])
    else:
        return None
    return Layout("normalise_planes", sizes, stats, affine, 2 * count)


def _wide(array: Array) -> Array:
    return dense(array if array.dtype is _FLOAT32 else array.astype(_FLOAT32, copy=False))


def _at(array: Array | None) -> int | None:
    return None if array is None else address(array)


def normalised(
    x: Array, weight: Array | None, bias: Array | None, dim: Ints, eps: float, center: bool, broadcast: Ints
) -> tuple[Array, Array, Array] | None:
    """Return the normalised array, its means and variances; None if NumPy is to do it."""
    if accumulation_dtype(x.dtype) != _FLOAT32:
        return None
    layout = _layout_of(x.shape, dim, broadcast)
    # at once: results differ in the last bits from those of NumPy's path
    run = None if layout is None else _FUNCTIONS[layout.function](BUILD)
    if run is None or layout is None:
        return None
    out = np.empty(x.shape, _FLOAT32)
    mean, variance = np.empty(layout.stats, _FLOAT32), np.empty(layout.stats, _FLOAT32)
    # copies are held until the call
    operands = [None if array is None else _wide(array) for array in (x, weight, bias)]
    run(*map(_at, operands), address(out), address(mean), address(variance), *layout.sizes, eps, center)
    return out if x.dtype == _FLOAT32 else out.astype(x.dtype), mean, variance


def normalised_grad(
    grad: Array, x: Array, weight: Array | None, mean: Array, variance: Array, dim: Ints, eps: float, center: bool,
    broadcast: Ints, wants: tuple[bool, ...],
) -> tuple[Array, Array, Array] | None:  # fmt: skip
    """Return the gradients of `normalised`, zeros of those that are not wanted; None if NumPy is to do it.

    That of the array is of no elements then.
    """
    if accumulation_dtype(x.dtype) != _FLOAT32:
        return None
    layout = _layout_of(x.shape, dim, broadcast)
    run = None if layout is None else _FUNCTIONS[layout.function + "_grad"](BUILD)
    if run is None or layout is None:
        return None
    affine = layout.affine
    out = np.empty(x.shape if wants[0] else 0, _FLOAT32)
    sums = np.zeros(2 * affine + layout.room)
    operands = [None if array is None else _wide(array) for array in (grad, x, weight, mean, variance)]
    first = address(sums)
    run(
        *map(_at, operands), address(out) if wants[0] else None, first if wants[1] else None,
        first + 8 * affine if wants[2] else None, first + 16 * affine, *layout.sizes, eps, center,
    )  # fmt: skip
    to_weight, to_bias = sums[: 2 * affine].astype(_FLOAT32).reshape(2, *broadcast)
    return out if x.dtype == _FLOAT32 else out.astype(x.dtype), to_weight, to_bias


def rescaled(x: Array, scale: Array, shift: Array) -> Array | None:
    """Return ``x * scale + shift``, the two of one number for each channel; None if NumPy is to do it."""
    if accumulation_dtype(x.dtype) != _FLOAT32 or not x.size:
        return None
    run = _FUNCTIONS["rescale_planes"](BUILD)
    if run is None:
        return None
    out = np.empty(x.shape, _FLOAT32)
    operands = [_wide(array) for array in (x, scale, shift)]
    channels = x.shape[1]
    run(*map(address, operands), address(out), len(x) * channels, channels, out.size // (len(x) * channels))
    return out if x.dtype == _FLOAT32 else out.astype(x.dtype)
