"""Joining, padding, windows in zeros, elements at a mask and transposed arrays on a CUDA device: one launch each."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.indexing import MAX_BLOCKS, UNITS, bits_of, launch_for, steps_of
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, VECTOR_BYTES, Kernel, address_of
from lucid.cuda.launch.layout import merged
from lucid.cuda.launch.plans import REMEMBERED, empty, planned
from lucid.cuda.source.signature import constant, packer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.arrays import Array
    from lucid.cuda.launch.kernels import Launcher


_MOVED = [(unit,) for unit in UNITS.values()]
_join = Kernel("copying", "lucid::join", _MOVED)
_frame = Kernel("copying", "lucid::frame", _MOVED, packed=("Frame",))
_roll = Kernel("copying", "lucid::roll", _MOVED, packed=("Frame",))
_triangle = Kernel("copying", "lucid::triangle", _MOVED)
_unfold_grad = Kernel("copying", "lucid::unfold_grad", EACH_FLOAT)
_pad_edges = Kernel("copying", "lucid::pad_edges", _MOVED)
_pad_edges_grad = Kernel("copying", "lucid::pad_edges_grad", EACH_FLOAT)
_masked_scatter = Kernel("copying", "lucid::masked_scatter", _MOVED)
_transpose = Kernel("copying", "lucid::transpose", _MOVED)


# ---- joining ----


# Of up to MAX_PARTS parts that one launch joins: grid and block, and the kernel's numbers after the pointers.
Row = tuple[tuple[int, int], int, tuple[int, ...]]
# How more parts are joined is not remembered: lists that grow would fill the memory.
MOST_PARTS = 32


@lru_cache(REMEMBERED)
def _rows_of(lengths: tuple[int, ...], outer: int, itemsize: int, aligned: bool) -> tuple[str, list[Row]]:
    """Return the unit of copies and the launches that join parts of these lengths."""
    per, most = VECTOR_BYTES // itemsize, constant("copying.cu", "MAX_PARTS")
    if not aligned or any(length % per for length in lengths):
        per = 1
    total, start = sum(lengths) // per, 0
    rows: list[Row] = []
    for first in range(0, len(lengths), most):
        sizes = [length // per for length in lengths[first : first + most]]
        starts = [start + sum(sizes[:p]) for p in range(len(sizes))]
        start += sum(sizes)
        rest = [0] * (most - len(sizes))
        grid, block = launch_for(max(1, outer * max(sizes)))
        rows.append(((grid, len(sizes)), block, (*rest, *starts, *rest, *sizes, *rest, outer, total)))
    return UNITS[itemsize * per], rows


def _joined(parts: Sequence[Array | None], lengths: tuple[int, ...], outer: int, out: Array) -> Array:
    """Fill `out`, seen as `outer` rows, with the rows of the parts side by side; a part that is None is zeros."""
    if not out.size:
        return out
    contiguous = gpu.cupy().ascontiguousarray
    arrays = [part if part is None or part.flags.c_contiguous else contiguous(part) for part in parts]
    pointers = list(map(address_of, arrays))
    aligned = not any(pointer % VECTOR_BYTES for pointer in pointers)
    rows_of = _rows_of if len(parts) <= MOST_PARTS else _rows_of.__wrapped__
    unit, rows = rows_of(lengths, outer, out.dtype.itemsize, aligned)
    launch, most = _join[unit], constant("copying.cu", "MAX_PARTS")
    for k, (grid, block, numbers) in enumerate(rows):
        some = pointers[k * most : (k + 1) * most]
        launch(grid, block, out.data.ptr, *some, *numbers)
    return out


@lru_cache(REMEMBERED)
def _cat_of(dim: int, *shapes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
    """Return the shape of arrays joined along a dimension, the lengths of their rows, and how many rows there are."""
    first = shapes[0]
    if any(len(s) != len(first) or s[:dim] != first[:dim] or s[dim + 1 :] != first[dim + 1 :] for s in shapes):
        return None
    inner = math.prod(first[dim + 1 :])
    whole = (*first[:dim], sum([s[dim] for s in shapes]), *first[dim + 1 :])
    return whole, tuple([s[dim] * inner for s in shapes]), math.prod(first[:dim])


def cat(*tensors: Array, dim: int) -> Any:
    """Return arrays joined along a dimension."""
    dtype = tensors[0].dtype
    cat_of = _cat_of if len(tensors) <= MOST_PARTS else _cat_of.__wrapped__
    plan = cat_of(dim, *[t.shape for t in tensors])
    if plan is None or any(t.dtype != dtype for t in tensors):
        return NotImplemented
    whole, lengths, outer = plan
    return _joined(tensors, lengths, outer, cupy_functions().empty(whole, dtype))


def stack(*tensors: Array, dim: int) -> Any:
    """Return arrays of one shape joined along a new dimension."""
    first = tensors[0]
    shape, dtype = first.shape, first.dtype
    if any(t.dtype != dtype or t.shape != shape for t in tensors):
        return NotImplemented
    out = cupy_functions().empty((*shape[:dim], len(tensors), *shape[dim:]), dtype)
    return _joined(tensors, (math.prod(shape[dim:]),) * len(tensors), math.prod(shape[:dim]), out)


def split_grad(*parts: Any, shape: tuple[int, ...], dtype: Any, sizes: tuple[int, ...], dim: int) -> Any:
    """Return the gradients of parts side by side, zeros for those that are None."""
    if any(part is not None and part.dtype != dtype for part in parts):
        return NotImplemented
    outer, inner = _across(shape, dim)
    lengths = tuple([size * inner for size in sizes])
    return _joined(parts, lengths, outer, cupy_functions().empty(shape, dtype))


def unbind_grad(*parts: Any, shape: tuple[int, ...], dtype: Any, dim: int) -> Any:
    """Return the gradients of slices side by side, zeros for those that are None."""
    return split_grad(*parts, shape=shape, dtype=dtype, sizes=(1,) * len(parts), dim=dim)


def repeat(x: Array, *, repeats: tuple[int, ...]) -> Any:
    """Return copies of `x` side by side along every dimension: one strided copy."""
    full = (*[1] * (len(repeats) - x.ndim), *x.shape)
    apart = [size for own in full for size in (1, own)]
    broadcast = tuple([size for pair in zip(repeats, full, strict=True) for size in pair])
    out = gpu.cupy().array(cupy_functions().broadcast_to(x.reshape(apart), broadcast), order="C")
    return out.reshape([times * size for times, size in zip(repeats, full, strict=True)])


# ---- windows ----

# Of a dimension: its size, where the array begins in it, in what steps it goes on, its own size and its stride.
Framed = tuple[int, int, int, int, int]


@lru_cache(REMEMBERED)
def _frame_launch(
    dims: tuple[Framed, ...], itemsize: int, aligned: bool
) -> tuple[str, tuple[int, int], bytes, int] | None:
    """Return the launch that writes an array into this window: unit of copies, grid and block, window, how many units.

    None for too many dimensions.
    """
    short: list[Framed] = []
    for size, start, step, have, stride in dims:
        # whole dimensions go together with the one before
        outer = short[-1] if short else (0, 0, 0, 0, 0)
        if (start, step, have) == (0, 1, size) and (outer[2], outer[4]) == (1, stride * size):
            short[-1] = (outer[0] * size, outer[1] * size, 1, outer[3] * size, stride)
        else:
            short.append((size, start, step, have, stride))
    if len(short) > constant("copying.cu", "MAX_DIMS"):
        return None
    size, start, step, have, stride = short[-1]
    per = VECTOR_BYTES // itemsize
    steps = [dim[4] for dim in short[:-1]]
    if not aligned or (step, stride) != (1, 1) or any(number % per for number in (size, start, have, *steps)):
        per = 1
    if per > 1:
        short = [(*dim[:4], dim[4] // per) for dim in short[:-1]]
        short.append((size // per, start // per, 1, have // per, 1))
    count = math.prod([dim[0] for dim in short])
    return UNITS[itemsize * per], launch_for(max(count, 1)), _spelled(short), count


def _framed(x: Array, dims: tuple[Framed, ...], value: Any) -> Any:
    """Return an array of the sizes of `dims` that holds `x` in this window, and `value` elsewhere."""
    dtype, address = x.dtype, x.data.ptr
    frame = _frame_launch(dims, dtype.itemsize, address % VECTOR_BYTES == 0)
    if frame is None:
        return NotImplemented
    unit, launch, window, count = frame
    out = empty(tuple([dim[0] for dim in dims]), dtype)
    if count:
        _frame[unit](*launch, address, out.data.ptr, window, *bits_of(value, dtype), count)
    return out


def _spelled(dims: list[Framed]) -> bytes:
    """Return a kernel's parameter: five numbers of each of MAX_DIMS dimensions."""
    rest = [0] * (constant("copying.cu", "MAX_DIMS") - len(dims))
    numbers = [number for k in range(5) for number in (*[dim[k] for dim in dims], *rest)]
    return packer("copying.cu", "Frame").pack(len(dims), *numbers)


