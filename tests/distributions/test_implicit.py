"""Second derivatives of draws and of shares: those of differences of SciPy's quantiles, and of a mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import lucid
from lucid import distributions as d
from lucid.autograd import gradcheck, gradgradcheck
from tests.device import DEVICE


def of(value, **settings):
    """Return a tensor of float64 on the device that is tested."""
    return lucid.tensor(value, dtype=lucid.float64, device=DEVICE, **settings)


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


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.5, 40.0])
def test_second_derivatives_of_gamma_draws(alpha):
    """A draw bends with its concentration as the quantile of its share does."""
    lucid.manual_seed(1)
    a = of(np.full(60, alpha), requires_grad=True)
    draws = d.Gamma(a, 1.0).rsample()
    z = draws.detach().cpu().numpy()
    share = special.gammainc(alpha, z)
    known = (share > 1e-2) & (share < 1 - 1e-2)
    first, second = bends(lambda at: special.gammaincinv(at, share), alpha)
    slope, bend = twice(draws, a)
    np.testing.assert_allclose(slope[known], (2 * z * first)[known], rtol=1e-5)
    size = (2 * first**2 + abs(2 * z * second))[known]
    np.testing.assert_allclose(bend[known] / size, ((2 * first**2 + 2 * z * second)[known]) / size, atol=1e-4)


@pytest.mark.parametrize(("a", "b"), [(0.4, 0.7), (1.0, 1.0), (1.5, 2.0), (12.0, 30.0)])
def test_second_derivatives_of_beta_draws(a, b):
    """A draw bends with its first concentration as the quantile of its share does."""
    lucid.manual_seed(4)
    first_of = of(np.full(60, a), requires_grad=True)
    draws = d.Beta(first_of, b).rsample()
    x = draws.detach().cpu().numpy()
    share = special.betainc(a, b, x)
    known = (share > 1e-2) & (share < 1 - 1e-2)
    first, second = bends(lambda at: special.betaincinv(at, b, share), a)
    slope, bend = twice(draws, first_of)
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
    a, x = of([0.4, 1.0, 2.5, 7.0, 40.0], requires_grad=True), of([0.5, 0.7, 1.7, 9.0, 35.0], requires_grad=True)
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
