"""Reductions of any axes of a CUDA array: the walk through its memory, the launch shape, and the launches."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.cuda.launch.kernels import C_TYPES, FLOATS, VECTOR_BYTES, Kernel, address_of
from lucid.cuda.launch.layout import merged as merged_axes
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from lucid.base.arrays import Array


# Loads of a thread before it is worth another one, and threads of a block.
LOADS = 8
BLOCK = 256
# Loads that a thread makes at most: it adds up groups of them, and more groups would round more.
LONGEST = 2048
# What the second dimension of a grid has at most.
MOST_CHUNKS = 65535
# Rows that fill a device with one warp each; blocks that fill it; blocks that are too few.
MANY_ROWS = 2048
FULL = 1024
FEW = FULL // 2

Axis = tuple[int, int]


# Bytes of dynamic shared memory: a block has 48 KiB, of which some are static.
MOST_SHARED = 40 << 10


class Traversal(NamedTuple):
    """How a reduction walks through an array of one shape, layout and alignment.

    Attributes
    ----------
    by_rows : bool
        Whether neighbouring threads take neighbouring elements of one row, rather than neighbouring rows.
    first : int
        Where the element of all lowest coordinates lies, in elements.
    kept, reduced : tuple of int
        The two kinds of axes, as the kernels take them.
    rows, length, vectors : int
        Results, elements of each, and whether loads are of 16 bytes.
    block : tuple of int
        Threads in two dimensions.
    grid : tuple of int
        Blocks, and chunks of each row.
    columns : int
        Results of a thread.
    """

    by_rows: bool
    first: int
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    rows: int
    length: int
    vectors: int
    block: tuple[int, int]
    grid: tuple[int, int]
    columns: int


class Reduction:
    """A function of all elements along some axes: ``out[r] = finish(merge of x[r, i] over i)``.

    Parameters
    ----------
    stem, op : str
        The file in `kernels`, and the op there.
    gathers : callable
        ``gathers(dtype)`` gives the bytes of the op's accumulator.
    dtypes : collection of str
        The C types that it takes.
    ordered : bool
        Whether the op wants to know the indices of elements; then there may be only one axis.

    Notes
    -----
    Rows that are few and long are cut into chunks, whose results a second kernel merges, so that the device is filled
    whatever the shape; the same shape gives the same order of additions, and so the same bits, on every device.
    """

    def __init__(
        self,
        stem: str,
        op: str,
        gathers: Callable[[Any], int],
        dtypes: Collection[str] = FLOATS,
        *,
        ordered: bool = False,
    ) -> None:
        self.ordered = ordered
        self.instances = {
            dtype: ((name, f"lucid::{op}"), gathers(dtype)) for dtype, name in C_TYPES.items() if name in dtypes
        }
        known = tuple([instance for instance, _ in self.instances.values()])
        self.rows = Kernel(stem, "lucid::reduce_rows", known)
        self.columns = Kernel(stem, "lucid::reduce_columns", known)
        self.partials = Kernel(stem, "lucid::reduce_partials", known)

    def __call__(
        self, x: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any, setting: float = 1.0, flavour: int = 0
    ) -> Any:
        """Return the results for `x`, reduced over `dim`, or NotImplemented if there is no kernel for it.

        Parameters
        ----------
        x : Array
            On a CUDA device; any strides.
        dim : tuple of int
            Counted from the left.
        keepdim : bool
            Whether these stay, with size 1.
        dtype : dtype
            Of the results, which the kernel is told by `flavour` where it has a choice.
        setting, flavour : float, int
            What the op takes them for.
        """
        known = self.instances.get(x.dtype)
        if known is None:
            return NotImplemented
        instance, size = known
        itemsize = x.dtype.itemsize
        address = x.data.ptr
        traversal = traversal_of(x.shape, x.strides, itemsize, dim, address % VECTOR_BYTES, self.ordered)
        if traversal is None:
            return NotImplemented
        out = empty(result_shape(x.shape, dim, keepdim), dtype)
        if not traversal.rows:
            return out
        across, chunks = traversal.grid
        partial = empty(traversal.rows * chunks * size, np.uint8) if chunks > 1 else None
        kernel = self.rows if traversal.by_rows else self.columns
        wide, deep = traversal.block
        shared = 0 if traversal.by_rows else wide * deep * traversal.columns * size
        while shared > MOST_SHARED:
            wide, deep = (wide, deep // 2) if deep > 1 else (wide // 2, 1)
            across, shared = -(-traversal.rows // (wide * traversal.columns)), shared // 2
        kernel[instance](
            (across, chunks, 1), (wide, deep, 1),
            address + traversal.first * itemsize, out.data.ptr, address_of(partial),
            *traversal.kept, *traversal.reduced, traversal.rows, traversal.length, traversal.vectors, setting, flavour,
            shared=shared,
        )  # fmt: skip
        if partial is not None:
            threads, rows = merge_block(traversal.rows, chunks)
            self.partials[instance](
                (-(-traversal.rows // rows), 1, 1), (threads, rows, 1),
                partial.data.ptr, out.data.ptr, traversal.rows, chunks, setting, flavour,
            )  # fmt: skip
        return out


def total_bytes(dtype: Any) -> int:
    """Return the size of the accumulator for sums of `dtype`, Total in the kernels."""
    return 4 if dtype.kind in "fV" and dtype.itemsize < 8 else 8


@functools.cache
def dtype_code(dtype: Any) -> int | None:
    """Return the kernels' number of a result's dtype; None if they have none."""
    known = np.dtype(dtype)
    return constant("reduction.cuh", known.name.upper()) if known in C_TYPES else None


def power_of_two(count: int) -> int:
    """Return the smallest power of two that is at least `count`."""
    return 1 << max(count - 1, 0).bit_length()


def block_of(count: int) -> int:
    """Return the threads of a block that has `count` of something to go through together: whole warps."""
    return max(32, min(BLOCK, power_of_two(count)))


def result_shape(shape: tuple[int, ...], dim: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """Return the shape of a reduction."""
    if keepdim:
        return tuple([1 if d in dim else size for d, size in enumerate(shape)])
    return tuple([size for d, size in enumerate(shape) if d not in dim])


def steps_of(x: Array, dims: Iterable[int]) -> list[Axis]:
    """Return size and stride, in elements, of some dimensions of `x`."""
    return [(x.shape[d], x.strides[d] // x.dtype.itemsize) for d in dims]


def too_many(axes: Sequence[Axis]) -> bool:
    """Whether these are more axes than the kernels take."""
    return len(axes) > constant("reduction.cuh", "MAX_AXES")


def packed_axes(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Return axes as the kernels take them."""
    known = axes or [(1, 0)]
    missing = (0,) * (constant("reduction.cuh", "MAX_AXES") - len(known))
    return (len(known), *[size for size, _ in known], *missing, *[stride for _, stride in known], *missing)


