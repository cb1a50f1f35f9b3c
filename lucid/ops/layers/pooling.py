"""Pooling: the largest element or the mean of each window, over one and two dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import wrap
from lucid.backend.arrays import namespace, on
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.base.scalars import as_bool, as_int, is_single
from lucid.ops.layers.adaptive_pooling import means_of_parts
from lucid.ops.layers.pooling_primitives import avg_pool, flat_positions, max_pool
from lucid.ops.layers.windows import Axis, axes_of, sizes_for

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def windows_over(
    name: str, count: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, *, ceil_mode: bool
) -> tuple[Axis, ...]:
    """Return the windows of pooling over the last `count` dimensions.

    Raises
    ------
    ShapeError
        If the shape or the settings do not fit.
    DtypeError
        If `input` is bool or complex.
    """
    only_tensors(input)
    shape = input.array.shape
    if len(shape) not in {count + 1, count + 2}:
        raise ShapeError(
            f"{name}: expected input of {count + 2} dimensions (batch, channels, ...), or {count + 1} without a batch, "
            f"got shape {shape}"
        )
    if input.array.dtype.kind in "bc":
        raise DtypeError(f"{name}: not defined for {input.array.dtype}; convert the input with .to(dtype)")
    kernel = sizes_for(name, "kernel_size", kernel_size, count, least=1)
    whole = stride is None or (not is_single(stride) and not len(stride))
    strides = kernel if whole else sizes_for(name, "stride", stride, count, least=1)
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
    return axes_of(shape[-count:], out, kernel, strides, before, dilations)


def max_pooled(
    name: str,
    count: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    *,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    """Return the largest elements, or these and their positions; see :func:`max_pool2d`."""
    axes = windows_over(name, count, input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)
    values, which = max_pool(input, axes=axes)
    if not return_indices:
        return values
    with on(which.array):
        return values, wrap(flat_positions(namespace(which.array), which.array, axes))


def averaged(
    name: str,
    count: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    *,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Any:
    """Return the means of windows; see :func:`avg_pool2d`."""
    axes = windows_over(name, count, input, kernel_size, stride, padding, 1, ceil_mode=ceil_mode)
    if input.array.dtype.kind not in "fV":
        raise DtypeError(
            f"{name}: expected a floating-point input, got {input.array.dtype}; convert it with .to(dtype)"
        )
    divisor = None if divisor is None else as_int(divisor, "divisor_override")
    if divisor == 0:
        raise ShapeError(f"{name}: expected divisor_override to be other than 0")
    return avg_pool(input, axes=axes, divisor=divisor, padded=bool(count_include_pad))


def adapted(name: str, count: int, input: Any, output_size: Any) -> Any:
    """Return the means of parts of nearly the same size; see :func:`adaptive_avg_pool2d`."""
    only_tensors(input)
    shape = input.array.shape
    if len(shape) not in {count + 1, count + 2}:
        raise ShapeError(
            f"{name}: expected input of {count + 2} dimensions (batch, channels, ...), or {count + 1} without a batch, "
            f"got shape {shape}"
        )
    if input.array.dtype.kind not in "fV":
        raise DtypeError(
            f"{name}: expected a floating-point input, got {input.array.dtype}; convert it with .to(dtype)"
        )
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
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of a sequence; :func:`max_pool2d` with one dimension.

    Parameters
    ----------
    input : Tensor, shape (batch, channels, length) or (channels, length)
        The sequences.
    kernel_size, stride, padding, dilation, ceil_mode, return_indices
        As for :func:`max_pool2d`.

    Returns
    -------
    Tensor, or tuple of Tensor
        The values, of shape (..., windows); with `return_indices` also their positions, int64.

    Raises
    ------
    ShapeError
        If the shape or the settings do not fit.
    DtypeError
        If `input` is bool or complex.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.max_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    ceil_mode = as_bool(ceil_mode, "ceil_mode")
    return_indices = as_bool(return_indices, "return_indices")
    return max_pooled(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation,
        ceil_mode=ceil_mode, return_indices=return_indices,
    )  # fmt: skip


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window.

    The gradient goes to the first of equal elements. A window with a NaN gives NaN.

    Parameters
    ----------
    input : Tensor, shape (batch, channels, height, width) or (channels, height, width)
        The images.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The distance between windows; the size of the window if None, so that they do not overlap.
    padding : int or tuple of int
        By how many elements of minus infinity the image is surrounded; at most half the window.
    dilation : int or tuple of int
        The distance between the elements of a window.
    ceil_mode : bool
        Whether windows that reach beyond the padded image count, if they begin inside of the image or in the padding
        before it.
    return_indices : bool
        Whether to return the positions too.

    Returns
    -------
    Tensor, or tuple of Tensor
        The values, of shape (..., out height, out width), where
        ``out = (size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1``, rounded down, or up with
        `ceil_mode`. With `return_indices` also their positions, ``row * width + column``, int64.

    Raises
    ------
    ShapeError
        If the shape or the settings do not fit.
    DtypeError
        If `input` is bool or complex.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([[[1.0, 2.0], [4.0, 3.0]]])
    >>> lucid.nn.functional.max_pool2d(x, 2, return_indices=True)
    (tensor([[[4.]]]), tensor([[[2]]]))
    """
    ceil_mode = as_bool(ceil_mode, "ceil_mode")
    return_indices = as_bool(return_indices, "return_indices")
    return max_pooled(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation,
        ceil_mode=ceil_mode, return_indices=return_indices,
    )  # fmt: skip


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of a sequence; :func:`avg_pool2d` with one dimension.

    Parameters
    ----------
    input : Tensor, shape (batch, channels, length) or (channels, length)
        The sequences.
    kernel_size, stride, padding, ceil_mode, count_include_pad
        As for :func:`avg_pool2d`.

    Returns
    -------
    Tensor
        Of shape (..., windows).

    Raises
    ------
    ShapeError
        If the shape or the settings do not fit.
    DtypeError
        If `input` is not of a floating-point dtype.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.avg_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    ceil_mode = as_bool(ceil_mode, "ceil_mode")
    count_include_pad = as_bool(count_include_pad, "count_include_pad")
    return averaged(
        "avg_pool1d", 1, input, kernel_size, stride, padding,
        ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor=None,
    )  # fmt: skip


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window.

    Parameters
    ----------
    input : Tensor, shape (batch, channels, height, width) or (channels, height, width)
        The images.
    kernel_size : int or tuple of int
        The size of the window.
    stride : int or tuple of int, optional
        The distance between windows; the size of the window if None, so that they do not overlap.
    padding : int or tuple of int
        By how many zeros the image is surrounded; at most half the window.
    ceil_mode : bool
        Whether windows that reach beyond the padded image count, if they begin inside of the image or in the padding
        before it.
    count_include_pad : bool
        Whether the zeros of the padding count as elements.
    divisor_override : int, optional
        What to divide the sums by, instead of the number of elements.

    Returns
    -------
    Tensor
        Of shape (..., out height, out width), where ``out = (size + 2 * padding - kernel_size) / stride + 1``,
        rounded down, or up with `ceil_mode`.

    Raises
    ------
    ShapeError
        If the shape or the settings do not fit, or the divisor is 0.
    DtypeError
        If `input` is not of a floating-point dtype.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.avg_pool2d(lucid.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[2.5000]]])
    """
    ceil_mode = as_bool(ceil_mode, "ceil_mode")
    count_include_pad = as_bool(count_include_pad, "count_include_pad")
    return averaged(
        "avg_pool2d", 2, input, kernel_size, stride, padding,
        ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor=divisor_override,
    )  # fmt: skip


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of `output_size` parts of a sequence; :func:`adaptive_avg_pool2d` with one dimension.

    Parameters
    ----------
    input : Tensor, shape (batch, channels, length) or (channels, length)
        The sequences.
    output_size : int, or tuple of one int
        How many parts.

    Returns
    -------
    Tensor
        Of shape (..., output_size).

    Raises
    ------
    ShapeError
        If the shape or the number of parts does not fit.
    DtypeError
        If `input` is not of a floating-point dtype.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.adaptive_avg_pool1d(lucid.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[2.0000, 2.5000]])
    """
    return adapted("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of a grid of parts of nearly the same size.

    Part ``i`` of ``n`` holds the elements from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``, the last not
    included; parts overlap where ``n`` does not divide the size.

    Parameters
    ----------
    input : Tensor, shape (batch, channels, height, width) or (channels, height, width)
        The images.
    output_size : int, or tuple of two int or None
        How many parts along height and width; None for as many as there are elements.

    Returns
    -------
    Tensor
        Of shape (..., parts along height, parts along width).

    Raises
    ------
    ShapeError
        If the shape or the number of parts does not fit.
    DtypeError
        If `input` is not of a floating-point dtype.

    Examples
    --------
    >>> import lucid
    >>> lucid.nn.functional.adaptive_avg_pool2d(lucid.ones(1, 2, 5, 7), (3, None)).shape
    (1, 2, 3, 7)
    """
    return adapted("adaptive_avg_pool2d", 2, input, output_size)
