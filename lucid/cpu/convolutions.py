"""Convolutions of float32 and float64 by ``kernels/cpu/convolution.cpp``, without columns.

Their sums are in another order than those of BLAS. The sizes of a convolution decide alone whether C computes it, which is
then compiled at once. Each function returns None where NumPy is to do it.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cpu.functions import BUILD, Function, address
from lucid.cpu.pooling import FLOATS, planes_of, windows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.arrays import Array, Ints
    from lucid.cpu.functions import Call
    from lucid.cpu.pooling import Axes

FEW_PRODUCTS = 1 << 18
"""Products of a convolution that NumPy computes in as little time."""

_EACH = [(name,) for name in FLOATS.values()]
_CONVOLVE = Function("convolution.cpp", "convolve", _EACH)
_CONVOLVE_WEIGHTS = Function("convolution.cpp", "convolve_weights", _EACH)


def _function(function: Function, x: Array, weight: Ints, axes: Axes) -> Call | None:
    products = x.shape[0] * math.prod(weight) * math.prod([axis.out for axis in axes])
    return None if products < FEW_PRODUCTS else function(BUILD, FLOATS[x.dtype])


def _halves_as_float32(compute: Callable[..., Array | None]) -> Callable[..., Array | None]:
    """Return the same function that takes two arrays of half types, too."""

    @functools.wraps(compute)
    def wide(x: Array, other: Array, *rest: Any) -> Array | None:
        dtype = x.dtype
        if dtype.itemsize > 2 or dtype.kind not in "fV":
            return compute(x, other, *rest)
        result = compute(x.astype(np.float32), other.astype(np.float32), *rest)
        return None if result is None else result.astype(dtype)

    return wide


@_halves_as_float32
def convolution(x: Array, weight: Array, bias: Array | None, axes: Axes, groups: int) -> Array | None:
    """Return the cross-correlation of images with kernels."""
    planes, kernels = planes_of(x, len(axes)), planes_of(weight, len(axes))
    if planes is None or kernels is None or (run := _function(_CONVOLVE, x, weight.shape, axes)) is None:
        return None
    bias = None if bias is None else np.ascontiguousarray(bias, x.dtype)
    out = tuple([axis.out for axis in axes])
    y = np.empty((x.shape[0], weight.shape[0], *out), x.dtype)
    outputs = weight.shape[0] // groups
    step_o, *steps = kernels[2:]
    _, windows = windows_of(axes)
    run(
        address(x), address(weight), 0 if bias is None else address(bias), address(y),
        planes[0], groups, weight.shape[1], outputs, *planes[2:], outputs * step_o, step_o, *steps,
        math.prod(out), out[-1], 1, windows,
    )  # fmt: skip
    return y


@functools.lru_cache(1024)
def _remainder(axis: Any, remainder: int) -> tuple[Any, int, int]:
    """Return the windows over gradients of the elements of one remainder of the stride, all of it along one dimension.

    Returns
    -------
    Axis
        Windows of stride 1.
    int, int
        The position in the kernel of their first position, and the distance between positions, backwards.
    """
    step = axis.stride // math.gcd(axis.stride, axis.dilation)
    positions = [k for k in range(axis.kernel) if (k * axis.dilation - remainder - axis.before) % axis.stride == 0]
    if not positions:
        return None, 0, 0
    dilation = step * axis.dilation // axis.stride
    shift = (remainder + axis.before - positions[0] * axis.dilation) // axis.stride
    out = len(range(remainder, axis.size, axis.stride))
    windows = type(axis)(axis.out, out, len(positions), 1, (len(positions) - 1) * dilation - shift, dilation)
    return windows, positions[-1], step


@_halves_as_float32
def input_grad(g: Array, weight: Array, axes: Axes, groups: int) -> Array | None:
    """Return images: each element of `g` spread over its window."""
    planes, kernels = planes_of(g, len(axes)), planes_of(weight, len(axes))
    if planes is None or kernels is None or (run := _function(_CONVOLVE, g, weight.shape, axes)) is None:
        return None
    if not math.isfinite(weight.sum()):  # which zeros around `g` are multiplied by
        return None
    channels, size = weight.shape[1], tuple([axis.size for axis in axes])
    split = [[(r, *_remainder(axis, r)) for r in range(min(axis.stride, axis.size))] for axis in axes]
    whole = all(windows for each in split for _, windows, _, _ in each)
    dx = (np.empty if whole else np.zeros)((g.shape[0], channels * groups, *size), g.dtype)
    outputs = weight.shape[0] // groups
    step_o, step_i, *steps = kernels[2:]
    row = size[-1]
    for along in itertools.product(*split):
        if any(windows is None for _, windows, _, _ in along):
            continue
        remainders, windows, positions, backwards = zip(*along, strict=True)
        start = sum(k * step for k, step in zip(positions, steps[-len(axes) :], strict=True))
        turned = [-back * step for back, step in zip(backwards, steps[-len(axes) :], strict=True)]
        first = remainders[-1] + (remainders[0] * row if len(axes) > 1 else 0)
        _, packed = windows_of(windows)
        run(
            address(g), address(weight) + start * g.itemsize, 0, address(dx) + first * g.itemsize,
            planes[0], groups, outputs, channels, *planes[2:],
            outputs * step_o, step_i, step_o, *[0] * (2 - len(axes)), *turned,
            math.prod(size), axes[0].stride * row, axes[-1].stride, packed,
        )  # fmt: skip
    return dx


@_halves_as_float32
def weight_grad(g: Array, x: Array, axes: Axes, groups: int) -> Array | None:
    """Return for each position in the kernel the products of `g` and the elements there, summed over all windows."""
    shape = g.shape[1], x.shape[1] // groups, *[axis.kernel for axis in axes]
    g_planes, x_planes = planes_of(g, len(axes)), planes_of(x, len(axes))
    if g_planes is None or x_planes is None or (run := _function(_CONVOLVE_WEIGHTS, x, shape, axes)) is None:
        return None
    dw = np.empty(shape, x.dtype)
    _, windows = windows_of(axes)
    run(
        address(g), address(x), address(dw), x.shape[0], groups, shape[1], shape[0] // groups,
        *g_planes[2:], *x_planes[2:], windows,
    )  # fmt: skip
    # zeros between rows of windows were multiplied, too
    return dw if math.isfinite(dw.sum()) else None
