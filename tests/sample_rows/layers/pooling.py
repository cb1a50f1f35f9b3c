"""Pooling."""

from __future__ import annotations

import functools
import math

import numpy as np

from lucid.ops.pooling.adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from lucid.ops.pooling.pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from tests.sample_rows.linalg import normal
from tests.samples import Sample


def apart(*shape):
    """Return inputs no two of which are near each other, so that the largest stays the largest."""
    return lambda rng: (rng.permutation(math.prod(shape)).reshape(shape) / 8 - 1.0,)


def windows(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Yield each window's place in the result, its elements, and its size with the padding, one by one."""
    size = x.shape[2:]
    kernel, stride, padding, dilation = (
        (value,) * len(size) if isinstance(value, int) else value
        for value in (kernel, stride or kernel, padding, dilation)
    )
    starts = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        begins, begin = [], -p
        span = d * (k - 1) + 1
        while begin + span <= n + p or (ceil_mode and begin < n and begin + span < n + p + s):
            begins.append(begin)
            begin += s
        starts.append(begins)
    for place in np.ndindex(*map(len, starts)):
        inside, area = x, 1
        for axis, (i, n, k, p, d) in enumerate(zip(place, size, kernel, padding, dilation, strict=True)):
            begin = starts[axis][i]
            inside = inside.take([at for at in range(begin, begin + d * k, d) if 0 <= at < n], axis + 2)
            area *= min(begin + k, n + p) - begin
        yield (..., *place), inside.reshape(*x.shape[:2], math.prod(inside.shape[2:])), area


def collected(places):
    """Return the array of values that were given with their places."""
    places = list(places)
    out = np.empty((*places[0][1].shape, *[last + 1 for last in places[-1][0][1:]]))
    for place, value in places:
        out[place] = value
    return out


def largest(x, kernel_size, **settings):
    """Return the largest element of each window by its definition."""
    return collected((place, inside.max(-1)) for place, inside, _ in windows(x, kernel_size, **settings))


def mean(x, kernel_size, count_include_pad=True, divisor_override=None, **settings):
    """Return the mean of each window by its definition."""
    return collected(
        (place, inside.sum(-1) / (divisor_override or (area if count_include_pad else inside.shape[-1])))
        for place, inside, area in windows(x, kernel_size, **settings)
    )


def parts(x, output_size, of=np.mean):
    """Return the means of a grid of parts by their definition, or what `of` makes of their elements."""
    size = x.shape[2:]
    wanted = (output_size,) * len(size) if isinstance(output_size, int) else output_size
    wanted = [w or n for w, n in zip(wanted, size, strict=True)]

    def elements(place):
        inside = x
        for axis, (i, w, n) in enumerate(zip(place, wanted, size, strict=True)):
            inside = inside.take(range(math.floor(i * n / w), math.ceil((i + 1) * n / w)), axis + 2)
        return inside.reshape(*x.shape[:2], math.prod(inside.shape[2:]))

    return collected(((..., *place), of(elements(place), -1)) for place in np.ndindex(*wanted))


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
    *[
        row(op, reference, inputs(2, 2, 4, 5, 3), name, **SETTINGS[name])
        for op, reference, inputs in ((max_pool3d, largest, apart), (avg_pool3d, mean, lambda *shape: normal(shape)))
        for name in ("tiles", "ceil and padding")
    ],
    row(max_pool3d, largest, apart(1, 2, 5, 6, 3), "dilation", kernel_size=(3, 2, 1), dilation=2, padding=(1, 0, 0)),
    row(max_pool3d, None, apart(2, 4, 3, 5), "one volume", kernel_size=2, stride=1, empty=normal((0, 4, 3, 5))),
    row(
        avg_pool3d, mean, normal((1, 2, 4, 5, 3)), "without padding",
        kernel_size=(3, 2, 3), stride=2, padding=1, count_include_pad=False, empty=normal((0, 2, 4, 5, 3)),
    ),
    row(avg_pool3d, mean, normal((1, 2, 4, 5, 3)), "divisor", kernel_size=2, padding=1, divisor_override=5),
    *[
        row(adaptive_avg_pool3d, parts, normal((1, 2, 4, 3, 6)), f"{size}", output_size=size)
        for size in (2, (None, 2, 4), (3, None, None), (2, 1, 3))
    ],
    row(adaptive_max_pool1d, None, apart(3, 9), "overlapping", output_size=4),
    *[
        row(adaptive_max_pool2d, functools.partial(parts, of=np.max), apart(2, 3, 6, 8), f"{size}", output_size=size)
        for size in (2, (4, None), (7, 9))
    ],
    row(
        adaptive_max_pool3d, functools.partial(parts, of=np.max), apart(1, 2, 4, 3, 6), "overlapping",
        output_size=(3, 2, None), empty=normal((0, 2, 4, 3, 6)),
    ),
    Sample(
        "max_pool2d:positions",
        functools.partial(max_pool2d, kernel_size=3, stride=2, padding=1, return_indices=True),
        apart(*X),
        torch=lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True),
    ),
]  # fmt: skip
