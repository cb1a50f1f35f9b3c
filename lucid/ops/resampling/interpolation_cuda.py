"""Interpolation on a CUDA device: one kernel for each primitive, over as many as three dimensions at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.windows import LARGEST_INT, launch_shape
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from lucid.base.arrays import Array


# How the kernels call what elements of the result are made of, and which filter that is.
_KINDS = {
    "nearest": ("lucid::Nearest", ""),
    "linear": ("lucid::Linear", ""),
    "cubic": ("lucid::Cubic", ""),
    "area": ("lucid::Filtered", "AREA"),
    "linear filter": ("lucid::Filtered", "LINEAR_FILTER"),
    "cubic filter": ("lucid::Filtered", "CUBIC_FILTER"),
}
_TYPED = tuple((t, kind) for t in FLOATS for kind in sorted({kind for kind, _ in _KINDS.values()}))
_interpolate = Kernel("interpolation", "lucid::interpolate", _TYPED)
_interpolate_grad = Kernel("interpolation", "lucid::interpolate_grad", _TYPED)

# A dimension of one element.
_NONE = (1.0, 1.0, 0.5, 1, 1, 0)
# Positions in float32 are wrong by less than an element up to here.
_LONGEST = 2**22


@planned
def interpolated(x: Array, *, axes: Any) -> Any:
    """Return `x` with its last dimensions of other sizes."""
    return _resized(_interpolate, x, axes, [axis.out for axis in axes])


@planned
def interpolated_grad(grad: Array, *, axes: Any) -> Any:
    """Return the gradient: each element adds up its shares, without atomics."""
    return _resized(_interpolate_grad, grad, axes, [axis.size for axis in axes])


def _resized(kernel: Kernel, x: Array, axes: Any, sizes: list[int]) -> Any:
    """Launch a kernel that reads `x` and makes an array of other last sizes."""
    dtype = C_TYPES.get(x.dtype)
    longest = max(max(axis.size, axis.out) for axis in axes)
    most = max(math.prod(axis.size for axis in axes), math.prod(axis.out for axis in axes))
    if dtype not in FLOATS or longest > _LONGEST or most > LARGEST_INT:
        return NotImplemented
    lead = x.shape[: -len(axes)]
    out, planes = empty((*lead, *sizes), x.dtype), math.prod(lead)
    if not planes:
        return out
    launch = launch_shape(planes, math.prod(sizes))
    if launch is None:
        return NotImplemented
    x = gpu.cupy().ascontiguousarray(x)
    kind, filtering = _KINDS[axes[0].kind]
    code = constant("interpolation.cu", filtering) if filtering else 0
    packed = [
        (axis.scale, 1 / axis.scale if axis.scale else 0.0, axis.shift, axis.size, axis.out, code) for axis in axes
    ]
    rest = [number for axis in [_NONE] * (3 - len(axes)) + packed for number in axis]
    kernel[dtype, kind](*launch, x.data.ptr, out.data.ptr, planes, *rest)
    return out
