"""Shares and ratios of gamma variates that underflow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import lucid
from lucid import distributions as d
from lucid.autograd import gradcheck
from lucid.distributions.implicit import _log_gamma_slope, log_gamma
from tests.device import DEVICE
from tests.distributions.samples import of

MANY = 20_000 if DEVICE == "cpu" else 2_000


def is_near(count, share):
    """Tell whether a count of many draws is within five deviations of its mean."""
    return abs(count - MANY * share) <= 5 * np.sqrt(MANY * share * (1 - share)) + 1


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e-3), (2e-3, 1e-3), (1e-5, 1e-2), (0.3, 1e-3)])
def test_beta_variates_of_small_concentrations(a, b):
    """As many as SciPy's distribution says are in the middle, and on each side of it."""
    draws = d.Beta(of(a), b).sample((MANY,)).cpu().numpy()
    assert (draws > 0).all()
    for end in (1e-6, 0.01, 0.5, 0.99):
        assert is_near((draws < end).sum(), special.betainc(a, b, end))
    assert (draws == 0.5).sum() == 0


def test_shares_of_small_concentrations():
    """Nearly each draw has one share that is nearly 1, each as often as its concentration says."""
    a = np.array([1e-3, 2e-3, 3e-3])
    draws = d.Dirichlet(of(a)).sample((MANY,)).cpu().numpy()
    np.testing.assert_allclose(draws.sum(-1), 1, rtol=1e-12)
    for i in range(3):
        for end in (0.01, 0.99):
            assert is_near((draws[:, i] < end).sum(), special.betainc(a[i], a.sum() - a[i], end))


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
@pytest.mark.parametrize(("df1", "df2"), [(1e-3, 1e-3), (2e-2, 1e-3), (3.0, 5.0)])
def test_ratios_of_little_freedom(df1, df2, dtype):
    """As many as SciPy's distribution says are below a value, and all are numbers above 0."""
    draws = d.FisherSnedecor(of(df1, dtype), df2).sample((MANY,))
    assert (draws.isfinite() & (draws > 0)).all()
    for end in (1e-3, 0.5, 100.0):
        assert is_near((draws < end).sum().item(), stats.f(df1, df2).cdf(end))


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 3.0, 50.0])
def test_slopes_of_logarithms_of_gamma_variates(alpha):
    """At a constant share below they are the differences of SciPy's quantile; where it underflows, of its limit."""
    shares = np.array([1e-3, 0.2, 0.5, 0.9])

    def log_quantile(a):
        # of small z the share is z**a / gamma(a + 1)
        small = (np.log(shares) + special.gammaln(a + 1)) / a
        with np.errstate(divide="ignore"):
            return np.where(small < -300, small, np.log(special.gammaincinv(a, shares)))

    step = 1e-5 * alpha
    expected = (log_quantile(alpha + step) - log_quantile(alpha - step)) / (2 * step)
    found = _log_gamma_slope(of(alpha), of(log_quantile(alpha)))
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-6)


def test_gradients_of_draws_with_logarithms():
    """Their means have the slopes of digamma functions; a draw has a second derivative."""
    df1, df2 = (of(value, requires_grad=True) for value in (3.0, 9.0))
    logs = d.FisherSnedecor(df1, df2).rsample((MANY,)).log()
    slopes = lucid.autograd.grad(logs.mean(), (df1, df2))
    for slope, df, sign in zip(slopes, (3.0, 9.0), (1, -1), strict=True):
        assert slope.item() == pytest.approx(sign * (special.polygamma(1, df / 2) / 2 - 1 / df), rel=7 / MANY**0.5)
    at = log_gamma(of([1e-3, 0.5, 3.0])).detach()
    assert gradcheck(
        lambda a, z: _log_gamma_slope(a, z), (of([1e-2, 0.5, 3.0], requires_grad=True), at.requires_grad_())
    )
