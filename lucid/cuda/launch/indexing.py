"""Picking, writing and adding elements by index on a CUDA device."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, VECTOR_BYTES, Kernel, address_of
from lucid.cuda.launch.layout import dense_strides, merged, strides_in
from lucid.cuda.launch.plans import REMEMBERED, empty
from lucid.cuda.source.signature import constant, packer
from lucid.cuda.switches import are_deterministic_algorithms_enabled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.arrays import Array


THREADS = 256
MAX_BLOCKS = 2**31 - 1

# Types that only have a size: all elements of so many bytes are moved alike.
UNITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long", 16: "uint4"}
INDICES = {np.dtype(np.int32): "int", np.dtype(np.int64): "long long"}
ATOMIC = (*FLOATS, "int", "long long")

_MOVED = tuple((unit, index) for unit in UNITS.values() for index in INDICES.values())
_SUMMED = tuple((t, index) for t in ATOMIC for index in INDICES.values())
_TYPED = tuple((t,) for t in C_TYPES.values())
_read_at = Kernel("indexing", "lucid::read_at", _MOVED, packed=("Walk",))
_write_at = Kernel("indexing", "lucid::write_at", _MOVED, packed=("Walk",))
_offsets_of = Kernel("indexing", "lucid::places_of", [(i,) for i in INDICES.values()], packed=("Walk",))
_add_at = Kernel("indexing", "lucid::add_at", _SUMMED, packed=("Walk",))
_add_sorted = Kernel("indexing", "lucid::add_sorted", _TYPED, packed=("Walk",))
_add_carries = Kernel("indexing", "lucid::add_carries", _TYPED, packed=("Walk",))
_keep_last = Kernel("indexing", "lucid::keep_last", [("long long",)])


Dim = tuple[int, int, int, int]
# Shape of an array, and its strides in elements.
Form = tuple[tuple[int, ...], tuple[int, ...]]


class Walk(NamedTuple):
    """How elements, the positions that an index names for them, and the other array are walked through together.

    Attributes
    ----------
    dims : tuple of (int, int, int, int)
        Of each dimension its size, and the strides of table, index and other array in elements of their own.
    index : Array
        Of int32 or int64.
    size, along : int
        How many positions there are, and how many elements of the table they are apart.
    wrap : bool
        Whether negative indices count from the end.
    lines : tuple of int
        The first dimension along which the index changes, and the first behind those.
    """

    dims: tuple[Dim, ...]
    index: Array
    size: int
    along: int
    wrap: bool
    lines: tuple[int, int]

    @property
    def elements(self) -> int:
        """How many elements there are."""
        return math.prod([dim[0] for dim in self.dims])


def steps_of(x: Array) -> tuple[int, ...]:
    """Return the strides of an array, in elements."""
    return _in_elements(x.strides, x.dtype.itemsize)


@lru_cache(REMEMBERED)
def _in_elements(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple([stride // itemsize for stride in strides])


def form_of(x: Array) -> Form:
    """Return the form of an array."""
    return x.shape, steps_of(x)


def contiguous(shape: tuple[int, ...]) -> Form:
    """Return the form of a contiguous array."""
    return shape, dense_strides(shape)


def _flattened(dims: Sequence[Dim]) -> bytes:
    """Return a kernel's parameter: sizes and strides of MAX_DIMS dimensions."""
    rest = [0] * (constant("indexing.cuh", "MAX_DIMS") - len(dims))
    numbers = [number for k in range(4) for number in (*[dim[k] for dim in dims], *rest)]
    return packer("indexing.cuh", "Walk").pack(len(dims), *numbers)


