"""`lucid.scipy.special`: what its rows do not say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as theirs

import lucid
from lucid import numpy as lnp
from lucid.scipy import special
from lucid.tensor.numpy_calls.operands import NumpyCallError
from tests.scipy.checks import values

pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


def test_sums_of_what_is_infinite():
    """Of exponentials none of which, or not all, are finite: SciPy's sums, and the shares as slopes."""
    x = np.array([[-np.inf, -np.inf, -np.inf], [0.5, -np.inf, 1.5], [np.inf, 0.0, 1.0], [-np.inf, np.inf, np.inf]])
    leaf = lucid.tensor(x, requires_grad=True)
    for settings in ({"axis": 1}, {"axis": 1, "b": [1.0, 0.0, 2.0]}, {"axis": (0, 1)}):
        result, expected = special.logsumexp(leaf, **settings), theirs.logsumexp(x, **settings)
        np.testing.assert_allclose(values(result), expected, rtol=1e-12)
    (gradient,) = lucid.autograd.grad(special.logsumexp(leaf, axis=1)[1], leaf)
    np.testing.assert_allclose(values(gradient)[1], theirs.softmax(x[1]), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_with_what_is_not_counted(dtype):
    """Elements with a factor of 0 take no part, however large; a small rest is not lost; of nothing there is -inf."""
    tolerance = {"float32": 1e-6, "float64": 1e-14}[dtype]
    for x, b in (
        ([1.0, 1000.0, 2.0], [1.0, 0.0, 1.0]),
        ([np.inf, 0.0], [0.0, 1.0]),
        ([np.nan, 1.0], [0.0, 1.0]),
        ([5.0, 1.0], [0.0, 0.0]),
        ([0.0, -40.0], None),
        ([0.0, -40.0, -41.0], [1.0, 3.0, -1.0]),
        ([-40.0, 0.0], [1.0, -1.0]),
        ([1.0, 1.0], [1.0, -1.0]),
        ([[1.0, 2.0]], [[1.0], [-2.0]]),
        ([], None),
        (np.zeros((3, 0)), None),
    ):
        x = np.array(x, dtype)
        b = None if b is None else np.array(b, dtype)
        for settings in ({}, {"return_sign": True}, {"axis": -1, "keepdims": True}):
            given = {**settings} if b is None else {**settings, "b": b}
            if not x.size and "axis" not in given:
                continue
            with np.errstate(all="ignore"):
                expected = theirs.logsumexp(x, **given)
            made = special.logsumexp(lucid.tensor(x, requires_grad=True), **given)
            pair = [each if isinstance(each, tuple) else (each,) for each in (made, expected)]
            for one, other in zip(*pair, strict=True):
                np.testing.assert_allclose(values(one), other, rtol=tolerance, err_msg=f"{x} {given}")
    arrays = np.array([[1, 0, 900 if dtype == "float64" else 90, -2], [0, 1, 0, 2]], dtype)
    leaves = [lucid.tensor(each, requires_grad=True) for each in arrays]
    by_x, by_b = (values(each) for each in lucid.autograd.grad(special.logsumexp(leaves[0], b=leaves[1]), leaves))
    total = 1 + 2 * np.exp(-2)
    np.testing.assert_allclose(by_x, [0, 1 / total, 0, 1 - 1 / total], rtol=1e-6)
    np.testing.assert_allclose(by_b[[0, 1, 3]], np.exp([1, 0, -2]) / total, rtol=1e-6)


def test_orders_and_dimensions_outside_of_the_domain():
    """Of an order that is fractional, or below 0, there is SciPy's NaN; `multigammaln` outside of its domain raises."""
    x = lucid.tensor([1.5, 2.5], requires_grad=True)
    for order in (1.5, -1, -0.5):
        with np.errstate(invalid="ignore"):
            wanted = theirs.polygamma(order, [1.5, 2.5])
        np.testing.assert_array_equal(values(special.polygamma(order, x)), wanted)
    with pytest.raises(NumpyCallError, match=r"scipy.special.polygamma: with a Tensor the order must not require grad"):
        special.polygamma(lucid.tensor(2.0, requires_grad=True), x)
    with pytest.raises(ValueError, match=r"multigammaln: expected every a above 0.5 \* \(d - 1\) = 1.5"):
        special.multigammaln(x, 4)
    with pytest.raises(ValueError, match=r"multigammaln: d should be a positive integer"):
        special.multigammaln(x, 1.5)


def test_what_has_no_gradient_is_refused():
    """Orders that require grad, and numbers for which there is no rule, are refused by SciPy's name."""
    x = lucid.tensor([1.5], requires_grad=True)
    for call, words in (
        (lambda: special.zeta(x), r"scipy.special.zeta: with a Tensor q must be given"),
        (lambda: special.zeta(x, 2.0), r"scipy.special.zeta: only its last argument"),
        (lambda: special.jvp(x, 2.0), r"scipy.special.jvp: with a Tensor the order v must not require grad"),
        (lambda: special.spherical_kn(1, -x), r"scipy.special.spherical_kn: with a Tensor z must not be negative"),
        (lambda: special.comb(x, 1, exact=True), r"scipy.special.comb: .* got exact"),
    ):
        with pytest.raises(NumpyCallError, match=words):
            call()


def test_counts_outside_of_what_can_be_chosen():
    """Where nothing can be chosen the count is SciPy's, 0, and so are its slopes; below zero there is no factorial."""
    N, k = np.array([2.0, 2.0, -1.0, 3.0, np.nan, 5.0]), np.array([3.0, -1.0, 0.0, 3.0, 1.0, 0.0])
    for name in ("comb", "perm"):
        leaves = [lucid.tensor(each, requires_grad=True) for each in (N, k)]
        made = getattr(special, name)(*leaves)
        np.testing.assert_array_equal(values(made), getattr(theirs, name)(N, k))
        for grad in lucid.autograd.grad(made.sum(), leaves):
            assert np.isfinite(values(grad)).all()
            assert not values(grad)[:3].any()
    n = np.array([-1.0, -0.5, 0.0, 3.0, np.inf])
    leaf = lucid.tensor(n, requires_grad=True)
    np.testing.assert_array_equal(values(special.factorial(leaf)), theirs.factorial(n))


def test_orders_that_are_several():
    """The infinite slope of one order's function, and an order without a meaning, are theirs alone."""
    x, orders = np.array([1e-80, 0.5, 1.0]), np.array([[0], [5], [0.5]])
    leaf = lucid.tensor(x, requires_grad=True)
    result = special.polygamma(orders, leaf)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(values(result), theirs.polygamma(orders, x))
    result = special.polygamma([0, 5, 2], leaf)
    (gradient,) = lucid.autograd.grad(result, leaf, lucid.ones(3, dtype=lucid.float64))
    np.testing.assert_allclose(values(gradient), theirs.polygamma([1, 6, 3], x))


def test_softmax_of_nothing():
    """Of no lines there are none, along several axes too."""
    for function in (special.softmax, special.log_softmax):
        assert function(lucid.zeros(0, 3, requires_grad=True), axis=(1,)).shape == (0, 3)


def test_sums_of_complex_exponentials(rng):
    """They are SciPy's, with real and complex factors, also where the phases stand apart as a sign."""
    x = rng.standard_normal((3, 4)) * 3 + rng.standard_normal((3, 4)) * 9j
    b = rng.standard_normal((3, 4))
    b[:, 1] = 0
    for options in (
        {}, {"axis": (0, 1), "keepdims": True}, {"b": b}, {"b": b + 1j}, {"return_sign": True},
        {"b": b - 1j, "return_sign": True},
    ):  # fmt: skip
        settings = {"axis": 1, **options}
        leaf = lucid.tensor(x, requires_grad=True)
        made, wanted = special.logsumexp(leaf, **settings), theirs.logsumexp(x, **settings)
        made, wanted = ((made,), (wanted,)) if "return_sign" not in settings else (made, wanted)
        weights = [rng.standard_normal(each.shape) - 1j * rng.standard_normal(each.shape) for each in wanted]
        for mine, other in zip(made, wanted, strict=True):
            assert (mine.shape, values(mine).dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(values(mine), other, rtol=1e-12)
        total = sum(lnp.sum(lnp.real(mine * w)) for mine, w in zip(made, weights, strict=True))
        (gradient,) = lucid.autograd.grad(total, leaf)
        way = rng.standard_normal(x.shape) + 1j * rng.standard_normal(x.shape)
        ends = [theirs.logsumexp(x + step * way, **settings) for step in (1e-6, -1e-6)]
        ends = [each if isinstance(each, tuple) else (each,) for each in ends]
        slope = sum(np.sum(np.real((a - z) * w)) / 2e-6 for a, z, w in zip(*ends, weights, strict=True))
        np.testing.assert_allclose(np.sum(np.real(np.conj(values(gradient)) * way)), slope, rtol=1e-5, atol=1e-7)
    for each in ([0, -60 + 1j], [-np.inf, -np.inf + 0j], [np.inf + 1j, 2.0], [1000 + 1j, 1000 - 2j]):
        leaf = lucid.tensor(np.array(each), requires_grad=True)
        np.testing.assert_allclose(values(special.logsumexp(leaf)), theirs.logsumexp(each), rtol=1e-14)
        size, _ = theirs.logsumexp(each, return_sign=True)
        np.testing.assert_allclose(values(special.logsumexp(leaf, return_sign=True)[0]), size, rtol=1e-14)
