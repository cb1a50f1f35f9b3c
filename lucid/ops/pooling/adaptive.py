"""Adaptive pooling over one to three dimensions: of a given number of parts of nearly the same size.

What holds for all pooling says `lucid.ops.pooling.pooling`. Part i of p along a dimension of n elements goes from
floor(i * n / p) to ceil((i + 1) * n / p), so that parts overlap where p does not divide n. The parts that hold element
j are, by the same formula with n and p exchanged, those from floor(j * p / n) to ceil((j + 1) * p / n): the gradient of
the sums of parts is the sums of parts of the gradient.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import namespace, on
from lucid.base.memory import check_size
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.windows import LARGEST_INT, images, launch_shape
from lucid.errors import ShapeError
from lucid.ops.base.dims import along
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import ROWS_AT_ONCE, sum_of
from lucid.ops.base.scalars import as_bool, is_single
from lucid.ops.index.index_select import index_select
from lucid.ops.layers.windows import axes_of, check_floating, shape_of, sizes_for
from lucid.ops.pooling.pooling import check_ordered, largest, means, means_of_means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints
    from lucid.ops.layers.windows import Axis
    from lucid.tensor import Tensor


_PART_MEANS = Kernel("pooling", "lucid::part_means", EACH_FLOAT)


def bounds(size: int, parts: int) -> tuple[Any, Any]:
    """Return the beginnings and ends of `parts` parts of `size` elements."""
    numbers = np.arange(parts)
    return numbers * size // parts, -(-(numbers + 1) * size // parts)


def part_sums(xp: ModuleType, x: Array, parts: Ints) -> Array:
    """Return the sums of parts of the last dimensions."""
    short = all(n <= ROWS_AT_ONCE * count for n, count in zip(x.shape[-len(parts) :], parts, strict=True))
    if xp is np and short:
        total = x
        if parts[-1] != x.shape[-1]:
            rows = x.reshape(-1, x.shape[-1]) @ membership(x.shape[-1], parts[-1], x.dtype)
            total = rows.reshape(*x.shape[:-1], parts[-1])
        if len(parts) == 2 and parts[0] != x.shape[-2]:
            total = membership(parts[0], x.shape[-2], x.dtype) @ total
        # products with a matrix are fastest, but where an element is infinite or NaN, 0 times it reaches other parts
        if total is not x and np.isfinite(total).all():
            return total
    for k, count in enumerate(reversed(parts)):
        x = sums_along(xp, x, x.ndim - 1 - k, count)
    return x


def membership(size: int, parts: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the matrix with 1 for each element, by row, in a part, by column, and 0 elsewhere."""
    begin, end = bounds(size, parts)
    numbers = np.arange(size)[:, None]
    return ((begin <= numbers) & (numbers < end)).astype(dtype)


def sums_along(xp: ModuleType, x: Array, axis: int, parts: int) -> Array:
    """Return the sums of parts along one dimension; only elements of a part are touched."""
    begin, end = bounds(x.shape[axis], parts)
    longest = int((end - begin).max())
    if longest > ROWS_AT_ONCE:
        sums = [sum_of(xp, x[along(axis, slice(*part))], (axis,)) for part in zip(begin, end, strict=True)]
        return xp.stack(sums, axis)
    total = xp.take(x, xp.asarray(begin), axis)
    for step in range(1, longest):
        longer = np.flatnonzero(begin + step < end)
        total[along(axis, xp.asarray(longer))] += xp.take(x, xp.asarray(begin[longer] + step), axis)
    return total


def divide_by_sizes(xp: ModuleType, x: Array, sizes: Ints) -> Array:
    """Divide, in place, each element of the last dimensions by how many of `sizes` elements are in its part."""
    for k, size in enumerate(reversed(sizes)):
        begin, end = bounds(size, x.shape[x.ndim - 1 - k])
        x /= xp.asarray(end - begin, x.dtype).reshape(-1, *[1] * k)
    return x


@primitive
def means_of_parts(xp: ModuleType, x: Array, *, parts: Ints) -> Array:
    """Return the means of `parts` parts along each of the last dimensions."""
    total = part_sums(xp, x.astype(accumulation_dtype(x.dtype), copy=False), parts)
    return divide_by_sizes(xp, total, x.shape[-len(parts) :]).astype(x.dtype, copy=False)


