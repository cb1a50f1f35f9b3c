"""Second derivatives of draws and of shares: those of differences of SciPy's quantiles, and of a mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import lucid
from lucid import distributions as d
from lucid.autograd import gradcheck, gradgradcheck
from tests.device import DEVICE
from tests.distributions.samples import of


def bends(quantile, at):
    """Return first and second derivatives of a function, by differences of the fourth order."""
    h = 4e-3 * at
    low, below, here, above, high = (quantile(at + k * h) for k in (-2, -1, 0, 1, 2))
    first = (low - 8 * below + 8 * above - high) / (12 * h)
    return first, (-low + 16 * below - 30 * here + 16 * above - high) / (12 * h * h)


def twice(draws, parameter):
    """Return first and second derivatives of the sum of squares of draws, one for each parameter."""
    (slope,) = lucid.autograd.grad(draws.square().sum(), parameter, create_graph=True)
    (bend,) = lucid.autograd.grad(slope.sum(), parameter)
    return slope.detach().cpu().numpy(), bend.cpu().numpy()


# by family: the share below a value of its parameters, and the value of a share
SHARES = {"Gamma": (special.gammainc, special.gammaincinv), "Beta": (special.betainc, special.betaincinv)}


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        *(("Gamma", (alpha,)) for alpha in (0.3, 1.0, 2.5, 40.0)),
        *(("Beta", both) for both in ((0.4, 0.7), (1.0, 1.0), (1.5, 2.0), (12.0, 30.0))),
    ],
)
def test_second_derivatives_of_draws(kind, parameters):
    """A draw bends with its first concentration as the quantile of its share does."""
    (at, *others), (share_of, quantile) = parameters, SHARES[kind]
    lucid.manual_seed(4)
    a = of(np.full(60, at), requires_grad=True)
    draws = getattr(d, kind)(a, *(others or [1.0])).rsample()
    x = draws.detach().cpu().numpy()
    share = share_of(at, *others, x)
    known = (share > 1e-2) & (share < 1 - 1e-2)
    first, second = bends(lambda at: quantile(at, *others, share), at)
    slope, bend = twice(draws, a)
    np.testing.assert_allclose(slope[known], (2 * x * first)[known], rtol=1e-5)
    size = (2 * first**2 + abs(2 * x * second))[known]
    np.testing.assert_allclose(bend[known] / size, ((2 * first**2 + 2 * x * second)[known]) / size, atol=1e-4)


@pytest.mark.cpu("many draws: few are the same on each device")
def test_second_derivatives_of_three_shares_are_those_of_their_mean():
    """The mean of ``x[0] * x[1]`` is ``a[0] * a[1] / (s * (s + 1))`` of concentrations with the sum s."""
    lucid.manual_seed(2)
    a = of([1.5, 2.0, 0.8], requires_grad=True)
    draws = d.Dirichlet(a.expand(20_000, 3)).rsample()
    (slope,) = lucid.autograd.grad((draws[:, 0] * draws[:, 1]).mean(), a, create_graph=True)
    found = np.array([lucid.autograd.grad(each, a, retain_graph=True)[0].cpu().numpy() for each in slope])
    exact = lucid.func.hessian(lambda a: a[0] * a[1] / (a.sum() * (a.sum() + 1)))(a.detach())
    np.testing.assert_allclose(found, exact.cpu().numpy(), atol=2e-3)


def test_second_derivatives_of_shares_of_gamma_variates():
    """The share below a value has those of its differences by both, and the mixed one."""
    few = slice(0, 5, 1 if DEVICE == "cpu" else 4)  # each takes long on simulated devices
    a, x = (
        of([0.4, 1.0, 2.5, 7.0, 40.0][few], requires_grad=True),
        of([0.5, 0.7, 1.7, 9.0, 35.0][few], requires_grad=True),
    )
    assert gradcheck(lambda a, x: d.Gamma(a, 1.0).cdf(x), (a, x))
    assert gradgradcheck(lambda a, x: d.Gamma(a, 1.0).cdf(x), (a, x), atol=1e-5, rtol=1e-4)
    at, step = 2.5, 1e-3
    bend = sum(w * special.gammainc(at + k * step, 1.7) for k, w in ((-1, 1), (0, -2), (1, 1))) / step**2
    hessian = lucid.func.hessian(lambda p: d.Gamma(p[0], 1.0).cdf(p[1]))(of([at, 1.7]))
    assert hessian[0, 0].item() == pytest.approx(bend, rel=1e-5)
    assert hessian[0, 1].item() == pytest.approx(hessian[1, 0].item(), rel=1e-9)
    for end in (0.0, math.inf):
        assert lucid.func.hessian(lambda p, end=end: d.Gamma(p, 1.0).cdf(of(end)))(of(2.0)).item() == 0


@pytest.mark.parametrize("concentration", [[[2.0], [0.3]], [[1e20, 1e3]]])
def test_a_share_beside_none(concentration):
    """It is always 1, and moves with nothing."""
    c = of(concentration, requires_grad=True)
    draw = d.Dirichlet(c).rsample()
    (slope,) = lucid.autograd.grad(draw[..., 0].sum(), c, create_graph=True)
    (bend,) = lucid.autograd.grad(slope.sum(), c)
    assert draw[..., 0].detach().cpu().numpy() == pytest.approx(1)
    assert slope[..., 0].tolist() == [0.0] * len(concentration)
    assert bend.isfinite().all()


@pytest.mark.parametrize("size", [2.0, 29.0, 31.0, 1e3, 1e5, 1e6, 1e7])
def test_float32_of_large_parameters(size):
    """Logarithms of densities, means and divergences keep the digits that their gamma functions lose."""
    n = lambda value: lucid.tensor(value, dtype=lucid.float32, device=DEVICE)
    root = float(np.float32(math.sqrt(size)))
    rows = [
        (d.StudentT(n(size)).log_prob(n(0.5)), stats.t(size).logpdf(0.5)),
        (d.Poisson(n(size)).log_prob(n(round(size + root))), stats.poisson(size).logpmf(round(size + root))),
        (d.Gamma(n(size), 1.0).log_prob(n(size)), stats.gamma(size).logpdf(size)),
        (d.Chi2(n(2 * size)).log_prob(n(2 * size)), stats.chi2(2 * size).logpdf(2 * size)),
        (d.Kumaraswamy(n(2.0), n(size)).mean.log(), np.log(size) + special.betaln(1.5, size)),
    ]
    for found, expected in rows:
        assert found.item() == pytest.approx(expected, rel=3e-5, abs=3e-5)
    # of float64 the formula has enough digits of these
    apart = [
        d.kl_divergence(d.Gamma(of(size).to(t), 1.0), d.Gamma(of(size + 2 * root).to(t), 1.0)).item()
        for t in (lucid.float32, lucid.float64)
    ]
    assert apart[0] == pytest.approx(apart[1], rel=0.03)
    other = [
        d.kl_divergence(d.Uniform(of(size).to(t), size + 1), d.Gamma(of(2.0).to(t), 1 / size)).item()
        for t in (lucid.float32, lucid.float64)
    ]
    assert other[0] == pytest.approx(other[1], abs=1e-4)


def test_densities_of_gamma_variates_have_derivatives_at_any_size():
    """By the concentration, the rate and the value, on both sides of the one from which a series is taken."""
    a, b = of([0.5, 3.0, 29.0, 31.0, 200.0], requires_grad=True), of([0.5, 1.0, 2.0, 1.5, 3.0], requires_grad=True)
    x = of([1.0, 2.0, 15.0, 20.0, 70.0], requires_grad=True)
    assert gradcheck(lambda a, b, x: d.Gamma(a, b).log_prob(x), (a, b, x))
    assert gradgradcheck(lambda a, b, x: d.Gamma(a, b).log_prob(x), (a, b, x))
    assert gradcheck(lambda a: d.StudentT(2 * a).log_prob(of(0.3)), (a,))