@lru_cache(REMEMBERED)
def launch_for(count: int) -> tuple[int, int]:
    """Return grid and block for a thread each."""
    block = THREADS if count >= THREADS else -(-count // 32) * 32
    return min(-(-count // block), MAX_BLOCKS), block


def plain_index(index: Array) -> Array:
    """Return an index in a dtype that kernels know."""
    return index if index.dtype in INDICES else index.astype(np.int64)


# ---- what is walked through ----


def along(table: Form, index: Array, dim: int, other: Array | None) -> Walk:
    """Return the walk of an index of the table's rank that names positions along one dimension.

    `other` has the shape of the index; None stands for a contiguous array.
    """
    index = plain_index(index)
    shape, steps = table
    others = dense_strides(index.shape) if other is None else steps_of(other)
    dims = _dims_along(steps, index.shape, steps_of(index), dim, others)
    return Walk(dims, index, shape[dim], steps[dim], False, (0, len(dims)))


@lru_cache(REMEMBERED)
def _dims_along(
    steps: tuple[int, ...], shape: tuple[int, ...], index: tuple[int, ...], dim: int, others: tuple[int, ...]
) -> tuple[Dim, ...]:
    """Return the dimensions of a walk along `dim`, from the strides of table, index and other array."""
    ahead = [0 if d == dim else step for d, step in enumerate(steps)]
    return tuple(zip(shape, ahead, index, others, strict=True))


def selected(
    table: Form, dims: tuple[int, ...], indices: Sequence[Array], other: Array | None, *, wrap: bool
) -> Walk | None:
    """Return the walk of indices that broadcast against each other and name positions along `dims`.

    `other` has the shape of what is selected; None stands for a contiguous array. There is no walk, but None, of
    several indices where one of their dimensions runs backwards.
    """
    shape, steps = table
    common = indices[0].shape if len(indices) == 1 else np.broadcast_shapes(*[index.shape for index in indices])
    if len(indices) == 1:
        index, size, step = plain_index(indices[0]), shape[dims[0]], steps[dims[0]]
    elif any(steps[d] < 0 for d in dims):
        return None
    else:
        index = _folded([plain_index(i) for i in indices], common, [(shape[d], steps[d]) for d in dims], wrap)
        size, step, wrap = 1 + sum((shape[d] - 1) * steps[d] for d in dims), 1, False
    others = None if other is None else steps_of(other)
    walked, lines = _dims_selected(table, dims, common, steps_of(index), others)
    return Walk(walked, index, size, step, wrap, lines)


@lru_cache(REMEMBERED)
def _dims_selected(
    table: Form, dims: tuple[int, ...], common: tuple[int, ...], index: tuple[int, ...], other: tuple[int, ...] | None
) -> tuple[tuple[Dim, ...], tuple[int, int]]:
    """Return dimensions and lines of the walk of an index, of strides `index`, that stands for `dims`."""
    shape, steps = table
    rest = [d for d in range(len(shape)) if d not in dims]
    # indices of neighbouring dimensions leave their shape instead of these, others in front
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    table_steps = [steps[d] for d in rest]
    table_steps[first:first] = [0] * len(common)
    index_steps = [0] * len(rest)
    index_steps[first:first] = index
    result = [shape[d] for d in rest]
    result[first:first] = common
    others = dense_strides(tuple(result)) if other is None else other
    walked = tuple(zip(result, table_steps, index_steps, others, strict=True))
    return walked, (first, first + len(common))


def _folded(indices: list[Array], common: tuple[int, ...], sizes_and_steps: list[tuple[int, int]], wrap: bool) -> Array:
    """Return one index for several: the sum of their offsets; -1 if one of them is out of bounds."""
    out = cupy_functions().empty(common, np.int64)
    for turn, (index, (size, step)) in enumerate(zip(indices, sizes_and_steps, strict=True)):
        own = strides_in(common, (index.shape, index.strides, index.itemsize))
        dims = tuple(zip(common, [0] * len(common), own, dense_strides(common), strict=True))
        _offsets(Walk(dims, index, size, step, wrap, (0, len(dims))), out, first=turn == 0)
    return out


def _offsets(walk: Walk, out: Array, *, first: bool) -> None:
    """Write the offset of each element; add it to the offsets before if it is not the first."""
    count = walk.elements
    if count:
        _offsets_of[INDICES[walk.index.dtype]](
            *launch_for(count), walk.index.data.ptr, out.data.ptr, _flattened(merged(walk.dims)),
            walk.size, walk.along, int(walk.wrap), int(first), count,
        )  # fmt: skip


# ---- moving ----


class Move(NamedTuple):
    """The launch of a walk that moves elements: bytes of a unit, grid and block, the dimensions, how many units."""

    unit: str
    launch: tuple[int, int]
    along: int
    dims: bytes
    elements: int


@lru_cache(REMEMBERED)
def _move_of(dims: tuple[Dim, ...], along: int, itemsize: int, aligned: bool) -> Move | None:
    """Return the move along a walk, of 16 bytes at once if possible; None for too many dimensions."""
    dims = tuple(merged(dims))
    if len(dims) > constant("indexing.cuh", "MAX_DIMS"):
        return None
    per = VECTOR_BYTES // itemsize
    size, table, index, other = dims[-1] if dims else (1, 0, 0, 0)
    steps = [step for dim in dims[:-1] for step in (dim[1], dim[3])] + [size, along]
    if per == 1 or not aligned or (table, index, other) != (1, 0, 1) or any(step % per for step in steps):
        per = 1
    else:
        packed = [(size, table // per, index, other // per) for size, table, index, other in dims[:-1]]
        dims = (*packed, (size // per, 1, 0, 1))
    count = math.prod([dim[0] for dim in dims])
    return Move(UNITS[itemsize * per], launch_for(max(count, 1)), along // per, _flattened(dims), count)


def read(table: Array, walk: Walk | None, shape: tuple[int, ...]) -> Any:
    """Return the elements of a table along a walk, in a new array of `shape`; zero for an index out of bounds."""
    dtype, address = table.dtype, table.data.ptr
    move = None if walk is None else _move_of(walk.dims, walk.along, dtype.itemsize, address % VECTOR_BYTES == 0)
    if walk is None or move is None:
        return NotImplemented
    out = empty(shape, dtype)
    if move.elements:
        _read_at[move.unit, INDICES[walk.index.dtype]](
            *move.launch, address, walk.index.data.ptr, out.data.ptr, move.dims,
            walk.size, move.along, int(walk.wrap), move.elements,
        )  # fmt: skip
    return out


def bits_of(value: Any, dtype: Any) -> tuple[int, int]:
    """Return 16 bytes of copies of a number, as two integers."""
    if type(value) is int and not value:
        return 0, 0
    text = np.array(value).astype(dtype).tobytes() * (16 // dtype.itemsize)
    return int.from_bytes(text[:8], "little"), int.from_bytes(text[8:], "little")


def write(table: Array, walk: Walk, value: Array | float) -> bool:
    """Write an array, or one number, to the elements of a contiguous table; False if there is no kernel."""
    if len(merged(walk.dims)) > constant("indexing.cuh", "MAX_DIMS"):
        return False
    if not walk.elements:
        return True
    if are_deterministic_algorithms_enabled():
        walk = _last_only(table, walk)
    dtype, address = table.dtype, table.data.ptr
    array: Any = value if hasattr(value, "shape") else None
    source = address_of(array)
    bits = bits_of(value, dtype) if array is None else (0, 0)
    move = _move_of(walk.dims, walk.along, dtype.itemsize, (address | source) % VECTOR_BYTES == 0)
    if move is None:
        return False
    _write_at[move.unit, INDICES[walk.index.dtype]](
        *move.launch, address, walk.index.data.ptr, source, *bits,
        move.dims, walk.size, move.along, int(walk.wrap), move.elements,
    )  # fmt: skip
    return True


def _lines(walk: Walk) -> tuple[Array, Array, Array, int]:
    """Return the positions of the lines of a walk as they come and sorted, and the line of each sorted one.

    Lines are its elements without columns; the last number is how many elements positions are apart.
    """
    dims = walk.dims[slice(*walk.lines)]
    # where lines move on by themselves, positions are offsets
    apart = 1 if any(dim[1] for dim in dims) else walk.along
    inside = walk._replace(dims=dims, along=walk.along // apart)
    position = cupy_functions().empty(inside.elements, np.int64)
    _offsets(inside, position, first=True)
    order = gpu.cupy().argsort(position, kind="stable")
    return position, position[order], order, apart


def _last_only(table: Array, walk: Walk) -> Walk:
    """Return a walk that names no position twice: of several lines with one position only the last is left."""
    start, stop = walk.lines
    position, ordered, order, apart = _lines(walk)
    _keep_last["long long"](
        *launch_for(position.size), ordered.data.ptr, order.data.ptr, position.data.ptr, position.size
    )
    lines = walk.dims[start:stop]
    steps = dense_strides(tuple([dim[0] for dim in lines]))
    dims = [(dim[0], 0, step, dim[3]) for dim, step in zip(lines, steps, strict=True)]
    return Walk((*walk.dims[:start], *dims, *walk.dims[stop:]), position, table.size, apart, False, walk.lines)


# ---- sums ----


@lru_cache(REMEMBERED)
def _sum_of(dims: tuple[Dim, ...]) -> tuple[tuple[int, int], bytes, int] | None:
    """Return grid and block, dimensions, and how many elements there are; None for too many dimensions."""
    short, count = merged(dims), math.prod([dim[0] for dim in dims])
    if len(short) > constant("indexing.cuh", "MAX_DIMS"):
        return None
    return launch_for(max(count, 1)), _flattened(short), count


def add(table: Array, walk: Walk, value: Array | float, *, use_count: Array | None = None, skipped: int = -1) -> bool:
    """Add an array, or a number everywhere, to elements of a contiguous table, each repetition of an index counted.

    Parameters
    ----------
    table : Array
        Of the dtype in which `value` is accumulated.
    walk : Walk
        With the strides of `value`.
    value : Array or number
        What is added.
    use_count : Array, optional
        int64: by how much what is added to each element is divided.
    skipped : int
        A position to which nothing is added.

    Returns
    -------
    bool
        Whether it was done; there is no kernel for some dtypes and layouts.
    """
    array: Any = value if hasattr(value, "shape") else None
    dtype = table.dtype if array is None else array.dtype
    if dtype.kind == "c" and array is not None:
        # pairs of real numbers
        dims = (*[(size, 2 * a, b, 2 * c) for size, a, b, c in walk.dims], (2, 1, 0, 1))
        walk, dtype = walk._replace(dims=dims, along=2 * walk.along), np.dtype(f"f{dtype.itemsize // 2}")
    name = C_TYPES.get(dtype)
    plan = _sum_of(walk.dims)
    if name is None or plan is None:
        return False
    launch, dims, count = plan
    if not count:
        return True
    if name not in ATOMIC or (array is not None and dtype.kind in "fV" and are_deterministic_algorithms_enabled()):
        array = cupy_functions().full(count, value, dtype) if array is None else array
        _add_in_order(name, table, walk, array, use_count, skipped)
        return True
    bits = bits_of(value, table.dtype) if array is None else (0, 0)
    _add_at[name, INDICES[walk.index.dtype]](
        *launch, table.data.ptr, walk.index.data.ptr, address_of(array), *bits,
        address_of(use_count), skipped, dims,
        walk.size, walk.along, int(walk.wrap), count,
    )  # fmt: skip
    return True


def _add_in_order(name: str, table: Array, walk: Walk, value: Array, use_count: Array | None, skipped: int) -> None:
    start, stop = walk.lines
    if len(merged([(dim[0], dim[3]) for dim in walk.dims[start:stop]])) > 1:
        value = gpu.cupy().ascontiguousarray(value)
        steps = dense_strides(tuple([dim[0] for dim in walk.dims]))
        walk = walk._replace(dims=tuple([(*dim[:3], step) for dim, step in zip(walk.dims, steps, strict=True)]))
    position, ordered, order, apart = _lines(walk)
    columns = merged((*walk.dims[:start], *walk.dims[stop:]))
    own = merged([(dim[0], dim[3]) for dim in walk.dims[start:stop]])
    step = own[0][1] if own else 0
    across, count = math.prod([dim[0] for dim in columns]), position.size
    windows = -(-count // constant("indexing.cu", "WINDOW"))
    carry = cupy_functions().empty((windows, across), table.dtype)
    grid = launch_for(windows * across)
    _add_sorted[name](
        *grid, table.data.ptr, ordered.data.ptr, order.data.ptr, value.data.ptr, carry.data.ptr,
        address_of(use_count), skipped, _flattened(columns), across, step, apart, count,
    )  # fmt: skip
    if windows > 1:
        _add_carries[name](
            *grid, table.data.ptr, ordered.data.ptr, carry.data.ptr, skipped, _flattened(columns), across, apart, count,
        )  # fmt: skip
