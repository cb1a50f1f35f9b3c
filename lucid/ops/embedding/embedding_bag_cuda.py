"""Sums and greatest rows of bags on a CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.base.functions import cupy_functions
from lucid.cuda.launch.indexing import launch_for, steps_of
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel, address_of

if TYPE_CHECKING:
    from lucid.base.arrays import Array

_sums = Kernel("embedding_bag", "lucid::bag_sums", EACH_FLOAT)
_most = Kernel("embedding_bag", "lucid::bag_most", EACH_FLOAT)
_numbers = Kernel("embedding_bag", "lucid::bag_numbers", [()])


def sums(
    weight: Array, shares: Array | None, index: Array, starts: Array, bag: Array,
    *, padding: int | None, by_frequency: bool,
) -> Any:  # fmt: skip
    """Return for each bag the sum of its rows times their shares; `bag` and frequencies are their derivative's."""
    name = C_TYPES.get(weight.dtype)
    if name not in FLOATS:
        return NotImplemented
    out = cupy_functions().empty((starts.size, weight.shape[1]), weight.dtype)
    shares = None if shares is None else gpu.cupy().ascontiguousarray(shares)
    if out.size:
        _sums[str(name)](
            *launch_for(out.size), weight.data.ptr, index.data.ptr, starts.data.ptr, address_of(shares), out.data.ptr,
            *_sizes(weight, index, starts, padding),
        )  # fmt: skip
    return out


def most(weight: Array, index: Array, starts: Array, *, padding: int | None) -> Array:
    """Return for each bag and column the row with the greatest element; -1 for an empty bag."""
    out = cupy_functions().empty((starts.size, weight.shape[1]), np.int64)
    if out.size:
        _most[str(C_TYPES[weight.dtype])](
            *launch_for(out.size), weight.data.ptr, index.data.ptr, starts.data.ptr, out.data.ptr,
            *_sizes(weight, index, starts, padding),
        )  # fmt: skip
    return out


def numbers(starts: Array, places: int) -> Array:
    """Return the number of the bag that each place is in."""
    out = cupy_functions().empty(places, np.int64)
    if places:
        _numbers[()](*launch_for(places), starts.data.ptr, out.data.ptr, starts.size, places)
    return out


def _sizes(weight: Array, index: Array, starts: Array, padding: int | None) -> tuple[int, ...]:
    rows, columns = weight.shape
    return starts.size, index.size, rows, columns, *steps_of(weight), -1 if padding is None else padding
