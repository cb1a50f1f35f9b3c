"""Windows of images as columns, and sums of columns. Common rules of resampling: `lucid.ops.resampling`.

`kernel_size` is the size of the window, `stride` the distance between windows, `dilation` that between the elements of
a window, `padding` how many zeros surround the image: one number, or one for each dimension. Columns count the windows
row by row, and have the elements of a window channel by channel. Complex numbers are taken, too. On a CUDA device the
kernels behind convolutions do it, of one image with all planes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES, FLOATS
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.windows import LARGEST_INT, addressable, images, launch_shape, packed
from lucid.errors import ShapeError
from lucid.ops.base.promotion import accumulation_dtype, only_tensors
from lucid.ops.layers.convolution_primitives import col2im, im2col
from lucid.ops.layers.windows import Axis, axes_of, check_floating, sizes_for, taps, window_count
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


@primitive
def columns_of(xp: ModuleType, x: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return the elements of each window, shape (..., *positions, *windows); zeros in the padding."""
    shape = (*x.shape[: -len(axes)], *[axis.kernel for axis in axes], *window_count(axes))
    # nothing but the padding is left out
    out = (xp.zeros if any(axis.before for axis in axes) else xp.empty)(shape, x.dtype)
    for tap in taps(axes):
        out[(..., *tap.position, *tap.windows)] = x[(..., *tap.elements)]
    return out


@columns_of.cuda
@planned
def _columns_of_cuda(x: Array, *, axes: tuple[Axis, ...]) -> Any:
    lead = x.shape[: -len(axes)]
    work = _launch(x.dtype, lead, axes, "out")
    if work is None:
        return NotImplemented
    name, planes, launch = work
    x = gpu.cupy().ascontiguousarray(x)
    out = empty((*lead, *[axis.kernel for axis in axes], *[axis.out for axis in axes]), x.dtype)
    read: Any = images(x.reshape(1, planes, *[axis.size for axis in axes]), len(axes))
    im2col[name](*launch, x.data.ptr, out.data.ptr, 1, planes, *read.steps, *packed(axes))
    return out


def _launch(dtype: Any, lead: tuple[int, ...], axes: tuple[Axis, ...], over: str) -> Any:
    """Return the dtype in C, how many planes there are, grid and block; None without a kernel."""
    name, planes = C_TYPES.get(dtype), math.prod(lead)
    if name not in FLOATS or not 0 < planes <= LARGEST_INT or not addressable(axes):
        return None
    launch = launch_shape(planes, math.prod(getattr(axis, over) for axis in axes))
    return None if launch is None else (name, planes, launch)


@columns_of.vjp("x", planned=True)
def columns_of_vjp(m: Namespace, grad: Array, axes: tuple[Axis, ...]) -> Any:
    """Return for each element the sum of the gradients from its windows."""
    return m.sum_of_columns(grad, axes=axes)


@primitive
def sum_of_columns(xp: ModuleType, columns: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return planes with elements summed over all windows that have them."""
    dtype = accumulation_dtype(columns.dtype)
    out = xp.zeros((*columns.shape[: -2 * len(axes)], *[axis.size for axis in axes]), dtype)
    for tap in taps(axes):
        out[(..., *tap.elements)] += columns[(..., *tap.position, *tap.windows)]
    return out.astype(columns.dtype, copy=False)


@sum_of_columns.cuda
@planned
def _sum_of_columns_cuda(columns: Array, *, axes: tuple[Axis, ...]) -> Any:
    lead = columns.shape[: -2 * len(axes)]
    work = _launch(columns.dtype, lead, axes, "size")
    if work is None:
        return NotImplemented
    name, planes, launch = work
    columns = gpu.cupy().ascontiguousarray(columns)
    out = empty((*lead, *[axis.size for axis in axes]), columns.dtype)
    col2im[name](*launch, columns.data.ptr, out.data.ptr, 1, planes, *packed(axes))
    return out


@sum_of_columns.vjp("columns", planned=True)
def sum_of_columns_vjp(m: Namespace, grad: Array, axes: tuple[Axis, ...]) -> Any:
    """Return the gradient of each element for every window that has it."""
    return m.columns_of(grad, axes=axes)


def windows(
    name: str, size: Ints, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> tuple[Axis, ...]:
    """Return the windows over images of a size."""
    kernel = sizes_for(name, "kernel_size", kernel_size, 2, least=1)
    dilations = sizes_for(name, "dilation", dilation, 2, least=1)
    before = sizes_for(name, "padding", padding, 2, least=0)
    strides = sizes_for(name, "stride", stride, 2, least=1)
    room = [n + 2 * p - d * (k - 1) - 1 for n, p, d, k in zip(size, before, dilations, kernel, strict=True)]
    if min(room) < 0:
        raise ShapeError(
            f"{name}: a window of {kernel} with dilation {dilations} fits nowhere in {size}, padding {before}"
        )
    out = tuple([space // step + 1 for space, step in zip(room, strides, strict=True)])
    return axes_of(size, out, kernel, strides, before, dilations)


def check(name: str, input: Tensor, dimensions: tuple[int, int], wanted: str) -> tuple[int, ...]:
    """Return the shape of the input, refused if it has other dimensions, none of some, or no floating-point dtype."""
    only_tensors(input)
    shape = input.array.shape
    if len(shape) not in dimensions or not all(shape[-dimensions[0] :]):
        raise ShapeError(f"{name}: expected input {wanted}, with or without a batch and none of them 0, got {shape}")
    check_floating(name, input, "fcV")
    return shape


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Return the windows of images, shape (batch, channels, height, width), as columns.

    The result has the shape (batch, channels * elements of a window, windows); both may come without batch.

    >>> import lucid
    >>> lucid.nn.functional.unfold(lucid.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), (2, 1))
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    """
    shape = check("unfold", input, (3, 4), "(channels, height, width)")
    axes = windows("unfold", shape[-2:], kernel_size, dilation, padding, stride)
    rows = shape[-3] * math.prod(axis.kernel for axis in axes)
    return reshape(columns_of(input, axes=axes), (*shape[:-3], rows, math.prod(window_count(axes))))


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Return images of the size `output_size` with elements summed over all windows that have them.

    `input` has the shape (batch, channels * elements of a window, windows), or the same without batch.

    >>> import lucid
    >>> lucid.nn.functional.fold(lucid.ones(4, 2), (2, 3), 2)
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    shape = check("fold", input, (2, 3), "(channels * elements of a window, windows)")
    size = sizes_for("fold", "output_size", output_size, 2, least=1)
    axes = windows("fold", size, kernel_size, dilation, padding, stride)
    kernel, count = tuple([axis.kernel for axis in axes]), window_count(axes)
    channels, rest = divmod(shape[-2], math.prod(kernel))
    if rest or shape[-1] != math.prod(count):
        raise ShapeError(
            f"fold: expected a multiple of {math.prod(kernel)} rows and {math.prod(count)} columns, for windows of "
            f"{kernel} at {count} places, got {shape}"
        )
    return sum_of_columns(reshape(input, (*shape[:-2], channels, *kernel, *count)), axes=axes)
