"""Pooling: errors, ties, NaN."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cpu
from lucid.errors import DtypeError, ShapeError
from lucid.nn import functional as F
from lucid.ops.layers import windows
from lucid.ops.layers.windows import axes_of
from lucid.ops.pooling import pooling_primitives
from lucid.ops.pooling.adaptive import adaptive_avg_pool2d
from lucid.ops.pooling.pooling import avg_pool2d, max_pool1d, max_pool2d
from lucid.ops.pooling.pooling_primitives import max_pool, max_pool_grad, max_pool_select
from tests.gradients import numbers


def ones(*shape, dtype=None):
    return lucid.tensor(np.ones(shape, np.float32), dtype=dtype)


WRONG = {
    "dimensions": (
        lambda: max_pool2d(ones(4, 4), 2),
        r"max_pool2d: expected input of 4 dimensions .*got shape \(4, 4\)",
    ),
    "padding": (lambda: max_pool2d(ones(1, 1, 4, 4), 3, padding=2), "padding of at most half the window"),
    "window": (lambda: max_pool2d(ones(1, 1, 5, 5), 7), r"spans \(7, 7\) elements and fits nowhere"),
    "kernel": (lambda: max_pool1d(ones(4, 4), 0), "kernel_size to be .* at least 1, got 0"),
    "divisor": (lambda: avg_pool2d(ones(1, 1, 5, 5), 2, divisor_override=0), "divisor_override"),
    "parts": (lambda: adaptive_avg_pool2d(ones(1, 1, 5, 5), (1, 2, 3)), "output_size to be .* tuple of 2"),
    "unpooled size": (
        lambda: F.max_unpool1d(ones(1, 1, 2), lucid.zeros(1, 1, 2, dtype=lucid.int64), 2, output_size=(6,)),
        r"less than the stride \(2,\) from \(4,\)",
    ),
    "indices": (
        lambda: F.max_unpool1d(ones(1, 1, 2), lucid.zeros(1, 1, 3, dtype=lucid.int64), 2),
        "indices of the shape of input",
    ),
    "too many windows": (lambda: F.fractional_max_pool2d(ones(1, 1, 5, 5), 3, 4), "begin at .* different elements"),
    "ratio": (lambda: F.fractional_max_pool2d(ones(1, 1, 5, 5), 3, output_ratio=1.0), "between 0 and 1"),
    "samples": (
        lambda: F.fractional_max_pool2d(ones(1, 1, 5, 5), 3, 2, _random_samples=ones(1, 1, 3)),
        "_random_samples of shape",
    ),
    "empty": (lambda: adaptive_avg_pool2d(ones(1, 1, 0, 5), 2), "not empty"),
}


@pytest.mark.parametrize("case", WRONG)
def test_shapes_that_do_not_fit(case):
    """A shape error names the op, what was expected and what was got."""
    call, message = WRONG[case]
    with pytest.raises(ShapeError, match=message):
        call()


def test_dtypes():
    """Means need floating point; the largest element exists for integers too, not for bools."""
    with pytest.raises(DtypeError, match="floating-point input"):
        avg_pool2d(ones(1, 1, 4, 4, dtype=lucid.int64), 2)
    with pytest.raises(DtypeError, match="not defined for bool"):
        max_pool2d(ones(1, 1, 4, 4, dtype=lucid.bool), 2)
    assert max_pool2d(ones(1, 1, 4, 4, dtype=lucid.int64), 2).dtype == lucid.int64


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float32"])
def test_padding_is_below_every_number(dtype):
    """The largest element beside the padding is one of the input, also where all are the lowest of their dtype."""
    info = np.finfo(dtype) if dtype == "float32" else np.iinfo(dtype)
    x = np.array([[[[info.min, info.min + 1, info.max], [info.min] * 3, [info.min] * 3]]], dtype)
    values, places = max_pool2d(lucid.tensor(x), 2, 2, 1, return_indices=True)
    assert numbers(values)[0, 0].tolist() == [[x[0, 0, 0, 0], x.max()], [x.min(), x.min()]]
    assert numbers(places)[0, 0].tolist() == [[0, 2], [3, 4]]


def test_ties_go_to_the_first(rng):
    """Of equal elements the first gets the whole gradient."""
    x = ones(1, 1, 2, 4).requires_grad_()
    upstream = rng.standard_normal((1, 1, 1, 2)).astype(np.float32)
    max_pool2d(x, 2).backward(lucid.tensor(upstream))
    expected = np.zeros((1, 1, 2, 4), np.float32)
    expected[..., 0, ::2] = upstream
    np.testing.assert_array_equal(x.grad.numpy(force=True), expected)


POSITIONS = {
    "volumes": lambda x: F.max_pool3d(x, (2, 3, 2), (1, 2, 3), (1, 1, 0), return_indices=True),
    "dilated volumes": lambda x: F.max_pool3d(x, 2, 1, dilation=(2, 1, 3), return_indices=True),
    "dilated images": lambda x: F.max_pool2d(x[0], (2, 3), (1, 2), dilation=(3, 2), return_indices=True),
    "parts": lambda x: F.adaptive_max_pool3d(x, (3, 4, 2), return_indices=True),
    "at random": lambda x: F.fractional_max_pool3d(x, 2, output_ratio=0.6, return_indices=True),
    "parts of images": lambda x: F.adaptive_max_pool2d(x[0], (4, 5), return_indices=True),
    "images at random": lambda x: F.fractional_max_pool2d(x[0], (3, 2), (4, 5), return_indices=True),
}


@pytest.mark.parametrize("case", POSITIONS)
def test_positions_name_the_largest(case, rng):
    """The element at each position is the largest that is given, and unpooling puts it there."""
    x = lucid.tensor(rng.permutation(2 * 3 * 5 * 6 * 7).reshape(2, 3, 5, 6, 7).astype(np.float32))
    values, where = POSITIONS[case](x)
    source = x[0] if "images" in case else x
    lead = source.ndim - (2 if "images" in case else 3)
    found = source.flatten(lead).gather(-1, where.flatten(lead)).reshape(values.shape)
    np.testing.assert_array_equal(found.numpy(force=True), values.numpy(force=True))


def test_windows_at_random_differ(rng):
    """Each plane has windows of its own, which are drawn anew by each call."""
    x = lucid.tensor(rng.standard_normal((1, 1, 40, 40)).astype(np.float32)).expand(1, 8, 40, 40)
    first, second = (F.fractional_max_pool2d(x, 2, output_ratio=0.7).numpy(force=True) for _ in range(2))
    assert (first != second).any()
    assert (first[0, 0] != first[0, 1]).any()


def test_norms_of_nothing_have_no_gradient():
    """Where the norm of a window is 0, so is the gradient, not NaN."""
    x = lucid.tensor(np.array([[0.0, 0.0, 3.0, 4.0]], np.float32)).requires_grad_()
    F.lp_pool1d(x, 2, 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(force=True), [[0, 0, 0.6, 0.8]], rtol=1e-6)


def test_infinite_gradients_stay_where_they_belong():
    """An infinite gradient reaches the largest element only, and makes no NaN beside it."""
    x = lucid.tensor(np.array([[1.0, 3.0, 2.0, 0.0]], np.float32)).requires_grad_()
    max_pool1d(x, 2).backward(lucid.tensor(np.array([[np.inf, -np.inf]], np.float32)))
    np.testing.assert_array_equal(x.grad.numpy(force=True), [[0, np.inf, -np.inf, 0]])


def of_parts(size, parts):
    """Return the elements of each of `parts` parts of `size` elements, over all dimensions."""
    return {
        index: tuple([slice(i * n // p, -(-(i + 1) * n // p)) for i, n, p in zip(index, size, parts, strict=True)])
        for index in np.ndindex(*parts)
    }


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    ("size", "parts"),
    [
        ((7,), (3,)),
        ((6,), (3,)),
        ((2,), (5,)),
        ((200,), (3,)),
        ((7, 5), (3, 4)),
        ((6, 5), (3, 4)),
        ((5, 4, 3), (3, 4, 2)),
    ],
)
def test_means_of_parts_keep_apart_what_is_not_finite(size, parts, number, rng):
    """One element that is not finite is in the means of the parts that hold it alone, and so with the gradients."""
    pooled = getattr(F, f"adaptive_avg_pool{len(size)}d")
    array, upstream = rng.standard_normal((1, 1, *size)), rng.standard_normal((1, 1, *parts))
    array[(0, 0, *[n // 2 for n in size])] = number
    upstream[(0, 0, *[n // 2 for n in parts])] = number
    x = lucid.tensor(array, requires_grad=True)
    out = pooled(x, parts)
    out.backward(lucid.tensor(upstream))
    means, shares = np.zeros(parts), np.zeros(size)
    for index, elements in of_parts(size, parts).items():
        means[index] = array[0, 0][elements].mean()
        shares[elements] += upstream[0, 0][index] / array[0, 0][elements].size
    np.testing.assert_allclose(numbers(out)[0, 0], means, rtol=1e-12)
    np.testing.assert_allclose(numbers(x.grad)[0, 0], shares, rtol=1e-12, atol=1e-14)


HALVES = {
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 3, 2), lambda x: parts(x).mean((-3, -2, -1))),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, (1, 1, 1)), lambda x: x.mean((2, 3, 4), keepdims=True)),
    "lp_pool3d": (lambda x: F.lp_pool3d(x, 2, 3, 2), lambda x: (parts(x) ** 2).sum((-3, -2, -1)) ** 0.5),
}


def parts(x):
    """Return windows of three elements along the last three dimensions, two apart."""
    return np.lib.stride_tricks.sliding_window_view(x, (3, 3, 3), (2, 3, 4))[:, :, ::2, ::2, ::2]


@pytest.mark.parametrize("name", HALVES)
def test_volumes_of_halves_are_rounded_once(name, rng):
    """What planes give is not rounded on the way: of half types the result is the exact one's nearest."""
    function, reference = HALVES[name]
    x = rng.uniform(0.5, 2, (4, 5, 7, 5, 9)).astype(np.float16)
    out, exact = numbers(function(lucid.tensor(x))), reference(x.astype(np.float64))
    assert (abs(out - exact) <= 0.501 * np.spacing(exact.astype(np.float16))).all()


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_layers_go_back_to_the_size_that_is_asked_for(axes, rng):
    """Of several sizes that give as many windows a layer makes the one that its call names."""
    x = lucid.tensor(rng.standard_normal((2, 3, *(7, 5, 9)[:axes])))
    values, indices = getattr(F, f"max_pool{axes}d")(x, 2, return_indices=True)
    layer = getattr(lucid.nn, f"MaxUnpool{axes}d")(2)
    expected = np.where(np.isin(numbers(x), numbers(values)), numbers(x), 0)
    np.testing.assert_array_equal(numbers(layer(values, indices, x.shape)), expected)


