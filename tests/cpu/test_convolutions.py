"""Convolutions by loops in C++, beside products of columns: as exact, and chosen by sizes alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lucid.backends import cpu
from lucid.cpu import convolutions
from lucid.ops.layers import convolution_primitives as primitives
from lucid.ops.layers.windows import Axis
from tests.cpu.images import guarded, laid_out

pytestmark = pytest.mark.cpu("compares the two ways of the CPU")
LARGE = {"few": 14, "many": 40}


@pytest.fixture(autouse=True)
def _any_size(monkeypatch):
    """Let convolutions of any size be compiled ones."""
    monkeypatch.setattr(convolutions, "FEW_PRODUCTS", 1)


class Case:
    """A random convolution: its settings and operands, and the three primitives called with them."""

    def __init__(self, rng, dtype, most):
        count = int(rng.integers(1, 3))
        columns = [self._along(rng, most) for _ in range(count)]
        self.size, self.out, kernel, stride, before, dilation = zip(*columns, strict=True)
        groups, inputs, outputs = (int(rng.integers(1, n)) for n in (4, 5, 15))
        images = int(rng.integers(1, 7))
        self.kernel = kernel
        self.settings = {"stride": stride, "before": before, "dilation": dilation, "groups": groups}
        shapes = (images, inputs * groups, *self.size), (outputs * groups, inputs, *kernel)
        self.x, self.weight = (laid_out(rng, rng.standard_normal(shape).astype(dtype)) for shape in shapes)
        self.bias = rng.standard_normal((outputs * groups, 2)).astype(dtype)[:, 0] if rng.integers(2) else None
        self.g = laid_out(rng, rng.standard_normal((images, outputs * groups, *self.out)).astype(dtype))

    @staticmethod
    def _along(rng, most):
        while True:
            size, kernel, stride, dilation, before = (int(n) for n in rng.integers([1, 1, 1, 1, 0], [most, 6, 4, 4, 5]))
            out = (size + 2 * before - dilation * (kernel - 1) - 1) // stride + 1
            if out >= 1 and (kernel, stride) != (1, 1):
                return size, out, kernel, stride, before, dilation

    def results(self, change=lambda x: x):
        """Return the convolution and both gradients of changed operands."""
        x, weight, g = (change(each) for each in (self.x, self.weight, self.g))
        bias = None if self.bias is None else change(self.bias)
        return (
            primitives.convolution.cpu(x, weight, bias, out=self.out, **self.settings),
            primitives.convolution_input_grad.cpu(g, weight, size=self.size, **self.settings),
            primitives.convolution_weight_grad.cpu(g, x, kernel=self.kernel, **self.settings),
        )


def by_numpy(compute):
    """Return what NumPy's path makes."""
    cpu.compiled = False
    try:
        return compute()
    finally:
        cpu.compiled = True


@pytest.mark.parametrize("most", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(25))
def test_convolutions_are_as_exact_as_numpys(rng, dtype, most, seed, compiled):
    """Of any sizes, strides, padding, dilation, groups and layouts the sums of up to 16 roundings, or NumPy's error."""
    case = Case(np.random.default_rng([seed, *rng.integers(0, 2**31, 2)]), dtype, most)
    got = case.results()
    assert {"convolve", "convolve_weights"} <= set(compiled)
    assert len(compiled) >= 3
    exact = by_numpy(lambda: case.results(lambda x: x.astype(np.longdouble)))
    sizes = by_numpy(lambda: case.results(lambda x: abs(x.astype(np.longdouble))))
    others = by_numpy(case.results)
    for one, right, size, other in zip(got, exact, sizes, others, strict=True):
        assert one.dtype == dtype
        assert one.shape == right.shape
        allowed = 8 * np.finfo(dtype).eps * size + 4 * abs(other - right).max()
        assert (abs(one - right) <= allowed).all()


