"""Accumulation of rows at indices that repeat: the backward of everything that selects elements by index."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from lucid.base.arrays import Array, Ints

# Below this many elements sorting costs more than ufunc.at.
FEW_ELEMENTS = 2048
# How many repetitions of one row are added one by one; longer runs are summed first.
ROUNDS = 8
# Of how many indices NumPy makes one number.
MOST_NUMBERED = 63


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
    rows = math.prod(common)
    if rows < values.size < FEW_ELEMENTS or len(dims) > MOST_NUMBERED:
        np.add.at(out, key_of(out.ndim, dims, indices), values)
        return
    rest = [dim for dim in range(out.ndim) if dim not in dims]
    flat = tuple([np.broadcast_to(index, common).reshape(-1) for index in indices])
    number: Array = np.ravel_multi_index(flat, [out.shape[dim] for dim in dims], mode="wrap")
    if not rest and out.flags.c_contiguous:
        # one number for each element: NumPy's loop for a single index of one dimension is fast
        np.add.at(out.reshape(-1), number, values.reshape(-1).astype(out.dtype, copy=False))
        return
    first = dims[0] if neighbours(dims) else 0
    spots = range(first, first + len(common))
    others = [axis for axis in range(values.ndim) if axis not in spots]
    values = values.transpose(*spots, *others).reshape(rows, *[out.shape[dim] for dim in rest])
    add_rows(out.transpose(*dims, *rest), flat, number, values)


def add_rows(out: Array, indices: Sequence[Array], number: Array, values: Array) -> None:
    """Add row k of `values` to ``out[indices[0][k], indices[1][k], ...]`` for each k, in the order of k.

    `number` numbers the rows of `out` that the indices name. What goes to one row is brought together by a stable sort;
    then the first of every row are added, the second of every row and so on, and long runs by one reduction.
    """
    narrow = np.uint16 if math.prod(out.shape[: len(indices)]) <= np.iinfo(np.uint16).max else np.int64
    # NumPy sorts 16 bits by radix, many times faster
    order = np.argsort(number.astype(narrow, copy=False), kind="stable")
    ordered = number[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    lengths = np.diff(np.append(starts, len(ordered)))
    for turn in range(ROUNDS):
        rows = order[starts + turn]
        out[tuple([i[rows] for i in indices])] += values[rows]
        more = lengths > turn + 1
        if not more.all():
            starts, lengths = starts[more], lengths[more]
        if not len(starts):
            return
    tails = lengths - ROUNDS
    begins = np.cumsum(tails) - tails
    rows = order[np.repeat(starts + ROUNDS - begins, tails) + np.arange(int(tails.sum()))]
    total = np.add.reduceat(values[rows], begins, axis=0, dtype=out.dtype)  # which of bools is another
    out[tuple([i[rows[begins]] for i in indices])] += total


def sums_at(xp: ModuleType, shape: Ints, dims: Ints, indices: Sequence[Array], values: Array) -> Array:
    """Return zeros of `shape` with `values` added at `indices`, half types accumulated in float32."""
    wide = accumulation_dtype(values.dtype)
    out = xp.zeros(shape, wide)
    add_at(xp, out, dims, indices, values.astype(wide, copy=False))
    return out.astype(values.dtype, copy=False)
