"""Normalisation on a CUDA device: against the formulas in float64, over layouts, dtypes and sizes."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.ops.layers.norms import batch_cuda as channels
from lucid.ops.layers.norms import cuda as on_cuda
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)
EPS = 1e-3

# Shape, dimensions of the statistics, shape of weights, whether the mean is taken off.
CASES = {
    "layer": ((5, 33), (1,), (33,), True),
    "layer, one": ((3, 1), (1,), (1,), True),
    "layer, packs": ((3, 5, 64), (2,), (64,), True),
    "layer, two dimensions": ((2, 3, 4, 8), (2, 3), (4, 8), True),
    "layer, several warps": ((7, 1025), (1,), (1025,), True),
    "layer, packs of several warps": ((5, 2048), (1,), (2048,), True),
    "layer, long": ((3, 8300), (1,), (8300,), True),
    "layer, many rows": ((700, 24), (1,), (24,), True),
    "whole": ((3, 40), (0, 1), (3, 40), True),
    "rms": ((5, 31), (1,), (31,), False),
    "rms, packs": ((9, 768), (1,), (768,), False),
    "rms, long": ((2, 8304), (1,), (8304,), False),
    "group": ((3, 2, 3, 35), (2, 3), (1, 2, 3, 1), True),
    "group, packs": ((2, 2, 4, 64), (2, 3), (1, 2, 4, 1), True),
    "group, one": ((2, 1, 6, 9), (2, 3), (1, 1, 6, 1), True),
    "group, long": ((2, 2, 3, 3000), (2, 3), (1, 2, 3, 1), True),
    "instance": ((3, 5, 33), (2,), (1, 5, 1), True),
    "batch": ((6, 5, 3, 11), (0, 2, 3), (1, 5, 1, 1), True),
    "batch, packs": ((4, 3, 8, 8), (0, 2, 3), (1, 3, 1, 1), True),
    "batch, parts": ((40, 2, 200), (0, 2), (1, 2, 1), True),
    "batch, columns": ((130, 70), (0,), (1, 70), True),
    "batch, one channel": ((31, 1, 5), (0, 2), (1, 1, 1), True),
}
every_case = pytest.mark.parametrize("case", CASES)


class Reference:
    """Values and gradients by the formulas of normalisation.cu, of float64 numbers with a mean far from 0."""

    def __init__(self, case, dtype, rng, affine=True):
        self.shape, self.dim, self.broadcast, self.center = CASES[case]
        self.x = rounded(3 * rng.standard_normal(self.shape) + 5, dtype)
        self.grad = rounded(rng.standard_normal(self.shape), dtype)
        self.weight = rounded(rng.standard_normal(self.broadcast), dtype) if affine else None
        self.bias = rounded(rng.standard_normal(self.broadcast), dtype) if affine else None
        self.mean = self.x.mean(self.dim, keepdims=True) * self.center
        self.variance = ((self.x - self.mean) ** 2).mean(self.dim, keepdims=True)
        self.y = (self.x - self.mean) / np.sqrt(self.variance + EPS)
        self.out = self.y * self.weight + self.bias if affine else self.y
        h = self.grad * self.weight if affine else self.grad
        inner = (h * self.y).mean(self.dim, keepdims=True)
        middle = h.mean(self.dim, keepdims=True) * self.center
        self.to_x = (h - middle - self.y * inner) / np.sqrt(self.variance + EPS)
        self.to_weight, self.to_bias = self.summed(self.grad * self.y), self.summed(self.grad)
        self.terms = [np.sqrt(self.summed(values**2)).max() for values in (self.grad * self.y, self.grad)]

    @property
    def settings(self):
        """What the primitives are told."""
        return {"dim": self.dim, "eps": EPS, "center": self.center, "broadcast": self.broadcast}

    def summed(self, values):
        """Return sums over all places that share a weight."""
        shape = (1,) * (values.ndim - len(self.broadcast)) + self.broadcast
        return values.sum(tuple(d for d, size in enumerate(shape) if size == 1), keepdims=True).reshape(self.broadcast)


def work(dtype):
    """Return the dtype of statistics and of gradients of weights."""
    return "float64" if dtype == "float64" else "float32"


def given(values, dtype):
    """Return a raw CUDA array; None stays."""
    return None if values is None else on_device(values, dtype).array


@every_float
@every_case
def test_forward(case, dtype, rng):
    """Value, mean and variance are those of the formulas."""
    want = Reference(case, dtype, rng)
    arrays = [given(values, dtype) for values in (want.x, want.weight, want.bias)]
    out, mean, variance = on_cuda.normalise(*arrays, **want.settings)
    assert_near(out, want.out, dtype)
    assert_near(mean, want.mean, work(dtype))
    assert_near(variance, want.variance, work(dtype))


@every_float
@every_case
def test_backward(case, dtype, rng):
    """The gradients of x, weight and bias are those of the formulas, wanted together or alone."""
    want = Reference(case, dtype, rng)
    arrays = [given(values, dtype) for values in (want.grad, want.x, want.weight)]
    stats = [given(values, work(dtype)) for values in (want.mean, want.variance)]
    for wants in ((True, True, True), (True, False, False), (False, True, False), (False, False, True)):
        grads = on_cuda.normalise_grad(*arrays, *stats, **want.settings, wants=wants)
        kinds = (dtype, work(dtype), work(dtype))
        for got, wanted, expected, kind, terms in zip(
            grads, wants, (want.to_x, want.to_weight, want.to_bias), kinds, (0, *want.terms), strict=True
        ):
            if wanted:
                assert_near(got, expected, kind, slack=4, terms=terms)


@every_case
def test_without_weights(case, rng):
    """Without weight and bias they are 1 and 0."""
    want = Reference(case, "float32", rng, affine=False)
    x, grad = given(want.x, "float32"), given(want.grad, "float32")
    out, mean, variance = on_cuda.normalise(x, None, None, **want.settings)
    assert_near(out, want.out, "float32")
    grads = on_cuda.normalise_grad(grad, x, None, mean, variance, **want.settings, wants=(True, False, False))
    assert_near(grads[0], want.to_x, "float32", slack=4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", ["layer, packs", "layer, long", "group", "batch, packs"])
def test_float32_weights_of_half_types(case, dtype, rng):
    """Weights may be float32 beside half types."""
    want = Reference(case, dtype, rng)
    affine = [given(values, "float32") for values in (want.weight, want.bias)]
    out, mean, variance = on_cuda.normalise(given(want.x, dtype), *affine, **want.settings)
    assert_near(out, want.out, dtype)
    grads = on_cuda.normalise_grad(
        given(want.grad, dtype), given(want.x, dtype), affine[0], mean, variance, **want.settings, wants=(True,) * 3
    )
    assert_near(grads[0], want.to_x, dtype, slack=4)
    assert_near(grads[1], want.to_weight, "float32", slack=4)


def laid_out(values, layout):
    """Return a raw CUDA array of these values that lies in memory as `layout` says."""
    xp = gpu.cupy()
    array = given(values, "float32")
    if layout == "transposed":
        return xp.ascontiguousarray(array.T).T
    if layout == "backwards":
        return xp.ascontiguousarray(array[..., ::-1])[..., ::-1]
    if layout == "every second":
        wide = xp.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "unaligned":
        flat = xp.empty(array.size + 1, array.dtype)
        flat[1:] = array.reshape(-1)
        return flat[1:].reshape(array.shape)
    channels_last = xp.ascontiguousarray(xp.moveaxis(array, 1, -1))
    return xp.moveaxis(channels_last, -1, 1)


@pytest.mark.parametrize("layout", ["transposed", "backwards", "every second", "unaligned", "channels last"])
@pytest.mark.parametrize("case", ["layer, packs", "group, packs", "instance", "batch, packs", "batch, columns"])
def test_layouts(case, layout, rng):
    """How inputs and gradients lie in memory changes nothing."""
    want = Reference(case, "float32", rng)
    x, grad = laid_out(want.x, layout), laid_out(want.grad, layout)
    weight, bias = given(want.weight, "float32"), given(want.bias, "float32")
    out, mean, variance = on_cuda.normalise(x, weight, bias, **want.settings)
    assert_near(out, want.out, "float32")
    grads = on_cuda.normalise_grad(grad, x, weight, mean, variance, **want.settings, wants=(True,) * 3)
    for got, expected in zip(grads, (want.to_x, want.to_weight, want.to_bias), strict=True):
        assert_near(got, expected, "float32", slack=4)


@every_case
def test_broadcast_gradients(case, rng):
    """A gradient that is one number everywhere, as that of a sum is, is read where it lies."""
    want = Reference(case, "float32", rng)
    xp = gpu.cupy()
    x, weight = given(want.x, "float32"), given(want.weight, "float32")
    one = xp.broadcast_to(xp.full((), 0.5, np.float32), want.shape)
    stats = given(want.mean, "float32"), given(want.variance, "float32")
    whole = on_cuda.normalise_grad(xp.array(one), x, weight, *stats, **want.settings, wants=(True,) * 3)
    for got, expected in zip(
        on_cuda.normalise_grad(one, x, weight, *stats, **want.settings, wants=(True,) * 3), whole, strict=True
    ):
        np.testing.assert_allclose(got.get(), expected.get(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ["layer", "layer, long", "group", "batch, parts", "batch, columns"])
def test_large_means(case, rng):
    """A mean a thousand times the spread costs no more digits than float32 has lost of the input."""
    want = Reference(case, "float64", rng)
    x = (want.x + 5000).astype(np.float32).astype(np.float64)
    mean = x.mean(want.dim, keepdims=True)
    variance = ((x - mean) ** 2).mean(want.dim, keepdims=True)
    _, _, got = on_cuda.normalise(given(x, "float32"), None, None, **want.settings)
    # beside the mean: of its error the square
    np.testing.assert_allclose(got.get(), variance, rtol=2e-3)


def test_sums_repeat(rng):
    """Gradients of weights have the same bits each time: nothing is added by atomics."""
    want = Reference("layer, many rows", "float32", rng)
    arrays = [given(values, "float32") for values in (want.grad, want.x, want.weight, want.mean, want.variance)]
    first, second = (on_cuda.normalise_grad(*arrays, **want.settings, wants=(True,) * 3) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert (a.get() == b.get()).all()


def test_no_kernel(rng):
    """Integers, complex numbers, no elements, and weights that lie across the rows are left to CuPy."""
    xp = gpu.cupy()
    settings = {"dim": (1,), "eps": EPS, "center": True, "broadcast": (4,)}
    for x in (xp.zeros((3, 4), np.int64), xp.zeros((3, 4), np.complex64), xp.zeros((0, 4), np.float32)):
        assert on_cuda.normalise(x, None, None, **settings) is NotImplemented
    x = xp.zeros((3, 4, 5), np.float32)
    odd = {"dim": (2,), "eps": EPS, "center": True, "broadcast": (3, 1, 1)}
    assert on_cuda.normalise(x, None, None, **odd) is NotImplemented


@every_float
@pytest.mark.parametrize("shape", [(4, 3, 5, 7), (4, 3, 8, 8), (33, 31)])
def test_given_statistics(shape, dtype, rng):
    """Batch norm in evaluation, and its gradients, are those of the formulas."""
    count = shape[1]
    broadcast = (1, count, *(1,) * (len(shape) - 2))
    x, grad = (rounded(rng.standard_normal(shape), dtype) for _ in range(2))
    weight, bias = (rounded(rng.standard_normal(count), dtype) for _ in range(2))
    mean, variance = rng.standard_normal(count), rng.random(count) + 0.5
    tensors = [on_device(v, dtype).requires_grad_() for v in (x, weight, bias)]
    stats = [on_device(v, work(dtype)) for v in (mean, variance)]
    out = lucid.nn.functional.batch_norm(tensors[0], *stats, *tensors[1:], eps=EPS)
    out.backward(on_device(grad, dtype))
    mean, variance, weight, bias = (v.reshape(broadcast) for v in (mean, variance, weight, bias))
    y = (x - mean) / np.sqrt(variance + EPS)
    axes = (0, *range(2, len(shape)))
    assert_near(out.array, y * weight + bias, dtype)
    assert_near(tensors[0].grad.array, grad * weight / np.sqrt(variance + EPS), dtype)
    assert_near(tensors[1].grad.array, (grad * y).sum(axes), dtype, slack=4)
    assert_near(tensors[2].grad.array, grad.sum(axes), dtype, slack=4)
    raw = [stats[1].array, tensors[1].array, EPS, broadcast]
    assert channels.rescale_grad(on_device(grad, dtype).array, *raw) is not NotImplemented


@pytest.mark.parametrize("running", ["float32", "bfloat16"])
@pytest.mark.parametrize("norm", ["batch", "instance"])
def test_running_statistics(norm, running, rng):
    """Running mean and variance move as on the CPU, in place, and their version counters notice."""
    x = rng.standard_normal((4, 3, 5)).astype(np.float32)
    function = getattr(lucid.nn.functional, f"{norm}_norm")
    results = {}
    for device in ("cpu", "cuda"):
        stats = [lucid.tensor(v, dtype=getattr(lucid, running), device=device) for v in ([1.0, 2, 3], [4.0, 5, 6])]
        before = [s.array for s in stats]
        kept = {"training": True} if norm == "batch" else {}
        function(lucid.tensor(x, device=device), *stats, momentum=0.3, **kept)
        assert [s.array is array for s, array in zip(stats, before, strict=True)] == [True, True]
        assert [s._version for s in stats] == [1, 1]
        results[device] = [s.cpu().array.astype(np.float64) for s in stats]
    for expected, got in zip(results["cpu"], results["cuda"], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6 if running == "float32" else 2**-7)


@pytest.mark.parametrize("count", ["int64", "int32", "on the CPU"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_the_mean_of_all_batches(dtype, count, rng):
    """Without a momentum running statistics are the mean of those of all batches, wherever these are counted."""
    layer = lucid.nn.BatchNorm1d(3, momentum=None, device="cuda", dtype=getattr(lucid, dtype))
    if count == "int32":
        layer.num_batches_tracked = layer.num_batches_tracked.int()
    elif count == "on the CPU":
        layer.num_batches_tracked = layer.num_batches_tracked.cpu()
    batches = rng.standard_normal((4, 6, 3, 2)).astype(np.float32)
    for x in batches:
        layer(lucid.tensor(x, dtype=getattr(lucid, dtype), device="cuda"))
    assert layer.num_batches_tracked.item() == 4
    near = {"rtol": 1e-5, "atol": 1e-6} if dtype != "bfloat16" else {"rtol": 0.03, "atol": 0.03}
    mean, variance = batches.mean((1, 3)).mean(0), batches.var((1, 3), ddof=1).mean(0)
    np.testing.assert_allclose(layer.running_mean.cpu().double().array, mean, **near)
    np.testing.assert_allclose(layer.running_var.cpu().double().array, variance, **near)


def test_sizes_beyond_32_bits():
    """A problem of more than 2^31 elements is cut into the same three runs; a row of as many is left to CuPy."""
    found = on_cuda.problem_of((2**20, 2**12), (1,), (2**12,))
    assert found is not None
    assert found.sizes == (2**20, 1, 2**12)
    assert on_cuda.MAX_LENGTH == 2**31 - 1
