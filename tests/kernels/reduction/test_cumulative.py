"""Running sums, products and recurrences on a CUDA device: a thread, a block, and many blocks a line."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import PRIMITIVES
from tests.kernels.layouts import LAYOUTS
from tests.kernels.near import FLOATS, UNITS, assert_near, on_device, rounded

pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)
both_ways = pytest.mark.parametrize("reverse", [False, True])


def accumulated(function, x, dim, reverse):
    x = x.astype(np.longdouble)  # the reference's own roundings would be those of float64
    return np.flip(function(np.flip(x, dim), dim), dim) if reverse else function(x, dim)


def balanced(rng, shape, dim, dtype):
    """Return random factors of at least 1 where the product along `dim` so far is below 1, and of at most 1 elsewhere.

    Products stay small, and their roundings are those of random numbers: not so of factors that are all near 1.
    """
    factors = rounded(rng.uniform(1, 2, shape), dtype)
    product = 1.0
    lines = np.moveaxis(factors, dim, 0)
    for c in range(len(lines)):
        lines[c] = rounded(np.where(product < 1, lines[c], 1 / lines[c]), dtype)
        product = product * lines[c]
    return factors


def kernel(name, *arrays, **settings):
    return PRIMITIVES[name].kernel(*arrays, **settings)


@every_float
@both_ways
@pytest.mark.parametrize("shape", [(1,), (31,), (33,), (1023,), (1025,), (20001,), (3, 5000), (40, 33), (70, 5)])
def test_sums_and_products(shape, reverse, dtype, rng):
    """Lines of every length, in either direction, agree with float64."""
    x = rounded(rng.uniform(-1, 2, shape), dtype)
    own = getattr(lucid, dtype).numpy
    for dim in range(len(shape)):
        sums = kernel("cumsum", on_device(x, dtype).array, dim=dim, reverse=reverse, dtype=own)
        assert_near(sums, accumulated(np.cumsum, x, dim, reverse), dtype, slack=2)
        factors = balanced(rng, shape, dim, dtype)
        products = kernel("cumprod", on_device(factors, dtype).array, dim=dim, reverse=reverse)
        # each of n products rounds all that came before: a random walk, of which this is some four deviations
        walk = 2 * np.sqrt(shape[dim]) / UNITS[dtype]
        assert_near(products, accumulated(np.cumprod, factors, dim, reverse), dtype, slack=max(2, walk))


@both_ways
@pytest.mark.parametrize("length", [4, 400, 20001])
def test_products_that_come_back(length, reverse):
    """A running product of float32 that leaves its range on the way comes back into it."""
    x = np.ones(length)
    x[[0, 1, -2, -1]] = 1e-30, 1e-30, 1e30, 1e30
    x = rounded(x[::-1] if reverse else x, "float32")
    out = kernel("cumprod", on_device(x, "float32").array, dim=0, reverse=reverse)
    assert_near(out, accumulated(np.cumprod, x, 0, reverse), "float32")


@both_ways
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, reverse, rng):
    """Any dimension of any layout is read where it lies."""
    x = rounded(rng.standard_normal((5, 40, 36)) + 1, "float32")
    here, there = LAYOUTS[layout](x), LAYOUTS[layout](on_device(x, "float32").array)
    for dim in range(3):
        out = kernel("cumsum", there, dim=dim, reverse=reverse, dtype=np.dtype(np.float32))
        assert_near(out, accumulated(np.cumsum, here, dim, reverse), "float32", slack=2)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_integers(dtype, rng):
    """Integers are summed exactly, as int64."""
    x = rng.integers(0, 2, (3, 3000)).astype(dtype)
    out = kernel("cumsum", lucid.tensor(x, device="cuda").array, dim=1, reverse=False, dtype=np.dtype(np.int64))
    np.testing.assert_array_equal(out.get(), np.cumsum(x, 1, dtype=np.int64))


@every_float
@both_ways
@pytest.mark.parametrize("shape", [(33,), (5000,), (3, 70), (40, 3)])
def test_recurrence(shape, reverse, dtype, rng):
    """The result at each place is the element there plus the factor there times the result before."""
    x, factor = rounded(rng.uniform(0.5, 1, shape), dtype), rounded(rng.uniform(-0.9, 0.9, shape), dtype)
    factor[..., shape[-1] // 2] = 0
    for dim in range(len(shape)):
        a, f = (np.moveaxis(np.flip(v, dim) if reverse else v, dim, 0) for v in (x, factor))
        state, states = np.zeros(a.shape[1:]), []
        for here, share in zip(a, f, strict=True):
            state = here + share * state
            states.append(state)
        wanted = np.moveaxis(np.stack(states), 0, dim)
        wanted = np.flip(wanted, dim) if reverse else wanted
        arrays = [on_device(v, dtype).array for v in (x, factor)]
        assert_near(kernel("recurrence", *arrays, dim=dim, reverse=reverse), wanted, dtype, slack=4)


@every_float
@pytest.mark.parametrize("by", [1, -1])
def test_shift(by, dtype, rng):
    """Elements move by one place, and the free one is filled."""
    x = rounded(rng.standard_normal((4, 5, 6)), dtype)
    there = on_device(x, dtype).array
    for array, here in ((there, x), (there.T, x.T)):
        for dim in range(3):
            wanted = np.roll(here, by, dim)
            np.moveaxis(wanted, dim, 0)[0 if by > 0 else -1] = 1.5
            out = kernel("shift", array, dim=dim, by=by, fill=1.5)
            np.testing.assert_array_equal(out.get().astype(np.float64), wanted)


@every_float
@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
def test_gradients(op, dtype, rng):
    """Gradients, through zeros among the factors too, are those of float64."""
    x = rounded(rng.integers(-2, 3, (6, 9)) / 2, dtype)
    grads = {}
    upstream = rounded(rng.standard_normal(x.shape), dtype)
    for device, kind in (("cpu", "float64"), ("cuda", dtype)):
        tensor = lucid.tensor(x, dtype=getattr(lucid, kind), device=device, requires_grad=True)
        getattr(lucid, op)(tensor, 1).backward(lucid.tensor(upstream, dtype=getattr(lucid, kind), device=device))
        grads[device] = tensor.grad.array
    assert_near(grads["cuda"], grads["cpu"], dtype, slack=4)


def test_nothing():
    """No elements give no elements, and a 0-dim array is left to the reference."""
    none = lucid.zeros(3, 0, device="cuda").array
    assert kernel("cumsum", none, dim=1, reverse=False, dtype=none.dtype).shape == (3, 0)
    assert lucid.cumsum(lucid.tensor(2.0, device="cuda"), 0).item() == 2
