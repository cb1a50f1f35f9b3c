"""Functions of draws that fall, of counts, and of repeated numbers; dimensions that are part of one draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import lucid
from lucid import distributions as d
from lucid.autograd import gradcheck
from lucid.errors import SettingError, ShapeError
from tests.distributions.samples import of

SHAPES = np.array([[2.0], [0.5], [40.0]])
# ours, SciPy's, and values far above
FALLING = {
    "Cauchy": (lambda **k: d.Cauchy(of(0.5), 2.0, **k), stats.cauchy(0.5, 2), [-3.0, 0.6, 1e9, 1e18]),
    "Exponential": (lambda **k: d.Exponential(of(2.0), **k), stats.expon(scale=0.5), [0.1, 40.0, 300.0]),
    "Gamma": (lambda **k: d.Gamma(of(SHAPES), 1.5, **k), stats.gamma(SHAPES, scale=1 / 1.5), [0.1, 30.0, 400.0]),
    "GeneralizedPareto": (
        lambda **k: d.GeneralizedPareto(of(0.5), 2.0, 0.1, **k), stats.genpareto(0.1, 0.5, 2), [0.6, 1e5],
    ),
    "Gumbel": (lambda **k: d.Gumbel(of(0.5), 2.0, **k), stats.gumbel_r(0.5, 2), [-3.0, 1.0, 90.0]),
    "HalfCauchy": (lambda **k: d.HalfCauchy(of(2.0), **k), stats.halfcauchy(scale=2), [0.1, 1.0, 1e18]),
    "HalfNormal": (lambda **k: d.HalfNormal(of(2.0), **k), stats.halfnorm(scale=2), [0.1, 1.0, 30.0]),
    "Kumaraswamy": (lambda **k: d.Kumaraswamy(of(1.0), 5.0, **k), stats.beta(1, 5), [0.1, 0.9999]),
    "Laplace": (lambda **k: d.Laplace(of(0.5), 2.0, **k), stats.laplace(0.5, 2), [-3.0, 0.6, 90.0]),
    "LogNormal": (lambda **k: d.LogNormal(of(0.0), 1.0, **k), stats.lognorm(1), [0.1, 1e6]),
    "Normal": (lambda **k: d.Normal(of(0.5), 2.0, **k), stats.norm(0.5, 2), [-3.0, 0.6, 30.0]),
    "Pareto": (lambda **k: d.Pareto(of(1.0), 3.0, **k), stats.pareto(3), [1.1, 1e9]),
    "Uniform": (lambda **k: d.Uniform(of(-1.0), 1.0, **k), stats.uniform(-1, 2), [-0.9, 1 - 1e-14]),
    "Weibull": (lambda **k: d.Weibull(of(2.0), 0.5, **k), stats.weibull_min(0.5, scale=2), [0.1, 1e3]),
}  # fmt: skip


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("row", FALLING)
def test_small_shares_of_what_falls(row, looks):
    """Shares below a negative number are those above the number, and keep their digits; so do quantiles."""
    make, reference, values = FALLING[row]
    base, at = make(validate_args=looks), np.array(values)
    for scale in (-1.0, of(-1.0), of([[-1.0]] * 3)):
        made = d.TransformedDistribution(base, d.AffineTransform(0.0, scale), validate_args=looks)
        found = made.cdf(of(-at)).cpu().numpy()
        np.testing.assert_allclose(found, np.broadcast_to(reference.sf(at), found.shape), rtol=1e-11)
        # twice turned round it is the share below, by parts that know their own sides
        again = d.TransformedDistribution(made, d.AffineTransform(1.0, -0.5), validate_args=looks)
        found = again.cdf(of(1 + 0.5 * at)).cpu().numpy()
        np.testing.assert_allclose(found, np.broadcast_to(reference.cdf(at), found.shape), rtol=1e-6, atol=1e-14)
        if row == "Gamma":
            continue
        share = np.array([1e-20, 1e-6, 0.3, 0.7])
        np.testing.assert_allclose(
            made.icdf(of(share)).cpu().numpy(),
            np.broadcast_to(-reference.isf(share), made.icdf(of(share)).shape),
            rtol=1e-11,
        )


def test_shares_of_reciprocals():
    """Those of an `InverseGamma` keep their digits near 0, and are 0 and 1 at the ends."""
    x = np.array([0.005, 0.01, 0.02, 0.05, 1.0, 30.0])
    np.testing.assert_allclose(
        d.InverseGamma(of(2.0), 1.0).cdf(of(x)).cpu().numpy(), stats.invgamma(2).cdf(x), rtol=1e-11
    )
    made = d.InverseGamma(of(2.0), 1.0, validate_args=False)
    assert made.cdf(of([-1.0, 0.0, math.inf])).tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("scale", [-2.0, 0.5])
def test_slopes_of_shares_and_quantiles_of_what_falls(scale):
    """By the value, the share and the setting of the transform, also at the ends of shares."""
    x, share, a = of([0.5, 2.0], requires_grad=True), of([0.1, 0.6], requires_grad=True), of(scale, requires_grad=True)

    def made(a, kind=d.Exponential):
        return d.TransformedDistribution(
            kind(*(of(1.5) for _ in range(2 if kind is d.Gamma else 1))), d.AffineTransform(0.0, a)
        )

    sign = math.copysign(1, scale)
    assert gradcheck(lambda x, a: made(a).cdf(sign * x), (x, a))
    assert gradcheck(lambda x, a: made(a, d.Gamma).cdf(sign * x), (x, a))
    assert gradcheck(lambda s, a: made(a).icdf(s), (share, a))
    end = of([0.0 if scale > 0 else 1.0], requires_grad=True)
    (slope,) = lucid.autograd.grad(made(a).icdf(end), end)
    assert slope.item() == pytest.approx(abs(scale) / 1.5)


def test_shares_of_mixtures_that_are_turned_round():
    """Each component has its own."""
    mixture = d.MixtureSameFamily(d.Categorical(of([0.25, 0.75])), d.Normal(of([0.0, 1.0]), 1.0))
    turned = d.TransformedDistribution(mixture, d.AffineTransform(0.0, -1.0))
    expected = 0.25 * stats.norm.sf(20) + 0.75 * stats.norm.sf(19)
    assert turned.cdf(of(-20.0)).item() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("looks", [True, False])
def test_functions_of_counts_have_their_probabilities(looks):
    """They sum to 1 whatever the slope of the function, of several counts too."""
    transform = d.AffineTransform(1.0, 2.0)
    made = d.TransformedDistribution(d.Poisson(of([3.0, 0.5]), validate_args=looks), transform, validate_args=looks)
    k = np.arange(60.0)
    found = made.log_prob(of(1 + 2 * k[:, None]))
    np.testing.assert_allclose(found.cpu().numpy(), stats.poisson([3.0, 0.5]).logpmf(k[:, None]), rtol=1e-11)
    several = d.TransformedDistribution(d.Independent(d.Poisson(of([3.0, 0.5])), 1), transform)
    expected = stats.poisson([3.0, 0.5]).logpmf([2, 1]).sum()
    assert several.log_prob(of([5.0, 3.0])).item() == pytest.approx(expected)
    shifted = d.TransformedDistribution(d.Bernoulli(of(0.3)), [transform, d.AffineTransform(0.0, -1.0)])
    assert shifted.log_prob(of([-1.0, -3.0])).exp().tolist() == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize(
    "make",
    [
        lambda: d.Independent(d.Normal(of([0.0]), 1.0), 1),
        lambda: d.MultivariateNormal(of([0.0]), scale_tril=of([[1.0]])),
        lambda: d.Dirichlet(of([[1.0], [2.0]])),
    ],
)
def test_draws_are_not_widened_by_repeated_numbers(make):
    """Those have no density; what is widened by the batch is drawn for each element."""
    with pytest.raises(ShapeError, match=r"that keep the shape of a draw of the base, \(1,\), got some .* \(3,\)"):
        d.TransformedDistribution(make(), d.AffineTransform(0.0, of([1.0, 2.0, 3.0])))
    lucid.manual_seed(0)
    wide = d.TransformedDistribution(d.Normal(of([0.0]), 1.0), d.AffineTransform(0.0, of([1.0, 2.0, 3.0]), event_dim=1))
    assert len({*(wide.sample() / of([1.0, 2.0, 3.0])).tolist()}) == 3


def test_values_of_independent_parts_are_looked_at():
    """Where that is asked for, though the base does not; and not where it is not."""
    for base, values in ((d.Normal, [math.nan, 1.0]), (d.Exponential, [-1.0, 1.0])):
        part = base(*(of([1.0, 1.0]) for _ in base.arg_constraints), validate_args=False)
        with pytest.raises(SettingError, match=r"Independent: expected values"):
            d.Independent(part, 1, validate_args=True).log_prob(of(values))
        with pytest.raises(ShapeError, match=r"Independent: expected values whose last dimensions are \(2,\)"):
            d.Independent(part, 1, validate_args=True).log_prob(of([1.0, 1.0, 1.0]))
        assert not d.Independent(part, 1).log_prob(of(values)).isfinite()
        assert not d.Independent(part, 1, validate_args=False).log_prob(of(values)).isfinite()

    class Own(d.Normal):
        support = d.constraints.dependent

    # of a base that knows no support nothing can be said
    d.Independent(Own(of([0.0]), 1.0), 1, validate_args=True).log_prob(of([2.0]))
