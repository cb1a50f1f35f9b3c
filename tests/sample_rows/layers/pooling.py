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
from lucid.ops.pooling.fractional import fractional_max_pool2d, fractional_max_pool3d
from lucid.ops.pooling.lp_pooling import lp_pool1d, lp_pool2d, lp_pool3d
from lucid.ops.pooling.pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from lucid.ops.pooling.unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from tests.sample_rows.linalg.products import normal
from tests.samples import Sample


def apart(*shape):
    """Return inputs no two of which are near each other, so that the largest stays the largest."""
    return lambda rng: (rng.permutation(math.prod(shape)).reshape(shape) / 8 - 1.0,)


def positive(*shape):
    """Return inputs above zero, no two of which are near each other."""
    return lambda rng: ((1 + rng.permutation(math.prod(shape)).reshape(shape)) / 16,)


def signed(*shape):
    """Return inputs of both signs, no two magnitudes of which are near each other, or 0."""
    return lambda rng: (positive(*shape)(rng)[0] * rng.choice([-1, 1], shape),)


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


def greatest(x, norm_type, **settings):
    """Return the largest magnitude of each window, or the smallest for a norm of minus infinity."""
    sign = math.copysign(1, norm_type)
    return sign * largest(sign * np.abs(x), **settings)


def norm(x, norm_type, kernel_size, **settings):
    """Return the norm of each window by its definition, scaled up where the window hangs over the end."""
    count = x.ndim - 2
    whole = math.prod((kernel_size,) * count if isinstance(kernel_size, int) else kernel_size)
    return collected(
        (place, ((inside**norm_type).sum(-1) * whole / area) ** (1 / norm_type))
        for place, inside, area in windows(x, kernel_size, **settings)
    )


def placed(x, indices, kernel_size, output_size):
    """Return zeros with the elements at their places, one by one."""
    out = np.zeros((*x.shape[:2], math.prod(output_size)))
    for at in np.ndindex(x.shape):
        out[(*at[:2], indices[at])] = x[at]
    return out.reshape(*x.shape[:2], *output_size)


def unpooling(op, *shape, output_size):
    """Return the row of an unpooling, of elements at distinct places."""

    def inputs(rng):
        planes = [rng.permutation(math.prod(output_size))[: math.prod(shape)] for _ in range(6)]
        return rng.standard_normal((2, 3, *shape)), np.stack(planes).reshape(2, 3, *shape)

    return Sample(
        f"{op.__name__}:places",
        functools.partial(op, kernel_size=2, output_size=output_size),
        inputs,
        functools.partial(placed, kernel_size=2, output_size=output_size),
        lambda torch, x, i: getattr(torch.nn.functional, op.__name__)(x, i, 2, output_size=output_size),
        empty=lambda _: (np.zeros((0, 3, *shape)), np.zeros((0, 3, *shape), int)),
    )


def scattered(x, u, kernel, output_size):
    """Return the largest elements of fractional windows by their definition."""
    count = x.ndim - 2

    def begin(plane, k, i):
        n, out = x.shape[k + 2], output_size[k]
        step, sample = (n - kernel) / (out - 1), u[(*plane, 1 - k if count == 2 else k)]
        return n - kernel if i == out - 1 else math.floor((i + sample) * step) - math.floor(sample * step)

    result = np.empty((*x.shape[:2], *output_size))
    for at in np.ndindex(result.shape):
        begins = [begin(at[:2], k, i) for k, i in enumerate(at[2:])]
        result[at] = x[at[:2]][tuple(slice(b, b + kernel) for b in begins)].max()
    return result


def fractional(op, *shape, output_size):
    """Return the row of a fractional pooling, with random numbers that half types hold."""
    settings = {"output_size": output_size}
    return Sample(
        f"{op.__name__}:samples",
        lambda x, u: op(x, 2, _random_samples=u, **settings),
        lambda rng: (*apart(2, 3, *shape)(rng), rng.integers(0, 8, (2, 3, len(shape))) / 8),
        lambda x, u: scattered(x, u, 2, output_size),
        lambda torch, x, u: getattr(torch.nn.functional, op.__name__)(x, 2, _random_samples=u, **settings),
        constants=(1,),
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
    row(lp_pool1d, norm, positive(2, 3, 9), "cubes", norm_type=3.0, kernel_size=2, ceil_mode=True),
    row(lp_pool2d, norm, positive(2, 3, 7, 8), "squares", norm_type=2, kernel_size=(3, 2), stride=2),
    row(
        lp_pool3d, norm, positive(1, 2, 3, 4, 5), "halves",
        norm_type=0.5, kernel_size=2, ceil_mode=True, empty=normal((0, 2, 3, 4, 5)),
    ),
    row(
        lp_pool2d, greatest, signed(1, 2, 6, 5), "infinity", norm_type=math.inf, kernel_size=2, stride=3, ceil_mode=True
    ),
    row(lp_pool1d, greatest, signed(2, 3, 8), "minus infinity", norm_type=-math.inf, kernel_size=3, stride=2),
    unpooling(max_unpool1d, 4, output_size=(9,)),
    unpooling(max_unpool2d, 2, 3, output_size=(5, 6)),
    unpooling(max_unpool3d, 2, 3, 1, output_size=(4, 5, 3)),
    fractional(fractional_max_pool2d, 9, 6, output_size=(3, 5)),
    fractional(fractional_max_pool3d, 5, 4, 9, output_size=(3, 2, 3)),
    Sample(
        "max_pool2d:positions",
        functools.partial(max_pool2d, kernel_size=3, stride=2, padding=1, return_indices=True),
        apart(*X),
        torch=lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True),
    ),
]  # fmt: skip
