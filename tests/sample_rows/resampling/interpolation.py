"""Images, sequences and volumes of another size."""

from __future__ import annotations

import functools
import math

import numpy as np

from lucid.ops.resampling.interpolation import interpolate
from tests.sample_rows.linalg.products import normal
from tests.samples import Sample


def hat(x):
    """Return the weight at a distance of linear interpolation."""
    return max(0.0, 1 - abs(x))


def keys(x, a):
    """Return the weight at a distance of cubic convolution."""
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def weights(mode, size, out, scale, aligned=False, antialias=False):
    """Return the matrix of how much of each element, by column, each element of the result has, by row."""
    matrix = np.zeros((out, size))
    for i, row in enumerate(matrix):
        centre = scale * i if aligned else scale * (i + 0.5) - 0.5
        if mode == "nearest":
            row[min(int(i * scale), size - 1)] = 1
        elif mode == "nearest-exact":
            row[min(int((i + 0.5) * scale), size - 1)] = 1
        elif mode == "area":
            row[i * size // out : math.ceil((i + 1) * size / out)] = 1
        elif antialias:
            centre, wide = scale * (i + 0.5) - 0.5, max(scale, 1)
            kernel = hat if mode == "bilinear" else functools.partial(keys, a=-0.5)
            row[:] = [kernel((j - centre) / wide) for j in range(size)]
        elif mode == "bicubic":
            for j in range(-3, size + 3):
                row[min(max(j, 0), size - 1)] += keys(j - centre, -0.75)
        else:
            centre = min(max(centre, 0), size - 1)
            row[:] = [hat(j - centre) for j in range(size)]
        row /= row.sum()
    return matrix


def resized(x, *, mode, size=None, scale_factor=None, align_corners=False, antialias=False):
    """Return the last dimensions of `x`, one after the other, as products with weights."""
    count = x.ndim - 2
    for k, n in enumerate(x.shape[2:]):
        factor = None if scale_factor is None else scale_factor[k]
        out = size[k] if factor is None else int(n * factor)
        scale = n / out if factor is None or mode == "area" else 1 / factor
        if align_corners:
            scale = (n - 1) / (out - 1) if out > 1 else 0.0
        matrix = weights(mode, n, out, scale, align_corners, antialias)
        x = np.moveaxis(np.tensordot(matrix, x, (1, x.ndim - count + k)), 0, x.ndim - count + k)
    return x


def row(name, *shape, **settings):
    """Return the row of a mode with settings."""
    return Sample(
        f"interpolate:{name}",
        functools.partial(interpolate, **settings),
        normal(shape),
        functools.partial(resized, **settings),
        lambda torch, x: torch.nn.functional.interpolate(x, **settings),
        empty=normal((0, *shape[1:])),
    )


ROWS = [
    row("nearest", 2, 2, 3, 5, mode="nearest", size=(7, 3)),
    row("nearest-exact", 1, 2, 3, 4, 5, mode="nearest-exact", scale_factor=(1.7, 0.6, 2.1)),
    row("linear", 2, 3, 5, mode="linear", size=(12,)),
    row("bilinear", 2, 2, 3, 4, mode="bilinear", scale_factor=(1.5, 2.3)),
    row("bilinear aligned", 2, 1, 4, 3, mode="bilinear", size=(1, 7), align_corners=True),
    row("bilinear filter", 1, 2, 9, 5, mode="bilinear", size=(4, 6), antialias=True),
    row("trilinear", 1, 2, 2, 3, 2, mode="trilinear", size=(3, 2, 5)),
    row("bicubic", 2, 1, 4, 3, mode="bicubic", size=(3, 8)),
    row("bicubic aligned", 1, 2, 3, 4, mode="bicubic", size=(5, 2), align_corners=True),
    row("bicubic filter", 1, 2, 11, 4, mode="bicubic", scale_factor=(0.4, 1.3), antialias=True),
    row("area", 2, 2, 7, 3, mode="area", size=(3, 4)),
]
