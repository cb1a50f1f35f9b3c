"""Another size by interpolation. Common rules of resampling: `lucid.ops.resampling`.

Every mode is linear and separable, so that there are two primitives, of which that of the gradient is the adjoint of
the other. With `position` = scale * (i + shift) of element i of the result:

    nearest   the element floor(position), computed in float32 as PyTorch does there, so that the same one is taken
    linear    the two elements around position - shift, by their distance
    cubic     the four elements around position - shift, by Keys' cubic convolution with a = -0.75; for both, elements
              beyond the ends are the ones at the ends
    area      the mean of the elements from floor(i * size / out) to ceil((i + 1) * size / out)
    linear and cubic filter   all elements nearer to scale * (i + 0.5) than the filter is wide, which is as many times
              wider as the result is smaller; the weights, of the cubic with a = -0.5, are divided by their sum

Keys, Cubic convolution interpolation for digital image processing, IEEE Transactions on Acoustics, Speech, and Signal
Processing 29 (1981). The device's twin is kernels/resampling/interpolation.cu.

On the CPU a dimension is a product with a matrix of weights, of which only the blocks along the diagonal are made. On a
CUDA device each primitive is one kernel, over as many as three dimensions at once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.arguments import among
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.memory import check_size
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel
from lucid.cuda.launch.plans import empty, planned
from lucid.cuda.launch.windows import LARGEST_INT, launch_shape
from lucid.cuda.source.signature import constant
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.promotion import accumulation_dtype, only_tensors
from lucid.ops.base.scalars import as_bool, as_int, as_number, is_single
from lucid.ops.index.accumulation import add_at
from lucid.ops.layers.windows import check_floating
from lucid.ops.shape.padding import ModeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# The largest size of which blocks of weights are kept.
KEPT = 4096
# Rows and columns that a product with weights has, if it can: fewer are slow, and most weights of more would be zero.
BLOCK = 48
FEWEST_ROWS = 8

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
_INTERPOLATE = Kernel("interpolation", "lucid::interpolate", _TYPED)
_INTERPOLATE_GRAD = Kernel("interpolation", "lucid::interpolate_grad", _TYPED)

# A dimension of one element.
_NONE = (1.0, 1.0, 0.5, 1, 1, 0)
# Positions in float32 are wrong by less than an element up to here.
_LONGEST = 2**22


class Axis(NamedTuple):
    """One dimension and its new size.

    Attributes
    ----------
    kind : str
        What each element of the result is made of: see above.
    size, out : int
        Elements of the input, and of the result.
    scale, shift : float
        Elements of the input for each of the result, and where in an element its position is.
    """

    kind: str
    size: int
    out: int
    scale: float
    shift: float


@primitive
def interpolated(xp: ModuleType, x: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return `x` with its last dimensions of other sizes."""
    if all(axis.kind == "nearest" for axis in axes):
        for dim, axis in enumerate(axes, x.ndim - len(axes)):
            x = x.take(xp.asarray(taps(axis)[0][:, 0]), axis=dim)
        return x
    return resized(xp, x, axes, adjoint=False)


@interpolated.cuda
@planned
def _interpolated_cuda(x: Array, *, axes: tuple[Axis, ...]) -> Any:
    return _resized(_INTERPOLATE, x, axes, [axis.out for axis in axes])


@interpolated.vjp("x", planned=True)
def interpolated_vjp(m: Namespace, grad: Array, axes: tuple[Axis, ...]) -> Any:
    """Return the gradient of each element: its shares in others come back, with the same weights."""
    return m.interpolated_grad(grad, axes=axes)


@primitive
def interpolated_grad(xp: ModuleType, grad: Array, *, axes: tuple[Axis, ...]) -> Array:
    """Return the gradient of the operand of `interpolated`."""
    return resized(xp, grad, axes, adjoint=True)


@interpolated_grad.cuda
@planned
def _interpolated_grad_cuda(grad: Array, *, axes: tuple[Axis, ...]) -> Any:
    return _resized(_INTERPOLATE_GRAD, grad, axes, [axis.size for axis in axes])


