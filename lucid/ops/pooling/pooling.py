"""Pooling over one and two dimensions: the largest element or the mean of each window, and what holds for all of it.

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
from lucid.backend.arrays import namespace, on
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.base.scalars import as_bool, as_int, is_single
from lucid.ops.layers.windows import Axis, axes_of, check_dimensions, sizes_for
from lucid.ops.pooling.adaptive_pooling import means_of_parts
from lucid.ops.pooling.pooling_primitives import avg_pool, flat_positions, max_pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


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
    only_tensors(input)
    shape = input.array.shape
    check_dimensions(name, shape, count)
    if input.array.dtype.kind in "bc":
        raise DtypeError(f"{name}: not defined for {input.array.dtype}; convert the input with .to(dtype)")
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
    values, which = max_pool(input, axes=axes)
    if not return_indices:
        return values
    with on(which.array):
        return values, wrap(flat_positions(namespace(which.array), which.array, axes))


def check_floating(name: str, input: Tensor) -> None:
    """Refuse an input of which no means are taken."""
    if input.array.dtype.kind not in "fV":
        raise DtypeError(
            f"{name}: expected a floating-point input, got {input.array.dtype}; convert it with .to(dtype)"
        )


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
    return avg_pool(input, axes=axes, divisor=divisor, padded=count_include_pad)


def adapted(name: str, count: int, input: Tensor, output_size: int | Sequence[int | None] | None) -> Any:
    """Return the means of parts of nearly the same size."""
    only_tensors(input)
    shape = input.array.shape
    check_dimensions(name, shape, count)
    check_floating(name, input)
    size = shape[-count:]
    asked: Any = (output_size,) * count if is_single(output_size) else output_size
    if len(asked) == count:
        asked = [n if a is None else a for n, a in zip(size, asked, strict=True)]
    wanted = sizes_for(name, "output_size", asked, count, least=1)
    if all(n % w == 0 and n for n, w in zip(size, wanted, strict=True)):
        kernel = tuple([n // w for n, w in zip(size, wanted, strict=True)])
        axes = axes_of(size, wanted, kernel, kernel, (0,) * count, (1,) * count)
        return avg_pool(input, axes=axes, divisor=math.prod(kernel), padded=False)
    if not all(size):
        raise ShapeError(f"{name}: expected pooled dimensions that are not empty, got input of shape {shape}")
    return means_of_parts(input, parts=wanted)


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


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Return the means of `output_size` parts of sequences, shape (batch, channels, length); see `adaptive_avg_pool2d`.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_avg_pool1d(lucid.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[2.0000, 2.5000]])
    """
    return adapted("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Return the means of a grid of parts of images, shape (batch, channels, height, width), of nearly the same size.

    `output_size` is how many parts there are, along each dimension or along both; None for as many as elements. Part
    ``i`` of ``n`` holds the elements from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``, the last not
    included.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_avg_pool2d(lucid.ones(1, 2, 5, 7), (3, None)).shape
    lucid.Size([1, 2, 3, 7])
    """
    return adapted("adaptive_avg_pool2d", 2, input, output_size)
