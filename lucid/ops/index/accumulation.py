"""Accumulation of rows at indices that repeat: the backward of everything that selects elements by index."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cpu.running import add_rows
from lucid.ops.base.promotion import accumulation_dtype
from lucid.ops.base.rows import row_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.base.arrays import Array, Ints

# Rows are sorted from so many elements on, if they are wider than this, and repeat less often than this; otherwise one
# element is added after the other.
FEW_ELEMENTS = 2048
NARROW = 16
OFTEN = 32
# How many repetitions are added in rounds of all rows that have as many.
ROUNDS = 2 * OFTEN


def key_of(ndim: int, dims: tuple[int, ...], indices: Sequence[Array]) -> tuple[Any, ...]:
    """Return the key ``array[key]`` that selects at `indices` along `dims` and takes all of the other dimensions."""
    key: list[Any] = [slice(None)] * ndim
    for dim, index in zip(dims, indices, strict=True):
        key[dim] = index
    return tuple(key)


def selected_shape(shape: tuple[int, ...], dims: tuple[int, ...], count: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the elements that indices of the common shape `count` select along `dims`.

    Indices of neighbouring dimensions leave their shape instead of these, others in front.
    """
    rest = [size for dim, size in enumerate(shape) if dim not in dims]
    first = dims[0] if neighbours(dims) else 0
    return (*rest[:first], *count, *rest[first:])


def neighbours(dims: tuple[int, ...]) -> bool:
    """Whether the dimensions follow one another."""
    return dims[-1] - dims[0] == len(dims) - 1


