"""Fractional pooling: the largest elements of windows that lie at random, about as far apart as sizes are.

What holds for all pooling says `lucid.ops.pooling.pooling`; windows are of `kernel_size`. Along a dimension of `n`
elements the window of number `i` begins at ``floor((i + u) * step) - floor(u * step)``, with
``step = (n - kernel_size) / (output_size - 1)`` and a `u` in [0, 1) for each image, channel and dimension; the last one
ends at the last element. `output_size` is how many windows there are, or `output_ratio`, between 0 and 1, how many for
each element; a number, or one for each dimension. With `return_indices` the positions of the largest come too, int64,
counted over all pooled dimensions. `_random_samples` are the numbers `u`, shape (batch, channels, dimensions), instead
of new ones, and may be of more images: for images that of the width first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.base.arrays import namespace, on
from lucid.base.dtype import dtype_of
from lucid.errors import DeviceError, DtypeError, SettingError, ShapeError
from lucid.ops.base.promotion import accumulation_dtype, only_tensors
from lucid.ops.base.scalars import as_bool, as_number, is_single
from lucid.ops.creation.random import rand
from lucid.ops.index.gather import gather
from lucid.ops.layers.windows import check_floating, shape_of, sizes_for
from lucid.ops.pooling.adaptive import tiles
from lucid.ops.pooling.pooling import largest
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


def windows_asked(
    name: str, size: tuple[int, ...], kernel: tuple[int, ...], output_size: Any, output_ratio: Any
) -> tuple[int, ...]:
    """Return how many windows there are along each dimension."""
    count = len(size)
    if output_size is None and output_ratio is None:
        raise SettingError(f"{name}: expected an output_size or an output_ratio")
    asked: Any = output_size
    if output_ratio is not None:
        entries = (output_ratio,) if is_single(output_ratio) else output_ratio
        ratios = [as_number(entry, "output_ratio") for entry in entries]
        ratios *= count if len(ratios) == 1 else 1
        if len(ratios) != count or not all(0 < r < 1 for r in ratios):
            raise ShapeError(
                f"{name}: expected output_ratio to be a number or a tuple of {count}, each between 0 and 1, "
                f"got {output_ratio!r}"
            )
        if asked is None:
            asked = tuple([int(n * r) for n, r in zip(size, ratios, strict=True)])
    out = sizes_for(name, "output_size", asked, count, least=1)
    if any(w + k - 1 > n for w, k, n in zip(out, kernel, size, strict=True)):
        raise ShapeError(
            f"{name}: expected windows of {kernel} that begin at {out} different elements, got input of size {size}"
        )
    return out


def samples_for(name: str, count: int, input: Tensor, drawn: Tensor | None) -> Tensor:
    """Return a random number for each image, channel and dimension."""
    shape = input.array.shape
    wanted = (shape[0] if len(shape) == count + 2 else 1, shape[-count - 1], count)
    if drawn is None:
        return rand(*wanted, dtype=dtype_of(input.array), device=input.device)
    only_tensors(drawn)
    if drawn.array.dtype != input.array.dtype:
        raise DtypeError(f"{name}: expected _random_samples of {input.array.dtype}, got {drawn.array.dtype}")
    if drawn.device != input.device:
        raise DeviceError(f"{name}: expected _random_samples on {input.device}, got them on {drawn.device}; move them")
    sizes = drawn.array.shape
    if len(sizes) != 3 or sizes[0] < wanted[0] or sizes[1:] != wanted[1:]:
        raise ShapeError(f"{name}: expected _random_samples of shape {wanted}, or for more images, got {sizes}")
    return wrap(drawn.array[: wanted[0]])


def elements_along(xp: ModuleType, samples: Array, size: int, kernel: int, out: int) -> Array:
    """Return the elements of all windows along one dimension, for each of the samples."""
    begin = xp.full((*samples.shape, out), size - kernel, np.int64)
    if out > 1:
        dtype = samples.dtype.type
        step = dtype(size - kernel) / dtype(out - 1)
        u = samples[..., None]
        begin[..., :-1] = ((xp.arange(out - 1, dtype=dtype) + u) * step).astype(np.int64) - (u * step).astype(np.int64)
    return (begin[..., None] + xp.arange(kernel)).reshape(*samples.shape, out * kernel)


def fractionally_pooled(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: Any,
    return_indices: bool,
    drawn: Tensor | None,
) -> Any:
    """Return the largest elements of random windows, or these and their positions.

    The elements of windows are copied side by side, as each plane has windows of its own.
    """
    return_indices = as_bool(return_indices, "return_indices")
    input = wide_in_autocast(input, cpu=True, cuda=False)
    shape = shape_of(name, input, count)
    check_floating(name, input)
    lead, size = shape[:-count], shape[-count:]
    kernel = sizes_for(name, "kernel_size", kernel_size, count, least=1)
    out = windows_asked(name, size, kernel, output_size, output_ratio)
    samples = samples_for(name, count, input, drawn).array
    with on(input.array):
        xp = namespace(input.array)
        u = samples.astype(accumulation_dtype(samples.dtype), copy=False).reshape(*lead, count)
        places = xp.zeros((*lead, *[1] * count), np.int64)
        for k, (n, width, windows) in enumerate(zip(size, kernel, out, strict=True)):
            # PyTorch's order of random numbers is from the last dimension on for images alone
            along = elements_along(xp, u[..., 1 - k if count == 2 else k], n, width, windows)
            step = math.prod(size[k + 1 :])
            places = places + (along * step).reshape(*lead, *[1] * k, width * windows, *[1] * (count - k - 1))
        side_by_side = places.shape[-count:]
        places = places.reshape(*lead, math.prod(side_by_side))
        elements = gather(reshape(input, (*lead, math.prod(size))), -1, wrap(places))
        values, at = largest(
            reshape(elements, (*lead, *side_by_side)), tiles(side_by_side, kernel), positions=return_indices
        )
        if not return_indices:
            return values
        return values, wrap(xp.take_along_axis(places, at.reshape(*lead, math.prod(out)), -1).reshape(at.shape))


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | tuple[float, ...] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest elements of windows at random in images, shape (batch, channels, height, width).

    >>> import lucid
    >>> lucid.nn.functional.fractional_max_pool2d(lucid.ones(1, 9, 7), 2, output_ratio=0.5).shape
    lucid.Size([1, 4, 3])
    """
    return fractionally_pooled(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | tuple[float, ...] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return the largest elements of windows at random in volumes, shape (batch, channels, depth, height, width).

    >>> import lucid
    >>> lucid.nn.functional.fractional_max_pool3d(lucid.ones(1, 5, 9, 7), 2, output_ratio=0.5).shape
    lucid.Size([1, 2, 4, 3])
    """
    return fractionally_pooled(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
