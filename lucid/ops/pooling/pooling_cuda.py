"""Pooling on a CUDA device: one kernel for each primitive of ``lucid.ops.pooling.pooling_primitives``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.windows import LARGEST_INT, addressable, images, launch_shape, packed

if TYPE_CHECKING:
    from lucid.base.arrays import Array


# The integers that number the positions in a window, and windows of more positions than this are shared by a warp.
_NUMBERS = ("unsigned char", "unsigned short")
_LARGE = 64

_TYPED = tuple((t, number) for t in FLOATS for number in _NUMBERS)
_max_pool = Kernel("pooling", "lucid::max_pool", _TYPED)
_max_pool_grad = Kernel("pooling", "lucid::max_pool_grad", _TYPED)
_max_pool_select = Kernel("pooling", "lucid::max_pool_select", _TYPED)
_avg_pool = Kernel("pooling", "lucid::avg_pool", tuple((t, n) for t in FLOATS for n in ("1", "32")))
_avg_pool_grad = Kernel("pooling", "lucid::avg_pool_grad", EACH_FLOAT)
_part_means = Kernel("pooling", "lucid::part_means", EACH_FLOAT)


class Work(NamedTuple):
    """Arguments of a kernel's launch.

    Attributes
    ----------
    dtype : str
        The array's dtype in C.
    launch : tuple
        Grid and block.
    shape : tuple of int
        The shape of the result.
    rest : tuple of int
        Planes, channels, the steps of the array and the windows: the kernel's parameters after its pointers.
    """

    dtype: str
    launch: tuple[Any, Any]
    shape: tuple[int, ...]
    rest: tuple[int, ...]


def _work(x: Array, axes: Any, over: str, lanes: int = 1) -> Work | None:
    """Return the launch of a kernel that reads `x` and goes `over` elements ("size") or windows ("out")."""
    dtype = C_TYPES.get(x.dtype)
    read = images(x, len(axes))
    made = tuple([getattr(axis, over) for axis in axes])
    pixels = math.prod(made)
    if dtype not in FLOATS or read is None or not read.planes * pixels:
        return None
    if not addressable(axes) or read.shape[1] > LARGEST_INT:
        return None
    launch = launch_shape(read.planes, pixels, lanes)
    if launch is None:
        return None
    rest = read.planes, read.shape[1], *read.steps, *packed(axes)
    return Work(dtype, launch, (*x.shape[: -len(axes)], *made), rest)


def _number(axes: Any) -> tuple[Any, str | None]:
    """Return the smallest dtype that numbers the positions in a window, and its name in C; None without a kernel."""
    dtype = np.min_scalar_type(math.prod(axis.kernel for axis in axes) - 1)
    return dtype, _NUMBERS[dtype.itemsize - 1] if dtype.itemsize <= len(_NUMBERS) else None


@planned
def max_pool(x: Array, *, axes: Any) -> Any:
    """Return the largest element of each window, and the number of its position."""
    dtype, number = _number(axes)
    work = _work(x, axes, "out")
    if work is None or number is None:
        return NotImplemented
    values, which = empty(work.shape, x.dtype), empty(work.shape, dtype)
    _max_pool[work.dtype, number](*work.launch, x.data.ptr, values.data.ptr, which.data.ptr, *work.rest)
    return values, which


@planned
def max_pool_grad(g: Array, which: Array, *, axes: Any) -> Any:
    """Return an array of the pooled shape: each element of `g` added at the position that `which` names."""
    return _by_number(_max_pool_grad, g, which, axes, "size")


@planned
def max_pool_select(x: Array, which: Array, *, axes: Any) -> Any:
    """Return for each window the element at the position that `which` names."""
    return _by_number(_max_pool_select, x, which, axes, "out")


def _by_number(kernel: Kernel, x: Array, which: Array, axes: Any, over: str) -> Any:
    _, number = _number(axes)
    work = _work(x, axes, over)
    if work is None or number is None or not which.flags.c_contiguous:
        return NotImplemented
    out = empty(work.shape, x.dtype)
    kernel[work.dtype, number](*work.launch, x.data.ptr, which.data.ptr, out.data.ptr, *work.rest)
    return out


@planned
def avg_pool(x: Array, *, axes: Any, divisor: float | None, padded: bool) -> Any:
    """Return the sum of each window, divided."""
    lanes = 32 if math.prod(axis.kernel for axis in axes) > _LARGE else 1
    work = _work(x, axes, "out", lanes)
    if work is None:
        return NotImplemented
    out = empty(work.shape, x.dtype)
    settings = float(divisor or 0), int(padded)
    _avg_pool[work.dtype, str(lanes)](*work.launch, x.data.ptr, out.data.ptr, *work.rest, *settings)
    return out


@planned
def avg_pool_grad(g: Array, *, axes: Any, divisor: float | None, padded: bool) -> Any:
    """Return an array of the pooled shape: each element of `g`, divided, added to each element of its window."""
    work = _work(g, axes, "size")
    if work is None:
        return NotImplemented
    dx = empty(work.shape, g.dtype)
    settings = float(divisor or 0), int(padded)
    _avg_pool_grad[work.dtype](*work.launch, g.data.ptr, dx.data.ptr, *work.rest, *settings)
    return dx


@planned
def part_means(x: Array, parts: tuple[int, ...], *, spread: bool) -> Any:
    """Return the means of `parts` parts along each of the last dimensions, or with `spread` their gradient."""
    dtype, read, pixels = C_TYPES.get(x.dtype), images(x, len(parts)), math.prod(parts)
    if dtype not in FLOATS or read is None or not read.planes * pixels or max(read.shape[1:]) > LARGEST_INT:
        return NotImplemented
    launch = launch_shape(read.planes, pixels)
    if launch is None:
        return NotImplemented
    out = empty((*x.shape[: -len(parts)], *parts), x.dtype)
    rows, columns = zip(read.shape[2:], (1, *parts)[-2:], strict=True)
    _part_means[dtype](
        *launch, x.data.ptr, out.data.ptr, read.planes, read.shape[1], *read.steps, *rows, *columns, int(spread)
    )
    return out
