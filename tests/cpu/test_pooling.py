"""Pooling by loops in C++, beside NumPy's passes: the same bits."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lucid.backends import cpu
from lucid.cpu import pooling
from lucid.ops.layers.windows import Axis
from lucid.ops.pooling import pooling_primitives as primitives
from tests.cpu.images import guarded, laid_out

pytestmark = pytest.mark.cpu("compares the two ways of the CPU")
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def along(rng, *, dilated=True):
    """Return random windows along one dimension."""
    while True:
        size, kernel, stride, dilation = (int(rng.integers(1, most)) for most in (14, 5, 4, 3 if dilated else 2))
        span = dilation * (kernel - 1) + 1
        before = int(rng.integers(0, span // 2 + 1))
        out = (size + 2 * before - span) // stride + 1 + int(rng.integers(0, 2))
        first = max(0, -(-before // dilation)) * dilation - before
        if out >= 1 and (out - 1) * stride < size + before and first < size:
            return Axis(size, out, kernel, stride, before, dilation)


def numbers(rng, shape, dtype, *, ties=True):
    """Return an array with zeros of both signs and a few numbers that are not finite, laid out in some way."""
    x = (rng.integers(-3, 4, shape) if ties else rng.standard_normal(shape)).astype(dtype)
    x[x == 0] *= rng.choice([1, -1], np.count_nonzero(x == 0))
    if x.size:
        x.flat[rng.integers(0, x.size, 2)] = rng.choice(SPECIAL, 2)
    return laid_out(rng, x)


def bits(x):
    """Return the bits of an array; all NaN are one."""
    if x.dtype.kind != "f":
        return x
    return np.where(np.isnan(x), np.array(np.nan, x.dtype), x).view(f"u{x.itemsize}")


def same_bits(compute, compiled, name):
    """Assert that a computation gives the same bits by NumPy and by the compiled function of this name."""
    cpu.compiled = False
    expected = compute()
    cpu.compiled = True
    compiled.clear()
    got = compute()
    assert compiled == [name]
    for one, other in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, expected)], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(bits(one), bits(other))
    return got


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pooling_gives_the_bits_of_numpy(rng, dtype, seed, compiled):
    """Any windows, layouts, ties, signs of zeros and NaN: values, positions and both gradients are those of NumPy."""
    rng = np.random.default_rng([seed, *rng.integers(0, 2**31, 2)])
    lead = tuple(int(n) for n in rng.integers(0 if seed == 0 else 1, 4, rng.integers(0, 3)))
    axes = tuple(along(rng) for _ in range(rng.integers(1, 3)))
    x = numbers(rng, (*lead, *[axis.size for axis in axes]), dtype)
    values, which = same_bits(lambda: primitives.max_pool.cpu(x, axes=axes), compiled, "max_pool")
    g = numbers(rng, values.shape, dtype, ties=False)
    same_bits(lambda: primitives.max_pool_grad.cpu(g, which, axes=axes), compiled, "max_pool_grad")
    same_bits(lambda: primitives.max_pool_select.cpu(x, which, axes=axes), compiled, "max_pool_select")


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_give_the_bits_of_numpy(rng, dtype, seed, compiled):
    """Sums of windows are taken in NumPy's order, and what is spread is added in it."""
    rng = np.random.default_rng([seed, *rng.integers(0, 2**31, 2)])
    lead = tuple(int(n) for n in rng.integers(0 if seed == 0 else 1, 4, rng.integers(0, 3)))
    axes = tuple(along(rng, dilated=False) for _ in range(rng.integers(1, 3)))
    if seed % 4 == 0:
        # more positions than are summed at once
        axes = (axes[0]._replace(size=20, out=4, kernel=7 + seed % 3, stride=3, before=2),) * 2
    settings = {"axes": axes, "divisor": [None, 3.0][seed % 2], "padded": bool(seed & 2)}
    x = laid_out(rng, rng.standard_normal((*lead, *[axis.size for axis in axes])).astype(dtype))
    y = same_bits(lambda: primitives.avg_pool.cpu(x, **settings), compiled, "sum_pool")
    g = numbers(rng, y.shape, dtype, ties=False)
    same_bits(lambda: primitives.avg_pool_grad.cpu(g, **settings), compiled, "spread")


def test_positions_in_any_layout(rng, compiled):
    """Positions that are not dense name the same elements."""
    axes = (Axis(9, 4, 3, 2, 0, 1), Axis(8, 4, 2, 2, 0, 1))
    x, g = rng.standard_normal((2, 3, 9, 8), np.float32), rng.standard_normal((2, 3, 4, 4), np.float32)
    _, which = primitives.max_pool.cpu(x, axes=axes)
    assert compiled == ["max_pool"]
    for other in (np.asfortranarray(which), np.repeat(which, 2, -1)[..., ::2], which[..., ::-1].copy()[..., ::-1]):
        for compute, values in ((primitives.max_pool_grad.cpu, g), (primitives.max_pool_select.cpu, x)):
            expected = compute(values, which, axes=axes)
            np.testing.assert_array_equal(compute(values, other, axes=axes), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_written_outside_of_results(rng, dtype, compiled, monkeypatch):
    """What lies before and behind each result stays as it is."""
    made = []
    monkeypatch.setattr(pooling, "np", SimpleNamespace(empty=guarded(made), array=np.array, int64=np.int64))
    for _ in range(30):
        axes = along(rng), along(rng)
        x = numbers(rng, (2, 3, *[axis.size for axis in axes]), dtype)
        values, which = primitives.max_pool.cpu(x, axes=axes)
        primitives.max_pool_grad.cpu(values, which, axes=axes)
        primitives.max_pool_select.cpu(x, which, axes=axes)
        pooling.sum_pool(x, axes, 32)
        pooling.spread(values, axes)
    assert len(made) == len(compiled) + compiled.count("max_pool") == 180
    assert all(guard.untouched() for guard in made)


@pytest.mark.parametrize("far", [{"dilation": 10**9, "before": 5 * 10**8, "kernel": 2}, {"stride": 10**9}])
def test_windows_in_much_padding_are_numpys(far, compiled):
    """Windows that span far more than there is are not copied with their padding."""
    axis = Axis(3, 1, 1, 1, 0, 1)._replace(**far)
    axis = axis._replace(out=2) if "stride" in far else axis
    assert pooling.max_pool(np.ones((1, 3), np.float32), (axis,), np.dtype(np.uint8)) is None
    assert compiled == []


@pytest.mark.parametrize("dtype", [">f4", np.float16, np.int32])
def test_other_dtypes_are_numpys(dtype, compiled):
    """Integers, half types and foreign orders of bytes have no function."""
    x = np.arange(16, dtype=dtype).reshape(4, 4)
    values, which = primitives.max_pool.cpu(x, axes=(Axis(4, 2, 2, 2, 0, 1),) * 2)
    np.testing.assert_array_equal(values, [[5, 7], [13, 15]])
    np.testing.assert_array_equal(which, [[3, 3], [3, 3]])
    assert compiled == []
