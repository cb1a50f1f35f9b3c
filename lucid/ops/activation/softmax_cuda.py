"""Softmax and its logarithm, and their derivatives, on a CUDA device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, VECTOR_BYTES, Kernel
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.reduction import BLOCK, merged_axes, packed_axes, power_of_two, too_many, total_bytes
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_ROWS = Kernel("softmax", "lucid::softmax_rows", EACH_FLOAT)
_LINES = Kernel("softmax", "lucid::softmax_lines", EACH_FLOAT)
_GRAD_ROWS = Kernel("softmax", "lucid::softmax_grad_rows", EACH_FLOAT)
_GRAD_LINES = Kernel("softmax", "lucid::softmax_grad_lines", EACH_FLOAT)


class Traversal(NamedTuple):
    """How softmax walks through an array: its lines along one dimension.

    Attributes
    ----------
    kept : tuple of int
        The axes of lines, as the kernels take them.
    lines, length, stride, inner : int
        Lines, the elements of one, their distance in the input and in the output.
    held : bool
        Whether a block holds whole lines in registers.
    vectors : int
        Whether loads are of 16 bytes.
    grid : int
    block : tuple of int
    """

    kept: tuple[int, ...]
    lines: int
    length: int
    stride: int
    inner: int
    held: bool
    vectors: int
    grid: int
    block: tuple[int, int]


def traversal_of(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, dim: int, aligned: bool
) -> Traversal | None:
    """Return the traversal for arrays of this layout; None if they have too many axes."""
    steps = [(size, stride // itemsize) for size, stride in zip(shape, strides, strict=True)] or [(1, 1)]
    length, stride = steps.pop(dim)
    kept = merged_axes(steps)
    if too_many(kept):
        return None
    lines, inner = math.prod([size for size, _ in steps]), math.prod(shape[dim + 1 :])
    each = constant("rows.cuh", "HELD")
    held = inner == 1 and (stride == 1 or length == 1) and length <= each * constant("rows.cuh", "MAX_THREADS")
    width = VECTOR_BYTES // itemsize
    vectors = held and aligned and length % width == 0 and not any(step % width for _, step in kept)
    if held:
        threads = power_of_two(-(-length // each))
        rows = 1 if threads > 32 else max(32 // threads, min(BLOCK // 2 // threads, power_of_two(lines)))
        block = threads, rows
        grid = -(-lines // rows)
    else:
        # neighbouring threads take neighbours of a line where these lie together and are many enough
        across = 1 if inner == 1 and length > 32 else min(32, power_of_two(lines))
        parts = min(BLOCK // across, power_of_two(-(-length // 4)))
        block = across, max(parts, 32 // across)
        grid = -(-lines // across)
    return Traversal(packed_axes(kept), lines, length, stride, inner, held, int(vectors), grid, block)


@planned
def softmax(x: Array, dim: int, *, logarithm: bool) -> Any:
    """Return softmax along `dim`, or its logarithm; NotImplemented if there is no kernel."""
    name = C_TYPES.get(x.dtype)
    traversal = traversal_of(x.shape, x.strides, x.dtype.itemsize, dim, x.data.ptr % VECTOR_BYTES == 0)
    if name not in FLOATS or traversal is None:
        return NotImplemented
    y = empty(x.shape, x.dtype)
    if not y.size:
        return y
    _launch((_ROWS, _LINES), name, traversal, (x, y), logarithm, 2 * total_bytes(x.dtype))
    return y


@planned
def softmax_grad(grad: Array, y: Array, dim: int, *, logarithm: bool) -> Any:
    """Return the gradient of :func:`softmax` with the output `y`; NotImplemented if there is no kernel."""
    name = C_TYPES.get(y.dtype)
    aligned = (grad.data.ptr | y.data.ptr) % VECTOR_BYTES == 0
    traversal = traversal_of(grad.shape, grad.strides, y.dtype.itemsize, dim, aligned)
    if name not in FLOATS or traversal is None or grad.dtype != y.dtype or not y.flags.c_contiguous:
        return NotImplemented
    out = empty(y.shape, y.dtype)
    if not y.size:
        return out
    _launch((_GRAD_ROWS, _GRAD_LINES), name, traversal, (grad, y, out), logarithm, total_bytes(y.dtype))
    return out


def _launch(
    kernels: tuple[Kernel, Kernel], name: str, traversal: Traversal, arrays: tuple[Array, ...], logarithm: bool,
    shared: int,
) -> None:  # fmt: skip
    """Launch the kernel of rows, or that of lines with as many bytes of shared memory for each thread."""
    grid, block, lines = traversal.grid, traversal.block, (*traversal.kept, traversal.lines, traversal.length)
    pointers = [array.data.ptr for array in arrays]
    if traversal.held:
        kernels[0][name](grid, block, *pointers, *lines, traversal.vectors, logarithm)
    else:
        between = traversal.stride, traversal.inner
        kernels[1][name](grid, block, *pointers, *lines, *between, logarithm, shared=shared * block[0] * block[1])
