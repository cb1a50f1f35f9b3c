"""Indices of the largest and smallest elements, and elements by index, on a CUDA device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.functions import cupy_functions
from lucid.cuda.launch.indexing import launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.launch.reduction import (
    Reduction,
    merged_axes,
    packed_axes,
    steps_of,
    too_many,
    total_bytes,
)

if TYPE_CHECKING:
    from lucid.base.arrays import Array


INDEX_OF_LARGEST = Reduction("extremes", "PlaceOfLargest", lambda _: 16, C_TYPES.values(), ordered=True)
INDEX_OF_SMALLEST = Reduction("extremes", "PlaceOfSmallest", lambda _: 16, C_TYPES.values(), ordered=True)
SHARE_OF_LARGEST = Reduction("extremes", "ShareOfLargest", lambda dtype: 2 * total_bytes(dtype))
SHARE_OF_SMALLEST = Reduction("extremes", "ShareOfSmallest", lambda dtype: 2 * total_bytes(dtype))

_ELEMENT_AT = Kernel("extremes", "lucid::element_at", tuple((name,) for name in C_TYPES.values()))
_ELEMENT_AT_GRAD = Kernel("extremes", "lucid::element_at_grad", EACH_FLOAT)


def element_at(x: Array, index: Array, dim: int) -> Any:
    """Return the element of each line of `x` along `dim` that `index` names; NotImplemented without a kernel."""
    name = C_TYPES.get(x.dtype)
    kept = merged_axes(steps_of(x, [d for d in range(x.ndim) if d != dim]))
    if name is None or not x.ndim or too_many(kept) or index.dtype != np.int64 or not index.flags.c_contiguous:
        return NotImplemented
    out = cupy_functions().empty(index.shape, x.dtype)
    if out.size:
        _ELEMENT_AT[name](
            *launch_for(out.size), x.data.ptr, index.data.ptr, out.data.ptr,
            *packed_axes(kept), out.size, x.shape[dim], x.strides[dim] // x.dtype.itemsize,
        )  # fmt: skip
    return out


def element_at_grad(grad: Array, index: Array, dim: int, *, keepdim: bool, size: int) -> Any:
    """Return zeros of `size` along `dim` with `grad` at `index`; NotImplemented without a kernel."""
    name = C_TYPES.get(grad.dtype)
    # without its dimension of size 1, the gradient is the lines themselves
    kept = merged_axes(steps_of(grad, range(grad.ndim)))
    fits = index.dtype == np.int64 and index.flags.c_contiguous and not too_many(kept)
    if name not in FLOATS or not fits or not (grad.ndim or size):
        return NotImplemented
    before = grad.shape[:dim]
    behind = grad.shape[dim + 1 :] if keepdim else grad.shape[dim:]
    out = cupy_functions().empty((*before, size, *behind), grad.dtype)
    if out.size:
        _ELEMENT_AT_GRAD[name](
            *launch_for(out.size), grad.data.ptr, index.data.ptr, out.data.ptr,
            *packed_axes(kept), math.prod(before), size, math.prod(behind),
        )  # fmt: skip
    return out
