"""Rows of arrays of NumPy's: in blocks that stay in the cache, and their sums, in an order that rounds little."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.memory import c_copy, copy_tiled
from lucid.ops.base.dims import along

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from lucid.base.arrays import Array, Ints

# Elements of one block, 1 MiB of float32: each call of NumPy on its rows costs microseconds beside its work, which
# weighs more than a second-level cache of half the size. More elements than in `lucid.ops.base.blocks`, where calls
# cost less.
ROWS_BLOCK = 1 << 18
# From this length on a row is worth a loop of its own.
LONG_ROW = 256
# Up to this length rows are added in the order of einsum, which takes a third of the time of NumPy's sum. Its partial
# sums grow with the length and round more, those of NumPy's sum with the logarithm of the length.
SUMMED_AT_ONCE = 1024

# Arrays of as many elements are rather copied than summed in groups.
FEW = 2048
# Numbers that are added up one after the other: more would round more.
ROWS_AT_ONCE = 32
# Elements of rows below which their running sums are no vectors worth a call, so that rows of many groups are laid
# together, and of an array below which that costs more than it saves.
LONG_VECTOR = 64
LAID_TOGETHER = 1 << 14
# Elements that NumPy converts at a time: it adds pairs among these, and the sums of each such part one after the other.
CONVERTED_AT_ONCE = 8192
# Parts of the squares about a mean that are those about the number that it was rounded to. Of more the mean is taken
# again: numbers that lie close together far from 0 would keep it.
MOST_DRIFT = 2.0**-16
# np.sum without its wrapper, which costs a small sum more than the sum itself
_add_reduce: Any = np.add.reduce
_ONES = {char: np.ones(ROWS_AT_ONCE, char) for char in "fd"}


def row_blocks(rows: int, columns: int, size: int = ROWS_BLOCK) -> Iterator[slice]:
    """Yield slices of at least one row, and of up to `size` elements, that cover `rows` rows of `columns` elements."""
    step = max(1, size // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


class by_rows:
    """A context for ufuncs of rows and a number for each: of long rows at the speed of one number.

    NumPy copies such a column into a buffer, as often as rows are long, and adds or multiplies two arrays; not so if
    no two rows fit its buffer, which takes half the time.
    """

    __slots__ = ("size",)

    def __init__(self, rows: int, columns: int) -> None:
        self.size = 0 if columns < LONG_ROW or rows == 1 else LONG_ROW

    def __enter__(self) -> None:
        if self.size:
            self.size = np.setbufsize(self.size)

    def __exit__(self, *_: object) -> None:
        if self.size:
            np.setbufsize(self.size)


def row_maxima(x: Array) -> Array:
    """Return the largest number of each row of a matrix of NumPy's, as a column; NaN if there is one."""
    # its place is found in a third of the time in which NumPy's maximum goes through rows of this kind
    return x[np.arange(len(x)), x.argmax(1), None]


def row_sums(x: Array) -> Array:
    """Return the sum over the last dimension of a NumPy array; it is kept."""
    if x.shape[-1] > SUMMED_AT_ONCE:
        return np.add.reduce(x, -1, keepdims=True)
    return np.einsum("...i->...", x)[..., None]


def row_products(x: Array, y: Array) -> Array:
    """Return the sum of ``x * y`` over the last dimension of two NumPy arrays; it is kept."""
    x, length = x.conj(), x.shape[-1]  # `vecdot` takes the conjugate of its first operand
    if length <= SUMMED_AT_ONCE:
        return np.vecdot(x, y)[..., None]
    # BLAS adds as few as sixteen sums one number after the other
    whole = length - length % SUMMED_AT_ONCE
    lines = whole // SUMMED_AT_ONCE, SUMMED_AT_ONCE
    parts = [array[..., :whole].reshape(*array.shape[:-1], *lines) for array in (x, y)]
    return np.add.reduce(np.vecdot(*parts), -1, keepdims=True) + np.vecdot(x[..., whole:], y[..., whole:])[..., None]


