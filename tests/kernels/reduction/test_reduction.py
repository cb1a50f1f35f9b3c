"""Reductions on a CUDA device: over rows, columns, any mix of axes of any layout, in one stage and in two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import PRIMITIVES
from lucid.cuda.launch.reduction import traversal_of
from tests.kernels.layouts import LAYOUTS
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)
every_layout = pytest.mark.parametrize("layout", LAYOUTS)

INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "bool")
SHAPES = [(1,), (31,), (1025,), (33, 40), (7, 33, 5), (3, 4, 6, 16)]


def kernel(name, *arrays, **settings):
    """Return what the kernel of a primitive gives; NotImplemented if it has none for these."""
    return PRIMITIVES[name].kernel(*arrays, **settings)


def logsumexp(x, axis, keepdims):
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(x), axis, keepdims=keepdims))


# Settings of the kernel beside dim and keepdim, and the reference.
REDUCTIONS = {
    "sum": ({"dtype": None}, np.sum),
    "mean": ({}, np.mean),
    "amax": ({}, np.max),
    "amin": ({}, np.min),
    "var": ({"correction": 0.0}, np.var),
    "std": ({"correction": 1.0}, lambda x, axis, keepdims: np.std(x, axis, keepdims=keepdims, ddof=1)),
    "logsumexp": ({}, logsumexp),
    "norm": ({"p": 2.0}, lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis, keepdims=keepdims))),
}
every_reduction = pytest.mark.parametrize("name", REDUCTIONS)


def check(name, x, dtype, dim, keepdim, layout="whole"):
    """Compare one reduction of float64 numbers `x` with NumPy's, laid out in memory as named."""
    settings, reference = REDUCTIONS[name]
    settings = {key: getattr(lucid, dtype).numpy if value is None else value for key, value in settings.items()}
    here, there = LAYOUTS[layout](x), LAYOUTS[layout](on_device(x, dtype).array)
    with np.errstate(all="ignore"):
        wanted = np.asarray(reference(here, axis=dim, keepdims=keepdim))
    # deviations are small beside the numbers whose means are taken off
    assert_near(kernel(name, there, dim=dim, keepdim=keepdim, **settings), wanted, dtype, slack=4)


@every_float
@every_reduction
def test_each_reduction(name, dtype, rng):
    """Rows, columns and all of a matrix give what float64 gives, in each floating dtype, also if all is negative."""
    x = rounded(rng.standard_normal((33, 40)) + 2, dtype)
    check(name, -abs(x), dtype, (1,), keepdim=False)
    for dim in [(0,), (1,), (0, 1)]:
        check(name, x, dtype, dim, keepdim=False)
        check(name, x, dtype, dim, keepdim=True)


@every_layout
@pytest.mark.parametrize("name", ["sum", "amax", "var"])
def test_any_mix_of_axes(name, layout, rng):
    """Every set of axes of every layout is reduced where it lies: strides may be apart, negative or zero."""
    for shape in SHAPES[1:]:
        x = rounded(rng.standard_normal(shape) + 2, "float32")
        for count in range(1, len(shape) + 1):
            for dim in itertools.combinations(range(len(shape)), count):
                if name != "var" or np.prod([LAYOUTS[layout](x).shape[d] for d in dim]) > 1:
                    check(name, x, "float32", dim, False, layout)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["sum", "amax", "var"])