@means_of_parts.cuda
def _means_of_parts_cuda(x: Array, *, parts: tuple[int, ...]) -> Any:
    return _part_means(x, parts, spread=False)


@planned
def _part_means(x: Array, parts: tuple[int, ...], *, spread: bool) -> Any:
    """Return the means of `parts` parts along each of the last dimensions, or with `spread` their gradient."""
    dtype, read, pixels = C_TYPES.get(x.dtype), images(x, len(parts)), math.prod(parts)
    if dtype not in FLOATS or read is None or not read.planes * pixels or max(read.shape[1:]) > LARGEST_INT:
        return NotImplemented
    launch = launch_shape(read.planes, pixels)
    if launch is None:
        return NotImplemented
    out = empty((*x.shape[: -len(parts)], *parts), x.dtype)
    rows, columns = zip(read.shape[2:], (1, *parts)[-2:], strict=True)
    _PART_MEANS[dtype](
        *launch, x.data.ptr, out.data.ptr, read.planes, read.shape[1], *read.steps, *rows, *columns, int(spread)
    )
    return out


@means_of_parts.vjp
def _means_of_parts_vjp(m: Namespace, grad: Array, x_shape: Ints, parts: Ints) -> Any:
    return m.spread_over_parts(grad, sizes=x_shape[-len(parts) :])


@primitive
def spread_over_parts(xp: ModuleType, x: Array, *, sizes: Ints) -> Array:
    """Return an array of `sizes` along the last dimensions: each mean's gradient shared by the elements of its part."""
    share = divide_by_sizes(xp, x.astype(accumulation_dtype(x.dtype)), sizes)
    return part_sums(xp, share, sizes).astype(x.dtype, copy=False)


@spread_over_parts.cuda
def _spread_over_parts_cuda(x: Array, *, sizes: tuple[int, ...]) -> Any:
    return _part_means(x, sizes, spread=True)


@spread_over_parts.vjp
def _spread_over_parts_vjp(m: Namespace, grad: Array, x_shape: Ints, sizes: Ints) -> Any:
    return m.means_of_parts(grad, parts=x_shape[-len(sizes) :])


def parts_asked(
    name: str, count: int, input: Tensor, output_size: Any, check: Callable[[str, Tensor], None]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of the last `count` dimensions, and how many parts there are along each."""
    shape = shape_of(name, input, count)
    check(name, input)
    asked: Any = (output_size,) * count if is_single(output_size) else output_size
    if len(asked) == count:
        asked = [n if a is None else a for n, a in zip(shape[-count:], asked, strict=True)]
    wanted = sizes_for(name, "output_size", asked, count, least=1)
    if not all(shape[-count:]):
        raise ShapeError(f"{name}: expected pooled dimensions that are not empty, got input of shape {shape}")
    check_size(name, (*shape[:-count], *wanted), 8)
    return shape[-count:], wanted


def tiles(size: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[Axis, ...]:
    """Return windows that lie side by side."""
    count = len(size)
    out = tuple([n // k for n, k in zip(size, kernel, strict=True)])
    return axes_of(size, out, kernel, kernel, (0,) * count, (1,) * count)


def adapted(name: str, count: int, input: Tensor, output_size: int | Sequence[int | None] | None) -> Any:
    """Return the means of parts of nearly the same size."""
    size, wanted = parts_asked(name, count, input, output_size, check_floating)
    if not any(n % w for n, w in zip(size, wanted, strict=True)):
        kernel = tuple([n // w for n, w in zip(size, wanted, strict=True)])
        return means(input, tiles(size, kernel), math.prod(kernel), padded=False)
    if count < 3:
        return means_of_parts(input, parts=wanted)
    return means_of_means(
        input,
        lambda x: means_of_parts(x, parts=wanted[1:]),
        lambda x: means_of_parts(x, parts=(wanted[0], x.array.shape[-1])),
    )


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
    size, wanted = parts_asked(name, count, input, output_size, check_ordered)
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