@interpolated_grad.vjp("grad", planned=True)
def interpolated_grad_vjp(m: Namespace, grad: Array, axes: tuple[Axis, ...]) -> Any:
    """Return the gradient, interpolated."""
    return m.interpolated(grad, axes=axes)


def resized(xp: ModuleType, x: Array, axes: tuple[Axis, ...], *, adjoint: bool) -> Array:
    """Return `x` with its last dimensions resized, or the adjoint of that, one after the other."""
    dims = range(x.ndim - len(axes), x.ndim)
    # those that shrink most come first, so that there is least in between
    order = sorted(zip(dims, axes, strict=True), key=lambda each: each[1].out / each[1].size, reverse=adjoint)
    dtype = accumulation_dtype(x.dtype)
    original, out = x, x.astype(dtype, copy=False)
    if xp is np:
        for dim, axis in order:
            out = by_products(out, axis, dim, adjoint=adjoint)
        # 0 times infinity or NaN is NaN, beside where it belongs
        if np.isfinite(out.sum()):
            return out.astype(x.dtype, copy=False)
        out = original.astype(dtype, copy=False)
    for dim, axis in order:
        out = by_taps(xp, out, axis, dim, adjoint=adjoint)
    return out.astype(x.dtype, copy=False)


def by_products(x: Array, axis: Axis, dim: int, *, adjoint: bool) -> Array:
    """Return `x` resized along one dimension, by matrix products."""
    made = kept_blocks if max(axis.size, axis.out) <= KEPT else blocks
    out = np.empty((*x.shape[:dim], axis.size if adjoint else axis.out, *x.shape[dim + 1 :]), x.dtype)
    if not out.size:
        return out
    if dim == x.ndim - 1:
        rows, results = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
        for to, of, weight in made(axis, x.dtype, adjoint=adjoint):
            np.matmul(rows[:, of], weight.T, out=results[:, to])
        return out
    planes, results = [a.reshape(math.prod(a.shape[:dim]), a.shape[dim], -1) for a in (x, out)]
    for to, of, weight in made(axis, x.dtype, adjoint=adjoint):
        np.matmul(weight, planes[:, of], out=results[:, to])
    return out


def by_taps(xp: ModuleType, x: Array, axis: Axis, dim: int, *, adjoint: bool) -> Array:
    """Return `x` resized along one dimension, without looking at elements of weight zero."""
    index, weight = taps(axis)
    out = xp.zeros((*x.shape[:dim], axis.size if adjoint else axis.out, *x.shape[dim + 1 :]), x.dtype)
    for k in range(index.shape[1]):
        at = xp.asarray(index[:, k])
        by = xp.asarray(weight[:, k], x.dtype).reshape(-1, *[1] * (x.ndim - dim - 1))
        part = xp.where(by == 0, x.dtype.type(0), (x if adjoint else x.take(at, axis=dim)) * by)
        if adjoint:
            add_at(xp, out, (dim,), (at,), part)
        else:
            out += part
    return out


def _resized(kernel: Kernel, x: Array, axes: tuple[Axis, ...], sizes: list[int]) -> Any:
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


# ---- elements and weights ----