@pytest.mark.parametrize("stride", [1, 2])
def test_large_images_are_taken_in_parts(rng, stride, compiled):
    """Of an image that is gone through in several parts each has its own rows, and those around."""
    case = Case(rng, np.float32, 14)
    x, weight = rng.standard_normal((2, 3, 230, 19), np.float32), rng.standard_normal((5, 3, 4, 3), np.float32)
    case.x, case.weight, case.bias = x, weight, None
    case.size, case.kernel, case.out = (
        x.shape[2:],
        weight.shape[2:],
        (228 // stride + 1, 18 // stride + 1),
    )
    case.settings = {"stride": (stride,) * 2, "before": (1, 1), "dilation": (1, 1), "groups": 1}
    case.g = rng.standard_normal((2, 5, *case.out), np.float32)
    for one, right in zip(case.results(), by_numpy(lambda: case.results(np.float64)), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-4 * abs(right).max())
    assert "convolve_weights" in compiled


@pytest.mark.parametrize("seed", range(25))
def test_what_is_not_finite_stays_where_it_is(rng, seed, compiled):
    """An infinite or missing number reaches those results that NumPy's path gives it to, and no other."""
    rng = np.random.default_rng([seed, *rng.integers(0, 2**31, 2)])
    case = Case(rng, np.float32, 14)
    case.x, case.weight, case.g = map(np.array, (case.x, case.weight, case.g))
    for array in rng.permutation(3)[: rng.integers(1, 4)]:
        target = (case.x, case.weight, case.g)[array]
        target.flat[rng.integers(target.size)] = rng.choice([np.nan, np.inf, -np.inf])
    with np.errstate(invalid="ignore"):
        for one, other in zip(case.results(), by_numpy(case.results), strict=True):
            for same in (np.isnan, np.isposinf, np.isneginf):
                np.testing.assert_array_equal(same(one), same(other))
    assert "convolve" in compiled


def test_half_types_are_computed_in_float32(rng, compiled):
    """Sums of half types are those of float32, rounded once."""
    case = Case(rng, np.float16, 14)
    with np.errstate(over="ignore"):
        expected = [each.astype(np.float16) for each in case.results(lambda x: x.astype(np.float32))]
    for one, right in zip(case.results(), expected, strict=True):
        np.testing.assert_array_equal(one, right)
    assert len(compiled) >= 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_written_outside_of_results(rng, dtype, compiled, monkeypatch):
    """What lies before and behind each result stays as it is."""
    made = []
    empty = guarded(made)

    def zeros(shape, dtype):
        array = empty(shape, dtype)
        array[...] = 0
        return array

    shim = SimpleNamespace(empty=empty, zeros=zeros, ascontiguousarray=np.ascontiguousarray, float32=np.float32)
    monkeypatch.setattr(convolutions, "np", shim)
    for _ in range(30):
        Case(rng, dtype, 14).results()
    assert len(made) == 90
    assert all(guard.untouched() for guard in made)


def test_sizes_alone_choose(rng, compiled, monkeypatch):
    """Few products are NumPy's, and so are those of one position, and windows in far more padding than there is."""
    x, weight = rng.standard_normal((1, 2, 8, 8)), rng.standard_normal((3, 2, 3, 3))
    settings = {"stride": (1, 1), "before": (0, 0), "dilation": (1, 1), "groups": 1}

    def compute(**others):
        compiled.clear()
        primitives.convolution.cpu(x, weight, None, **{"out": (6, 6), **settings, **others})
        return list(compiled)

    assert compute() == ["convolve"]
    monkeypatch.setattr(convolutions, "FEW_PRODUCTS", 6 * 6 * weight.size)
    assert compute() == ["convolve"]
    monkeypatch.setattr(convolutions, "FEW_PRODUCTS", 6 * 6 * weight.size + 1)
    assert compute() == []
    monkeypatch.setattr(convolutions, "FEW_PRODUCTS", 1)
    assert compute(dilation=(1, 10**9), before=(0, 10**9), out=(6, 8)) == []
    weight = weight[:, :, :1, :1]
    assert compute(out=(8, 8)) == []
    assert compute(out=(4, 4), stride=(2, 2)) == ["convolve"]


def test_two_dtypes_are_numpys(rng, compiled):
    """A loop reads both operands as one type: none takes float32 beside float64."""
    x, weight = rng.standard_normal((1, 2, 8, 8)), rng.standard_normal((3, 2, 3, 3)).astype(np.float32)
    g = rng.standard_normal((1, 3, 6, 6)).astype(np.float32)
    axes = (Axis(8, 6, 3, 1, 0, 1),) * 2
    assert convolutions.convolution(x, weight, None, axes, 1) is None
    assert convolutions.input_grad(g.astype(np.float64), weight, axes, 1) is None
    assert convolutions.weight_grad(g, x, axes, 1) is None
    assert compiled == []
    assert convolutions.convolution(x.astype(np.float32), weight, None, axes, 1) is not None
