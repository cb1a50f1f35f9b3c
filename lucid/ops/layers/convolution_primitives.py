"""Convolutions over any number of dimensions, as matrix products with strips of images.

The strips of a block of images (`lucid.ops.layers.strips`) are filled in a buffer that fits the cache, multiplied, and
filled anew for the weight gradient instead of being kept. The convolution and its two gradients are linear in each
operand and are each other's derivatives, so that they can be differentiated as often as one likes.

On a CUDA device cuDNN computes them if it can. Else the columns of a block of images are gathered by one kernel,
multiplied, and what is made is put in order, with the bias, by another; the input's gradient is gathered back from
columns, so that nothing is added in an order that varies. Where each group has one channel there is no product to make,
and one kernel does everything.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.autograd.recording.plan import Rule
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cpu import convolutions as compiled
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel, address_of
from lucid.cuda.launch.windows import LARGEST_INT, addressable, images, launch_shape, packed
from lucid.cuda.libraries import blas, cudnn_convolution
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import row_products, sum_of
from lucid.ops.layers.strips import (
    CUDA_BLOCK,
    in_rows,
    kernels_of,
    matrices,
    needs_columns,
    pointwise_kernels,
    strips_of,
    turned_kernels,
    with_rows,
)  # fmt: skip
from lucid.ops.layers.windows import Axis, are_pointwise, axes_of, window_count, window_size
from lucid.ops.linalg.matrices import product

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array, Ints

SETTINGS = ("stride", "before", "dilation", "groups")

_REDUCE_THREADS = 256
_LARGEST_GRID_Y = 65_535

im2col = Kernel("convolution", "lucid::im2col", EACH_FLOAT)
col2im = Kernel("convolution", "lucid::col2im", EACH_FLOAT)
_rearrange = Kernel("convolution", "lucid::rearrange", EACH_FLOAT)
_depthwise = Kernel("convolution", "lucid::depthwise", EACH_FLOAT)
_depthwise_input_grad = Kernel("convolution", "lucid::depthwise_input_grad", EACH_FLOAT)
_depthwise_weight_grad = Kernel("convolution", "lucid::depthwise_weight_grad", EACH_FLOAT)


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
    if xp is np and (y := compiled.convolution(x, weight, bias, axes, groups)) is not None:
        return y
    offset = None if bias is None else bias.reshape(groups, channels // groups, 1)
    if are_pointwise(axes):
        pixels = x.reshape(count, groups, x.shape[1] // groups, math.prod(out)).astype(dtype, copy=False)
        y = product(xp, pointwise_kernels(weight, groups, dtype), pixels)
        if offset is not None:
            y += offset
        return y.reshape(count, channels, *out).astype(x.dtype, copy=False)
    if not weight.size:
        y = xp.zeros((count, channels, *out), x.dtype)
        return y if bias is None else y + bias.reshape(channels, *[1] * len(out))
    if needs_columns(axes, count, weight.shape, groups):
        settings = with_rows(stride, before, dilation, groups)
        return convolution.reference(xp, x[:, :, None], weight[:, :, None], bias, out=(1, *out), **settings)[:, :, 0]
    kernels = kernels_of(weight, groups, dtype)
    result = xp.empty((count, channels, *out), x.dtype)
    strips = strips_of(axes)
    for block, values in strips.filled(xp, x, dtype):
        y: Any = offset
        for kernel, place in zip(kernels, strips.places, strict=True):
            part = product(xp, kernel, strips.at(values, place, groups, block.joined))
            y = part if y is None else xp.add(part, y, out=part)
        in_rows(result, block)[...] = y.reshape(block.products, channels, out[0], block.joined, *out[1:])
    return result


@convolution.cuda
def _convolution_cuda(
    x: Array, weight: Array, bias: Array | None, *, out: Any, stride: Any, before: Any, dilation: Any, groups: int
) -> Any:
    p = _problem(x.dtype, x.shape, weight.shape, out, stride, before, dilation, groups)
    if p is None:
        return NotImplemented
    shape = (p.batch, p.made, *out)
    weight = gpu.cupy().ascontiguousarray(weight)
    bias = None if bias is None else gpu.cupy().ascontiguousarray(bias)
    y = cudnn_convolution.forward(x, weight, shape, stride=stride, before=before, dilation=dilation)
    if y is NotImplemented and p.of_volumes:
        return NotImplemented
    if y is NotImplemented and p.depthwise:
        return _by_planes(p, _depthwise, x, (weight.data.ptr, address_of(bias)), shape, 1)
    kernels = weight.reshape(groups, p.made // groups, -1)
    if y is NotImplemented and are_pointwise(p.axes):
        y = _by_pixels(p, kernels, x).reshape(shape)
    if y is not NotImplemented:
        if bias is not None:
            _arrange(p, y, bias, y, shape[:2], (p.made * p.area, p.area, out[-1], 1))
        return y
    result = cupy_functions().empty(shape, x.dtype)
    buffer = _buffer(p, x.dtype)
    for block in p.blocks(x.dtype.itemsize):
        y = blas.matmul(kernels, _columns(p, x[block], buffer))
        count = block.stop - block.start
        _arrange(p, y, bias, result[block], (count, p.made), (p.area, count * p.area, out[-1], 1))
    return result


@primitive
def convolution_input_grad(
    xp: ModuleType, g: Array, weight: Array, *, size: Ints, stride: Ints, before: Ints, dilation: Ints, groups: int
) -> Array:
    """Return images of `size`: each element of `g` spread over its window: the transposed convolution."""
    axes = axes_of(size, g.shape[2:], weight.shape[2:], stride, before, dilation)
    count, channels = g.shape[0], weight.shape[1] * groups
    dtype = accumulation_dtype(g.dtype)
    if xp is np and (dx := compiled.input_grad(g, weight, axes, groups)) is not None:
        return dx
    if are_pointwise(axes):
        pixels = g.reshape(count, groups, g.shape[1] // groups, math.prod(size)).astype(dtype, copy=False)
        dx = product(xp, pointwise_kernels(weight, groups, dtype).swapaxes(-1, -2), pixels)
        return dx.reshape(count, channels, *size).astype(g.dtype, copy=False)
    if xp is np and g.shape[1] <= channels and all(each == 1 for each in stride) and np.isfinite(weight).all():
        # the zeros of a padding would make NaN of an infinite kernel
        before = tuple([axis.dilation * (axis.kernel - 1) - axis.before for axis in axes])
        settings: Any = {"stride": stride, "before": before, "dilation": dilation, "groups": groups}
        return convolution.cpu(g, turned_kernels(weight, groups), None, out=size, **settings)
    if needs_columns(axes, count, weight.shape, groups):
        settings = with_rows(stride, before, dilation, groups)
        return convolution_input_grad.reference(xp, g[:, :, None], weight[:, :, None], size=(1, *size), **settings)[
            :, :, 0
        ]
    kernels = kernels_of(weight, groups, dtype).swapaxes(-1, -2)
    result = xp.zeros((count, channels, *size), dtype)
    strips = strips_of(axes)
    parts = tuple(strips.parts())
    for block in strips.blocks(xp, count, channels, dtype.itemsize):
        rows = matrices(g, block, groups, dtype)
        values = xp.zeros(strips.shape(channels, block), dtype)
        for kernel, place in zip(kernels, strips.places, strict=True):
            target = strips.at(values, place, groups, block.joined)
            target += kernel * rows if kernels.shape[-1] == 1 else product(xp, kernel, rows)
        target = in_rows(result, block)
        for at, elements in parts:
            target[elements] += values[at]
    return result.astype(g.dtype, copy=False)


@convolution_input_grad.cuda
def _convolution_input_grad_cuda(
    g: Array, weight: Array, *, size: Any, stride: Any, before: Any, dilation: Any, groups: int
) -> Any:
    shape = (g.shape[0], weight.shape[1] * groups, *size)
    p = _problem(g.dtype, shape, weight.shape, g.shape[2:], stride, before, dilation, groups)
    if p is None:
        return NotImplemented
    weight = gpu.cupy().ascontiguousarray(weight)
    dx = cudnn_convolution.input_grad(g, weight, shape, stride=stride, before=before, dilation=dilation)
    if dx is not NotImplemented or p.of_volumes:
        return dx
    if p.depthwise:
        return _by_planes(p, _depthwise_input_grad, g, (weight.data.ptr,), shape, 0)
    kernels = weight.reshape(groups, p.made // groups, -1).swapaxes(-1, -2)
    if are_pointwise(p.axes):
        return _by_pixels(p, kernels, g).reshape(shape)
    result = cupy_functions().empty(shape, g.dtype)
    buffer = _buffer(p, g.dtype)
    for block in p.blocks(g.dtype.itemsize):
        count = block.stop - block.start
        columns = blas.matmul(kernels, _rows(p, g[block]), _matrices(p, buffer, count))
        launch = _over(count * p.channels, p.axes, 0)
        col2im[p.name](*launch, columns.data.ptr, result[block].data.ptr, count, p.channels, *packed(p.axes))
    return result


@primitive
def convolution_weight_grad(
    xp: ModuleType, g: Array, x: Array, *, kernel: Ints, stride: Ints, before: Ints, dilation: Ints, groups: int
) -> Array:
    """Return for each position in the `kernel` the products of `g` and the elements there, summed over all windows."""
    axes = axes_of(x.shape[2:], g.shape[2:], kernel, stride, before, dilation)
    dtype = accumulation_dtype(g.dtype)
    if xp is np and (dw := compiled.weight_grad(g, x, axes, groups)) is not None:
        return dw
    if needs_columns(axes, len(x), (g.shape[1], x.shape[1] // groups, *kernel), groups):
        settings = with_rows(stride, before, dilation, groups)
        result = convolution_weight_grad.reference(xp, g[:, :, None], x[:, :, None], kernel=(1, *kernel), **settings)
        return result[:, :, 0]
    strips = strips_of(axes)
    total = xp.zeros((kernel[0], groups, g.shape[1] // groups, x.shape[1] // groups * strips.positions), dtype)
    for block, values in strips.filled(xp, x, dtype):
        rows = matrices(g, block, groups, dtype)
        for sums, place in zip(total, strips.places, strict=True):
            columns = strips.at(values, place, groups, block.joined)
            if xp is np and rows.shape[2] == 1:  # depthwise: of one row BLAS makes long sums
                each = row_products(columns, rows).swapaxes(-1, -2)
            else:
                each = product(xp, rows, columns.swapaxes(-1, -2))
            xp.add(sums, each[0] if len(each) == 1 else sum_of(xp, each, (0,)), out=sums)
    result = total.reshape(kernel[0], g.shape[1], x.shape[1] // groups, *kernel[1:])
    return xp.moveaxis(result, 0, 2).astype(g.dtype)


@convolution_weight_grad.cuda
def _convolution_weight_grad_cuda(
    g: Array, x: Array, *, kernel: Any, stride: Any, before: Any, dilation: Any, groups: int
) -> Any:
    shape = (g.shape[1], x.shape[1] // groups, *kernel)
    p = _problem(x.dtype, x.shape, shape, g.shape[2:], stride, before, dilation, groups)
    if p is None:
        return NotImplemented
    dw = cudnn_convolution.weight_grad(g, x, shape, stride=stride, before=before, dilation=dilation)
    if dw is not NotImplemented or p.of_volumes:
        return dw
    if p.depthwise and p.made <= _LARGEST_GRID_Y:
        return _depthwise_weights(p, g, x, shape)
    buffer = _buffer(p, x.dtype)
    shape_of_total = groups, p.made // groups, p.channels // groups * p.window_size
    total = cupy_functions().empty(shape_of_total, accumulation_dtype(x.dtype))
    for block in p.blocks(x.dtype.itemsize):
        columns = _columns(p, x[block], buffer).swapaxes(-1, -2)
        blas.matmul(_rows(p, g[block]), columns, total, beta=float(block.start > 0))
    return total.reshape(shape).astype(x.dtype, copy=False)


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


@convolution.vjp("bias")
def _convolution_bias(m: Namespace, grad: Array) -> Any:
    channels = grad.shape[1]
    total = m.sum_to(grad, shape=(1, channels, *[1] * (len(grad.shape) - 2)))
    return m.reshape(total, shape=(channels,))


# ---- on a CUDA device ----


class Problem(NamedTuple):
    """One convolution, whichever of its three arrays is asked for.

    Attributes
    ----------
    name : str
        The dtype in C.
    axes : tuple of Axis
        The windows along each dimension.
    batch, channels, made : int
        Images, channels of the input and of the output.
    groups : int
        Groups of channels.
    """

    name: str
    axes: tuple[Axis, ...]
    batch: int
    channels: int
    made: int
    groups: int

    @property
    def area(self) -> int:
        """Windows of an image."""
        return math.prod(window_count(self.axes))

    @property
    def window_size(self) -> int:
        """Positions of a window."""
        return window_size(self.axes)

    @property
    def of_volumes(self) -> bool:
        """Whether there are three dimensions; only cuDNN has kernels for these."""
        return len(self.axes) > 2

    @property
    def depthwise(self) -> bool:
        """Whether each output channel sees one input channel."""
        return self.channels == self.groups > 1

    def blocks(self, itemsize: int) -> Iterator[slice]:
        """Yield the images in blocks with columns that fit, as slices of the batch."""
        step = max(1, CUDA_BLOCK // max(1, self.channels * self.window_size * self.area * itemsize))
        for start in range(0, self.batch, step):
            yield slice(start, min(start + step, self.batch))


def _problem(
    dtype: Any, x: Any, weight: Any, out: Any, stride: Any, before: Any, dilation: Any, groups: int
) -> Problem | None:
    """Return the convolution of images of shape `x` with kernels of shape `weight`; None if there is no kernel for it.

    Arrays without elements are left to the reference.
    """
    name = C_TYPES.get(dtype)
    axes = axes_of(x[2:], out, weight[2:], stride, before, dilation)
    if name not in FLOATS or not math.prod((*x, *weight, *out)):
        return None
    if not addressable(axes) or max(x[0], x[1], weight[0]) > LARGEST_INT:
        return None
    return Problem(name, axes, x[0], x[1], weight[0], groups)


def _over(planes: int, axes: Any, which: int) -> Any:
    """Return the launch shape over elements (0) or windows (1) of planes."""
    return launch_shape(planes, math.prod(axis[which] for axis in axes))


def _steps(p: Problem, x: Array) -> Any:
    """Return the distances between neighbours of images along each dimension, in elements."""
    return cast("Any", images(x, len(p.axes))).steps


def _buffer(p: Problem, dtype: Any) -> Array:
    """Return memory for the columns of the largest block."""
    first = next(p.blocks(dtype.itemsize))
    return cupy_functions().empty(p.channels * p.window_size * p.area * (first.stop - first.start), dtype)


def _matrices(p: Problem, buffer: Array, count: int) -> Array:
    """Return the memory for the columns of `count` images, of shape (groups, channels * positions, windows)."""
    size = p.channels * p.window_size * count * p.area
    return buffer[:size].reshape(p.groups, p.channels // p.groups * p.window_size, count * p.area)


def _columns(p: Problem, x: Array, buffer: Array) -> Array:
    """Return the columns of images."""
    count = x.shape[0]
    launch = _over(p.channels * count, p.axes, 1)
    im2col[p.name](*launch, x.data.ptr, buffer.data.ptr, count, p.channels, *_steps(p, x), *packed(p.axes))
    return _matrices(p, buffer, count)


def _rows(p: Problem, g: Array) -> Array:
    """Return the values of output channels as matrices of shape (groups, channels, images * windows)."""
    count = g.shape[0]
    shape = p.groups, p.made // p.groups, count * p.area
    if count == 1 and g.flags.c_contiguous:
        return g.reshape(shape)
    rows = cupy_functions().empty(shape, g.dtype)
    n, c, h, w = _steps(p, g)
    _arrange(p, g, None, rows, (p.made, count), (c, n, h, w))
    return rows


def _arrange(
    p: Problem, x: Array, bias: Array | None, out: Array, lead: tuple[int, int], steps: tuple[int, ...]
) -> None:
    """Write elements of `x` at `steps` into `out`, of shape (*lead, *windows), plus the bias of the second index."""
    planes = math.prod(lead)
    launch, columns = _over(planes, p.axes, 1), p.axes[-1].out
    _rearrange[p.name](
        *launch, x.data.ptr, address_of(bias), out.data.ptr, planes, lead[1], p.area // columns, columns, *steps
    )


def _by_pixels(p: Problem, kernels: Array, x: Array) -> Array:
    """Return the products of the matrix of each group with the pixels of each image."""
    return blas.matmul(kernels, x.reshape(p.batch, p.groups, x.shape[1] // p.groups, p.area))


def _by_planes(p: Problem, kernel: Kernel, x: Array, beside: tuple[int, ...], shape: Any, which: int) -> Array:
    """Return the result, of `shape`, of a depthwise kernel; `beside`: the addresses that it takes after that of `x`."""
    out = cupy_functions().empty(shape, x.dtype)
    kernel[p.name](
        *_over(shape[0] * shape[1], p.axes, which), x.data.ptr, *beside, out.data.ptr,
        p.batch, p.channels, p.made // p.channels, *_steps(p, x), *packed(p.axes),
    )  # fmt: skip
    return out


def _depthwise_weights(p: Problem, g: Array, x: Array, shape: Any) -> Array:
    dw = cupy_functions().empty(shape, x.dtype)
    threads = min(_REDUCE_THREADS, max(32, 1 << (p.batch * p.area - 1).bit_length()))
    _depthwise_weight_grad[p.name](
        (p.window_size, p.made), threads, g.data.ptr, x.data.ptr, dw.data.ptr,
        p.batch, p.made // p.channels, *_steps(p, g), *_steps(p, x), *packed(p.axes),
    )  # fmt: skip
    return dw
