"""Adaptive pooling over one to three dimensions: of a given number of parts of nearly the same size.

What holds for all pooling says `lucid.ops.pooling.pooling`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.base.arrays import namespace, on
from lucid.base.dtype import as_dtype, dtype_of
from lucid.base.memory import check_size
from lucid.errors import ShapeError
from lucid.ops.base.promotion import accumulation_dtype, cast_to, only_tensors
from lucid.ops.base.scalars import as_bool, is_single
from lucid.ops.index.index_select import index_select
from lucid.ops.layers.windows import axes_of, check_dimensions, sizes_for
from lucid.ops.pooling.adaptive_pooling import bounds, means_of_parts
from lucid.ops.pooling.pooling import check_floating, check_ordered, largest, means, over_volumes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.ops.layers.windows import Axis
    from lucid.tensor import Tensor


def parts_asked(name: str, count: int, input: Tensor, output_size: Any) -> tuple[int, ...]:
    """Return how many parts there are along each of the last `count` dimensions."""
    shape = input.array.shape
    asked: Any = (output_size,) * count if is_single(output_size) else output_size
    if len(asked) == count:
        asked = [n if a is None else a for n, a in zip(shape[-count:], asked, strict=True)]
    wanted = sizes_for(name, "output_size", asked, count, least=1)
    if not all(shape[-count:]):
        raise ShapeError(f"{name}: expected pooled dimensions that are not empty, got input of shape {shape}")
    check_size(name, (*shape[:-count], *wanted), 8)
    return wanted


def tiles(size: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[Axis, ...]:
    """Return windows that lie side by side."""
    count = len(size)
    out = tuple([n // k for n, k in zip(size, kernel, strict=True)])
    return axes_of(size, out, kernel, kernel, (0,) * count, (1,) * count)


def adapted(name: str, count: int, input: Tensor, output_size: int | Sequence[int | None] | None) -> Any:
    """Return the means of parts of nearly the same size."""
    only_tensors(input)
    check_dimensions(name, input.array.shape, count)
    check_floating(name, input)
    size = input.array.shape[-count:]
    wanted = parts_asked(name, count, input, output_size)
    if not any(n % w for n, w in zip(size, wanted, strict=True)):
        kernel = tuple([n // w for n, w in zip(size, wanted, strict=True)])
        return means(input, tiles(size, kernel), math.prod(kernel), padded=False)
    if count < 3:
        return means_of_parts(input, parts=wanted)
    result = over_volumes(
        cast_to(input, as_dtype(accumulation_dtype(input.array.dtype))),
        lambda x: means_of_parts(x, parts=wanted[1:]),
        lambda x: means_of_parts(x, parts=(wanted[0], x.array.shape[-1])),
    )
    return cast_to(result, dtype_of(input.array))


def places_of_parts(size: int, parts: int) -> Any:
    """Return the elements of each part, one part a row; shorter ones repeat their last element."""
    begin, end = bounds(size, parts)
    longest = int((end - begin).max())
    return np.minimum(begin[:, None] + np.arange(longest), end[:, None] - 1)


def largest_of_parts(
    name: str, count: int, input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool
) -> Any:
    """Return the largest element of each part, or these and their positions.

    Parts become windows side by side, which they are not where they overlap: there their elements are copied first.
    """
    return_indices = as_bool(return_indices, "return_indices")
    only_tensors(input)
    check_dimensions(name, input.array.shape, count)
    check_ordered(name, input)
    size = input.array.shape[-count:]
    wanted = parts_asked(name, count, input, output_size)
    places = [places_of_parts(n, w) for n, w in zip(size, wanted, strict=True)]
    x = input
    with on(input.array):
        xp = namespace(input.array)
        for k, (n, each) in enumerate(zip(size, places, strict=True)):
            if n % len(each):
                x = index_select(x, k - count, wrap(xp.asarray(each.ravel())))
        kernel = tuple([each.shape[1] for each in places])
        values, at = largest(x, tiles(x.array.shape[-count:], kernel), positions=return_indices)
        if not return_indices:
            return values
        position, step = xp.zeros(at.shape, np.int64), 1
        for n, each in reversed([*zip(size, places, strict=True)]):
            at, within = at // each.size, at % each.size
            position += xp.take(xp.asarray(each.ravel()), within) * step
            step *= n
        return values, wrap(position)


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


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Return the means of parts of volumes, shape (batch, channels, depth, height, width); see `adaptive_avg_pool2d`.

    `output_size` is how many parts there are along each dimension.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_avg_pool3d(lucid.ones(1, 2, 5, 7, 4), (3, None, 1)).shape
    lucid.Size([1, 2, 3, 7, 1])
    """
    input = wide_in_autocast(input, cpu=True, cuda=False)
    return adapted("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Return the largest elements of `output_size` parts of sequences, shape (batch, channels, length).

    The parts are those of `adaptive_avg_pool2d`; with `return_indices` the positions come too, int64.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_max_pool1d(lucid.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[3., 3.]])
    """
    return largest_of_parts("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Return the largest elements of a grid of parts of images, shape (batch, channels, height, width).

    The `output_size` parts are those of `adaptive_avg_pool2d`; with `return_indices` the positions come too,
    ``row * width + column``, int64.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_max_pool2d(lucid.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 1, return_indices=True)
    (tensor([[[4.]]]), tensor([[[2]]]))
    """
    return largest_of_parts("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Return the largest elements of parts of volumes, shape (batch, channels, depth, height, width).

    The `output_size` parts are those of `adaptive_avg_pool2d`; with `return_indices` the positions come too,
    ``(layer * height + row) * width + column``, int64.

    >>> import lucid
    >>> lucid.nn.functional.adaptive_max_pool3d(lucid.ones(1, 2, 5, 7, 4), (3, None, 1)).shape
    lucid.Size([1, 2, 3, 7, 1])
    """
    input = wide_in_autocast(input, cpu=True, cuda=False)
    return largest_of_parts("adaptive_max_pool3d", 3, input, output_size, return_indices)
