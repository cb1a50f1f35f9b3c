"""A continuous Bernoulli of any logits: what its formulas say, in all digits, with slopes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import lucid
from lucid import distributions as d
from lucid.autograd import gradcheck, gradgradcheck
from tests.distributions.samples import of

SLOPES = np.array([0.0, 1e-12, -1e-6, 3e-3, -5e-3, 0.05, -0.3, 0.99, -1.01, 2.5, -7.0, 20.0, -29.0])
NODES, WEIGHTS = special.roots_sh_legendre(80)


def moments(t):
    """Return integral, mean and variance of ``exp(t * x)`` from 0 to 1, by Gauss's rule."""
    density = WEIGHTS * np.exp(t[:, None] * NODES)
    size = density.sum(-1)
    mean = (density * NODES).sum(-1) / size
    return size, mean, (density * (NODES - mean[:, None]) ** 2).sum(-1) / size


@pytest.mark.parametrize(("dtype", "rtol"), [(lucid.float32, 3e-6), (lucid.float64, 3e-13)])
def test_values_of_any_logits(dtype, rtol):
    """Density, moments, entropy and shares are those of integrals."""
    t = SLOPES.astype(np.float32 if dtype is lucid.float32 else np.float64).astype(float)
    made = d.ContinuousBernoulli(logits=of(t, dtype))
    size, mean, variance = moments(t)
    for x in (0.0, 0.25, 1.0):
        logs = made.log_prob(of(x, dtype)).cpu().numpy()
        np.testing.assert_allclose(logs, t * x - np.log(size), rtol=rtol, atol=20 * rtol)
    np.testing.assert_allclose(made.mean.cpu().numpy(), mean, rtol=rtol)
    np.testing.assert_allclose(made.variance.cpu().numpy(), variance, rtol=20 * rtol)
    entropy = np.log(size) - t * mean
    np.testing.assert_allclose(made.entropy().cpu().numpy(), entropy, rtol=20 * rtol, atol=20 * rtol)
    for x in (1e-20, 0.1, 0.5, 0.9):
        shares = np.array([x if a == 0 else math.expm1(a * x) / math.expm1(a) for a in t])
        found = made.cdf(of(x, dtype))
        np.testing.assert_allclose(found.cpu().numpy(), shares, rtol=10 * rtol)
        np.testing.assert_allclose(made.icdf(found).cpu().numpy()[abs(t) < 3], x, rtol=0, atol=10 * rtol)
    assert made.icdf(of(0.0, dtype)).tolist() == pytest.approx([0.0] * t.size, abs=rtol)
    assert made.icdf(of(1.0, dtype)).tolist() == pytest.approx([1.0] * t.size, abs=rtol)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_large_logits(dtype):
    """One side is that of the exponential distribution, and the other its mirror image."""
    t = np.array([40.0, 100.0, 1e3, 1e6])
    exponential = d.Exponential(of(t, dtype))
    x = of([1e-7, 1e-3, 0.01, 0.03], dtype).reshape(4, 1)
    low, high = (d.ContinuousBernoulli(logits=of(t * sign, dtype)) for sign in (-1, 1))
    for what in (lambda made: made.log_prob(x), lambda made: made.cdf(x), lambda made: made.icdf(x)):
        np.testing.assert_allclose(what(low).cpu().numpy(), what(exponential).cpu().numpy(), rtol=2e-5, atol=1e-30)
    np.testing.assert_allclose(low.mean.cpu().numpy(), 1 / t, rtol=1e-6)
    np.testing.assert_allclose(low.entropy().cpu().numpy(), 1 - np.log(t), rtol=1e-6)
    for one in (low, high):
        np.testing.assert_allclose(one.variance.cpu().numpy(), 1 / t**2, rtol=1e-6)
    np.testing.assert_allclose(high.mean.cpu().numpy(), 1 - 1 / t, rtol=1e-6)
    other = d.ContinuousBernoulli(logits=of(-2 * t, dtype))
    # float32 keeps as many digits as the logits leave
    assert d.kl_divergence(low, other).tolist()[:3] == pytest.approx([1 - math.log(2)] * 3, abs=2e-4)
    uniform = d.Uniform(of(0.0, dtype), 1.0)
    apart = d.kl_divergence(uniform, high).cpu().numpy()
    np.testing.assert_allclose(apart, 0.5 * t - np.log(t), rtol=1e-5)


@pytest.mark.parametrize("what", ["mean", "variance", "entropy", "log_prob", "cdf", "icdf"])
def test_derivatives_by_the_logits(what):
    """Those of differences, of both orders, through the places where series begin and at 0."""
    t = of([0.0, 1e-3, -0.004, 0.2, -0.999, 1.001, 3.0, -12.0], requires_grad=True)

    def said(t):
        made = getattr(d.ContinuousBernoulli(logits=t), what)
        if what in {"mean", "variance"}:
            return made
        return made() if what == "entropy" else made(of(0.3))

    assert gradcheck(said, (t,))
    assert gradgradcheck(said, (t,), atol=1e-4, rtol=1e-3)


def test_float32_near_one_half():
    """Variance and slopes of float32 are those of float64."""
    p = np.float32([0.49, 0.498, 0.4985, 0.499, 0.5, 0.5012, 0.52])
    found = []
    for dtype in (lucid.float32, lucid.float64):
        probs = of(p, dtype, requires_grad=True)
        made = d.ContinuousBernoulli(probs)
        (slope,) = lucid.autograd.grad(made.log_prob(of(0.5, dtype)).sum(), probs)
        found.append((made.stddev.detach().cpu().numpy(), slope.cpu().numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-7)