def about_the_mean(xp: ModuleType, squares: Any, drift: Any, count: int) -> Any:
    """Return the sum of squares about the mean, from the one about a number near it and the sum of the differences.

    ``sum((x - m)**2) = sum((x - c)**2) - sum(x - c)**2 / n``: a mean `c` that was rounded to float32 may be further
    from `m` than the numbers are.
    """
    # infinite squares stay infinite
    return xp.maximum(squares - xp.minimum(drift / count * drift, np.finfo(squares.dtype).max), 0)


def column_products(x: Array, y: Array) -> Array:
    """Return the sum of ``x * y`` over the rows of a matrix, with one number for each row in the column `y`."""
    rows = len(x)
    whole = rows - rows % ROWS_AT_ONCE
    if rows <= ROWS_AT_ONCE or not x.size:
        return (y.T @ x)[0]
    groups = y[:whole].reshape(-1, 1, ROWS_AT_ONCE) @ x[:whole].reshape(-1, ROWS_AT_ONCE, x.shape[1])
    return column_sums(groups[:, 0]) + (y[whole:].T @ x[whole:])[0]


def column_sums(x: Array, dtype: np.dtype[Any] | None = None) -> Array:
    """Return the sums over the last dimension but one of a NumPy array with rows.

    Of float32 and float64 it is a product with ones, by BLAS, which takes a half to a twentieth of the time of NumPy's
    sum. Rows are added in groups, and groups of groups: NumPy adds one row to the sum of all before it, and rounds it.
    """
    ones = _ONES.get(x.dtype.char) if dtype is None or dtype == x.dtype else None
    rows = x.shape[-2]
    whole = rows - rows % ROWS_AT_ONCE

    def summed(part: Array) -> Array:
        if ones is not None and part.strides[-1] == part.itemsize:
            return ones[: part.shape[-2]] @ part
        return np.add.reduce(part, -2, dtype)

    if rows <= ROWS_AT_ONCE:
        return summed(x)
    groups = x[..., :whole, :].reshape(*x.shape[:-2], -1, ROWS_AT_ONCE, x.shape[-1])
    total = column_sums(summed(groups))
    return total if whole == rows else total + summed(x[..., whole:, :])


def sum_of(
    xp: ModuleType, x: Array, axes: Ints | None, dtype: np.dtype[Any] | None = None, *, keepdims: bool = False
) -> Array:
    """Return the sum of an array over axes, or all, by `array_sum` on the CPU."""
    return array_sum(x, axes, dtype, keepdims) if xp is np else xp.sum(x, axes, dtype, None, keepdims)


def array_sum(x: Array, axes: Ints | None, dtype: np.dtype[Any] | None = None, keepdims: bool = False) -> Array:
    """Return the sum of an array of NumPy's over axes, or all; as NumPy does, but with few roundings in any order.

    NumPy adds pairs, and pairs of pairs, where what is added lies together. Else each number is added to the sum of all
    before it: of 200,000 tenths in float32 a thousandth is lost.
    """
    if x.size <= ROWS_AT_ONCE or x.dtype.kind not in "fcV" or axes == ():
        return _add_reduce(x, axes, dtype, None, keepdims)
    in_order = x.flags.c_contiguous
    if in_order and (axes is None or axes == (x.ndim - 1,)) and (dtype is None or dtype == x.dtype):
        return _add_reduce(x, axes, dtype, None, keepdims)
    reduced = range(x.ndim) if axes is None else axes
    count = 1
    for axis in reduced:
        count *= x.shape[axis]
    if count <= ROWS_AT_ONCE and (x.size <= FEW or not in_order):
        return _add_reduce(x, axes, dtype, None, keepdims)
    if not in_order:
        if x.flags.f_contiguous:
            return array_sum(x.T, tuple([x.ndim - 1 - axis for axis in reduced]), dtype, keepdims).T
        if any(not stride and size > 1 for stride, size in zip(x.strides, x.shape, strict=True)):
            return _sum_of_repeated(x, reduced, dtype, keepdims)
    if x.size <= FEW:
        stay = [axis for axis in range(x.ndim) if axis not in reduced]
        lines = c_copy(x.transpose(*stay, *reduced))
        total = _add_reduce(lines, tuple(range(len(stay), x.ndim)), dtype)
        return (
            total.reshape([1 if axis in reduced else size for axis, size in enumerate(x.shape)]) if keepdims else total
        )
    if not in_order:
        x = c_copy(x)
    # of lengths, in turns those of dimensions that stay and that are summed over, last first
    shape = [(axis in reduced, size) for axis, size in enumerate(x.shape)]
    kept = [1 if inside else size for inside, size in shape if keepdims or not inside]
    total = x
    while any(inside for inside, _ in shape):
        tail = 1
        while shape and not shape[-1][0]:
            tail *= shape.pop()[1]
        length = 1
        while shape and shape[-1][0]:
            length *= shape.pop()[1]
        lead = [size for _, size in shape]
        total = total.reshape(*lead, length, tail)
        total = _line_sums(total[..., 0], dtype) if tail == 1 else column_sums(total, dtype)
        shape.append((False, tail))
    return total.reshape(kept)


