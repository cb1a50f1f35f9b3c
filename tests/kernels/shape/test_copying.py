"""Joining, padding, windows in zeros and masked writes on a CUDA device: against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.cuda.launch import copying
from tests.kernels.near import FLOATS, assert_near, assert_same, device, on_device, rounded

pytestmark = pytest.mark.gpu
ANY = ("bool", "int8", "int16", "int32", "int64", "complex64", "complex128", *FLOATS)
every_dtype = pytest.mark.parametrize("dtype", ANY)


def drawn(rng, shape, dtype):
    """Return numbers that the dtype holds."""
    return rng.integers(-100, 100, shape).astype(getattr(lucid, dtype).numpy)


@every_dtype
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("lengths", [(3,), (1, 0, 4), (16, 32), (2,) * 19])
def test_cat(lengths, dim, dtype, rng):
    """Any number of arrays is joined along any dimension, also more than one launch takes."""
    shapes = [(*(2, 3, 8)[:dim], length, *(2, 3, 8)[dim + 1 :]) for length in lengths]
    arrays = [drawn(rng, shape, dtype) for shape in shapes]
    assert_same(copying.cat(*map(device, arrays), dim=dim), np.concatenate(arrays, dim))


@every_dtype
def test_stack(dtype, rng):
    """Arrays are joined along a new dimension, also those that lie otherwise in memory."""
    arrays = [drawn(rng, (3, 5), dtype) for _ in range(4)]
    for dim in range(3):
        assert_same(copying.stack(*[device(a.T.copy()).T for a in arrays], dim=dim), np.stack(arrays, dim))


def test_joining_without_some(rng):
    """The gradient of parts that nobody used is zero."""
    parts = [drawn(rng, (3, 2), "float32"), None, drawn(rng, (3, 4), "float32")]
    raw = [None if part is None else device(part) for part in parts]
    settings = {"shape": (3, 9), "dtype": np.dtype(np.float32), "sizes": (2, 3, 4), "dim": 1}
    assert_same(copying.split_grad(*raw, **settings), np.concatenate([parts[0], np.zeros((3, 3), "f"), parts[2]], 1))
    rows = [None, device(parts[0]), None]
    expected = np.zeros((3, 3, 2), np.float32)
    expected[:, 1] = parts[0]
    assert_same(copying.unbind_grad(*rows, shape=(3, 3, 2), dtype=np.dtype(np.float32), dim=1), expected)


@every_dtype
@pytest.mark.parametrize("repeats", [(2, 3), (1, 1), (2, 1, 3), (0, 2)])
def test_repeat(repeats, dtype, rng):
    """Copies come side by side, and never share memory with what was repeated."""
    x = drawn(rng, (2, 3), dtype)
    raw = device(x)
    got = copying.repeat(raw, repeats=repeats)
    assert_same(got, np.tile(x, repeats))
    assert got.data.ptr != raw.data.ptr or not got.size


@every_dtype
@pytest.mark.parametrize("pads", [((1, 2), (0, 3)), ((0, 0), (16, 32)), ((2, 0), (0, 0)), ((0, 0), (0, 0))])
@pytest.mark.parametrize("columns", [5, 64])
def test_pad(columns, pads, dtype, rng):
    """The array lies inside of what it is padded to, the value around it."""
    x = drawn(rng, (3, columns), dtype)
    for value in (0, 1):
        expected = np.full([a + n + b for n, (a, b) in zip(x.shape, pads, strict=True)], value, x.dtype)
        expected[pads[0][0] : pads[0][0] + 3, pads[1][0] : pads[1][0] + columns] = x
        assert_same(copying.pad(device(x), pads=pads, value=value), expected)
        assert_same(copying.pad(device(x.T.copy()).T, pads=pads, value=value), expected)
        assert_same(copying.pad(device(x[::-1].copy())[::-1], pads=pads, value=value), expected)


@pytest.mark.parametrize("value", [2.5, -np.inf, np.nan])
def test_padding_values(value, rng):
    """Any number surrounds the array, NaN and infinity too."""
    got = copying.pad(device(rng.standard_normal((2, 2)).astype("f")), pads=((1, 1), (1, 1)), value=value).get()
    np.testing.assert_array_equal(got[0], np.float32(value))


INDICES = {
    "slice": (slice(1, 4), ...),
    "step": (slice(0, 5, 2), slice(1, None, 3), ...),
    "int": (2, ...),
    "last": (..., 7),
    "new": (None, slice(2, 3), None, ..., slice(0, 8, 4)),
    "all": (...,),
    "columns": (..., slice(4, 8)),
}


@every_dtype
@pytest.mark.parametrize("name", INDICES)
def test_getitem_grad(name, dtype, rng):
    """The gradient of a view lies in zeros where the view was taken."""
    shape, index = (5, 4, 8), INDICES[name]
    expected = np.zeros(shape, getattr(lucid, dtype).numpy)
    grad = drawn(rng, expected[index].shape, dtype)
    expected[index] = grad
    assert_same(copying.getitem_grad(device(grad), shape=shape, index=index), expected)
    turned = np.ascontiguousarray(grad[..., ::-1])
    assert_same(copying.getitem_grad(device(turned)[..., ::-1], shape=shape, index=index), expected)


@every_dtype
@pytest.mark.parametrize("moves", [((2,), (0,)), ((-1, 9), (1, 2)), ((3, 3, -2), (0, 0, 2))])
def test_roll(moves, dtype, rng):
    """Elements that leave at one end come in at the other, whatever the layout."""
    x = drawn(rng, (3, 5, 4), dtype)
    shifts, dims = moves
    expected = np.roll(x, shifts, dims)
    for raw in (device(x), device(x.T.copy()).T, device(x[:, ::-1].copy())[:, ::-1]):
        assert_same(copying.roll(raw, shifts=shifts, dims=dims), expected)


@every_dtype
@pytest.mark.parametrize("diagonal", [-9, -1, 0, 2, 9])
def test_triangles(diagonal, dtype, rng):
    """Zeros stand beyond the diagonal, in any layout; NaN there is gone."""
    x = drawn(rng, (2, 4, 7), dtype)
    for raw in (device(x), device(x.T.copy()).T):
        assert_same(copying.tril(raw, diagonal=diagonal), np.tril(x, diagonal))
        assert_same(copying.triu(raw, diagonal=diagonal), np.triu(x, diagonal))
    unknown = device(np.full((3, 3), np.nan, np.float32))
    assert (copying.tril(unknown, diagonal=0).get()[0, 1:] == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("window", [(1, 1), (3, 1), (3, 2), (2, 3), (5, 4)])
def test_unfold_grad(window, dtype, rng):
    """Every element gets the sum over the windows that it is in, and those in none get zero."""
    size, step = window
    count = (11 - size) // step + 1
    grad, expected = rounded(rng.standard_normal((2, count, 3, size)), dtype), np.zeros((2, 11, 3))
    for w in range(count):
        for k in range(size):
            expected[:, w * step + k] += grad[:, w, :, k]
    raw = on_device(grad, dtype).array
    assert_near(copying.unfold_grad(raw, shape=(2, 11, 3), dim=1, size=size, step=step), expected, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["reflect", "circular", "replicate"])
@pytest.mark.parametrize("edges", [(0, 2), (3, 0), (1, 4), (4, 4)])
def test_edges(edges, mode, dtype, rng):
    """Edges are those of NumPy's padding, and gradients add up all images of an element."""
    x = rounded(rng.standard_normal((2, 5, 3)), dtype)
    kind = {"reflect": "reflect", "circular": "wrap", "replicate": "edge"}[mode]
    settings = {"dim": 1, "before": edges[0], "after": edges[1], "mode": mode}
    pads = ((0, 0), edges, (0, 0))
    assert_near(copying.pad_edges(on_device(x, dtype).array, **settings), np.pad(x, pads, kind), dtype, slack=0)
    source = np.pad(np.arange(5), edges, kind)
    grad, expected = rounded(rng.standard_normal((2, len(source), 3)), dtype), np.zeros((2, 5, 3))
    for place, origin in enumerate(source):
        expected[:, origin] += grad[:, place]
    assert_near(copying.pad_edges_grad(on_device(grad, dtype).array, **settings), expected, dtype)


@every_dtype
@pytest.mark.parametrize("shape", [(7,), (33, 31), (0, 3)])
def test_masks(shape, dtype, rng):
    """Elements at a mask are those of the values in order; elsewhere zeros, or what was there."""
    mask, x = rng.random(shape) < 0.5, drawn(rng, shape, dtype)
    values = drawn(rng, int(mask.sum()), dtype)
    expected = np.zeros(shape, x.dtype)
    expected[mask] = values
    assert_same(copying.masked_put(device(values), device(mask)), expected)
    expected = x.copy()
    expected[mask] = values
    assert_same(copying.masked_scatter(device(x), device(mask), device(values)), expected)


def test_too_few_values():
    """Where a mask holds more often than there are values, nothing is read behind them."""
    got = copying.masked_scatter(device(np.zeros(4, "f")), device(np.ones(4, bool)), device(np.float32([1, 2])))
    assert (got.get() == [1, 2, 0, 0]).all()
