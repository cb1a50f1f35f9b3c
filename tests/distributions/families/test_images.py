"""Densities and shares of transformed distributions out of the images of their transforms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import lucid
from lucid import distributions as d
from lucid.distributions import constraints
from lucid.errors import SettingError
from tests.distributions.samples import of


def logit_normal(x, loc, scale):
    """Return the logarithm of the density of ``2 + 3 * sigmoid(z)`` with normal numbers z."""
    y = (x - 2) / 3
    return stats.norm(loc, scale).logpdf(np.log(y / (1 - y))) - np.log(3 * y * (1 - y))


# a chain, values in its image, the logarithms of their densities, values out of it
CHAINS = {
    "interval": (
        lambda looks: d.TransformedDistribution(
            d.Normal(of(0.5), 2.0, looks), d.biject_to(constraints.interval(2.0, 5.0)), looks
        ),
        [2.1, 3.0, 4.9],
        lambda x: logit_normal(x, 0.5, 2.0),
        [10.0, -7.0, 5.1],
    ),
    "power": (
        lambda looks: d.TransformedDistribution(
            d.Exponential(of(1.0), looks), [d.PowerTransform(0.5), d.AffineTransform(0.0, 2.0)], looks
        ),
        [0.1, 1.0, 4.0],
        lambda x: stats.weibull_min(2, scale=2).logpdf(x),
        [-1.0, -0.1],
    ),
    "above": (
        lambda looks: d.TransformedDistribution(
            d.Normal(of(0.0), 1.0, looks), d.biject_to(constraints.greater_than(1.0)), looks
        ),
        [1.1, 3.0],
        lambda x: stats.lognorm(1).logpdf(x - 1),
        [1.0, 0.0, -3.0],
    ),
    "below": (
        lambda looks: d.TransformedDistribution(
            d.Normal(of(0.0), 1.0, looks), [d.TanhTransform(), d.AffineTransform(3.0, -2.0)], looks
        ),
        [1.5, 3.0, 4.9],
        lambda x: stats.norm.logpdf(np.arctanh((3 - x) / 2)) - np.log(2 * (1 - ((3 - x) / 2) ** 2)),
        [0.9, 5.1],
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_has_no_density_out_of_its_image(name):
    """Values that are looked at are refused; others have none, with no slope, beside others that have theirs."""
    make, inside, logs, outside = CHAINS[name]
    np.testing.assert_allclose(make(True).log_prob(of(inside)).cpu().numpy(), logs(np.array(inside)), rtol=1e-9)
    for value in outside:
        with pytest.raises(SettingError, match="expected results of"):
            make(True).log_prob(of([inside[0], value]))
    at = of([*inside, *outside, math.nan]).requires_grad_()
    found = make(False).log_prob(at)
    expected = [*logs(np.array(inside)), *(-math.inf for _ in outside), math.nan]
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected, rtol=1e-9)
    found[: len(inside)].sum().backward()
    assert at.grad[:-1].isfinite().all()
    assert (at.grad[len(inside) : -1] == 0).all()


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_has_shares_up_to_the_ends_of_its_image(name):
    """What is beyond a bound has the share of the bound, or is refused."""
    make, inside, _, outside = CHAINS[name]
    ends = {value: float(value > max(inside)) for value in outside}
    for value, share in ends.items():
        assert make(False).cdf(of(value)).item() == pytest.approx(share, abs=1e-12)
        if value != 1.0:
            with pytest.raises(SettingError, match="expected values"):
                make(True).cdf(of(value))
    assert d.TransformedDistribution(d.Normal(of(0.0), 1.0, True), d.ExpTransform(), True).cdf(of(0.0)).item() == 0


def test_events_out_of_the_image_of_a_chain():
    """One element of an event that is out of the image takes its density from the event, and from no other."""
    base = d.Independent(d.Normal(of([0.0, 0.0]), 1.0, False), 1)
    made = d.TransformedDistribution(base, d.biject_to(constraints.interval(2.0, 5.0)), False)
    found = made.log_prob(of([[3.0, 4.0], [3.0, 7.0]])).cpu().numpy()
    np.testing.assert_allclose(found, [logit_normal(np.array([3.0, 4.0]), 0, 1).sum(), -math.inf], rtol=1e-9)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
@pytest.mark.parametrize("looks", [False, True])
def test_draws_of_a_chain_are_in_its_image(dtype, looks):
    """Also those at its ends, where rounding takes them beyond; and with a cache those rounded to a bound."""
    chain = d.biject_to(constraints.interval(0.1, 0.3))
    made = d.TransformedDistribution(d.Normal(of(0.0, dtype), 50.0, looks), chain, looks)
    assert made.log_prob(made.sample((2000,))).isfinite().all()
    squash = [d.TanhTransform(cache_size=1), d.AffineTransform(1.0, 0.5, cache_size=1)]
    made = d.TransformedDistribution(d.Normal(of(0.0, dtype), 50.0, looks), squash, looks)
    assert made.log_prob(made.sample((2000,))).isfinite().all()


def test_what_no_weibull_number_can_be():
    """A share is asked of values from 0 on; an even power makes no other of those below."""
    with pytest.raises(SettingError, match="expected values above 0"):
        d.Weibull(of(1.0), 2.0, validate_args=True).cdf(of(-1.0))
    assert d.Weibull(of(1.0), 2.0, validate_args=False).cdf(of(-1.0)).item() == 0
    assert d.Weibull(of(1.0), 2.0, validate_args=True).cdf(of(0.0)).item() == 0