def add_at(xp: ModuleType, out: Array, dims: Ints, indices: Sequence[Array], values: Array) -> None:
    """Add `values` to ``out[key]`` in place, every repetition of an index counted; on the CPU always in the same order.

    `dims` are the indexed dimensions, ascending; `indices` integers, one array for each of them, that broadcast against
    each other; `values` broadcast to ``out[key]``. CuPy's sum uses atomics, so there the last bits may change from run
    to run.
    """
    common = np.broadcast_shapes(*[i.shape for i in indices])
    if xp is not np:
        key = key_of(out.ndim, dims, indices)
        if out.dtype.kind == "c":
            # CuPy has no atomics for complex numbers
            xp.add.at(out.real, key, values.real)
            xp.add.at(out.imag, key, values.imag)
        elif out.dtype.kind == "b":
            # nor for bools, whose sum is whether one of them holds
            count = out.astype(np.int32)
            xp.add.at(count, key, xp.asarray(values, np.int32))
            out[...] = count != 0
        else:
            xp.add.at(out, key, values)
        return
    values = np.broadcast_to(values, selected_shape(out.shape, dims, common))
    if not values.size:
        return
    if not out.flags.c_contiguous:
        np.add.at(out, key_of(out.ndim, dims, indices), values)
        return
    lines = [_from_zero(index, common, out.shape[dim]) for dim, index in zip(dims, indices, strict=True)]
    steps = [step // out.itemsize for step in out.strides]
    places = _total(lines, [steps[dim] for dim in dims])
    rest = [dim for dim in range(out.ndim) if dim not in dims]
    if not rest:
        if not add_rows(out, places, None, values.reshape(-1, 1)):
            _add_elements(out, places, values.reshape(-1))
        return
    if rest == list(range(len(rest))):
        # the last dimensions: each line is gone through by itself, where its values lie
        outer = np.arange(math.prod(out.shape[: len(rest)])) * math.prod(out.shape[len(rest) :])
        if add_rows(out, outer, places, values.reshape(len(outer), len(places))):
            return
    first = dims[0] if neighbours(dims) else 0
    spots = range(first, first + len(common))
    values = values.transpose(*spots, *[axis for axis in range(values.ndim) if axis not in spots])
    rows, width = len(places), math.prod([out.shape[dim] for dim in rest])
    values = values.reshape(rows, width)
    if dims == tuple(range(len(dims))) and add_rows(out, places, None, values):
        return
    if width > NARROW and FEW_ELEMENTS <= values.size < OFTEN * out.size:
        number = _total(lines, [math.prod([out.shape[later] for later in dims[k + 1 :]]) for k in range(len(dims))])
        _add_rows(out.transpose(*dims, *rest), lines, number, values)
        return
    within = xp.zeros(1, xp.int64)
    for dim in rest:
        within = (within[:, None] + xp.arange(out.shape[dim]) * steps[dim]).reshape(-1)
    if not add_rows(out, places, within, values):
        _add_each(out, places, within, values)


def _add_elements(out: Array, places: Array, values: Array) -> None:
    """Add to elements of a contiguous array, by NumPy's fast loop for a single index of one dimension."""
    np.add.at(out.reshape(-1), places, values.astype(out.dtype, copy=False))


def _add_each(out: Array, places: Array, within: Array, values: Array) -> None:
    """Add rows to a contiguous array, element by element: their first ones at `places`, the others `within` behind."""
    for block in row_blocks(*values.shape):
        _add_elements(out, (places[block, None] + within).reshape(-1), values[block].reshape(-1))


def _from_zero(index: Array, common: Ints, size: int) -> Array:
    """Return an index broadcast to a shape, in one dimension, and counted from the beginning."""
    index = (index if index.shape == common else np.broadcast_to(index, common)).reshape(-1)
    index = index.astype(np.int64, copy=False)
    return index + size * (index < 0) if index.min() < 0 else index


def _total(lines: Sequence[Array], steps: Ints | list[int]) -> Array:
    """Return the sum of indices times the steps of their dimensions."""
    parts = [index if step == 1 else index * step for index, step in zip(lines, steps, strict=True)]
    return parts[0] if len(parts) == 1 else np.add.reduce(parts)


def _add_rows(out: Array, indices: Sequence[Array], number: Array, values: Array) -> None:
    """Add row k of `values` to ``out[indices[0][k], indices[1][k], ...]`` for each k, in the order of k.

    `number` numbers the rows of `out` that the indices name. What goes to one row is brought together by a stable sort;
    then the first of every row are added, the second of every row and so on, and of long runs the rest one by one.
    """
    narrow = np.uint16 if math.prod(out.shape[: len(indices)]) <= np.iinfo(np.uint16).max else np.int64
    # NumPy sorts 16 bits by radix, many times faster
    order = np.argsort(number.astype(narrow, copy=False), kind="stable")
    ordered = number[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(np.append(starts, len(ordered)))
    # the longest first: those that go on are always the first ones
    longest = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest], lengths[longest]
    key = tuple([i[order[starts]] for i in indices])
    sums = out[key]
    # of others `take` would make a copy each time
    flat, values = sums.reshape(len(starts), -1), np.ascontiguousarray(values)
    for turn in range(min(ROUNDS, int(lengths[0]))):
        going = int(np.count_nonzero(lengths > turn))
        flat[:going] += values.take(order[starts[:going] + turn], 0)
    tails = lengths[lengths > ROUNDS] - ROUNDS
    if tails.size:
        begins = np.repeat(starts[: len(tails)] + ROUNDS - (np.cumsum(tails) - tails), tails)
        rows = order[begins + np.arange(len(begins))]
        width = values.shape[1]
        _add_each(flat, np.repeat(np.arange(len(tails)) * width, tails), np.arange(width), values[rows])
    out[key] = sums


def sums_at(xp: ModuleType, shape: Ints, dims: Ints, indices: Sequence[Array], values: Array) -> Array:
    """Return zeros of `shape` with `values` added at `indices`, half types accumulated in float32."""
    wide = accumulation_dtype(values.dtype)
    out = xp.zeros(shape, wide)
    add_at(xp, out, dims, indices, values.astype(wide, copy=False))
    return out.astype(values.dtype, copy=False)
