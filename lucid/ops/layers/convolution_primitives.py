"""Convolutions over any number of dimensions, as matrix products with columns of windows.

The columns of a block of images are gathered into a buffer that fits the cache, multiplied, and gathered anew for the
weight gradient instead of being kept. The convolution and its two gradients are linear in each operand and are each
other's derivatives, so that they can be differentiated as often as one likes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.plan import Rule
from lucid.autograd.recording.primitive import primitive
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import row_products
from lucid.ops.layers import convolution_cuda as on_cuda
from lucid.ops.layers.windows import Axis, are_pointwise, axes_of, taps, window_count, window_size
from lucid.ops.linalg.matrices import product

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array, Ints

# Columns of one block of images, in bytes: on the CPU what stays in the cache, on a GPU what is worth a launch.
CPU_BLOCK, CUDA_BLOCK = 4 << 20, 256 << 20
SETTINGS = ("stride", "before", "dilation", "groups")


def blocks(xp: ModuleType, count: int, channels: int, axes: tuple[Axis, ...], itemsize: int) -> Iterator[slice]:
    """Yield the images in blocks, as slices of the batch."""
    each = channels * window_size(axes) * math.prod(window_count(axes)) * itemsize
    size = max(1, (CPU_BLOCK if xp is np else CUDA_BLOCK) // max(1, each))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def columns_of(
    xp: ModuleType, x: Array, axes: tuple[Axis, ...], groups: int, dtype: Any
) -> Iterator[tuple[slice, Array]]:
    """Yield for each block of images the columns of its windows, of shape (groups, channels * positions, windows).

    The buffer is used again for the next block. What lies in the padding is zero from the start and never written.
    """
    buffer: Any = None
    all_taps = tuple(taps(axes))
    for images in blocks(xp, x.shape[0], x.shape[1], axes, dtype.itemsize):
        count = images.stop - images.start
        if buffer is None or buffer.shape[1 + len(axes)] != count:
            buffer = xp.zeros((x.shape[1], *[axis.kernel for axis in axes], count, *window_count(axes)), dtype)
        source = x[images].swapaxes(0, 1)
        for tap in all_taps:
            buffer[(slice(None), *tap.position, slice(None), *tap.windows)] = source[(..., *tap.elements)]
        windows = count * math.prod(window_count(axes))
        yield images, buffer.reshape(groups, x.shape[1] // groups * window_size(axes), windows)


def rows_of(x: Array, groups: int, dtype: np.dtype[Any]) -> Array:
    """Return images of shape (count, channels, ...) as (groups, channels, count * pixels)."""
    count, channels, *size = x.shape
    return x.swapaxes(0, 1).reshape(groups, channels // groups, count * math.prod(size)).astype(dtype, copy=False)


def kernels_of(weight: Array, groups: int, dtype: np.dtype[Any]) -> Array:
    """Return kernels as one matrix for each group, (groups, output channels, input channels * positions)."""
    made, *each = weight.shape
    return weight.reshape(groups, made // groups, math.prod(each)).astype(dtype, copy=False)


@primitive(saved_as={"x": "input", "before": "padding"})
def convolution(
    xp: ModuleType,
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    out: Array,
    stride: Ints,
    before: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """Return the cross-correlation of images with kernels, `before` zeros before each first element."""
    axes = axes_of(x.shape[2:], out, weight.shape[2:], stride, before, dilation)
    count, channels = x.shape[0], weight.shape[0]
    dtype = accumulation_dtype(x.dtype)
    kernels = kernels_of(weight, groups, dtype)
    offset = None if bias is None else bias.reshape(groups, channels // groups, 1)
    result_shape = (count, channels, *out)
    if are_pointwise(axes):
        pixels = x.reshape(count, groups, x.shape[1] // groups, math.prod(out)).astype(dtype, copy=False)
        y = product(xp, kernels, pixels)
        if offset is not None:
            y += offset
        return y.reshape(result_shape).astype(x.dtype, copy=False)
    result = xp.empty(result_shape, x.dtype)
    for images, columns in columns_of(xp, x, axes, groups, dtype):
        y = product(xp, kernels, columns)
        if offset is not None:
            y += offset
        result[images] = y.reshape(channels, images.stop - images.start, *out).swapaxes(0, 1)
    return result


convolution.cuda(on_cuda.forward)


@convolution.vjp("bias")
def _convolution_bias(m: Namespace, grad: Array) -> Any:
    channels = grad.shape[1]
    total = m.sum_to(grad, shape=(1, channels, *[1] * (len(grad.shape) - 2)))
    return m.reshape(total, shape=(channels,))


@primitive
def convolution_input_grad(
    xp: ModuleType, g: Array, weight: Array, *, size: Ints, stride: Ints, before: Ints, dilation: Ints, groups: int
) -> Array:
    """Return images of `size`: each element of `g` spread over its window: the transposed convolution."""
    axes = axes_of(size, g.shape[2:], weight.shape[2:], stride, before, dilation)
    count, channels = g.shape[0], weight.shape[1] * groups
    dtype = accumulation_dtype(g.dtype)
    kernels = kernels_of(weight, groups, dtype).swapaxes(-1, -2)
    if are_pointwise(axes):
        pixels = g.reshape(count, groups, g.shape[1] // groups, math.prod(size)).astype(dtype, copy=False)
        return product(xp, kernels, pixels).reshape(count, channels, *size).astype(g.dtype, copy=False)
    result = xp.zeros((count, channels, *size), dtype)
    all_taps = tuple(taps(axes))
    for images in blocks(xp, count, channels, axes, dtype.itemsize):
        columns = product(xp, kernels, rows_of(g[images], groups, dtype))
        columns = columns.reshape(channels, *weight.shape[2:], images.stop - images.start, *g.shape[2:])
        target = result[images].swapaxes(0, 1)
        for tap in all_taps:
            target[(..., *tap.elements)] += columns[(slice(None), *tap.position, slice(None), *tap.windows)]
    return result.astype(g.dtype, copy=False)


convolution_input_grad.cuda(on_cuda.input_grad)


@primitive
def convolution_weight_grad(
    xp: ModuleType, g: Array, x: Array, *, kernel: Ints, stride: Ints, before: Ints, dilation: Ints, groups: int
) -> Array:
    """Return for each position in the `kernel` the products of `g` and the elements there, summed over all windows."""
    axes = axes_of(x.shape[2:], g.shape[2:], kernel, stride, before, dilation)
    dtype = accumulation_dtype(g.dtype)
    result = xp.zeros((g.shape[1], x.shape[1] // groups, *kernel), dtype)
    total = kernels_of(result, groups, dtype)
    for images, columns in columns_of(xp, x, axes, groups, dtype):
        rows = rows_of(g[images], groups, dtype)
        if xp is np and rows.shape[1] == 1:  # depthwise: of one row BLAS makes long sums
            total += row_products(columns, rows).swapaxes(-1, -2)
        else:
            total += product(xp, rows, columns.swapaxes(-1, -2))
    return result.astype(g.dtype, copy=False)


convolution_weight_grad.cuda(on_cuda.weight_grad)


def _derived(op: Primitive, operand: str, name: str, size: str, *, turned: bool = False) -> None:
    """Attach the derivative by one of two operands: a primitive of the gradient and the other operand, or turned.

    `size` is the setting of this primitive that says how large its result is.
    """
    (other,) = {*op.inputs[:2]} - {operand}

    def rule(m: Namespace, grad: Array, factor: Array, shape: Ints, *settings: Any) -> Any:
        operands: Any = (factor, grad) if turned else (grad, factor)
        if name == "convolution":
            operands += (None,)  # without a bias
        return getattr(m, name)(*operands, **{size: shape[2:]}, **dict(zip(SETTINGS, settings, strict=True)))

    op.attach(Rule(rule, (operand,), arguments=(other, f"{operand}_shape", *SETTINGS)))


_derived(convolution, "x", "convolution_input_grad", "size")
_derived(convolution, "weight", "convolution_weight_grad", "kernel")
_derived(convolution_input_grad, "g", "convolution", "out")
_derived(convolution_input_grad, "weight", "convolution_weight_grad", "kernel", turned=True)
_derived(convolution_weight_grad, "g", "convolution", "out", turned=True)
_derived(convolution_weight_grad, "x", "convolution_input_grad", "size", turned=True)
