"""Running sums, products and recurrences along one dimension on a CUDA device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.base.functions import cupy_functions
from lucid.cuda.launch.indexing import launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.launch.reduction import (
    FULL,
    block_of,
    dtype_code,
    merged_axes,
    packed_axes,
    steps_of,
    too_many,
    total_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.base.arrays import Array


# Elements that one thread goes through by itself, and lines that fill a device with one thread each.
SHORT = 32
MANY_LINES = 1 << 15


class Lines(NamedTuple):
    """The lines of an array along one dimension.

    Attributes
    ----------
    address : int
        Of the first element that is read.
    kept : tuple of int
        The axes of lines, as the kernels take them.
    step : int
        From element to element, in elements.
    """

    address: int
    kept: tuple[int, ...]
    step: int


def lines_of(x: Array, dim: int, *, reverse: bool) -> Lines | None:
    """Return the lines of `x` along `dim`, from their ends on if `reverse`; None if there are too many axes."""
    kept = merged_axes(steps_of(x, [d for d in range(x.ndim) if d != dim]))
    if too_many(kept):
        return None
    step = x.strides[dim] // x.dtype.itemsize
    last = (x.shape[dim] - 1) * x.strides[dim]
    return Lines(x.data.ptr + (last if reverse else 0), packed_axes(kept), -step if reverse else step)


class Scan:
    """A function of all elements of a line up to each.

    Parameters
    ----------
    op : str
        In `kernels/reduction/cumulative.cu`.
    gathers : callable
        ``gathers(dtype)`` gives the bytes of what it gathers.
    dtypes : iterable of str
        The C types that it takes.
    """

    def __init__(self, op: str, gathers: Callable[[Any], int], dtypes: Iterable[str]) -> None:
        names = set(dtypes)
        self.bytes = gathers
        self.instances = {dtype: (name, f"lucid::{op}") for dtype, name in C_TYPES.items() if name in names}
        known = tuple(self.instances.values())
        self.lines = Kernel("cumulative", "lucid::scan_lines", known)
        self.rows = Kernel("cumulative", "lucid::scan_rows", known)

    def __call__(self, x: Array, dim: int, reverse: bool, dtype: Any, factor: Array | None = None) -> Any:
        """Return the results for `x` along `dim`, as `dtype`; NotImplemented if there is no kernel for it."""
        instance, code = self.instances.get(x.dtype), dtype_code(dtype)
        if instance is None or code is None or not x.ndim or (factor is not None and factor.dtype != x.dtype):
            return NotImplemented
        of_x = lines_of(x, dim, reverse=reverse)
        of_factor = lines_of(x if factor is None else factor, dim, reverse=reverse)
        if of_x is None or of_factor is None:
            return NotImplemented
        out = cupy_functions().empty(x.shape, dtype)
        if not out.size:
            return out
        length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
        lines = out.size // length
        first, step = ((length - 1) * inner, -inner) if reverse else (0, inner)
        numbers = (
            *of_x.kept, *of_factor.kept, lines, length, of_x.step, of_factor.step, step, first, inner, code
        )  # fmt: skip
        if length <= SHORT or (inner >= SHORT and lines >= MANY_LINES):
            self.lines[instance](*launch_for(lines), of_x.address, of_factor.address, out.data.ptr, *numbers)
            return out
        block = block_of(length)
        chunks = max(1, min(FULL // lines, length // (8 * block), block)) if lines < FULL // 2 else 1
        totals = 0
        if chunks > 1:
            room = cupy_functions().empty(lines * chunks * self.bytes(x.dtype), np.uint8)
            totals = room.data.ptr
            self.rows[instance](
                (lines, chunks), block, of_x.address, of_factor.address, out.data.ptr, totals, *numbers, 1
            )
        self.rows[instance]((lines, chunks), block, of_x.address, of_factor.address, out.data.ptr, totals, *numbers, 0)
        return out


def _running_bytes(dtype: Any) -> int:
    return 8 if dtype == np.float32 else total_bytes(dtype)


SUM = Scan("CumulativeSum", total_bytes, C_TYPES.values())
PRODUCT = Scan("CumulativeProduct", _running_bytes, C_TYPES.values())
RECURRENCE = Scan("Recurrence", lambda dtype: 2 * total_bytes(dtype), FLOATS)

_SHIFT = Kernel("cumulative", "lucid::shift", EACH_FLOAT)


def shift(x: Array, dim: int, by: int, fill: float) -> Any:
    """Return `x` moved by one along `dim`, with `fill` in the gap; NotImplemented without a kernel."""
    name = C_TYPES.get(x.dtype)
    lines = lines_of(x, dim, reverse=False) if x.ndim else None
    if name not in FLOATS or lines is None:
        return NotImplemented
    out = cupy_functions().empty(x.shape, x.dtype)
    if out.size:
        length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
        _SHIFT[name](
            *launch_for(out.size), lines.address, out.data.ptr,
            *lines.kept, out.size // length, length, lines.step, inner, by, fill,
        )  # fmt: skip
    return out
