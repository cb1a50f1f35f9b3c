"""Pooling on a CUDA device: the largest element and the mean of each window, and their gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.nn import functional
from lucid.ops.layers.windows import axes_of
from lucid.ops.pooling import adaptive
from lucid.ops.pooling import pooling_primitives as primitives
from lucid.ops.pooling.pooling import windows_over
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)

# Shape of the input and kernel, stride, padding, dilation, ceil_mode: sequences, overlapping windows and gaps between
# them, windows that hang over the end, several images without channels, one window, windows that share a warp.
CASES = {
    "tiles": ((2, 3, 8, 6), (2, 2), (2, 2), (0, 0), (1, 1), False),
    "overlapping": ((2, 3, 7, 9), (3, 3), (1, 2), (1, 1), (1, 1), False),
    "gaps": ((1, 2, 11, 13), (2, 1), (4, 3), (0, 0), (1, 1), False),
    "ceil": ((2, 1, 7, 6), (3, 2), (2, 4), (1, 0), (1, 1), True),
    "dilated": ((2, 2, 9, 8), (3, 2), (2, 1), (2, 1), (2, 3), False),
    "no batch": ((3, 5, 4), (2, 3), (1, 1), (1, 1), (1, 1), False),
    "one window": ((3, 2, 5, 7), (5, 7), (5, 7), (0, 0), (1, 1), False),
    "large": ((2, 2, 19, 11), (9, 11), (5, 3), (4, 5), (1, 1), True),
    "larger": ((1, 2, 18, 21), (17, 18), (1, 2), (8, 9), (1, 1), False),
    "sequences": ((3, 2, 1025), (3,), (2,), (1,), (1,), True),
    "short": ((2, 31), (33,), (1,), (16,), (1,), False),
}
every_case = pytest.mark.parametrize("case", CASES)


def axes_of_case(case):
    shape, kernel, stride, padding, dilation, ceil = CASES[case]
    wanted = lucid.tensor(np.zeros(shape, np.float32), device="cpu")
    return windows_over("test", len(kernel), wanted, kernel, stride, padding, dilation, ceil_mode=ceil)


def windows(axes):
    """Yield the index of each window and the elements that it meets, with the number of their place, in order."""
    for window in itertools.product(*[range(axis.out) for axis in axes]):
        met = []
        for number, place in enumerate(itertools.product(*[range(axis.kernel) for axis in axes])):
            at = [w * a.stride - a.before + p * a.dilation for w, p, a in zip(window, place, axes, strict=True)]
            if all(0 <= index < axis.size for index, axis in zip(at, axes, strict=True)):
                met.append((number, tuple(at)))
        yield window, met


@every_float
@every_case
def test_max(case, dtype, rng):
    """The largest element of each window, its place, and the gradient at that place, against loops over windows."""
    axes, shape = axes_of_case(case), CASES[case][0]
    x = rounded(rng.integers(-9, 9, shape), dtype)  # with equals, of which the first is taken
    lead = shape[: -len(axes)]
    values = np.empty((*lead, *[axis.out for axis in axes]))
    which = np.empty(values.shape, int)
    upstream = rounded(rng.standard_normal(values.shape), dtype)
    dx = np.zeros(shape)
    for window, met in windows(axes):
        elements = np.stack([x[..., *at] for _, at in met], -1)
        best = elements.argmax(-1)
        values[..., *window] = elements.max(-1)
        which[..., *window] = np.array([number for number, _ in met])[best]
        for k, (_, at) in enumerate(met):
            dx[..., *at] += np.where(best == k, upstream[..., *window], 0)
    array = on_device(x, dtype).array
    got, number = primitives.max_pool.kernel(array, axes=axes)
    assert number.dtype == primitives.tap_dtype(axes)
    np.testing.assert_array_equal(number.get(), which)
    assert_near(got, values, dtype)
    g = on_device(upstream, dtype).array
    assert_near(primitives.max_pool_grad.kernel(g, number, axes=axes), dx, dtype)
    np.testing.assert_array_equal(primitives.max_pool_select.kernel(array, number, axes=axes).get(), got.get())


@every_float
@pytest.mark.parametrize("case", [case for case in CASES if case != "dilated"])
@pytest.mark.parametrize("divisor", [None, 7], ids=["counted", "given"])
@pytest.mark.parametrize("padded", [False, True], ids=["elements", "padded"])
def test_mean(case, dtype, divisor, padded, rng):
    """The sum of each window over its count, with the padding or without, or over a number, and the gradient."""
    axes, shape = axes_of_case(case), CASES[case][0]
    x = rounded(rng.standard_normal(shape), dtype)
    lead = shape[: -len(axes)]
    out = np.empty((*lead, *[axis.out for axis in axes]))
    upstream = rounded(rng.standard_normal(out.shape), dtype)
    dx = np.zeros(shape)
    for window, met in windows(axes):
        begins = [w * axis.stride - axis.before for w, axis in zip(window, axes, strict=True)]
        ends = [min(b + axis.kernel, axis.size + axis.before) for b, axis in zip(begins, axes, strict=True)]
        area = np.prod([end - begin for begin, end in zip(begins, ends, strict=True)])
        count = divisor or (area if padded else len(met))
        out[..., *window] = sum(x[..., *at] for _, at in met) / count
        for _, at in met:
            dx[..., *at] += upstream[..., *window] / count
    settings = {"axes": axes, "divisor": divisor, "padded": padded}
    assert_near(primitives.avg_pool.kernel(on_device(x, dtype).array, **settings), out, dtype)
    assert_near(primitives.avg_pool_grad.kernel(on_device(upstream, dtype).array, **settings), dx, dtype)


# Sizes and parts that do not divide them, more parts than elements, sequences, one part.
PARTS = {"images": ((7, 5), (3, 4)), "more": ((3, 4), (7, 4)), "sequences": ((11,), (4,)), "one": ((5, 3), (1, 2))}


@every_float
@pytest.mark.parametrize("case", PARTS)
def test_parts(case, dtype, rng):
    """The mean of each part and the gradient, against loops over parts; a NaN stays in its parts."""
    sizes, parts = PARTS[case]
    x, g = rounded(rng.standard_normal((2, 3, *sizes)), dtype), rounded(rng.standard_normal((2, 3, *parts)), dtype)
    x[..., *[size - 1 for size in sizes]] = np.nan
    means, dx = np.empty(g.shape), np.zeros(x.shape)
    for part in itertools.product(*map(range, parts)):
        ranges = [slice(p * n // m, -(-(p + 1) * n // m)) for p, n, m in zip(part, sizes, parts, strict=True)]
        inside = x[..., *ranges].reshape(2, 3, -1)
        means[..., *part] = inside.mean(-1)
        dx[..., *ranges] += g[..., *part].reshape(2, 3, *[1] * len(parts)) / inside.shape[-1]
    assert_near(adaptive._part_means(on_device(x, dtype).array, parts, spread=False), means, dtype)
    assert_near(adaptive._part_means(on_device(g, dtype).array, sizes, spread=True), dx, dtype)


def test_parts_of_long_sequences(rng):
    """The bounds of parts are right where the product of sizes is beyond 32 bits."""
    size, parts = 70_000, 40_000
    x = rng.integers(-9, 10, (1, size)).astype(float)
    number, sums = np.arange(parts), np.concatenate([[0], np.cumsum(x)])
    begin, end = number * size // parts, -(-(number + 1) * size // parts)
    got = adaptive._part_means(on_device(x, "float32").array, (parts,), spread=False)
    assert_near(got, ((sums[end] - sums[begin]) / (end - begin))[None], "float32")


LAYOUTS = {
    "transposed": lambda a: a.swapaxes(0, 1).swapaxes(-1, -2),
    "reversed": lambda a: a[:, ::-1, ::-1, ::2],
    "repeated": lambda a: gpu.cupy().broadcast_to(a[:, :1, :, :1], (4, 3, 8, 5)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, rng):
    """Inputs and upstream gradients are read where they are, whatever their strides: the same bits as of a copy."""
    x = LAYOUTS[layout](on_device(rng.standard_normal((4, 3, 8, 6)), "float32").array)
    axes = axes_of(x.shape[2:], [n // 2 for n in x.shape[2:]], (2, 3), (2, 1), (0, 1), (1, 1))
    mean = {"axes": axes, "divisor": None, "padded": False}
    upstream = x[:, :, : axes[0].out, : axes[1].out]
    copy, upstream_copy = x.copy("C"), upstream.copy("C")
    _, which = primitives.max_pool.kernel(copy, axes=axes)
    for function, array, other in (
        (lambda a: primitives.max_pool.kernel(a, axes=axes)[0], x, copy),
        (lambda a: primitives.max_pool_select.kernel(a, which, axes=axes), x, copy),
        (lambda a: primitives.avg_pool.kernel(a, **mean), x, copy),
        (lambda a: adaptive._part_means(a, (3, 2), spread=False), x, copy),
        (lambda a: primitives.max_pool_grad.kernel(a, which, axes=axes), upstream, upstream_copy),
        (lambda a: primitives.avg_pool_grad.kernel(a, **mean), upstream, upstream_copy),
    ):
        np.testing.assert_array_equal(function(array).get(), function(other).get())


@every_float
def test_nan_and_infinity(dtype):
    """A NaN is the largest, the last one where there are several; minus infinity is larger than padding."""
    nan, inf = np.nan, np.inf
    x = on_device(np.array([[[-inf, -inf, nan, 3, nan, 1]]]), dtype)
    values, indices = functional.max_pool1d(x, 3, stride=1, padding=1, return_indices=True)
    np.testing.assert_array_equal(values.to(lucid.float64).cpu().numpy(), [[[-inf, nan, nan, nan, nan, nan]]])
    np.testing.assert_array_equal(indices.cpu().numpy(), [[[0, 2, 2, 4, 4, 4]]])
    np.testing.assert_array_equal(functional.avg_pool1d(x, 2).to(lucid.float64).cpu().numpy(), [[[-inf, nan, nan]]])


def test_empty():
    """No images: nothing is launched and the shapes are right."""
    x = lucid.tensor(np.zeros((0, 3, 4, 4), np.float32), device="cuda").requires_grad_()
    for pool in (functional.max_pool2d, functional.avg_pool2d):
        out = pool(x, 2)
        assert out.shape == (0, 3, 2, 2)
        out.sum().backward()
    assert x.grad.shape == x.shape


def test_more_places_than_numbers():
    """Windows of more than 65536 places, which no kernel numbers, are left to the array library."""
    x = on_device(np.zeros((1, 1, 70_001)), "float32").array
    assert primitives.max_pool.kernel(x, axes=axes_of((70_001,), (2,), (70_000,), (1,), (0,), (1,))) is NotImplemented