def test_any_address_and_direction(name, dtype, rng):
    """Rows begin at any distance from an address of whole vectors, and run up or down from there."""
    itemsize = np.dtype(dtype).itemsize
    for width in (16, 17, 48 // itemsize):
        memory = rounded(rng.standard_normal(3 * width + 16) + 2, dtype)
        there = on_device(memory, dtype).array
        for offset in range(16 // itemsize + 1):
            for step in (1, -1):
                here, view = (x[offset : offset + 3 * width].reshape(3, width)[:, ::step] for x in (memory, there))
                for dim in ((0,), (1,), (0, 1)):
                    settings, reference = REDUCTIONS[name]
                    settings = {key: view.dtype if value is None else value for key, value in settings.items()}
                    got = kernel(name, view, dim=dim, keepdim=False, **settings)
                    assert_near(got, np.asarray(reference(here, axis=dim, keepdims=False)), dtype, slack=4)


@every_float
@pytest.mark.parametrize(
    ("shape", "dim"), [((70001,), (0,)), ((2, 70000), (1,)), ((9000, 3), (0,)), ((5000, 64), (0,))]
)
@every_reduction
def test_two_stages(name, shape, dim, dtype, rng):
    """Few and long rows, and tall columns, are cut into chunks, and the chunks merged."""
    x = rounded((rng.standard_normal(shape) + 2) / 8, dtype)  # whose sum is below what float16 holds
    there = on_device(x, dtype).array
    traversal = traversal_of(there.shape, there.strides, there.dtype.itemsize, dim, 0, False)
    assert traversal.grid[1] > 1
    check(name, x, dtype, dim, keepdim=False)


def test_same_bits_every_time(rng):
    """Two runs of a reduction in two stages give the same bits."""
    x = on_device(rng.standard_normal(50000), "float32").array
    first, second = (kernel("mean", x, dim=(0,), keepdim=False).get() for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("shape", [(33, 70), (2, 300000)], ids=["one stage", "two stages"])
def test_integers(shape, dtype, rng):
    """Integers and bools are summed exactly, as int64, and have extremes and tests."""
    low, high = {"bool": (0, 2), "uint8": (0, 101)}.get(dtype, (-100, 101))
    x = rng.integers(low, high, shape)
    there = lucid.tensor(x, dtype=getattr(lucid, dtype), device="cuda").array
    x = there.get()
    for dim in [(0,), (1,), (0, 1)]:
        total = kernel("sum", there, dim=dim, keepdim=False, dtype=np.dtype(np.int64))
        assert total.dtype == np.int64
        np.testing.assert_array_equal(total.get(), x.sum(dim, dtype=np.int64))
        np.testing.assert_array_equal(kernel("amax", there, dim=dim, keepdim=True).get(), x.max(dim, keepdims=True))
        np.testing.assert_array_equal(kernel("amin", there, dim=dim, keepdim=False).get(), x.min(dim))
        np.testing.assert_array_equal(kernel("any", there, dim=dim, keepdim=False).get(), x.any(dim))
        np.testing.assert_array_equal(kernel("all", there, dim=dim, keepdim=False).get(), x.all(dim))
        np.testing.assert_array_equal(kernel("count_nonzero", there, dim=dim).get(), np.count_nonzero(x, dim))
    for dim in (0, 1):
        np.testing.assert_array_equal(
            kernel("prod", there, dim=dim, keepdim=False).get(), x.prod(dim, dtype=np.int64).astype(x.dtype)
        )


def test_sum_in_another_dtype(rng):
    """A sum is written in the dtype that is asked for, from a wider accumulator."""
    x = rounded(rng.standard_normal((5, 300)) + 2, "float16")
    there = on_device(x, "float16").array
    out = kernel("sum", there, dim=(1,), keepdim=False, dtype=np.dtype(np.float32))
    assert_near(out, x.sum(1), "float32")


@every_float
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 3.0, -2.0, float("inf"), float("-inf")])
def test_norms(p, dtype, rng):
    """Norms of all orders agree with NumPy's along rows and columns."""
    x = rounded(rng.standard_normal((9, 33)) + np.copysign(0.5, rng.standard_normal((9, 33))), dtype)
    there = on_device(x, dtype).array
    for dim in (0, 1):
        out = kernel("norm", there, p=p, dim=(dim,), keepdim=False)
        assert_near(out, np.linalg.norm(x, p, dim), dtype, slack=4)


@every_float
@pytest.mark.parametrize("p", [1.0, 3.0, float("inf"), float("-inf")])
def test_norms_in_two_stages(p, dtype, rng):
    """Norms of long rows are those of NumPy, in every dtype."""
    x = rounded((np.abs(rng.standard_normal((2, 70000))) + 0.5) / 2**12, dtype)
    out = kernel("norm", on_device(x, dtype).array, p=p, dim=(1,), keepdim=False)
    assert_near(out, np.linalg.norm(x, p, 1), dtype, slack=4)


@every_float
def test_counts_in_two_stages(dtype, rng):
    """Numbers that are not zero are counted over long rows, NaN among them."""
    x = rng.choice([0.0, 0.5, np.nan], (2, 70000))
    there = on_device(x, dtype).array
    np.testing.assert_array_equal(kernel("count_nonzero", there, dim=(1,)).get(), np.count_nonzero(x, 1))
    np.testing.assert_array_equal(kernel("any", there, dim=(1,), keepdim=False).get(), [True, True])
    np.testing.assert_array_equal(kernel("all", there, dim=(1,), keepdim=False).get(), [False, False])


@every_float
def test_prod(dtype, rng):
    """Products along a dimension agree with NumPy's."""
    x = rounded(rng.uniform(0.8, 1.2, (7, 33, 3)), dtype)
    there = on_device(x, dtype).array
    for dim in range(3):
        assert_near(kernel("prod", there, dim=dim, keepdim=False), x.prod(dim), dtype, slack=4)
    signs = rounded(rng.choice([-1.0, 1.0], (2, 70000)), dtype)
    out = kernel("prod", on_device(signs, dtype).array, dim=1, keepdim=False)
    np.testing.assert_array_equal(out.get().astype(np.float64), signs.prod(1))


@every_float
@pytest.mark.parametrize("op", ["amax", "amin"])
def test_gradients_of_long_extremes(op, dtype, rng):
    """All of the largest, or smallest, elements of a long row share its gradient."""
    x = rounded(rng.integers(-50, 51, (2, 70000)) / 2, dtype)
    tensor = on_device(x, dtype).requires_grad_()
    upstream = rounded(rng.uniform(100, 200, 2), dtype)
    getattr(lucid, op)(tensor, 1).backward(on_device(upstream, dtype))
    chosen = x == getattr(x, op[1:])(1, keepdims=True)
    assert_near(tensor.grad.array, chosen * (upstream / chosen.sum(1))[:, None], dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("shape", [(1, 5), (33, 40), (5, 1025), (2, 40000)])
def test_places(shape, dtype, rng):
    """The first of equal largest and smallest elements is found, on every axis."""
    x = rng.integers(0, 4, shape)
    there = lucid.tensor(x, dtype=getattr(lucid, dtype), device="cuda").array
    x = there.get()
    for dim in (0, 1):
        for name, reference in (("argmax", np.argmax), ("argmin", np.argmin)):
            out = kernel(name, there, dim=dim, keepdim=False)
            assert out.dtype == np.int64
            np.testing.assert_array_equal(out.get(), reference(x, dim))
            back = there[::-1, ::-1]
            np.testing.assert_array_equal(
                kernel(name, back, dim=dim, keepdim=False).get(), reference(x[::-1, ::-1], dim)
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_and_infinity(dtype, rng):
    """NaN wins in extremes and places; infinities, alone and together, give what NumPy gives."""
    x = rng.standard_normal((6, 70))
    x[0, 3], x[0, 60] = np.nan, np.nan
    x[1] = -np.inf
    x[2, 5] = np.inf
    x[3, 5] = -np.inf
    there = on_device(x, dtype).array
    x = there.get()
    for name in ("sum", "mean", "amax", "amin", "var", "logsumexp", "norm"):
        settings, reference = REDUCTIONS[name]
        settings = {key: x.dtype if value is None else value for key, value in settings.items()}
        with np.errstate(all="ignore"):
            wanted = reference(x, axis=1, keepdims=False)
        got = kernel(name, there, dim=(1,), keepdim=False, **settings).get()
        np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=name)
    np.testing.assert_array_equal(kernel("argmax", there, dim=1, keepdim=False).get(), x.argmax(1))
    np.testing.assert_array_equal(kernel("argmin", there, dim=1, keepdim=False).get(), x.argmin(1))


def test_variance_keeps_its_digits(rng):
    """A mean a thousand times the deviation costs the variance no digits that two passes would keep."""
    x = rounded(rng.standard_normal((3, 20000)) + 1000, "float32")
    out = kernel("var", on_device(x, "float32").array, dim=(1,), correction=1.0, keepdim=False)
    np.testing.assert_allclose(out.get(), x.var(1, ddof=1), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("shape", [(5, 33), (2, 70000)], ids=["one stage", "two stages"])
def test_deviations_whose_squares_leave_the_range(shape, scale, rng):
    """The standard deviation is right where the squares are beyond float32, in parts and where parts are merged."""
    x = rounded(rng.standard_normal(shape) * scale, "float32")
    out = kernel("std", on_device(x, "float32").array, dim=(1,), correction=1.0, keepdim=False)
    np.testing.assert_allclose(out.get(), x.std(1, ddof=1), rtol=1e-5)


def test_nothing_to_reduce():
    """Empty rows give what the CPU gives, no rows give no results, and a 0-dim array is its own extreme."""
    none = lucid.zeros(3, 0, device="cuda").array
    float32 = np.dtype(np.float32)
    np.testing.assert_array_equal(kernel("sum", none, dim=(1,), keepdim=False, dtype=float32).get(), np.zeros(3))
    assert np.isnan(kernel("mean", none, dim=(1,), keepdim=False).get()).all()
    assert np.isnan(kernel("var", none, dim=(1,), correction=0.0, keepdim=False).get()).all()
    assert np.isneginf(kernel("logsumexp", none, dim=(1,), keepdim=False).get()).all()
    np.testing.assert_array_equal(kernel("prod", none, dim=1, keepdim=False).get(), np.ones(3))
    np.testing.assert_array_equal(kernel("all", none, dim=(1,), keepdim=False).get(), [True] * 3)
    np.testing.assert_array_equal(kernel("any", none, dim=(1,), keepdim=False).get(), [False] * 3)
    assert kernel("sum", none, dim=(0,), keepdim=True, dtype=float32).shape == (1, 0)
    point = lucid.tensor(3.0, device="cuda").array
    assert kernel("amax", point, dim=(), keepdim=False).get() == 3.0
    assert kernel("argmax", point, dim=0, keepdim=False).get() == 0


@every_float
def test_sum_to(dtype, rng):
    """The gradient of a broadcast operand is the sum over its copies."""
    x = rounded(rng.standard_normal((4, 5, 33)) + 2, dtype)
    there = on_device(x, dtype).array
    for shape in [(33,), (5, 33), (5, 1), (4, 1, 33), (1, 1, 1), ()]:
        total = x.sum(tuple(range(3 - len(shape))))
        axes = tuple(d for d, size in enumerate(shape) if size == 1)
        assert_near(kernel("sum_to", there, shape=shape), total.sum(axes, keepdims=True), dtype, slack=2)
    assert kernel("sum_to", there, shape=x.shape) is there


GRADIENTS = {
    "amax": lambda m, x: m.amax(x, 1),
    "amin over all": lambda m, x: m.amin(x),
    "var": lambda m, x: m.var(x, 0, correction=1),
    "std": lambda m, x: m.std(x, 1, correction=0, keepdim=True),
    "logsumexp": lambda m, x: m.logsumexp(x, 0),
    "norm": lambda m, x: m.norm(x, 2, 1),
    "norm 1": lambda m, x: m.norm(x, 1, 0),
    "norm 3": lambda m, x: m.norm(x, 3, 1),
    "norm inf": lambda m, x: m.norm(x, float("inf"), 1),
    "max": lambda m, x: m.max(x, 1).values,
    "min": lambda m, x: m.min(x, 0, keepdim=True).values,
    "prod": lambda m, x: m.prod(x, 1),
}


@every_float
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, dtype, rng):
    """The fused derivative of a reduction gives what the composed one gives in float64, ties and zeros included."""
    x = rounded(rng.integers(-2, 3, (7, 5)) / 2, dtype)
    grads = {}
    for device, kind in (("cpu", "float64"), ("cuda", dtype)):
        tensor = lucid.tensor(x, dtype=getattr(lucid, kind), device=device, requires_grad=True)
        out = GRADIENTS[name](lucid, tensor)
        if "upstream" not in grads:
            grads["upstream"] = rounded(rng.standard_normal(out.shape), dtype)
        out.backward(lucid.tensor(grads["upstream"], dtype=getattr(lucid, kind), device=device))
        grads[device] = tensor.grad.array
    assert_near(grads["cuda"], grads["cpu"], dtype, slack=4)
