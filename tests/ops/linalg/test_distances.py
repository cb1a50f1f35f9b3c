"""Distances at equal rows, of order 0, of many rows by a product, and what does not fit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, SettingError, ShapeError
from tests.gradients import numbers


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, math.inf])
def test_equal_rows_have_no_gradient(p, rng):
    """Rows that are equal are 0 apart, and push each other nowhere, in a second derivative neither."""
    a = lucid.tensor(np.vstack([rng.standard_normal((1, 4))] * 3), requires_grad=True)
    out = lucid.cdist(a, a, p)
    np.testing.assert_array_equal(numbers(out), 0)
    (grad,) = lucid.autograd.grad(out.sum(), a, create_graph=True)
    np.testing.assert_array_equal(numbers(grad), 0)


def test_order_zero_counts(rng):
    """Of order 0 a distance counts in how many places rows differ, and has a gradient of zero."""
    a, b = rng.integers(0, 2, (40, 19)).astype(float), rng.integers(0, 2, (33, 19)).astype(float)
    x = lucid.tensor(a, requires_grad=True)
    out = lucid.cdist(x, lucid.tensor(b), 0)
    np.testing.assert_array_equal(numbers(out), (a[:, None] != b).sum(-1))
    np.testing.assert_array_equal(numbers(lucid.autograd.grad(out.sum(), x)[0]), 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_largest_difference_of_half_types_gets_the_gradient(dtype, rng):
    """Of infinite order the gradient is the largest difference's, also where that is rounded to the dtype."""
    largest = np.arange(6) % 4
    a = rng.uniform(0, 1, (6, 4)) + 5 * (np.arange(4) == largest[:, None])
    x = lucid.tensor(a, dtype=getattr(lucid, dtype), requires_grad=True)
    y = lucid.tensor(rng.uniform(0, 1, (3, 4)), dtype=x.dtype)
    upstream = rng.integers(1, 9, (6, 3))
    lucid.cdist(x, y, math.inf).backward(lucid.tensor(upstream, dtype=x.dtype))
    expected = upstream.sum(1)[:, None] * (np.arange(4) == largest[:, None])
    np.testing.assert_array_equal(numbers(x.grad.float()), expected)


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist_if_necessary", "donot_use_mm_for_euclid_dist"])
@pytest.mark.parametrize("p", [1, 2])
def test_many_rows(p, mode, rng):
    """More rows than a tile, in a stack and transposed in memory, have NumPy's distances and gradients."""
    a, b = rng.standard_normal((2, 35, 21)), rng.standard_normal((21, 40))
    x, y = lucid.tensor(a, requires_grad=True), lucid.tensor(b, requires_grad=True)
    out = lucid.cdist(x, y.T, p, mode)
    differences = a[:, :, None] - b.T
    expected = np.linalg.norm(differences, p, -1)
    np.testing.assert_allclose(numbers(out), expected, rtol=1e-10)
    upstream = rng.standard_normal(out.shape)
    slopes = upstream[..., None] * (np.sign(differences) if p == 1 else differences / expected[..., None])
    gx, gy = lucid.autograd.grad(out, (x, y), lucid.tensor(upstream))
    np.testing.assert_allclose(numbers(gx), slopes.sum(2), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(numbers(gy), -slopes.sum((0, 1)).T, rtol=1e-9, atol=1e-9)


def test_the_product_is_taken_where_it_pays():
    """Far from the origin a product of matrices loses digits: it is used for more than 25 rows, or where asked."""
    near = lucid.ones(26, 1) * 4096 + lucid.arange(26).unsqueeze(1) / 256
    exact = np.abs(np.arange(26)[:, None] - np.arange(26)) / 256

    def error(rows, *mode):
        return np.abs(numbers(lucid.cdist(near[:rows], near[:rows], 2.0, *mode)) - exact[:rows, :rows]).max()

    assert error(25) < 1e-4 < error(26)
    assert error(26, "donot_use_mm_for_euclid_dist") < 1e-4 < error(25, "use_mm_for_euclid_dist")


def test_rows_of_nothing():
    """Rows without elements are 0 apart, and no rows have no distances."""
    np.testing.assert_array_equal(numbers(lucid.cdist(lucid.ones(2, 0), lucid.ones(3, 0))), np.zeros((2, 3)))
    assert lucid.cdist(lucid.ones(0, 2), lucid.ones(3, 2)).shape == (0, 3)
    assert lucid.pdist(lucid.ones(1, 2)).shape == (0,)
    assert lucid.pdist(lucid.ones(0, 2)).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: lucid.cdist(x, x, -1), SettingError, "non-negative p.*-1"),
        (lambda x: lucid.cdist(x, x, math.nan), SettingError, "non-negative p.*nan"),
        (lambda x: lucid.cdist(x, x, 2, "fast"), SettingError, "compute_mode.*'fast'"),
        (lambda x: lucid.cdist(x, x.T), ShapeError, r"\[2, 3\] and \[3, 2\]"),
        (lambda x: lucid.cdist(x[0], x), ShapeError, "at least two"),
        (lambda x: lucid.cdist(x, x.double()), DtypeError, "float32, lucid.float64"),
        (lambda x: lucid.cdist(x.long(), x.long()), DtypeError, "int64"),
        (lambda x: lucid.cdist(x.expand(2, 2, 3), x.expand(3, 2, 3)), ShapeError, "broadcast"),
        (lambda x: lucid.pdist(x[0]), ShapeError, "1D"),
        (lambda x: lucid.pdist(x.long()), DtypeError, "int64"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, text):
    """Orders, modes, shapes and dtypes that do not fit raise an error that names them."""
    with pytest.raises(error, match=text):
        call(lucid.ones(2, 3))


def test_many_rows_far_from_zero_are_some_distance_apart(rng):
    """Where a product takes all digits of small distances it leaves 0 or a rounding, not the root of one below 0."""
    x = lucid.tensor(1000 + 1e-3 * rng.standard_normal((40, 7)), dtype=lucid.float32)
    out = numbers(lucid.cdist(x, x, compute_mode="use_mm_for_euclid_dist"))
    assert (out >= 0).all()
    assert (out < 10).all()