@pytest.mark.gpu
def test_windows_are_drawn_where_the_input_is():
    """On a device that is not the default one the random numbers lie on it, too."""
    assert F.fractional_max_pool2d(lucid.ones(1, 2, 5, 5, device="cuda"), 2, 3).is_cuda


@pytest.mark.parametrize("axes", [2, 3])
def test_of_more_random_samples_than_images_the_first_are_taken(axes, rng):
    """Samples for a whole batch also serve a part of it: those of images that are not there are left out."""
    pool = getattr(F, f"fractional_max_pool{axes}d")
    x = lucid.tensor(rng.standard_normal((2, 3, *[11] * axes)))
    samples = lucid.tensor(rng.uniform(0, 1, (5, 3, axes)))
    expected = numbers(pool(x, 2, 5, _random_samples=samples[:2]))
    np.testing.assert_array_equal(numbers(pool(x, 2, 5, _random_samples=samples)), expected)
    assert (numbers(pool(x, 2, 5, _random_samples=samples[3:])) != expected).any()


WINDOWS = {
    "apart": ((6, 7), (3, 2), (2, 3), (2, 3), (0, 0), (1, 1)),
    "overlapping": ((7, 6), (4, 4), (3, 2), (2, 1), (1, 0), (1, 2)),
    "between each other": ((9, 5), (3, 4), (3, 2), (3, 1), (1, 0), (2, 1)),
    "dilated, with common ends": ((9, 4), (4, 2), (2, 2), (2, 2), (0, 0), (2, 1)),
    "without an element": ((1, 9), (1, 3), (2, 3), (1, 3), (1, 1), (2, 1)),
    "more positions than a byte numbers": ((18, 17), (2, 1), (17, 17), (1, 1), (0, 0), (1, 1)),
    "many positions": ((12, 11), (3, 2), (9, 9), (1, 1), (0, 0), (1, 1)),
}


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("at_once", [1, 100, 1 << 18])
@pytest.mark.parametrize("case", WINDOWS)
def test_each_window_by_itself(case, at_once, dtype, rng, monkeypatch):
    """Largest elements, their positions, gradients and what is selected are those of each window by itself."""
    monkeypatch.setattr(pooling_primitives, "POOLED_AT_ONCE", at_once)
    size, out, kernel, stride, before, dilation = WINDOWS[case]
    axes = axes_of(size, out, kernel, stride, before, dilation)
    # few different numbers: many are equal
    x = rng.integers(-2, 3, (2, 3, *size)).astype(dtype)
    g, other = rng.integers(1, 9, (2, 3, *out)).astype(dtype), rng.integers(0, 99, x.shape).astype(dtype)
    values, which = max_pool.cpu(x, axes=axes)
    dx, selected = max_pool_grad.cpu(g, which, axes=axes), max_pool_select.cpu(other, which, axes=axes)
    expected = np.zeros_like(x)
    for row, column in np.ndindex(*out):
        begin = [w * s - b for w, s, b in zip((row, column), stride, before, strict=True)]
        places = [
            [(k, begin[d] + k * dilation[d]) for k in range(kernel[d]) if 0 <= begin[d] + k * dilation[d] < size[d]]
            for d in range(2)
        ]
        inside = [(i * kernel[1] + j, (y, z)) for i, y in places[0] for j, z in places[1]]
        for plane in np.ndindex(2, 3):
            at = (*plane, row, column)
            if not inside:
                assert (selected[at], values[at]) == (0, pooling_primitives.lowest(x.dtype))
                continue
            number, best = max(inside, key=lambda each: (x[(*plane, *each[1])], -each[0]))
            assert values[at] == x[(*plane, *best)]
            assert which[at] == number
            assert selected[at] == other[(*plane, *best)]
            expected[(*plane, *best)] += g[at]
    np.testing.assert_array_equal(dx, expected)