def _line_sums(x: Array, dtype: np.dtype[Any] | None) -> Array:
    """Return the sums over the last dimension, of contiguous elements."""
    length = x.shape[-1]
    if dtype is None or dtype == x.dtype or length <= CONVERTED_AT_ONCE:
        return np.add.reduce(x, -1, dtype)
    whole = length - length % CONVERTED_AT_ONCE
    parts = np.add.reduce(x[..., :whole].reshape(*x.shape[:-1], -1, CONVERTED_AT_ONCE), -1, dtype)
    return np.add.reduce(parts, -1) + np.add.reduce(x[..., whole:], -1, dtype)


def _sum_of_repeated(x: Array, axes: Ints | range, dtype: np.dtype[Any] | None, keepdims: bool) -> Array:
    """Return the sum of an array that repeats its elements along dimensions of stride 0: each is read once."""
    once = x[tuple([slice(None) if stride else slice(1) for stride in x.strides])]
    total = array_sum(once, tuple(axes), dtype, True)
    times = math.prod([x.shape[axis] for axis in axes if not x.strides[axis]])
    if times > 1:
        # by parts: infinity times a complex number is NaN
        total = (total.view(total.real.dtype) * total.real.dtype.type(times)).view(total.dtype)
    full = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    kept = full if keepdims else [size for axis, size in enumerate(x.shape) if axis not in axes]
    return np.array(np.broadcast_to(total, full)).reshape(kept)


def running_sums(x: Array, axis: int, dtype: np.dtype[Any]) -> Array:
    """Return the running sums of an array of NumPy's along an axis, in groups and groups of groups."""
    size, few = x.shape[axis], x.size < LAID_TOGETHER
    if few and size <= ROWS_AT_ONCE:
        return x.cumsum(axis, dtype)
    length = max(1, min(size, ROWS_AT_ONCE))
    # rows of groups are laid together where they are not long themselves
    turned = not few and math.prod(x.shape[axis + 1 :]) < LONG_VECTOR
    if size % length and turned and axis:
        # the groups of all lines follow one another only if they are whole
        wide = np.zeros((*x.shape[:axis], size + -size % length, *x.shape[axis + 1 :]), x.dtype)
        wide[along(axis, slice(size))] = x
        return c_copy(running_sums(wide, axis, dtype)[along(axis, slice(size))])
    out = np.empty(x.shape, dtype)
    whole = size - size % length
    shape = *x.shape[:axis], whole // length, length, *x.shape[axis + 1 :]
    # views: one axis is split
    source, target = [each[along(axis, slice(whole))].reshape(shape) for each in (x, out)]
    written = groups = np.moveaxis(target, axis + 1, 0)
    if few:
        source.cumsum(axis + 1, dtype, target)
    else:
        groups = np.empty(groups.shape, dtype) if turned else groups
        copy_tiled(groups, np.moveaxis(source, axis + 1, 0))
        for before, row in pairwise(groups):
            np.add(row, before, out=row)
    ends = groups[-1]
    if whole > length:
        ends = running_sums(ends, axis, dtype)
        groups[along(axis + 1, slice(1, None))] += ends[along(axis, slice(-1))]
    if turned:
        copy_tiled(written, groups)
    if whole < size:
        rest = along(axis, slice(whole, None))
        x[rest].cumsum(axis, dtype, out[rest])
        out[rest] += ends[along(axis, slice(-1, None))]
    return out
