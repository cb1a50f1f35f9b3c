"""Differences of neighbours, and integrals over samples. Common rules: `lucid.ops.reduction.sums`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.errors import ShapeError
from lucid.ops.base.dims import along, dim_in
from lucid.ops.base.promotion import array_of
from lucid.ops.base.scalars import as_int, as_scalar
from lucid.ops.elementwise.arithmetic import add, mul, sub
from lucid.ops.elementwise.comparison import ne
from lucid.ops.index.indexing import getitem
from lucid.ops.reduction.cumulative import cumsum
from lucid.ops.reduction.sums import sum
from lucid.ops.shape.joining import cat
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.base.arrays import Number
    from lucid.tensor import Tensor


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return ``input[i + 1] - input[i]`` along a dimension, `n` times; of bools whether neighbours differ.

    `prepend` and `append` are joined to `input` before, unless `n` is 0. Where there are fewer elements than `n`, none
    are left.

    >>> import lucid
    >>> lucid.diff(lucid.tensor([1, 3, 6]))
    tensor([2, 3])
    """
    shape, times = array_of(input).shape, as_int(n, "n")
    if not shape:
        raise ShapeError("diff: expected at least 1 dimension, got a 0-dim tensor")
    if times < 0:
        raise ShapeError(f"diff: order must be non-negative but got {times}")
    axis = dim_in(dim, len(shape))
    parts = [part for part in (prepend, input, append) if part is not None and (times or part is input)]
    result: Any = cat(parts, axis) if len(parts) > 1 else input
    change = ne if result.array.dtype.kind == "b" else sub
    for _ in range(min(times, result.array.shape[axis])):
        result = change(getitem(result, along(axis, slice(1, None))), getitem(result, along(axis, slice(None, -1))))
    return result.clone() if result is input else result


def _areas(name: str, y: Tensor, x: Tensor | None, dx: Number | None, dim: int) -> tuple[Any, int]:
    """Return the areas under the line between neighbours, halved before they are summed, and the dimension."""
    shape = array_of(y).shape
    if not shape:
        raise ShapeError(f"{name}: expected at least 1 dimension, got a 0-dim tensor")
    axis = dim_in(dim, len(shape))
    heights = add(getitem(y, along(axis, slice(1, None))), getitem(y, along(axis, slice(None, -1))))
    if x is None:
        return mul(heights, 0.5 if dx is None else as_scalar(dx, "dx") / 2), axis
    if dx is not None:
        raise ShapeError(f"{name}: expected x or dx, got both")
    places = array_of(x)
    if places.ndim == 1 and len(shape) > 1:
        if places.shape[0] != shape[axis]:
            raise ShapeError(f"{name}: expected x of {shape[axis]} elements, as y has along dim, got {places.shape[0]}")
        x = reshape(x, (*(1,) * axis, -1, *(1,) * (len(shape) - 1 - axis)))
        return mul(diff(x, dim=axis), heights) / 2, axis
    return mul(diff(x, dim=axis - len(shape)), heights) / 2, axis


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """Return the integral of the line through samples `y` along a dimension: ``sum (x[i+1]-x[i]) (y[i]+y[i+1]) / 2``.

    Samples lie at `x`, of the shape of `y` or of one dimension, or `dx` apart, 1 if that is None.

    >>> import lucid
    >>> lucid.trapezoid(lucid.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return sum(*_areas("trapezoid", y, x, dx, dim))


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """Return the integrals of `trapezoid` up to each of the samples `y` but the first.

    `x` and `dx` are as there.

    >>> import lucid
    >>> lucid.cumulative_trapezoid(lucid.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    return cumsum(*_areas("cumulative_trapezoid", y, x, dx, dim))
