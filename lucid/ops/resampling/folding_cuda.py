"""Windows as columns on a CUDA device: by the kernels behind convolutions, of one image with all planes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES, FLOATS
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.windows import LARGEST_INT, addressable, images, launch_shape, packed
from lucid.ops.layers.convolution_cuda import col2im, im2col

if TYPE_CHECKING:
    from lucid.base.arrays import Array


def _launch(dtype: Any, lead: tuple[int, ...], axes: Any, over: str) -> Any:
    """Return the dtype in C, how many planes there are, grid and block; None without a kernel."""
    name, planes = C_TYPES.get(dtype), math.prod(lead)
    if name not in FLOATS or not 0 < planes <= LARGEST_INT or not addressable(axes):
        return None
    launch = launch_shape(planes, math.prod(getattr(axis, over) for axis in axes))
    return None if launch is None else (name, planes, launch)


@planned
def columns_of(x: Array, *, axes: Any) -> Any:
    """Return the elements of each window, shape (..., *positions, *windows)."""
    lead = x.shape[: -len(axes)]
    work = _launch(x.dtype, lead, axes, "out")
    if work is None:
        return NotImplemented
    name, planes, launch = work
    x = gpu.cupy().ascontiguousarray(x)
    out = empty((*lead, *[axis.kernel for axis in axes], *[axis.out for axis in axes]), x.dtype)
    read: Any = images(x.reshape(1, planes, *[axis.size for axis in axes]), len(axes))
    im2col[name](*launch, x.data.ptr, out.data.ptr, 1, planes, *read.steps, *packed(axes))
    return out


@planned
def sum_of_columns(columns: Array, *, axes: Any) -> Any:
    """Return planes with elements summed over all windows that have them."""
    lead = columns.shape[: -2 * len(axes)]
    work = _launch(columns.dtype, lead, axes, "size")
    if work is None:
        return NotImplemented
    name, planes, launch = work
    columns = gpu.cupy().ascontiguousarray(columns)
    out = empty((*lead, *[axis.size for axis in axes]), columns.dtype)
    col2im[name](*launch, columns.data.ptr, out.data.ptr, 1, planes, *packed(axes))
    return out