@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_positions_of_the_lowest(at_once, monkeypatch):
    """Where all elements are -infinity the first that is not in the padding is the largest; NaN is larger than all."""
    monkeypatch.setattr(pooling_primitives, "POOLED_AT_ONCE", at_once)
    axes = axes_of((3, 3), (2, 2), (3, 3), (2, 2), (1, 1), (1, 1))
    x = np.full((1, 1, 3, 3), -np.inf)
    values, which = max_pool.cpu(x, axes=axes)
    assert np.all(values == -np.inf)
    assert which[0, 0].tolist() == [[4, 3], [1, 0]]
    x[0, 0, 1, 1] = np.nan
    values, which = max_pool.cpu(x, axes=axes)
    assert np.all(np.isnan(values))
    assert which[0, 0].tolist() == [[8, 6], [2, 0]]


@pytest.mark.parametrize("count", [1, 4])
def test_memory_of_candidates(count, monkeypatch):
    """No more copies of positions are compared at a time than the limit, or one."""
    taken = []
    monkeypatch.setattr(cpu, "compiled", False)
    monkeypatch.setattr(pooling_primitives, "POOLED_AT_ONCE", 64)
    take = pooling_primitives._take_larger
    monkeypatch.setattr(
        pooling_primitives,
        "_take_larger",
        lambda xp, x, values, which, taps, **more: (
            taken.append(len(taps) * values.size),
            take(xp, x, values, which, taps, **more),
        ),
    )
    for size in (4, 12):
        axes = axes_of((size, size), (size - 2,) * 2, (3, 3), (1, 1), (0, 0), (1, 1))
        max_pool.cpu(np.zeros((count, 2, size, size)), axes=axes)
        assert max(taken) <= max(64, 2 * (size - 2) ** 2)


def test_the_gradient_of_an_infinity_stays_where_it_is():
    """An infinite or NaN gradient reaches the largest element of its window alone."""
    axes = axes_of((4, 4), (2, 2), (2, 2), (2, 2), (0, 0), (1, 1))
    _, which = max_pool.cpu(np.arange(16.0).reshape(1, 1, 4, 4), axes=axes)
    dx = max_pool_grad.cpu(np.array([[[[np.inf, 1.0], [np.nan, 2.0]]]]), which, axes=axes)
    np.testing.assert_array_equal(dx[0, 0, 1::2, 1::2], [[np.inf, 1.0], [np.nan, 2.0]])
    assert np.count_nonzero(dx) == 4


def test_positions_of_large_windows_are_not_remembered():
    """What is remembered of a window is small: of one with many positions nothing is."""
    few = axes_of((8, 8), (1, 1), (8, 8), (1, 1), (0, 0), (1, 1))
    many = axes_of((13, 5), (1, 1), (13, 5), (1, 1), (0, 0), (1, 1))
    assert windows.taps(few) is windows.taps(few)
    assert windows.taps(many) is not windows.taps(many)
    assert len([*windows.taps(many)]) == 65