def cubic(distance: Array, a: float) -> Array:
    """Return the weight of elements at a distance, by Keys' cubic convolution."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def taps(axis: Axis) -> tuple[Array, Array]:
    """Return index and weight, shape (out, taps), of the elements that each element of the result is made of."""
    number = np.arange(axis.out)
    if axis.kind == "nearest":
        position = (number + axis.shift).astype(np.float32) * np.float32(axis.scale)
        return np.minimum(position.astype(np.int64), axis.size - 1)[:, None], np.ones((axis.out, 1))
    return beside(axis, number) if axis.kind in {"linear", "cubic"} else within(axis, number)


def beside(axis: Axis, number: Array) -> tuple[Array, Array]:
    """Return index and weight of the two or four elements around each position."""
    last = axis.size - 1
    position = axis.scale * (number + axis.shift) - axis.shift
    first = np.minimum(np.floor(position), last)
    beyond = np.clip(position - first, 0, 1)[:, None]
    around = np.arange(2) if axis.kind == "linear" else np.arange(-1, 3)
    weight = 1 - np.abs(beyond - around) if axis.kind == "linear" else cubic(beyond - around, -0.75)
    return np.clip(first.astype(np.int64)[:, None] + around, 0, last), weight


def within(axis: Axis, number: Array) -> tuple[Array, Array]:
    """Return index and weight of all elements of a part, or within the width of a filter; 0 for those behind them."""
    wider = max(axis.scale, 1.0)
    begin, end = bounds(axis, number, wider)
    index = np.add.outer(begin, np.arange(int((end - begin).max())))
    distance = (index + 0.5 - axis.scale * (number[:, None] + 0.5)) / wider
    if axis.kind == "area":
        weight = np.ones(index.shape)
    else:
        weight = np.maximum(1 - np.abs(distance), 0) if axis.kind == "linear filter" else cubic(distance, -0.5)
    weight = np.where(index < end[:, None], weight, 0)
    return np.minimum(index, axis.size - 1), weight / weight.sum(1, keepdims=True)


def bounds(axis: Axis, number: Array, wider: float) -> tuple[Array, Array]:
    """Return the first element of a part or filter, and the first behind it."""
    if axis.kind == "area":
        return number * axis.size // axis.out, -(-(number + 1) * axis.size // axis.out)
    half = wider if axis.kind == "linear filter" else 2 * wider
    centre = axis.scale * (number + 0.5)
    begin = np.maximum((centre - half + 0.5).astype(np.int64), 0)
    return begin, np.minimum((centre + half + 0.5).astype(np.int64), axis.size)


def blocks(axis: Axis, dtype: Any, *, adjoint: bool) -> Iterator[tuple[slice, slice, Array]]:
    """Yield matrices that together give the elements of the result, or with `adjoint` of its gradient.

    Each with the elements that it makes, and of which: all weights of the others are zero.
    """
    index, weight = taps(axis)
    made, read = np.broadcast_to(np.arange(axis.out)[:, None], index.shape).ravel(), index.ravel()
    count, of = axis.out, axis.size
    if adjoint:
        order = np.argsort(read, kind="stable")
        made, read, weight = read[order], made[order], weight.ravel()[order]
        count, of = of, count
    weight = weight.ravel()
    rows = int(np.clip(BLOCK * count / of, FEWEST_ROWS, BLOCK))
    for begin in range(0, count, rows):
        end = min(begin + rows, count)
        part = slice(*np.searchsorted(made, (begin, end)))
        first, behind = (int(read[part].min()), int(read[part].max()) + 1) if part.stop > part.start else (0, 1)
        matrix = np.zeros((end - begin, behind - first), dtype)
        np.add.at(matrix, (made[part] - begin, read[part] - first), weight[part])
        yield slice(begin, end), slice(first, behind), matrix


@lru_cache(32)
def kept_blocks(axis: Axis, dtype: Any, *, adjoint: bool) -> tuple[tuple[slice, slice, Array], ...]:
    """Return all blocks, the same each time."""
    return tuple(blocks(axis, dtype, adjoint=adjoint))


# ---- the function ----

# What each mode makes elements of, and how many dimensions it takes.
MODES = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "bicubic": ("cubic", (2,)),
    "trilinear": ("linear", (3,)),
    "area": ("area", (1, 2, 3)),
}
FILTERED = ("bilinear", "bicubic")
INTERPOLATING = ("linear", "bilinear", "bicubic", "trilinear")


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return `input` with the `size`, or its own times `scale_factor`: one number, or one for each dimension.

    `mode` is ``"nearest"``, ``"nearest-exact"`` (from centres), ``"area"``, or of so many dimensions ``"linear"``,
    ``"bilinear"``, ``"bicubic"``, ``"trilinear"``, with `align_corners` False by default. With `antialias`, of the
    second and third, elements are weighed from as far as the result is smaller. `recompute_scale_factor` computes
    positions from the sizes, rounded down, and not from the factor. Nearest ones may be uint8.

    >>> import lucid
    >>> lucid.nn.functional.interpolate(lucid.tensor([[[0.0, 1.0]]]), size=4, mode="linear")
    tensor([[[0.0000, 0.2500, 0.7500, 1.0000]]])
    """
    only_tensors(input)
    shape = input.array.shape
    count = len(shape) - 2
    if not among(mode, MODES):
        raise ModeError(f"interpolate: expected a mode of {', '.join(MODES)}, got {mode!r}")
    kind, dimensions = MODES[mode]
    if count not in dimensions:
        wanted = " or ".join(str(dim + 2) for dim in dimensions)
        raise ShapeError(
            f"interpolate: mode {mode!r} takes input of {wanted} dimensions (batch, channels, ...), got shape {shape}"
        )
    if kind != "nearest" or input.array.dtype != "uint8":
        check_floating("interpolate", input)
    aligned = align_corners is not None and as_bool(align_corners, "align_corners")
    if align_corners is not None and mode not in INTERPOLATING:
        raise SettingError(
            f"interpolate: align_corners is for modes {', '.join(INTERPOLATING)}, got {aligned} for mode {mode!r}"
        )
    if as_bool(antialias, "antialias"):
        if mode not in FILTERED:
            raise SettingError(f"interpolate: antialias is for modes {' and '.join(FILTERED)}, got mode {mode!r}")
        kind += " filter"
    sizes, factors = sizes_and_factors(shape[2:], size, scale_factor)
    recompute = recompute_scale_factor is not None and as_bool(recompute_scale_factor, "recompute_scale_factor")
    if recompute and size is not None:
        raise SettingError("interpolate: recompute_scale_factor is for a scale_factor, got size")
    if recompute or kind == "area":
        factors = [None] * count
    if min(*shape[2:], *sizes) < 1:
        raise ShapeError(f"interpolate: expected sizes of at least 1, got {shape[2:]} and {sizes} of the result")
    check_size("interpolate", (*shape[:2], *sizes), input.array.itemsize)
    shift = 0.0 if aligned or mode == "nearest" else 0.5
    # as in PyTorch, positions in these multiples of a size are the same for any factor that gives them
    steady = {"nearest": (1, 2) if mode == "nearest" and count == 2 else (), "cubic": ()}.get(kind, (1,))
    axes = [
        Axis(kind, n, out, scale_of(n, out, None if out / n in steady else factor, aligned=aligned), shift)
        for n, out, factor in zip(shape[2:], sizes, factors, strict=True)
    ]
    return interpolated(input, axes=tuple(axes))


