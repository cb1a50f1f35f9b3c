"""Pooling over one to three dimensions: the largest element or the mean of each window, and its common rules.

- `input` has the shape (batch, channels, *sizes), or the same without batch, and so has the result. Maxima are taken of
  real numbers, means of floating-point ones, or a DtypeError is raised.
- `kernel_size` is the size of the window, `stride` the distance between windows, by default the same, `dilation` that
  between the elements of a window; `padding`, at most half the window, is how much surrounds the input: minus infinity
  for maxima, zeros for means. Each is one number, or one for each dimension; what does not fit raises a ShapeError.
- A size becomes ``(size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down, or up with
  `ceil_mode`: then windows that reach beyond the end count, if they begin inside of the input or its first padding.
- Of equal elements the first gets the gradient of a maximum. A window with a NaN gives NaN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import wrap
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.base.arrays import namespace, on
from lucid.base.dtype import as_dtype, dtype_of
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.promotion import accumulation_dtype, cast_to
from lucid.ops.base.scalars import as_bool, as_int, is_single
from lucid.ops.layers.windows import Axis, axes_of, check_floating, shape_of, sizes_for
from lucid.ops.pooling.pooling_primitives import avg_pool, flat_positions, max_pool
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


def check_ordered(name: str, input: Tensor) -> None:
    """Refuse an input without a largest element."""
    if input.array.dtype.kind in "bc":
        raise DtypeError(f"{name}: not defined for {input.array.dtype}; convert the input with .to(dtype)")


def windows_over(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    *,
    ceil_mode: bool,
) -> tuple[Axis, ...]:
    """Return the windows of pooling over the last `count` dimensions."""
    shape = shape_of(name, input, count)
    check_ordered(name, input)
    kernel = sizes_for(name, "kernel_size", kernel_size, count, least=1)
    apart: Any = () if stride is None else stride
    strides = sizes_for(name, "stride", apart, count, least=1) if is_single(apart) or len(apart) else kernel
    before = sizes_for(name, "padding", padding, count, least=0)
    dilations = sizes_for(name, "dilation", dilation, count, least=1)
    spans = tuple([d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)])
    if any(2 * p > span for p, span in zip(before, spans, strict=True)):
        raise ShapeError(f"{name}: expected padding of at most half the window, got padding {before}, windows {spans}")
    out: list[int] = []
    for n, span, s, p in zip(shape[-count:], spans, strides, before, strict=True):
        room = n + 2 * p - span
        windows = (-(-room // s) if ceil_mode else room // s) + 1
        # a window that begins in the padding behind the last element is not counted
        out.append(windows - 1 if ceil_mode and (windows - 1) * s >= n + p else windows)
    if min(out) < 1:
        raise ShapeError(
            f"{name}: the window spans {spans} elements and fits nowhere in input of shape {shape}, padding {before}"
        )
    return axes_of(shape[-count:], tuple(out), kernel, strides, before, dilations)


def over_volumes(input: Tensor, planes: Callable[[Tensor], Any], lines: Callable[[Tensor], Any]) -> Any:
    """Return the result of two poolings of volumes: `planes` of each plane, `lines` along their first dimension."""
    *lead, depth, height, width = input.array.shape
    flat: Any = planes(reshape(input, (math.prod(lead), depth, height, width)))
    rows, columns = flat.array.shape[-2:]
    result: Any = lines(reshape(flat, (*lead, depth, rows * columns)))
    return reshape(result, (*lead, result.array.shape[-2], rows, columns))


def means_of_means(input: Tensor, planes: Callable[[Tensor], Any], lines: Callable[[Tensor], Any]) -> Any:
    """Return the result of two poolings of volumes by means, as `over_volumes` does, rounded once."""
    wide = cast_to(input, as_dtype(accumulation_dtype(input.array.dtype)))
    return cast_to(over_volumes(wide, planes, lines), dtype_of(input.array))


def one_by_one(size: int) -> Axis:
    """Return windows of one element each."""
    return Axis(size, size, 1, 1, 0, 1)


def largest(input: Tensor, axes: tuple[Axis, ...], *, positions: bool) -> tuple[Any, Any]:
    """Return the largest element of each window, and if they are asked for the positions, counted over all dimensions.

    Of volumes the largest of the largest of planes is taken: the first in each is the first of all.
    """
    if len(axes) < 3:
        values, which = max_pool(input, axes=axes)
        if not positions:
            return values, None
        with on(which.array):
            return values, flat_positions(namespace(which.array), which.array, axes)
    depth, *plane = axes
    inside: list[Any] = []

    def planes(x: Tensor) -> Any:
        values, where = largest(x, tuple(plane), positions=positions)
        inside.append(where)
        return values

    def lines(x: Tensor) -> Any:
        values, where = largest(x, (depth, one_by_one(x.array.shape[-1])), positions=positions)
        inside.append(where)
        return values

    values = over_volumes(input, planes, lines)
    if not positions:
        return values, None
    in_plane, in_depth = inside
    with on(in_plane):
        xp = namespace(in_plane)
        # a window without an element names one behind the last
        layer = xp.minimum(in_depth // math.prod(axis.out for axis in plane), max(depth.size - 1, 0))
        where = xp.take_along_axis(in_plane.reshape(*layer.shape[:-2], depth.size, layer.shape[-1]), layer, -2)
        return values, (layer * math.prod(axis.size for axis in plane) + where).reshape(values.array.shape)


def max_pooled(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    """Return the largest elements, or these and their positions."""
    ceil_mode = as_bool(ceil_mode, "ceil_mode")
    return_indices = as_bool(return_indices, "return_indices")
    axes = windows_over(name, count, input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)
    values, where = largest(input, axes, positions=return_indices)
    return (values, wrap(where)) if return_indices else values


def averaged(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None = None,
) -> Any:
    """Return the means of windows."""
    ceil_mode = as_bool(ceil_mode, "ceil_mode")
    count_include_pad = as_bool(count_include_pad, "count_include_pad")
    axes = windows_over(name, count, input, kernel_size, stride, padding, 1, ceil_mode=ceil_mode)
    check_floating(name, input)
    divisor = None if divisor is None else as_int(divisor, "divisor_override")
    if divisor == 0:
        raise ShapeError(f"{name}: expected divisor_override to be other than 0")
    return means(input, axes, divisor, padded=count_include_pad)


def means(input: Tensor, axes: tuple[Axis, ...], divisor: int | None, *, padded: bool) -> Any:
    """Return the means of windows; of volumes the means of means of planes, rounded once."""
    if len(axes) < 3:
        return avg_pool(input, axes=axes, divisor=divisor, padded=padded)
    # with a divisor the sums are divided once, at the end
    first = None if divisor is None else 1
    return means_of_means(
        input,
        lambda x: avg_pool(x, axes=axes[1:], divisor=first, padded=padded),
        lambda x: avg_pool(x, axes=(axes[0], one_by_one(x.array.shape[-1])), divisor=divisor, padded=padded),
    )


def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of sequences, shape (batch, channels, length).

    With `return_indices` their positions come too, int64.

    >>> import lucid
    >>> lucid.nn.functional.max_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return max_pooled("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of images, shape (batch, channels, height, width).

    With `return_indices` their positions come too, ``row * width + column``, int64.

    >>> import lucid
    >>> x = lucid.tensor([[[1.0, 2.0], [4.0, 3.0]]])
    >>> lucid.nn.functional.max_pool2d(x, 2, return_indices=True)
    (tensor([[[4.]]]), tensor([[[2]]]))
    """
    return max_pooled("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of volumes, shape (batch, channels, depth, height, width).

    With `return_indices` their positions come too, ``(layer * height + row) * width + column``, int64.

    >>> import lucid
    >>> x = lucid.tensor([[[[1.0, 2.0]], [[4.0, 3.0]]]])
    >>> lucid.nn.functional.max_pool3d(x, (2, 1, 2), return_indices=True)
    (tensor([[[[4.]]]]), tensor([[[[2]]]]))
    """
    input = wide_in_autocast(input, cpu=True, cuda=False)
    return max_pooled("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of sequences, shape (batch, channels, length).

    `count_include_pad` says whether the zeros of the padding count as elements.

    >>> import lucid
    >>> lucid.nn.functional.avg_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return averaged("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of images, shape (batch, channels, height, width).

    `count_include_pad` says whether the zeros of the padding count as elements; with `divisor_override`, not 0, the
    sums are divided by that.

    >>> import lucid
    >>> lucid.nn.functional.avg_pool2d(lucid.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[2.5000]]])
    """
    return averaged(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of volumes, shape (batch, channels, depth, height, width).

    `count_include_pad` says whether the zeros of the padding count as elements; with `divisor_override`, not 0, the
    sums are divided by that.

    >>> import lucid
    >>> lucid.nn.functional.avg_pool3d(lucid.tensor([[[[1.0, 2.0]], [[4.0, 3.0]]]]), (2, 1, 2))
    tensor([[[[2.5000]]]])
    """
    input = wide_in_autocast(input, cpu=True, cuda=False)
    return averaged(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )
