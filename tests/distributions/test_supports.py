"""Values out of the support, of each family: no density, no slope by a parameter, and NaN stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import lucid
from lucid import distributions as d
from lucid.errors import SettingError, ShapeError
from tests.distributions.samples import of

# a family, its parameters, a value of the support, and one out of it
OUTSIDE = {
    "Bernoulli": (d.Bernoulli, [0.3], 1.0, 2.0),
    "Beta": (d.Beta, [2.0, 3.0], 0.5, 1.5),
    "Binomial": (d.Binomial, [5.0, 0.4], 2.0, 7.0),
    "Categorical": (d.Categorical, [[0.2, 0.8]], 1.0, 2.0),
    "Chi2": (d.Chi2, [3.0], 1.5, -1.0),
    "ContinuousBernoulli": (d.ContinuousBernoulli, [0.3], 0.5, -1.0),
    "Dirichlet": (d.Dirichlet, [[2.0, 3.0]], [0.4, 0.6], [0.3, 0.3]),
    "Exponential": (d.Exponential, [2.0], 1.0, -1.0),
    "FisherSnedecor": (d.FisherSnedecor, [3.0, 5.0], 1.0, -1.0),
    "Gamma": (d.Gamma, [2.0, 1.0], 1.0, -1.0),
    "a large Gamma": (d.Gamma, [1e17, 1.0], 1e17, -1.0),
    "GeneralizedPareto": (d.GeneralizedPareto, [0.5, 1.0, -0.5], 1.0, 3.0),
    "Geometric": (d.Geometric, [0.3], 2.0, -1.0),
    "HalfCauchy": (d.HalfCauchy, [2.0], 1.0, -1.0),
    "HalfNormal": (d.HalfNormal, [2.0], 1.0, -1.0),
    "InverseGamma": (d.InverseGamma, [2.0, 1.0], 1.0, -1.0),
    "Kumaraswamy": (d.Kumaraswamy, [2.0, 3.0], 0.5, 1.5),
    "LKJCholesky": (lambda c, **k: d.LKJCholesky(2, c, **k), [2.0], [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [1.0, 1.0]]),
    "LogNormal": (d.LogNormal, [0.0, 1.0], 1.0, 0.0),
    "LogisticNormal": (d.LogisticNormal, [0.0, 1.0], [0.4, 0.6], [0.3, 0.3]),
    "Multinomial": (lambda p, **k: d.Multinomial(2, p, **k), [[0.4, 0.6]], [1.0, 1.0], [3.0, 3.0]),
    "NegativeBinomial": (d.NegativeBinomial, [3.0, 0.4], 2.0, -3.0),
    "OneHotCategorical": (d.OneHotCategorical, [[0.4, 0.6]], [0.0, 1.0], [1.0, 1.0]),
    "Pareto": (d.Pareto, [1.0, 2.0], 2.0, -0.5),
    "Poisson": (d.Poisson, [2.0], 1.0, -1.0),
    "RelaxedBernoulli": (d.RelaxedBernoulli, [0.5, 0.3], 0.5, 1.5),
    "RelaxedOneHotCategorical": (d.RelaxedOneHotCategorical, [0.5, [0.4, 0.6]], [0.3, 0.7], [1.0, 1.0]),
    "Uniform": (d.Uniform, [1.0, 3.0], 2.0, 4.0),
    "Weibull": (d.Weibull, [1.0, 2.5], 1.0, -1.0),
    "Wishart": (d.Wishart, [3.0, [[2.0, 0.5], [0.5, 1.0]]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_there_is_no_density_out_of_the_support(name):
    """It is refused if it is looked at, otherwise the slopes are those of the values that have a density."""
    kind, parameters, inside, outside = OUTSIDE[name]
    with pytest.raises(SettingError, match=rf"{name.split()[-1]}: expected values"):
        kind(*map(of, parameters), validate_args=True).log_prob(of([inside, outside]))

    def slopes(values, count):
        tensors = [of(each).requires_grad_() for each in parameters]
        logs = kind(*tensors, validate_args=False).log_prob(of(values))
        found = lucid.autograd.grad(logs.sum() if count is None else logs[:count].sum(), tensors, allow_unused=True)
        return logs.tolist(), [None if each is None else each.cpu().numpy() for each in found]

    nothing = np.full(np.shape(inside), math.nan).tolist()
    logs, found = slopes([inside, outside, nothing], 1)
    alone, expected = slopes([inside], None)
    assert logs[1] == -math.inf
    assert math.isnan(logs[2])
    assert logs[:1] == pytest.approx(alone)
    for ours, right in zip(found, expected, strict=True):
        assert np.isfinite(right).all()
        np.testing.assert_allclose(ours, right, rtol=1e-12)
    for ours in slopes([outside], None)[1]:
        assert (ours == 0).all()


@pytest.mark.parametrize("looks", [False, True])
def test_counts_are_whole(looks):
    """Parts of counts are no counts, however they sum up."""
    made = d.Multinomial(2, of([0.5, 0.5]), validate_args=looks)
    assert made.log_prob(of([1.0, 1.0])).item() == pytest.approx(math.log(0.5))
    if looks:
        with pytest.raises(SettingError, match="expected values of counts"):
            made.log_prob(of([0.5, 0.5]))
    else:
        assert made.log_prob(of([0.5, 0.5])).item() == -math.inf


def test_a_component_that_cannot_draw_a_value():
    """The slopes of a mixture are those of its other components."""
    c = of([0.5, 0.5]).requires_grad_()
    parts = d.GeneralizedPareto(of([0.0, 5.0]), 1.0, c, validate_args=False)
    logs = d.MixtureSameFamily(d.Categorical(of([0.5, 0.5])), parts, validate_args=False).log_prob(of(2.0))
    logs.backward()
    ends = [stats.genpareto(0.5 + step).logpdf(2.0) for step in (1e-6, -1e-6)]
    assert c.grad.tolist() == pytest.approx([(ends[0] - ends[1]) / 2e-6, 0.0], abs=1e-8)


def test_a_masked_gamma_density():
    """Its slope by the shape is that of the one value that is used."""
    a, x = of(2.0).requires_grad_(), of([1.0, -1.0])
    logs = d.Gamma(a, 1.0, validate_args=False).log_prob(x)
    lucid.where(x > 0, logs, 0.0).sum().backward()
    assert a.grad.item() == pytest.approx(-special.digamma(2), rel=1e-12)


@pytest.mark.parametrize("looks", [False, True])
def test_one_element_for_an_event(looks):
    """It stands for all elements, which together are looked at, or have no density."""
    for made, value in (
        (d.OneHotCategorical(of([0.2, 0.3, 0.5]), validate_args=looks), [1.0]),
        (d.Dirichlet(of([2.0, 2.0, 2.0]), validate_args=looks), [1.0]),
        (d.Multinomial(2, of([0.2, 0.3, 0.5]), validate_args=looks), [2.0]),
        (d.LKJCholesky(2, of(1.0), validate_args=looks), [[1.0]]),
        (d.Wishart(of(3.0), of(np.eye(2)), validate_args=looks), [[1.0]]),
    ):
        if looks:
            with pytest.raises(SettingError, match="expected values"):
                made.log_prob(of(value))
        else:
            assert made.log_prob(of(value)).item() == -math.inf
    third = d.Dirichlet(of([2.0, 2.0, 2.0]), validate_args=looks).log_prob(of([1 / 3]))
    assert third.item() == pytest.approx(stats.dirichlet([2, 2, 2]).logpdf([1 / 3] * 3), rel=1e-12)
    with pytest.raises(ShapeError, match=r"expected values whose last dimensions are \(1,\), got shape \(3,\)"):
        d.Independent(d.Normal(of([0.0]), 1.0), 1, looks)._validate_sample(of([0.0, 1.0, 2.0]))


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_slopes_by_small_rates_beside_a_value_out_of_the_support(dtype):
    """The value that stands for one out of the support has a finite density for every rate."""
    for rate in (1e-3, 1e-6, 1e3):
        a = of(rate, dtype).requires_grad_()
        d.Pareto(of(1.0, dtype), a, validate_args=False).log_prob(of([0.5, 3.0], dtype)).sum().backward()
        assert a.grad.item() == pytest.approx(1 / rate - math.log(3), rel=1e-5)
