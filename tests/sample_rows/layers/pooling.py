"""Pooling."""

from __future__ import annotations

import functools
import math

import numpy as np

from lucid.ops.pooling.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from tests.sample_rows.linalg import normal
from tests.samples import Sample


def apart(*shape):
    """Return inputs no two of which are near each other, so that the largest stays the largest."""
    return lambda rng: (rng.permutation(math.prod(shape)).reshape(shape) / 8 - 1.0,)


def windows(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Yield each window's place in the result, its elements, and its size with the padding, one by one."""
    kernel, stride, padding, dilation = (
        (value, value) if isinstance(value, int) else value for value in (kernel, stride or kernel, padding, dilation)
    )
    starts = []
    for d in range(2):
        begins, begin, n = [], -padding[d], x.shape[d - 2]
        span = dilation[d] * (kernel[d] - 1) + 1
        while begin + span <= n + padding[d] or (ceil_mode and begin < n and begin + span < n + padding[d] + stride[d]):
            begins.append(begin)
            begin += stride[d]
        starts.append(begins)
    for i, top in enumerate(starts[0]):
        for j, left in enumerate(starts[1]):
            rows = [r for r in range(top, top + dilation[0] * kernel[0], dilation[0]) if 0 <= r < x.shape[-2]]
            columns = [c for c in range(left, left + dilation[1] * kernel[1], dilation[1]) if 0 <= c < x.shape[-1]]
            size = (min(top + kernel[0], x.shape[-2] + padding[0]) - top) * (
                min(left + kernel[1], x.shape[-1] + padding[1]) - left
            )
            yield (..., i, j), x[..., rows, :][..., columns], size


def collected(places):
    """Return the array of values that were given with their places."""
    places = list(places)
    out = np.empty((*places[0][1].shape, places[-1][0][1] + 1, places[-1][0][2] + 1))
    for place, value in places:
        out[place] = value
    return out


def largest(x, kernel_size, **settings):
    """Return the largest element of each window by its definition."""
    return collected((place, inside.max((-1, -2))) for place, inside, _ in windows(x, kernel_size, **settings))


def mean(x, kernel_size, count_include_pad=True, divisor_override=None, **settings):
    """Return the mean of each window by its definition."""
    return collected(
        (
            place,
            inside.sum((-1, -2)) / (divisor_override or (size if count_include_pad else inside[0, 0].size)),
        )
        for place, inside, size in windows(x, kernel_size, **settings)
    )


def parts(x, output_size):
    """Return the means of a grid of parts by their definition."""
    rows, columns = (output_size,) * 2 if isinstance(output_size, int) else output_size
    rows, columns = rows or x.shape[-2], columns or x.shape[-1]

    def bounds(i, n, size):
        return slice(math.floor(i * size / n), math.ceil((i + 1) * size / n))

    return collected(
        ((..., i, j), x[..., bounds(i, rows, x.shape[-2]), bounds(j, columns, x.shape[-1])].mean((-1, -2)))
        for i in range(rows)
        for j in range(columns)
    )


def row(op, reference, inputs, name, *, empty=None, **settings):
    """Return the row of a pooling with settings."""
    public = op.__name__
    return Sample(
        f"{public}:{name}",
        functools.partial(op, **settings),
        inputs,
        None if reference is None else functools.partial(reference, **settings),
        lambda torch, x: getattr(torch.nn.functional, public)(x, **settings),
        empty=empty,
    )


SETTINGS = {
    "tiles": {"kernel_size": 2},
    "overlapping": {"kernel_size": (3, 2), "stride": (2, 1)},
    "gaps": {"kernel_size": 2, "stride": 3},
    "padding": {"kernel_size": 3, "stride": 2, "padding": 1},
    "ceil": {"kernel_size": 2, "ceil_mode": True},
    "ceil and padding": {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
}
X = (2, 3, 7, 8)
ROWS = [row(max_pool2d, largest, apart(*X), name, **settings) for name, settings in SETTINGS.items()]
ROWS += [row(avg_pool2d, mean, normal(X), name, **settings) for name, settings in SETTINGS.items()]
ROWS += [
    row(max_pool2d, largest, apart(*X), "dilation", kernel_size=(3, 2), dilation=2, padding=1),
    row(max_pool2d, None, apart(3, 7, 8), "one image", kernel_size=2, empty=normal((0, 7, 8))),
    row(max_pool2d, None, apart(2, 1, 18, 19), "more than 256 places", kernel_size=17, padding=8, stride=5),
    row(max_pool1d, None, apart(3, 9), "padding", kernel_size=3, padding=1),
    row(
        avg_pool2d, mean, normal(X), "without padding",
        kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False,
    ),
    row(avg_pool2d, mean, normal(X), "divisor", kernel_size=3, stride=2, padding=1, divisor_override=5),
    row(avg_pool2d, mean, normal((2, 3, 10, 15)), "large tiles", kernel_size=5, empty=normal((0, 3, 10, 15))),
    row(avg_pool1d, None, normal((2, 3, 9)), "padding", kernel_size=3, padding=1, stride=2),
    row(adaptive_avg_pool1d, None, normal((3, 9)), "overlapping", output_size=4),
    *[
        row(adaptive_avg_pool2d, parts, normal((2, 3, 6, 8)), f"{size}", output_size=size)
        for size in (1, 2, (4, None), (5, 3), (7, 9))
    ],
    Sample(
        "max_pool2d:positions",
        functools.partial(max_pool2d, kernel_size=3, stride=2, padding=1, return_indices=True),
        apart(*X),
        torch=lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True),
    ),
]  # fmt: skip
