"""What rows of samples cannot say of less common functions: NaN, ties, infinities, weights, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid

NAN, INF = math.nan, math.inf


def leaf(*values):
    return lucid.tensor(values, dtype=lucid.float64, requires_grad=True)


def test_extremes_so_far_of_equal_elements_and_nan():
    """Of equal elements the last one's place is given; a NaN stays, at its last place."""
    values, indices = lucid.cummax(lucid.tensor([1.0, 1.0, 0.0, 1.0, NAN, 2.0, NAN, 3.0]), 0)
    assert indices.tolist() == [0, 1, 1, 3, 4, 4, 6, 6]
    np.testing.assert_array_equal(values.tolist(), [1, 1, 1, 1, NAN, NAN, NAN, NAN])
    assert lucid.cummin(lucid.tensor([1, 1, 2, 0, 0]), 0).indices.tolist() == [0, 1, 1, 3, 4]
    assert [part.item() for part in lucid.cummin(lucid.tensor(2.0), 0)] == [2.0, 0]


@pytest.mark.parametrize("include_self", [True, False])
def test_what_is_scattered_shares_the_gradient_of_an_extreme(include_self):
    """Equal ones share it, what was there only where it counts; three equal ones give their value to the last bit."""
    x, src = leaf(5.0, 0.1, 7.0), leaf(5.0, 5.0, 0.1, 0.1)
    out = lucid.scatter_reduce(x, 0, lucid.tensor([0, 0, 1, 1]), src, "amax", include_self=include_self)
    assert out.tolist() == [5.0, 0.1, 7.0]
    out.backward(lucid.tensor([6.0, 6.0, 6.0], dtype=lucid.float64))
    own, come = ([2.0, 2.0, 6.0], [2.0] * 4) if include_self else ([0.0, 0.0, 6.0], [3.0] * 4)
    np.testing.assert_allclose(x.grad.tolist(), own)
    np.testing.assert_allclose(src.grad.tolist(), come)


def test_a_scattered_nan_is_the_extreme():
    """Whatever else meets there, in either direction; unknown reductions and bools are refused."""
    index, src = lucid.tensor([0, 0, 1]), lucid.tensor([NAN, 9.0, 1.0])
    for reduce in ("amax", "amin"):
        np.testing.assert_array_equal(lucid.zeros(2).scatter_reduce(0, index, src, reduce).tolist()[0], NAN)
    with pytest.raises(ValueError, match="sum, mean, amax, amin, got 'prod'"):
        lucid.zeros(2).scatter_reduce(0, index, src, "prod")
    with pytest.raises(TypeError, match="real numbers"):
        lucid.zeros(2).bool().scatter_reduce(0, index, src.bool(), "amax")


def test_members():
    """Nothing is among no elements, NaN among none, numbers may stand on either side, dtypes are promoted."""
    x = lucid.tensor([1.0, NAN])
    assert lucid.isin(x, lucid.zeros(0)).tolist() == [False, False]
    assert lucid.isin(x, lucid.zeros(0), invert=True).tolist() == [True, True]
    assert lucid.isin(x, x).tolist() == [True, False]
    assert lucid.isin(2, lucid.tensor([1, 2])).item() is True
    assert lucid.isin(lucid.tensor([1, 2]), lucid.tensor([1.5, 2.0])).tolist() == [False, True]


def test_weighed_covariances(rng):
    """Frequencies and weights are NumPy's, together too, with any correction; complex variables are conjugated."""
    x = rng.standard_normal((2, 4))
    often, heavy = rng.integers(1, 4, 4), rng.uniform(0.5, 2, 4)
    f, a = lucid.tensor(often), lucid.tensor(heavy)
    for correction in (0, 1, 2):
        got = lucid.cov(lucid.tensor(x), correction=correction, fweights=f, aweights=a)
        expected = np.cov(x, ddof=correction, fweights=often, aweights=heavy)
        np.testing.assert_allclose(got.numpy(force=True), expected)
    only = lucid.cov(lucid.tensor(x), fweights=f).numpy(force=True)
    np.testing.assert_allclose(only, np.cov(x, fweights=often))
    z = x + 1j * rng.standard_normal((2, 4))
    np.testing.assert_allclose(lucid.cov(lucid.tensor(z)).numpy(force=True), np.cov(z))
    with pytest.raises(ValueError, match="fweights to be 4 integers"):
        lucid.cov(lucid.tensor(x), fweights=a)


def test_products_of_complex_vectors(rng):
    """The first vector of `vdot` is conjugated, and so is `adjoint`."""
    a, b = rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))
    np.testing.assert_allclose(lucid.vdot(lucid.tensor(a), lucid.tensor(b)).item(), np.vdot(a, b))
    np.testing.assert_array_equal(lucid.tensor(a[None]).adjoint().numpy(force=True), a[None].conj().T)


def test_elementwise_functions_at_their_edges():
    """Products with logarithms at 0, slopes at the origin, and the other one of NaN."""
    a = lucid.tensor([0.0, 0.0, 0.0, 0.0, 1.0])
    b = lucid.tensor([0.0, INF, NAN, -1.0, 0.0])
    np.testing.assert_array_equal(lucid.xlogy(a, b).tolist(), [0, 0, NAN, 0, -INF])
    x = leaf(0.0, 1.0)
    lucid.sinc(x).sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [0.0, -1.0])
    one, other = leaf(NAN, 1.0, 2.0), leaf(1.0, NAN, 2.0)
    out = lucid.fmax(one, other)
    assert out.tolist() == lucid.fmin(one, other).tolist() == [1.0, 1.0, 2.0]
    out.sum().backward()
    assert (one.grad.tolist(), other.grad.tolist()) == ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0])
    assert lucid.logit(lucid.tensor([-1.0, 2.0]), eps=0.25).tolist() == pytest.approx([-math.log(3), math.log(3)])
    sizes = lucid.tensor([2.0, -0.0]).copysign(lucid.tensor([-0.0, 1.0]))
    assert sizes.tolist() == [-2.0, 0.0]
    assert math.copysign(1, sizes[1].item()) == 1


@pytest.mark.usefixtures("indices_are_read")
def test_levels_of_quantiles():
    """A vector of levels comes first in the shape; NaN makes all NaN unless it is skipped; 0 and 1 are ends."""
    x = lucid.tensor([[1.0, 2.0, 4.0], [NAN, 3.0, 5.0]])
    levels = lucid.tensor([0.0, 0.5, 1.0])
    np.testing.assert_array_equal(x.quantile(levels, 1).tolist(), [[1, NAN], [2, NAN], [4, NAN]])
    assert x.nanquantile(levels, 1).tolist() == [[1, 3], [2, 4], [4, 5]]
    assert x.nanquantile(levels, 1, keepdim=True).shape == (3, 2, 1)
    for name, value in (("lower", 2.0), ("higher", 4.0), ("nearest", 4.0), ("midpoint", 3.0), ("linear", 3.2)):
        assert x[0].quantile(0.8, interpolation=name).item() == pytest.approx(value)
    with pytest.raises(ValueError, match=r"q must be in the range \[0, 1\] but got 2"):
        x.quantile(2.0)
    for q in (-0.5, NAN):
        with pytest.raises(ValueError, match=r"q must be in the range \[0, 1\] but got tensor"):
            x.quantile(lucid.tensor([0.5, q]))
    with pytest.raises(TypeError, match=r"quantile: q: expected a number .*, got list"):
        x.quantile([0.5])
    np.testing.assert_array_equal(lucid.tensor([NAN, NAN]).nanmedian().item(), NAN)
