"""Convolutions of float32 and float64 by ``kernels/cpu/convolution.cpp``, without columns.

Their sums are in another order than those of BLAS. The sizes of a convolution decide alone whether C computes it, which
is then compiled at once. Each function returns None if NumPy is to do it.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.cpu.functions import BUILD, Function, address, first_element
from lucid.cpu.pooling import FLOATS, planes_of, windows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.arrays import Array, Ints
    from lucid.cpu.functions import Call
    from lucid.cpu.pooling import Axes

FEW_PRODUCTS = 1 << 18
"""Products of a convolution that need no compiler. Those of one position are products of matrices, and BLAS's."""

MOST_REMAINDERS = 16
"""Calls of C's for one gradient: one for each combination of remainders of the strides."""

_EACH = [(name,) for name in FLOATS.values()]
_CONVOLVE = Function("convolution.cpp", "convolve", _EACH)
_CONVOLVE_WEIGHTS = Function("convolution.cpp", "convolve_weights", _EACH)


class _Call(NamedTuple):
    """A call of C's: the function, two arrays as planes, and the address of the windows."""

    run: Call
    first: Ints
    second: Ints
    windows: int


def _call(function: Function, first: Array, second: Array, weight: Ints, axes: Axes) -> _Call | None:
    """Return the call that computes a convolution of two arrays; None if NumPy is to compute it."""
    products = first.shape[0] * math.prod(weight) * math.prod([axis.out for axis in axes])
    if products < FEW_PRODUCTS or all(axis.kernel == axis.stride == 1 for axis in axes):
        return None
    windows, planes = windows_of(axes), [planes_of(each, len(axes)) for each in (first, second)]
    if windows is None or planes[0] is None or planes[1] is None or first.dtype != second.dtype:
        return None
    run = function(BUILD, FLOATS[first.dtype])
    return None if run is None else _Call(run, planes[0], planes[1], windows[1])


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
    call = _call(_CONVOLVE, x, weight, weight.shape, axes)
    if call is None:
        return None
    bias = None if bias is None else np.ascontiguousarray(bias, x.dtype)
    out, outputs = [axis.out for axis in axes], weight.shape[0] // groups
    y = np.empty((x.shape[0], weight.shape[0], *out), x.dtype)
    step_out, *steps = call.second[2:]
    call.run(
        first_element(x), first_element(weight), 0 if bias is None else address(bias), address(y),
        x.shape[0], groups, weight.shape[1], outputs, *call.first[2:],
        outputs * step_out, step_out, *steps, math.prod(out), out[-1], 1, call.windows,
    )  # fmt: skip
    return y


class _Remainder(NamedTuple):
    """The elements of one remainder of the stride along one dimension: each is a window of stride 1 over gradients.

    Attributes
    ----------
    remainder : int
        The first element.
    windows : Axis or None
        None if no position of a window of the convolution is on them.
    last, step : int
        Their first position is this one of the kernel's, the next is so many before it.
    """

    remainder: int
    windows: Any
    last: int
    step: int


@functools.lru_cache(1024)
def _remainder(axis: Any, remainder: int) -> _Remainder:
    step = axis.stride // math.gcd(axis.stride, axis.dilation)
    positions = [k for k in range(axis.kernel) if (k * axis.dilation - remainder - axis.before) % axis.stride == 0]
    if not positions:
        return _Remainder(remainder, None, 0, 0)
    first, last = positions[0], positions[-1]
    count, dilation = len(positions), step * axis.dilation // axis.stride
    shift = (remainder + axis.before - first * axis.dilation) // axis.stride
    elements = len(range(remainder, axis.size, axis.stride))
    windows = type(axis)(axis.out, elements, count, 1, (count - 1) * dilation - shift, dilation)
    return _Remainder(remainder, windows, last, step)


@_halves_as_float32
def input_grad(g: Array, weight: Array, axes: Axes, groups: int) -> Array | None:
    """Return images: each element of `g` spread over its window."""
    call = _call(_CONVOLVE, g, weight, weight.shape, axes)
    # zeros around `g` are multiplied by all of the kernel
    if call is None or not math.isfinite(weight.sum()):
        return None
    split = [[_remainder(axis, r) for r in range(min(axis.stride, axis.size))] for axis in axes]
    if math.prod(map(len, split)) > MOST_REMAINDERS:
        return None
    channels, outputs, size = weight.shape[1], weight.shape[0] // groups, [axis.size for axis in axes]
    dx = np.zeros((g.shape[0], channels * groups, *size), g.dtype)
    step_out, step_in, *steps = call.second[2:]
    to_step_y, to_step_x = axes[0].stride * size[-1], axes[-1].stride
    for along in itertools.product(*split):
        taken = tuple([each.windows for each in along])
        if None in taken:
            continue
        windows = windows_of(taken)
        if windows is None:
            return None
        start = sum(each.last * step for each, step in zip(along, steps[-len(axes) :], strict=True))
        turned = [-each.step * step for each, step in zip(along, steps[-len(axes) :], strict=True)]
        first = along[-1].remainder + (along[0].remainder * size[-1] if len(axes) > 1 else 0)
        call.run(
            first_element(g), first_element(weight) + start * g.itemsize, 0, address(dx) + first * g.itemsize,
            g.shape[0], groups, outputs, channels, *call.first[2:],
            outputs * step_out, step_in, step_out, *[0] * (2 - len(axes)), *turned,
            math.prod(size), to_step_y, to_step_x, windows[1],
        )  # fmt: skip
    return dx


@_halves_as_float32
def weight_grad(g: Array, x: Array, axes: Axes, groups: int) -> Array | None:
    """Return for each position in the kernel the products of `g` and the elements there, summed over all windows."""
    shape = g.shape[1], x.shape[1] // groups, *[axis.kernel for axis in axes]
    call = _call(_CONVOLVE_WEIGHTS, g, x, shape, axes)
    if call is None:
        return None
    dw = np.empty(shape, x.dtype)
    call.run(
        first_element(g), first_element(x), address(dw), x.shape[0], groups, shape[1], shape[0] // groups,
        *call.first[2:], *call.second[2:], call.windows,
    )  # fmt: skip
    # zeros between rows of windows were multiplied, too
    return dw if math.isfinite(dw.sum()) else None