@functools.lru_cache(maxsize=4096)
def traversal_of(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, dim: tuple[int, ...], offset: int, ordered: bool
) -> Traversal | None:
    """Return the traversal for arrays of this layout, `offset` bytes behind whole vectors; None of too many axes."""
    steps = [(size, stride // itemsize) for size, stride in zip(shape, strides, strict=True)]
    kept = merged_axes([step for d, step in enumerate(steps) if d not in dim])
    along = [step for d, step in enumerate(steps) if d in dim]
    first = 0
    if not ordered:
        # the order in which elements are added is free: that of memory is the fastest, and leaves the fewest axes
        first = sum((size - 1) * stride for size, stride in along if stride < 0 < size)
        along = sorted([(size, abs(stride)) for size, stride in along], key=lambda step: -step[1])
    reduced = merged_axes(along)
    if too_many(kept) or too_many(reduced):
        return None
    rows, length = math.prod([size for size, _ in kept]), math.prod([size for size, _ in along])
    width = VECTOR_BYTES // itemsize
    inner = reduced[-1][1] if reduced else 0
    by_rows = not kept or 0 < abs(inner) <= abs(kept[-1][1])
    # a walk against the strides begins elsewhere
    aligned = (offset + first * itemsize) % VECTOR_BYTES == 0
    vectors = aligned and fits(reduced if by_rows else kept, kept if by_rows else reduced, width, tail=by_rows)
    shape_of = rows_shape if by_rows else columns_shape
    block, grid = shape_of(rows, length, width if vectors else 1)
    return Traversal(
        by_rows, first, packed_axes(kept), packed_axes(reduced), rows, length, int(vectors), block, grid,
        width if vectors and not by_rows else 1,
    )  # fmt: skip


def fits(inner: list[Axis], others: list[Axis], width: int, *, tail: bool) -> bool:
    """Whether vectors of `width` elements along the last axis of `inner` are aligned everywhere.

    With `tail`, that axis may have elements left over if it is the only one.
    """
    if width == 1 or not inner or inner[-1][1] != 1:
        return False
    whole = inner[-1][0] % width == 0 or (tail and len(inner) == 1 and inner[-1][0] >= width)
    return whole and not any(stride % width for _, stride in [*inner[:-1], *others])


def rows_shape(rows: int, length: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return block and grid of `reduce_rows`."""
    loads = -(-length // width)
    if loads <= 32 * LOADS or rows >= MANY_ROWS:
        threads = min(32, power_of_two(-(-loads * 2 // LOADS)))
        block = threads, max(32 // threads, min(BLOCK // 2 // threads, power_of_two(rows)))
    else:
        block = min(BLOCK, power_of_two(-(-loads // LOADS))), 1
    across = -(-rows // block[1])
    return block, (across, chunks_of(across, loads, block[0]))


def columns_shape(columns: int, length: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return block and grid of `reduce_columns`."""
    groups = -(-columns // width)
    threads = min(32, power_of_two(groups))
    down = min(BLOCK // threads, power_of_two(-(-length // LOADS)))
    across = min(BLOCK // down, power_of_two(groups))
    block = across, max(down, 32 // across)
    blocks = -(-groups // across)
    return block, (blocks, chunks_of(blocks, length, block[1]))


def chunks_of(blocks: int, loads: int, threads: int) -> int:
    """Return into how many chunks rows are cut: one, unless blocks are few and rows are long, or these very long."""
    needed = min(-(-loads // (LONGEST * threads)), MOST_CHUNKS)
    if not 0 < blocks < FEW:
        return max(1, needed)
    return max(1, min(FULL // blocks, loads // (2 * LOADS * threads)), needed)


def merge_block(rows: int, chunks: int) -> tuple[int, int]:
    """Return the block of `reduce_partials`."""
    if chunks > 32 and rows < MANY_ROWS:
        return min(BLOCK, power_of_two(chunks)), 1
    threads = min(32, power_of_two(chunks))
    return threads, max(32 // threads, min(BLOCK // threads, power_of_two(rows)))


SUM = Reduction("reduction", "SumOver", total_bytes, C_TYPES.values())


PRODUCT = Reduction("reduction", "ProductOver", total_bytes, C_TYPES.values())
LARGEST = Reduction("reduction", "LargestOver", total_bytes, C_TYPES.values())
SMALLEST = Reduction("reduction", "SmallestOver", total_bytes, C_TYPES.values())


@planned
def reduced_as(op: Reduction, x: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any, setting: float = 1.0) -> Any:
    """Return the result of an op as `dtype`; NotImplemented if there is no kernel for it."""
    code = dtype_code(dtype)
    return NotImplemented if code is None else op(x, dim, keepdim, dtype, setting, code)


@planned
def sum_over(x: Array, dim: tuple[int, ...], keepdim: bool, dtype: Any, divisor: float = 1.0) -> Any:
    """Return the sum of `x` over `dim`, divided, as `dtype`; NotImplemented if there is no kernel for it."""
    return reduced_as(SUM, x, dim, keepdim, dtype, divisor)
