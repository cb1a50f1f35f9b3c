"""The primitive of adaptive pooling: means of parts of nearly the same size.

Part i of p along a dimension of n elements goes from floor(i * n / p) to ceil((i + 1) * n / p), so that parts overlap
where p does not divide n. The parts that hold element j are, by the same formula with n and p exchanged, those from
floor(j * p / n) to ceil((j + 1) * p / n): the gradient of the sums of parts is the sums of parts of the gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.recording.primitive import primitive
from lucid.ops.base.dims import along
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import ROWS_AT_ONCE, sum_of
from lucid.ops.pooling import pooling_cuda as kernels

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array, Ints


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
    return kernels.part_means(x, parts, spread=False)


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
    return kernels.part_means(x, sizes, spread=True)


@spread_over_parts.vjp
def _spread_over_parts_vjp(m: Namespace, grad: Array, x_shape: Ints, sizes: Ints) -> Any:
    return m.means_of_parts(grad, parts=x_shape[-len(sizes) :])