@planned
def pad(x: Array, *, pads: tuple[tuple[int, int], ...], value: Any) -> Any:
    """Return `x` with `value` around it."""
    dims = tuple(
        [
            (before + size + after, before, 1, size, step)
            for size, (before, after), step in zip(x.shape, pads, steps_of(x), strict=True)
        ]
    )
    return _framed(x, dims, value or 0) if dims else NotImplemented


@planned
def getitem_grad(grad: Array, *, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """Return zeros of `shape` that hold `grad` at the view of the basic `index`."""
    # slices cannot be looked up in a dict
    items = tuple([(i.start, i.stop, i.step) if type(i) is slice else i for i in index])
    dims = _window(shape, items, grad.shape, steps_of(grad))
    return _framed(grad, dims, 0) if dims and grad.size else NotImplemented


@lru_cache(REMEMBERED)
def _window(
    shape: tuple[int, ...], index: tuple[Any, ...], lengths: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[Framed, ...]:
    """Return the window of a view, of these lengths and steps, that an index takes; slices are tuples.

    Nothing where a slice goes backward, as windows do not.
    """
    items = [item for item in index if item is not ...]
    taken = sum([item is not None for item in items])
    at = next((k for k, item in enumerate(index) if item is ...), len(items))
    items[at:at] = [(None, None, None)] * (len(shape) - taken)
    dims: list[Framed] = []
    own = iter(zip(lengths, steps, strict=True))
    sizes = iter(shape)
    for item in items:
        if item is None:
            next(own)
        elif isinstance(item, tuple):
            size = next(sizes)
            start, _, step = slice(*cast("tuple[Any, Any, Any]", item)).indices(size)
            if step < 0:
                return ()
            have, stride = next(own)
            dims.append((size, start, step, have, stride))
        else:
            size = next(sizes)
            dims.append((size, item % size, 1, 1, 0))
    return tuple(dims)


def roll(x: Array, *, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Return `x` with its elements moved on along dimensions, those at the end coming to the beginning."""
    if not x.size or not 0 < x.ndim <= constant("copying.cu", "MAX_DIMS"):
        return NotImplemented
    moves = [0] * x.ndim
    for shift, dim in zip(shifts, dims, strict=True):
        moves[dim] += shift
    sizes: tuple[int, ...] = x.shape
    framed = [
        (size, move % size, 1, size, stride) for size, move, stride in zip(sizes, moves, steps_of(x), strict=True)
    ]
    out = cupy_functions().empty(sizes, x.dtype)
    _roll[UNITS[x.dtype.itemsize]](*launch_for(out.size), x.data.ptr, out.data.ptr, _spelled(framed), out.size)
    return out


def _across(shape: tuple[int, ...], dim: int) -> tuple[int, int]:
    return math.prod(shape[:dim]), math.prod(shape[dim + 1 :])


def _each_of(launcher: Launcher, x: Array, shape: tuple[int, ...], *numbers: int) -> Array:
    """Return an array of `shape`, each element computed by a kernel from those of `x` in C order."""
    out = cupy_functions().empty(shape, x.dtype)
    if out.size:
        x = gpu.cupy().ascontiguousarray(x)
        launcher(*launch_for(out.size), x.data.ptr, out.data.ptr, *numbers)
    return out


def _triangular(x: Array, diagonal: int, *, lower: bool) -> Any:
    return _each_of(_triangle[UNITS[x.dtype.itemsize]], x, x.shape, *x.shape[-2:], diagonal, int(lower), x.size)


def tril(x: Array, *, diagonal: int) -> Any:
    """Return matrices with zeros above a diagonal."""
    return _triangular(x, diagonal, lower=True)


def triu(x: Array, *, diagonal: int) -> Any:
    """Return matrices with zeros below a diagonal."""
    return _triangular(x, diagonal, lower=False)


def unfold_grad(grad: Array, *, shape: tuple[int, ...], dim: int, size: int, step: int) -> Any:
    """Return the gradient of unfold's input: for each element the sum over its windows."""
    name = C_TYPES.get(grad.dtype)
    if name not in FLOATS:
        return NotImplemented
    outer, inner = _across(shape, dim)
    return _each_of(_unfold_grad[name], grad, shape, outer, shape[dim], inner, grad.shape[dim], size, step)


# ---- edges ----


def pad_edges(x: Array, *, dim: int, before: int, after: int, mode: str) -> Any:
    """Return `x` with edges made of its own elements."""
    size = x.shape[dim]
    outer, inner = _across(x.shape, dim)
    shape = (*x.shape[:dim], before + size + after, *x.shape[dim + 1 :])
    edge = constant("copying.cu", mode.upper())
    return _each_of(_pad_edges[UNITS[x.dtype.itemsize]], x, shape, outer, size, inner, before, after, edge)


def pad_edges_grad(grad: Array, *, dim: int, before: int, after: int, mode: str) -> Any:
    """Return the gradient of pad's input: that of each element and of its images at the edges."""
    name = C_TYPES.get(grad.dtype)
    if name not in FLOATS:
        return NotImplemented
    size = grad.shape[dim] - before - after
    outer, inner = _across(grad.shape, dim)
    shape = (*grad.shape[:dim], size, *grad.shape[dim + 1 :])
    edge = constant("copying.cu", mode.upper())
    return _each_of(_pad_edges_grad[name], grad, shape, outer, size, inner, before, after, edge)


# ---- masks ----


def masked_scatter(x: Array | None, mask: Array, values: Array) -> Any:
    """Return a copy of `x`, or zeros, with the elements under `mask` replaced by those of `values`, in order."""
    if x is not None and (x.dtype != values.dtype or x.shape != mask.shape):
        return NotImplemented
    xp = gpu.cupy()
    out = xp.empty(mask.shape, values.dtype)
    if out.size:
        mask, values = xp.ascontiguousarray(mask), xp.ascontiguousarray(values)
        x = None if x is None else xp.ascontiguousarray(x)
        rank = xp.cumsum(mask.reshape(-1), dtype=np.int64)
        _masked_scatter[UNITS[out.dtype.itemsize]](
            *launch_for(out.size), address_of(x), mask.data.ptr, rank.data.ptr, values.data.ptr,
            out.data.ptr, values.size, out.size,
        )  # fmt: skip
    return out


def masked_put(values: Array, mask: Array) -> Any:
    """Return zeros with the elements under `mask` replaced by those of `values`, in order."""
    return masked_scatter(None, mask, values)


# ---- transposed arrays ----

# Rows of threads that go over a tile together.
ROWS = 8
# Dimensions shorter than this fill too little of a tile.
SHORTEST = 16


@lru_cache(REMEMBERED)
def _transposition_of(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, tuple[int, int], tuple[int, ...]] | None:
    """Return grid, block and numbers of the kernel; None unless exactly one pair of dimensions is to be swapped."""
    axes = merged([(size, stride // itemsize) for size, stride in zip(shape, strides, strict=True)])
    inner = [dim for dim, (_, step) in enumerate(axes) if step == 1]
    if not 2 <= len(axes) <= 3 or len(inner) != 1 or inner[0] == len(axes) - 1:
        return None
    columns, x_c = axes.pop()
    rows, _ = axes.pop(inner[0])
    batch, x_b = axes[0] if axes else (1, 0)
    if min(rows, columns) < SHORTEST or itemsize not in UNITS:
        return None
    out_r, out_b = (columns, rows * columns) if inner[0] == len(axes) else (batch * columns, columns)
    tile = constant("copying.cu", "TILE")
    blocks = batch * -(-rows // tile) * -(-columns // tile)
    return min(blocks, MAX_BLOCKS), (tile, ROWS), (batch, rows, columns, x_b, x_c, out_b, out_r)


def transposed(x: Array) -> Any:
    """Return a copy of `x` in C order; NotImplemented if no two dimensions are to be swapped.

    One dimension is innermost in memory and another in the copy; a third may lie anywhere, and any may be several that
    count as one.
    """
    dtype = x.dtype
    plan = _transposition_of(x.shape, x.strides, dtype.itemsize)
    if plan is None:
        return NotImplemented
    blocks, block, numbers = plan
    out = empty(x.shape, dtype)
    if blocks:
        _transpose[UNITS[dtype.itemsize]](blocks, block, x.data.ptr, out.data.ptr, *numbers)
    return out
