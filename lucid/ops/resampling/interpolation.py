"""Another size by interpolation. Common rules of resampling: `lucid.ops.resampling`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.base.memory import check_size
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.base.scalars import as_bool, as_int, as_number, is_single
from lucid.ops.layers.windows import check_floating
from lucid.ops.resampling.interpolation_primitives import Axis, interpolated
from lucid.ops.shape.padding import ModeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

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