def sizes_and_factors(
    shape: tuple[int, ...], size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None
) -> tuple[tuple[int, ...], Sequence[float | None]]:
    """Return the sizes of the result, and the factors that were given; None for that of the sizes."""
    if size is not None and scale_factor is None:
        return tuple([as_int(each, "size") for each in for_each("size", size, len(shape))]), [None] * len(shape)
    if scale_factor is not None and size is None:
        factors = [as_number(each, "scale_factor") for each in for_each("scale_factor", scale_factor, len(shape))]
        if not all(0 < factor < math.inf for factor in factors):
            raise SettingError(f"interpolate: expected scale_factor to be above 0 and finite, got {scale_factor}")
        return tuple([math.floor(n * factor) for n, factor in zip(shape, factors, strict=True)]), factors
    raise SettingError(f"interpolate: expected either size or scale_factor, got {size} and {scale_factor}")


def for_each(argument: str, value: Any, count: int) -> Sequence[Any]:
    """Return one number for each dimension."""
    if is_single(value):
        return (value,) * count
    if len(value) != count:
        raise ShapeError(f"interpolate: expected {argument} to be a number or {count} of them, got {value!r}")
    return value


def scale_of(size: int, out: int, factor: float | None, *, aligned: bool) -> float:
    """Return how many elements of the input one of the result stands for."""
    if aligned:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return size / out if factor is None else 1 / factor
