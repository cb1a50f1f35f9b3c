"""Convolution on a CUDA device: through cuDNN if it can, else by columns of windows and matrix products.

The columns of a block of images are gathered by one kernel, multiplied, and what is made is put in order, with the
bias, by another; the input's gradient is gathered back from columns, so that nothing is added in an order that varies.
Where each group has one channel there is no product to make, and one kernel does everything.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel, address_of
from lucid.cuda.launch.windows import LARGEST_INT, addressable, images, launch_shape, packed
from lucid.cuda.libraries import blas, cudnn_convolution
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.layers.windows import Axis, are_pointwise, axes_of, window_count, window_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lucid.base.arrays import Array


# The columns of one block of images, in bytes: the memory that a convolution may take, and what is worth a launch.
BLOCK = 256 << 20

_REDUCE_THREADS = 256
_LARGEST_GRID_Y = 65_535

im2col = Kernel("convolution", "lucid::im2col", EACH_FLOAT)
col2im = Kernel("convolution", "lucid::col2im", EACH_FLOAT)
_rearrange = Kernel("convolution", "lucid::rearrange", EACH_FLOAT)
_depthwise = Kernel("convolution", "lucid::depthwise", EACH_FLOAT)
_depthwise_input_grad = Kernel("convolution", "lucid::depthwise_input_grad", EACH_FLOAT)
_depthwise_weight_grad = Kernel("convolution", "lucid::depthwise_weight_grad", EACH_FLOAT)


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
        size = max(1, BLOCK // (self.channels * self.window_size * self.area * itemsize))
        for start in range(0, self.batch, size):
            yield slice(start, min(start + size, self.batch))


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
    read: Any = images(x, len(p.axes))
    grid, block = _over(p.channels * count, p.axes, 1)
    im2col[p.name](grid, block, x.data.ptr, buffer.data.ptr, count, p.channels, *read.steps, *packed(p.axes))
    return _matrices(p, buffer, count)


def _rows(p: Problem, g: Array) -> Array:
    """Return the values of output channels as matrices of shape (groups, channels, images * windows)."""
    count = g.shape[0]
    shape = p.groups, p.made // p.groups, count * p.area
    if count == 1 and g.flags.c_contiguous:
        return g.reshape(shape)
    rows = cupy_functions().empty(shape, g.dtype)
    read: Any = images(g, len(p.axes))
    n, c, h, w = read.steps
    _arrange(p, g, None, rows, (p.made, count), (c, n, h, w))
    return rows


def _arrange(
    p: Problem, x: Array, bias: Array | None, out: Array, lead: tuple[int, int], steps: tuple[int, ...]
) -> None:
    """Write elements of `x` at `steps` into `out`, of shape (*lead, *windows), plus the bias of the second index."""
    planes = math.prod(lead)
    grid, block = _over(planes, p.axes, 1)
    columns = p.axes[-1][1]
    _rearrange[p.name](
        grid, block, x.data.ptr, address_of(bias), out.data.ptr, planes, lead[1], p.area // columns, columns, *steps
    )


def _by_pixels(p: Problem, kernels: Array, x: Array) -> Array:
    """Return the products of the matrix of each group with the pixels of each image."""
    return blas.matmul(kernels, x.reshape(p.batch, p.groups, x.shape[1] // p.groups, p.area))


def forward(
    x: Array, weight: Array, bias: Array | None, *, out: Any, stride: Any, before: Any, dilation: Any, groups: int
) -> Any:
    """Return the cross-correlation of images with kernels; NotImplemented without a kernel."""
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


def input_grad(g: Array, weight: Array, *, size: Any, stride: Any, before: Any, dilation: Any, groups: int) -> Any:
    """Return images of `size`, each element of `g` spread over its window; NotImplemented without a kernel."""
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
        grid, threads = _over(count * p.channels, p.axes, 0)
        col2im[p.name](grid, threads, columns.data.ptr, result[block].data.ptr, count, p.channels, *packed(p.axes))
    return result


def weight_grad(g: Array, x: Array, *, kernel: Any, stride: Any, before: Any, dilation: Any, groups: int) -> Any:
    """Return the products of `g` and the elements at each position, summed; NotImplemented without a kernel."""
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


def _by_planes(p: Problem, kernel: Kernel, x: Array, beside: tuple[int, ...], shape: Any, which: int) -> Array:
    """Return the result, of `shape`, of a depthwise kernel; `beside`: the addresses that it takes after that of `x`."""
    out = cupy_functions().empty(shape, x.dtype)
    read: Any = images(x, len(p.axes))
    grid, block = _over(shape[0] * shape[1], p.axes, which)
    kernel[p.name](
        grid, block, x.data.ptr, *beside, out.data.ptr,
        p.batch, p.channels, p.made // p.channels, *read.steps, *packed(p.axes),
    )  # fmt: skip
    return out


def _depthwise_weights(p: Problem, g: Array, x: Array, shape: Any) -> Array:
    dw = cupy_functions().empty(shape, x.dtype)
    g_read: Any = images(g, len(p.axes))
    x_read: Any = images(x, len(p.axes))
    threads = min(_REDUCE_THREADS, max(32, 1 << (p.batch * p.area - 1).bit_length()))
    _depthwise_weight_grad[p.name](
        (p.window_size, p.made), threads, g.data.ptr, x.data.ptr, dw.data.ptr,
        p.batch, p.made // p.channels, *g_read.steps, *x_read.steps, *packed(p.axes),
    )  # fmt: skip
    return dw
