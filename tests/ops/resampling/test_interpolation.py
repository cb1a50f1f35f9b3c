"""What rows cannot say of interpolation: what is refused, long dimensions, infinities and NaN, integers."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.resampling.interpolation import interpolate
from tests.gradients import numbers
from tests.sample_rows.resampling.interpolation import weights

REFUSED = {
    "mode": (lambda x: interpolate(x, 3, mode="lanczos"), SettingError, "mode of nearest, .*, got 'lanczos'"),
    "dimensions": (lambda x: interpolate(x, 3, mode="linear"), ShapeError, "'linear' takes input of 3 dimensions"),
    "nothing": (lambda x: interpolate(x), SettingError, "either size or scale_factor, got None and None"),
    "both": (lambda x: interpolate(x, 3, 2.0), SettingError, "either size or scale_factor, got 3 and 2.0"),
    "several": (lambda x: interpolate(x, (1, 2, 3)), ShapeError, "size to be a number or 2 of them"),
    "factors": (lambda x: interpolate(x, scale_factor=(1.0,)), ShapeError, "scale_factor to be a number or 2 of them"),
    "zero": (lambda x: interpolate(x, 0), ShapeError, "sizes of at least 1"),
    "small": (lambda x: interpolate(x, scale_factor=0.2), ShapeError, "sizes of at least 1"),
    "negative": (lambda x: interpolate(x, scale_factor=-1.0), SettingError, "scale_factor to be above 0 and finite"),
    "complex": (lambda x: interpolate(x, scale_factor=1j), DtypeError, "scale_factor: expected a real number"),
    "infinite": (lambda x: interpolate(x, scale_factor=(2.0, np.inf)), SettingError, "above 0 and finite"),
    "corners": (lambda x: interpolate(x, 3, align_corners=False), SettingError, "align_corners is for modes linear,"),
    "filter": (
        lambda x: interpolate(x, 3, antialias=True),
        SettingError,
        "antialias is for modes bilinear and bicubic",
    ),
    "computed": (lambda x: interpolate(x, 3, recompute_scale_factor=True), SettingError, "is for a scale_factor"),
    "integers": (lambda x: interpolate(x.to(lucid.int64), 3), DtypeError, "floating-point input, got int64"),
    "bytes": (
        lambda x: interpolate(x.to(lucid.uint8), 3, mode="bilinear"),
        DtypeError,
        "floating-point input, got uint8",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    """What cannot be raises an error that says what was expected, and what came."""
    call, kind, text = REFUSED[case]
    with pytest.raises(kind, match=text):
        call(lucid.ones(1, 1, 4, 4))


def test_bytes():
    """The nearest ones are taken of bytes, too."""
    out = interpolate(lucid.tensor([[[1, 2, 3]]], dtype=lucid.uint8), 6)
    assert out.dtype == lucid.uint8
    np.testing.assert_array_equal(numbers(out), [[[1, 1, 2, 2, 3, 3]]])


LONG = [("nearest", 700, 331), ("linear", 300, 500), ("area", 500, 60), ("area", 5000, 70), ("area", 60, 500)]


@pytest.mark.parametrize(("mode", "size", "out"), LONG)
def test_long(mode, size, out, rng):
    """Values and gradients of many elements are products with the whole matrix of weights."""
    matrix = weights("bilinear" if mode == "linear" else mode, size, out, size / out)
    x = lucid.tensor(rng.standard_normal((2, 3, size)), requires_grad=True)
    got = interpolate(x, out, mode=mode)
    np.testing.assert_allclose(numbers(got), numbers(x) @ matrix.T, rtol=1e-9, atol=1e-11)
    upstream = rng.standard_normal(got.shape)
    got.backward(lucid.tensor(upstream))
    np.testing.assert_allclose(numbers(x.grad), upstream @ matrix, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_tall(mode, antialias, rng):
    """So they are along the other dimensions, where products are of several rows."""
    shape, sizes = (1, 2, 120, 7), (90, 9)
    matrices = [weights(mode, n, out, n / out, antialias=antialias) for n, out in zip(shape[2:], sizes, strict=True)]
    x = lucid.tensor(rng.standard_normal(shape), requires_grad=True)
    got = interpolate(x, sizes, mode=mode, antialias=antialias)
    np.testing.assert_allclose(numbers(got), matrices[0] @ numbers(x) @ matrices[1].T, rtol=1e-9, atol=1e-11)
    upstream = rng.standard_normal(got.shape)
    got.backward(lucid.tensor(upstream))
    np.testing.assert_allclose(numbers(x.grad), matrices[0].T @ upstream @ matrices[1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("mode", ["nearest", "linear", "area"])
def test_what_is_not_finite_stays(mode, value, rng):
    """NaN and infinity reach what is made of them, forward and backward, and nothing else."""
    matrix = weights("bilinear" if mode == "linear" else mode, 5, 8, 5 / 8)
    for back in (False, True):
        size, used = (8, matrix[3] > 0) if back else (5, matrix[:, 2] > 0)
        values = rng.random((1, 1, size))
        values[..., 3 if back else 2] = value
        x = lucid.tensor(np.zeros((1, 1, 5)) if back else values, requires_grad=True)
        out = interpolate(x, 8, mode=mode)
        if back:
            out.backward(lucid.tensor(values))
        got = numbers(x.grad if back else out)[0, 0]
        np.testing.assert_array_equal(np.isfinite(got), ~used)


ALONG = [
    (mode, count, aligned)
    for mode, count in (("nearest", 2), ("nearest", 3), ("bilinear", 2), ("trilinear", 3), ("area", 2), ("area", 3))
    for aligned in (False, True)
    if not aligned or mode.endswith("linear")
]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("mode", "count", "aligned"), ALONG)
def test_what_is_not_finite_stays_along_each_dimension(mode, count, aligned, value, rng):
    """It reaches, forward and backward, what has a weight of it along all dimensions, and nothing else."""
    # factors of which no position is rounded
    sizes, outs = (3, 4, 2)[:count], ((5, 7, 5) if aligned else (6, 8, 4))[:count]
    scales = [(n - 1) / (out - 1) if aligned else n / out for n, out in zip(sizes, outs, strict=True)]
    kind = "bilinear" if mode.endswith("linear") else mode
    used = [weights(kind, *each, aligned=aligned) != 0 for each in zip(sizes, outs, scales, strict=True)]
    settings = {"align_corners": aligned} if mode.endswith("linear") else {}
    for place in np.ndindex(*sizes):
        x = rng.random((1, 1, *sizes))
        x[0, 0, *place] = value
        got = numbers(interpolate(lucid.tensor(x), outs, mode=mode, **settings))[0, 0]
        reached = functools.reduce(np.multiply.outer, [u[:, at] for u, at in zip(used, place, strict=True)])
        np.testing.assert_array_equal(np.isfinite(got), ~reached)
    for place in rng.permutation([*np.ndindex(*outs)])[:12]:
        x, upstream = lucid.zeros(1, 1, *sizes, dtype=lucid.float64, requires_grad=True), rng.random((1, 1, *outs))
        upstream[0, 0, *place] = value
        interpolate(x, outs, mode=mode, **settings).backward(lucid.tensor(upstream))
        reached = functools.reduce(np.multiply.outer, [u[at] for u, at in zip(used, place, strict=True)])
        np.testing.assert_array_equal(np.isfinite(numbers(x.grad)[0, 0]), ~reached)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_corners_of_one_element(count, rng):
    """Aligned by corners, a dimension that shrinks to one element has the first, and gives its gradient to that."""
    mode = ("linear", "bilinear", "trilinear")[count - 1]
    x = lucid.tensor(rng.standard_normal((2, 3, *range(4, 4 + count))), requires_grad=True)
    for ones in itertools.product((False, True), repeat=count):
        sizes = [1 if one else size for one, size in zip(ones, x.shape[2:], strict=True)]
        place = ..., *(slice(0, 1) if one else slice(None) for one in ones)
        out = interpolate(x, sizes, mode=mode, align_corners=True)
        np.testing.assert_allclose(numbers(out), numbers(x)[place], rtol=1e-12)
        upstream, expected = rng.standard_normal(out.shape), np.zeros(x.shape)
        expected[place] = upstream
        (grad,) = lucid.autograd.grad(out, x, lucid.tensor(upstream))
        np.testing.assert_allclose(numbers(grad), expected, rtol=1e-12)


def test_what_weighs_nothing_is_not_looked_at():
    """At an element, its neighbour's NaN does not count, as 0 times NaN would."""
    x = lucid.tensor([[[1.0, 2.0, np.nan, 4.0]]])
    out = interpolate(x, 7, mode="linear", align_corners=True)
    np.testing.assert_array_equal(np.isnan(numbers(out))[0, 0], [False, False, False, True, True, True, False])


