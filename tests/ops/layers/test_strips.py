"""Strips of images: convolutions and their gradients against sums over the positions of a window, and their memory."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lucid.ops.layers import strips
from lucid.ops.layers.convolution_primitives import convolution, convolution_input_grad, convolution_weight_grad
from lucid.ops.layers.windows import Axis, axes_of

CASES = {
    "images": ((3, 4, 7, 9), (6, 4, 3, 2), {}),
    "stride and dilation": ((3, 4, 11, 9), (5, 4, 3, 2), {"stride": (2, 3), "dilation": (3, 2), "before": (2, 1)}),
    "rows that no position shares": ((2, 3, 13, 6), (2, 3, 2, 3), {"dilation": (9, 1), "before": (1, 1)}),
    "more output channels": ((3, 2, 7, 8), (20, 2, 3, 3), {"before": (1, 1)}),
    "fewer output channels": ((3, 8, 7, 8), (4, 8, 3, 3), {"before": (1, 0)}),
    "groups": ((3, 6, 7, 8), (9, 2, 3, 3), {"groups": 3, "before": (0, 2)}),
    "depthwise": ((3, 5, 7, 8), (5, 1, 3, 3), {"groups": 5, "before": (1, 1)}),
    "depthwise, stride": ((3, 5, 7, 8), (10, 1, 3, 3), {"groups": 5, "stride": (2, 2)}),
    "sequences": ((3, 4, 20), (3, 4, 5), {"before": (2,), "stride": (2,)}),
    "volumes": ((2, 3, 5, 4, 6), (3, 3, 3, 2, 3), {"before": (1, 0, 1), "stride": (1, 2, 1)}),
    "many small images": ((70, 3, 4, 4), (2, 3, 3, 3), {"before": (1, 1)}),
    "a window larger than the image": ((2, 3, 2, 1), (2, 3, 5, 4), {"before": (3, 2)}),
    "no output channel": ((2, 3, 7, 5), (0, 3, 3, 3), {"stride": (2, 2)}),
    "no input channel": ((2, 0, 7, 5), (4, 0, 3, 3), {"stride": (2, 2)}),
    "no image": ((0, 3, 5, 5), (2, 3, 3, 3), {}),
    "no position": ((2, 3, 5), (2, 3, 0), {}),
}


class Reference:
    """A convolution as a sum over the positions of a window, of windows that have an element there."""

    def __init__(self, case, rng):
        shape, weight, settings = CASES[case]
        count = len(shape) - 2
        self.settings = {
            "stride": (1,) * count,
            "before": (0,) * count,
            "dilation": (1,) * count,
            "groups": 1,
        } | settings
        stride, before, dilation = [self.settings[name] for name in ("stride", "before", "dilation")]
        sizes = zip(shape[2:], weight[2:], stride, before, dilation, strict=True)
        # one element more behind the last than before the first
        self.out = tuple((n + 2 * b + 1 - d * (k - 1) - 1) // s + 1 for n, k, s, b, d in sizes)
        self.x, self.weight, self.bias, self.g = [
            rng.standard_normal(each) for each in (shape, weight, weight[0], (shape[0], weight[0], *self.out))
        ]

    def pairs(self):
        """Yield each element of a kernel, by its index, with slices of windows and of the elements that they have."""
        stride, before, dilation, groups = self.settings.values()
        made, channels = len(self.weight) // groups, self.weight.shape[1]
        for o, c, *position in np.ndindex(self.weight.shape):
            windows, elements = [], []
            for k, out in enumerate(self.out):
                places = [(w, w * stride[k] + position[k] * dilation[k] - before[k]) for w in range(out)]
                inside = [(w, e) for w, e in places if 0 <= e < self.x.shape[2 + k]]
                windows.append([w for w, _ in inside])
                elements.append([e for _, e in inside])
            channel = o // made * channels + c
            images = range(len(self.x))
            yield (o, c, *position), np.ix_(images, [o], *windows), np.ix_(images, [channel], *elements)

    def values(self):
        """Return the result and the gradients of input and weight."""
        y = np.zeros((len(self.x), len(self.weight), *self.out)) + self.bias.reshape(-1, *[1] * len(self.out))
        dx, dw = np.zeros(self.x.shape), np.zeros(self.weight.shape)
        for at, windows, elements in self.pairs():
            y[windows] += self.weight[at] * self.x[elements]
            dx[elements] += self.weight[at] * self.g[windows]
            dw[at] = (self.x[elements] * self.g[windows]).sum()
        return y, dx, dw

    def computed(self, dtype=np.float64):
        """Return the same by lucid."""
        x, weight, bias, g = [a.astype(dtype) for a in (self.x, self.weight, self.bias, self.g)]
        return (
            convolution.cpu(x, weight, bias, out=self.out, **self.settings),
            convolution_input_grad.cpu(g, weight, size=x.shape[2:], **self.settings),
            convolution_weight_grad.cpu(g, x, kernel=weight.shape[2:], **self.settings),
        )


@pytest.mark.parametrize("case", CASES)
def test_values(case, rng):
    """Result and gradients are the sums over the positions of a window."""
    reference = Reference(case, rng)
    for got, expected in zip(reference.computed(), reference.values(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_columns(case, rng, monkeypatch):
    """They are the same, whether or not kernels are worth to be rearranged, and images are multiplied together."""
    reference = Reference(case, rng)
    expected = reference.values()
    for windows, least in itertools.product((0, 10**9), (1, 40)):
        monkeypatch.setattr(strips, "WINDOWS_FOR_A_CHANNEL", windows)
        monkeypatch.setattr(strips, "WINDOWS", least)
        for got, wanted in zip(reference.computed(), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("operand", ["x", "weight", "g"])
@pytest.mark.parametrize("case", ["images", "fewer output channels", "depthwise", "sequences", "volumes"])
def test_what_is_not_finite(case, operand, value, rng):
    """An infinity or a NaN reaches in gradients what it is multiplied with, and nothing beside it."""
    reference = Reference(case, rng)
    array = getattr(reference, operand)
    array.reshape(-1)[rng.integers(array.size)] = value
    with np.errstate(invalid="ignore"):
        got, expected = reference.computed(), reference.values()
    for one, other in zip(got[1:], expected[1:], strict=True):
        # of the weight's gradient padding is a factor
        if one is got[1] or operand != "g":
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.complex128])
def test_dtypes(dtype, rng):
    """The results have the dtype of the operands; those of halves are rounded once."""
    reference = Reference("images", rng)
    for name in ("x", "weight", "bias", "g"):
        setattr(reference, name, np.rint(4 * getattr(reference, name)).clip(-5, 5))
    for got, expected in zip(reference.computed(dtype), reference.values(), strict=True):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected.astype(dtype))


@pytest.mark.parametrize("kernel", [1, 2, 5])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 3), (3, 2), (1, 10**12)])
def test_strips_are_no_larger_than_columns(kernel, stride, dilation):
    """Positions along the first dimension share a strip, unless that has more rows than a strip for each of them."""
    made = strips.strips_of((Axis(9, 8, kernel, stride, 1, dilation),))
    assert made.rows * len(made.first) <= 8 * kernel
    if dilation < 10**12 and kernel > stride:
        assert made.rows * len(made.first) < 8 * kernel
    # each position has the rows of its own elements
    for position, (strip, row) in enumerate(made.places):
        first = made.first[strip]
        assert row * stride - first.before == position * dilation - 1
        assert row + 8 <= made.rows


@pytest.mark.parametrize("count", [1, 7, 64, 65])
@pytest.mark.parametrize("size", [2, 5, 40])
def test_images_of_a_product(count, size, monkeypatch):
    """Blocks cover the batch in order; products have 256 windows if they can, and blocks the memory they may have."""
    monkeypatch.setattr(strips, "CPU_BLOCK", 1 << 16)
    made = strips.strips_of(axes_of((size,) * 2, (size,) * 2, (3, 3), (1, 1), (1, 1), (1, 1)))
    blocks = list(made.blocks(np, count, 4, 4))
    images = [k for block in blocks for k in range(block.images.start, block.images.stop)]
    assert images == list(range(count))
    for block in blocks:
        assert block.images.stop - block.images.start == block.products * block.joined
    for block in blocks[:-1]:
        assert block.joined == min(count, math.ceil(256 / size**2))
        assert block.products == 1 or 4 * math.prod(made.shape(4, block)) <= 1 << 16


@pytest.mark.parametrize(
    ("weight", "groups", "count", "expected"),
    [
        ((4, 3, 3, 3), 1, 8, False),
        ((4, 3, 1, 9), 1, 8, False),  # one row: strips are columns
        ((64, 3, 3, 3), 1, 64, True),  # more to add than to copy
        ((64, 3, 3, 3), 8, 64, False),
        ((40, 40, 3, 3), 1, 3, True),  # three images are too few for the kernels
        ((40, 40, 3, 3), 1, 4, False),
    ],
)
def test_when_columns_are_made(weight, groups, count, expected):
    """Columns are made of few channels for many, and of few windows for large kernels."""
    axes = axes_of((8, 8), (8, 8), weight[2:], (1, 1), (1, 1), (1, 1))
    assert strips.needs_columns(axes, count, weight, groups) is expected