def test_positions_are_those_of_float32():
    """Where float32 rounds a position to below an element, the one before it is nearest, as in PyTorch."""
    assert numbers(interpolate(lucid.arange(3.0)[None, None], 123))[0, 0, 41] == np.floor(np.float32(3 / 123) * 41) == 0


def test_a_doubled_size_is_doubled():
    """Nearest pixels of an image of twice the size come twice, whatever factor gave the size, as in PyTorch."""
    x = lucid.arange(10.0).reshape(1, 1, 1, 10)
    out = interpolate(x, scale_factor=(1.9, 2.09))
    np.testing.assert_array_equal(numbers(out)[0, 0, 0], np.repeat(np.arange(10), 2))
    line = interpolate(x[0], scale_factor=2.09)
    np.testing.assert_array_equal(numbers(line)[0, 0], np.floor(np.arange(20) / 2.09))


def test_a_layer_computes_positions_from_sizes(rng):
    """With recompute_scale_factor, the layer's too, positions go by the sizes and not by the factor."""
    x = lucid.tensor(rng.standard_normal((1, 2, 7)))
    layer = lucid.nn.Upsample(scale_factor=1.7, mode="linear", recompute_scale_factor=True)
    np.testing.assert_array_equal(numbers(layer(x)), numbers(interpolate(x, size=11, mode="linear")))
