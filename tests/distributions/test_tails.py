"""Tails and ends: small shares keep their digits, and what is at an end of a distribution is of its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import lucid
from lucid import distributions as d
from lucid.autograd import gradcheck, gradgradcheck
from tests.distributions.samples import of

shares_asked = np.array([1e-300, 1e-80, 1e-20, 1e-12, 1e-5, 0.01, 0.2, 0.3, 0.5, 0.55, 0.8, 0.999])
BELOW = np.array([-1e20, -300.0, -37.0, -20.0, -6.0, -1.0, -0.1, 0.0, 0.3, 2.0, 30.0])
ABOVE = np.array([1e-200, 1e-17, 1e-6, 0.1, 1.0, 5.0])
# ours, SciPy's and values whose shares are asked for
TAILS = {
    "Normal": (lambda n: d.Normal(n(0.5), 2.0), stats.norm(0.5, 2), BELOW),
    "Laplace": (lambda n: d.Laplace(n(0.5), 2.0), stats.laplace(0.5, 2), BELOW),
    "Cauchy": (lambda n: d.Cauchy(n(0.5), 2.0), stats.cauchy(0.5, 2), BELOW),
    "HalfNormal": (lambda n: d.HalfNormal(n(2.0)), stats.halfnorm(scale=2), ABOVE),
    "HalfCauchy": (lambda n: d.HalfCauchy(n(2.0)), stats.halfcauchy(scale=2), ABOVE),
    "LogNormal": (lambda n: d.LogNormal(n(0.0), 1.0), stats.lognorm(1), np.array([1e-12, 1e-4, 0.5, 3.0])),
    "Weibull": (lambda n: d.Weibull(n(1.5), 2.0), stats.weibull_min(2, scale=1.5), ABOVE),
    "turned": (
        lambda n: d.TransformedDistribution(d.Exponential(n(1.0)), [d.AffineTransform(0.0, n(1.0))]),
        stats.expon,
        ABOVE,
    ),
    "turned by a number": (
        lambda n: d.TransformedDistribution(d.Exponential(n(1.0)), [d.AffineTransform(0.0, 1.0)]),
        stats.expon,
        ABOVE,
    ),
}


@pytest.mark.parametrize(("dtype", "rtol", "least"), [(lucid.float32, 1e-5, 1e-30), (lucid.float64, 2e-12, 0.0)])
@pytest.mark.parametrize("row", TAILS)
def test_small_shares_are_scipys(row, dtype, rtol, least):
    """Shares below and quantiles, down to the smallest that the dtype holds."""
    make, reference, values = TAILS[row]
    made = make(lambda value: of(value, dtype))
    # float32's rounding of a value is as much more of a share as the tail falls there
    at = values.astype(np.float32).astype(float) if dtype is lucid.float32 else values
    shares = reference.cdf(at)
    known = (shares > least) & (abs(at) < (12 if least else 1e300))
    if row == "Cauchy":
        known = shares > least
    found = made.cdf(of(at, dtype)).cpu().numpy()
    np.testing.assert_allclose(found[known], shares[known], rtol=10 * rtol if least else rtol)
    wanted = shares_asked[shares_asked > least].astype(np.float32 if least else np.float64).astype(float)
    quantiles = reference.ppf(wanted)
    # what is not tested: zeros of a quantile, of which there is the rounding of what is added
    np.testing.assert_allclose(made.icdf(of(wanted, dtype)).cpu().numpy(), quantiles, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(lucid.float32, 1e-6), (lucid.float64, 1e-13)])
@pytest.mark.parametrize(
    ("kind", "reference"), [(d.HalfCauchy, stats.halfcauchy(scale=2)), (d.HalfNormal, stats.halfnorm(scale=2))]
)
def test_quantiles_of_shares_near_one(kind, reference, dtype, rtol):
    """They are those of what is left above, infinite of a share of 1, and have slopes."""
    steps = np.array([1, 2, 2**4, 2**12, 2**20]) * np.finfo(np.float32 if dtype is lucid.float32 else float).eps / 2
    made = kind(of(2.0, dtype))
    found = made.icdf(of(1 - steps, dtype))
    np.testing.assert_allclose(found.cpu().numpy(), reference.isf(steps), rtol=rtol)
    assert made.icdf(of([0.0, 1.0], dtype)).tolist() == [0.0, math.inf]
    share = of([1e-3, 0.2, 0.4999, 0.5001, 0.9], requires_grad=True)
    assert gradcheck(kind(of(2.0)).icdf, (share,))


@pytest.mark.parametrize("kind", [d.Normal, d.Laplace, d.Cauchy])
def test_ends_and_derivatives_of_quantiles(kind):
    """Quantiles of 0 and 1 are infinite, and all have derivatives of both orders, also the median."""
    made = kind(of(0.0), 1.0)
    assert made.icdf(of([0.0, 1.0, 0.5])).tolist() == [-math.inf, math.inf, 0.0]
    assert made.cdf(of([-math.inf, math.inf])).tolist() == [0.0, 1.0]
    share = of([0.01, 0.2, 0.24, 0.26, 0.4, 0.6, 0.76, 0.9], requires_grad=True)
    assert gradcheck(made.icdf, (share,))
    assert gradgradcheck(made.icdf, (share,), rtol=1e-4, atol=1e-4)
    x = of([-3.0, -0.5, 0.4, 2.0], requires_grad=True)
    assert gradcheck(made.cdf, (x,))
    assert gradgradcheck(made.cdf, (x,))
    place, middle = of(0.0, requires_grad=True), of(0.5, requires_grad=True)
    (height,) = lucid.autograd.grad(made.cdf(place), place)
    assert height.item() == pytest.approx(made.log_prob(place).exp().item())
    (slope,) = lucid.autograd.grad(made.icdf(middle), middle)
    assert slope.item() == pytest.approx(1 / height.item())


# a family, its parameters, and values at which the chain rule meets 0 times infinity, beside usual ones
ENDS = [
    ("Normal", (0.3, 2.0), [-math.inf, math.inf, 1.0]),
    ("Laplace", (0.3, 2.0), [-math.inf, math.inf, 1.0]),
    ("Cauchy", (0.3, 2.0), [-math.inf, math.inf, 1.0]),
    ("Gumbel", (0.3, 2.0), [-math.inf, math.inf, -1000.0, -1e30, 1.0]),
    ("HalfNormal", (2.0,), [math.inf, 0.0, 1.0]),
    ("HalfCauchy", (2.0,), [math.inf, 0.0, 1.0]),
    ("Exponential", (2.0,), [math.inf, 0.0, 1.0]),
    ("Gamma", (0.5, 2.0), [math.inf, 0.0, 1.0]),
    ("Gamma", (2.5, 2.0), [math.inf, 0.0, 1.0]),
    ("LogNormal", (0.3, 2.0), [math.inf, 0.0, 1.0]),
    ("InverseGamma", (0.5, 2.0), [math.inf, 1.0]),
    ("Weibull", (1.5, 2.5), [math.inf, 1e300, 0.0, 1.0]),
    ("Weibull", (1.5, 0.01), [math.inf, 1e300, 0.0, 1.0]),
    ("Weibull", (1.5, 0.5), [0.0, 1.0]),
    ("Pareto", (0.5, 2.5), [math.inf, 1.0]),
    ("Kumaraswamy", (2.0, 3.0), [0.0, 1.0, 0.3]),
    ("Kumaraswamy", (0.5, 0.7), [0.0, 1.0, 0.3]),
    ("GeneralizedPareto", (0.2, 1.5, 0.5), [math.inf, 1e300, 1.0]),
    ("GeneralizedPareto", (0.2, 1.5, 0.0), [math.inf, 1.0]),
    # the last number, 3.2, is where the density and its slope are 0
    ("GeneralizedPareto", (0.2, 1.5, -0.5), [3.2, 1.0]),
]


@pytest.mark.parametrize(("name", "parameters", "values"), ENDS)
def test_shares_at_ends_have_slopes(name, parameters, values):
    """Of intervals without an end they are 0 and 1; their slopes are those of differences, as those of others beside.

    The chain rule has infinity times 0 there.
    """
    ps = [of(p, requires_grad=True) for p in parameters]
    shares = getattr(d, name)(*ps).cdf(of(values))
    ends = [value > 0 for value in values if abs(value) == math.inf]
    assert shares.tolist()[: len(ends)] == ends
    step = 1e-6
    for i, slope in enumerate(lucid.autograd.grad(shares.sum(), ps)):
        # the last number's step of a parameter may put a value beyond it
        sums = [
            getattr(d, name)(*(of(p + sign * step * (j == i)) for j, p in enumerate(parameters)), validate_args=False)
            .cdf(of(values))
            .sum()
            .item()
            for sign in (1, -1)
        ]
        assert slope.item() == pytest.approx((sums[0] - sums[1]) / (2 * step), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("scale", [-1.0, "tensor"])
@pytest.mark.parametrize(("name", "parameters", "values"), ENDS)
def test_shares_above_have_slopes_at_ends(name, parameters, values, scale):
    """Turned round, shares below are those above, with the opposite slopes by the parameters."""
    scale = of(-1.0) if scale == "tensor" else scale
    found, below = [], []
    for shares in (found, below):
        ps = [of(p, requires_grad=True) for p in parameters]
        made = getattr(d, name)(*ps, validate_args=False)
        if shares is found:
            made = d.TransformedDistribution(made, d.AffineTransform(0.0, scale), validate_args=False)
        share = made.cdf(of(values) * (-1 if shares is found else 1))
        shares += [share.detach().cpu().numpy(), *(each.item() for each in lucid.autograd.grad(share.sum(), ps))]
    np.testing.assert_allclose(found[0], 1 - below[0], atol=1e-13)
    np.testing.assert_allclose(found[1:], [-slope for slope in below[1:]], rtol=1e-9, atol=1e-12)


def test_shares_of_one_side_have_no_slope_of_the_other():
    """Of scales of both signs each share has the slope of its side by the value, which is infinite at 0."""
    value = of([0.0, -1.0], requires_grad=True)
    base = d.Gamma(of(0.5), 2.0, validate_args=False)
    shares = d.TransformedDistribution(base, d.AffineTransform(0.0, of([1.0, -1.0])), validate_args=False).cdf(value)
    (slope,) = lucid.autograd.grad(shares.sum(), value)
    assert slope.tolist() == [math.inf, pytest.approx(stats.gamma(0.5, scale=0.5).pdf(1.0))]
    falls = of([0.0], requires_grad=True)
    made = d.TransformedDistribution(base, d.AffineTransform(0.0, of([-1.0])), validate_args=False)
    (slope,) = lucid.autograd.grad(made.cdf(falls).sum(), falls)
    assert slope.tolist() == [math.inf]


def test_shares_of_values_that_overflow_in_float32():
    """A power and an exponential that overflow are of a share of 0 or 1, whose slopes are 0."""
    for made, ps, value, wanted in (
        (d.Gumbel, (0.0, 1.0), -100.0, 0.0),
        (d.Weibull, (1.0, 2.5), 1e20, 1.0),
    ):
        tensors = [of(p, lucid.float32, requires_grad=True) for p in ps]
        share = made(*tensors).cdf(of(value, lucid.float32))
        assert share.item() == wanted
        assert [slope.item() for slope in lucid.autograd.grad(share, tensors)] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "parameters", "share"),
    [
        ("GeneralizedPareto", (0.0, 1.0, -0.5), 1.0), ("Kumaraswamy", (2.0, 3.0), 0.0),
        ("Kumaraswamy", (2.0, 3.0), 1.0), ("Kumaraswamy", (0.5, 0.7), 1.0), ("LogNormal", (0.5, 2.0), 0.0),
        ("Pareto", (1.5, 2.0), 0.0), ("Uniform", (0.5, 1.0), 1.0), ("Weibull", (1.5, 0.5), 0.0),
    ],
)  # fmt: skip
def test_quantiles_of_shares_above_at_ends(name, parameters, share):
    """Turned round they are the opposite of those of shares below, with their slopes."""
    found = []
    for falls in (False, True):
        ps = [of(p, requires_grad=True) for p in parameters]
        made = getattr(d, name)(*ps)
        if falls:
            made = d.TransformedDistribution(made, d.AffineTransform(0.0, -1.0))
        end = made.icdf(of(1 - share if falls else share))
        found.append([each.item() for each in (end, *lucid.autograd.grad(end, ps))])
    assert found[1] == [-each for each in found[0]]
    assert all(math.isfinite(each) for each in found[0])


def test_quantiles_at_ends_have_slopes():
    """Where the last quantile is finite it moves with the parameters, and what is 0 or 1 for all of them does not."""
    ps = [of(p, requires_grad=True) for p in (0.0, 1.0, -0.5)]
    # loc - scale / c
    last = d.GeneralizedPareto(*ps).icdf(of(1.0))
    assert last.item() == 2.0
    assert [slope.item() for slope in lucid.autograd.grad(last, ps)] == [1.0, 2.0, 4.0]
    assert d.GeneralizedPareto(*(each.abs() for each in ps)).icdf(of(1.0)).item() == math.inf
    place, scale = of(0.5, requires_grad=True), of(2.0, requires_grad=True)
    least = d.LogNormal(place, scale).icdf(of(0.0))
    assert [least.item(), *(slope.item() for slope in lucid.autograd.grad(least, (place, scale)))] == [0.0, 0.0, 0.0]
    for ps in ((2.0, 3.0), (0.5, 0.7)):
        a, b = (of(p, requires_grad=True) for p in ps)
        ends = d.Kumaraswamy(a, b).icdf(of([0.0, 1.0]))
        assert ends.tolist() == [0.0, 1.0]
        assert [slope.item() for slope in lucid.autograd.grad(ends.sum(), (a, b))] == [0.0, 0.0]


@pytest.mark.parametrize("what", ["log_prob", "cdf", "log_cdf"])
def test_generalized_pareto_numbers_of_any_size_have_slopes(what):
    """In float32, beside those of the series: one far draw would ruin the fit of all."""
    x = np.array([1e-8, 1e-3, 0.5, 40.0, 1e8, 4e9, 1e30], np.float32)
    for c in (2.0, 0.5, 1e-3):
        tensor = of(c, lucid.float32, requires_grad=True)
        value = getattr(d.GeneralizedPareto(of(0.0, lucid.float32), 1.0, tensor), what)(of(x, lucid.float32))
        (slope,) = lucid.autograd.grad(value.sum(), tensor)
        # SciPy's of float64, and differences of the formula
        wide = x.astype(float)
        reference = {"log_prob": stats.genpareto.logpdf, "cdf": stats.genpareto.cdf}.get(
            what, lambda x, c: np.where(x < 1, np.log(stats.genpareto.cdf(x, c)), np.log1p(-stats.genpareto.sf(x, c)))
        )
        np.testing.assert_allclose(value.detach().cpu().numpy(), reference(wide, c), rtol=1e-5, atol=1e-30)
        step = 1e-4 * c
        expected = (reference(wide, c + step) - reference(wide, c - step)).sum() / (2 * step)
        assert slope.item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_densities_where_squares_overflow(dtype):
    """They are SciPy's, with the slopes of a power, and no draw has a density of 0."""
    y = np.array([1e30, -1e25, 1e20, 3.0, 0.0]) if dtype is lucid.float32 else np.array([1e300, -1e160, 3.0, 0.0])
    for made, reference, df in (
        (d.StudentT(of(3.0, dtype)), stats.t(3), 3.0),
        (d.StudentT(of(0.1, dtype)), stats.t(0.1), 0.1),
        (d.Cauchy(of(0.0, dtype), 1.0), stats.cauchy, 1.0),
        (d.HalfCauchy(of(1.0, dtype)), stats.halfcauchy, 1.0),
    ):
        at = abs(y) if isinstance(made, d.HalfCauchy) else y
        value = of(at, dtype, requires_grad=True)
        logs = made.log_prob(value)
        (slope,) = lucid.autograd.grad(logs.sum(), value)
        with np.errstate(over="ignore"):
            known = abs(at) < 1e150
            wanted = np.where(known, reference.logpdf(at), 0.0)
        far = ~known
        # the logarithm of a power from where that is exact
        wanted[far] = reference.logpdf(1e100) - (df + 1) * (np.log(abs(at[far])) - np.log(1e100))
        np.testing.assert_allclose(logs.detach().cpu().numpy(), wanted, rtol=2e-6 if dtype is lucid.float32 else 1e-13)
        steep = np.array([-(df + 1) / (x + df / x) if x else 0.0 for x in at])
        np.testing.assert_allclose(slope.cpu().numpy(), steep, rtol=1e-5)
    lucid.manual_seed(0)
    heavy = d.StudentT(of(0.1, dtype))
    draws = heavy.sample((20_000,))
    assert heavy.log_prob(draws[draws.isfinite()]).isfinite().all()


@pytest.mark.parametrize("kind", [d.StudentT, d.Cauchy])
def test_densities_have_second_derivatives_in_the_middle(kind):
    """At 0 as well, and beside the largest numbers."""
    x = of([0.0, 0.5, -2.0], requires_grad=True)
    assert gradcheck(lambda x: kind(of(2.5), 0.0).log_prob(x) if kind is d.StudentT else kind(0.0, 1.0).log_prob(x), x)
    assert gradgradcheck(lambda x: kind(of(2.5)).log_prob(x) if kind is d.StudentT else kind(0.0, 1.0).log_prob(x), x)


def test_shares_by_transforms_that_fall():
    """They are those of the other side, whatever the sign is given by."""
    for scale in (of(-2.0), -2.0, -2):
        made = d.TransformedDistribution(d.Exponential(of(1.0)), [d.AffineTransform(0.0, scale)])
        assert made.cdf(of(-1.0)).item() == pytest.approx(math.exp(-0.5))
        assert made.icdf(made.cdf(of(-3.0))).item() == pytest.approx(-3.0)


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (1e6, 1e6 + 1, lucid.float32),
        (-3e4, -3e4 + 1, lucid.float32),
        (1.0, 2.0, lucid.float16),
        (1.0, 2.0, lucid.bfloat16),
        (-1.0, 0.0, lucid.float16),
        (-1.5, -1.0, lucid.float16),
        (-2.5, -2.0, lucid.bfloat16),
        (-1.001, -1.0, lucid.float32),
    ],
)
def test_the_upper_bound_of_uniform_numbers_is_not_drawn(low, high, dtype):
    """Each draw has a density, and moves with the bounds as its share says."""
    bounds = [of(value, dtype, requires_grad=True) for value in (low, high)]
    lucid.manual_seed(0)
    uniform = d.Uniform(*bounds)
    draws = uniform.rsample((20_000,))
    assert ((draws >= bounds[0]) & (draws < bounds[1])).all()
    assert uniform.log_prob(draws).isfinite().all()
    slopes = lucid.autograd.grad(draws.double().mean(), bounds)
    assert sum(each.item() for each in slopes) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("dtype", "rtol"), [(lucid.float16, 2e-3), (lucid.float32, 1e-6), (lucid.float64, 1e-10)])
def test_von_mises_of_large_concentrations(dtype, rtol):
    """Densities are SciPy's, and variances those of Bessel functions, or of the normal distribution that is near."""
    c = np.array([0.5, 3.0, 10.0, 14.0, 20.0, 29.0, 31.0, 200.0])
    made = d.VonMises(of(0.0, dtype), of(c, dtype))
    for at in (0.0, 0.5):
        found = made.log_prob(of(at, dtype)).double().cpu().numpy()
        np.testing.assert_allclose(found, stats.vonmises(c).logpdf(at), rtol=2 * rtol, atol=rtol)
    variance = made.variance.double().cpu().numpy()
    np.testing.assert_allclose(variance, 1 - special.i1e(c) / special.i0e(c), rtol=rtol)
    if dtype is lucid.float16:
        return
    large = np.array([1e4, 1e7, 1e9])
    far = d.VonMises(of(0.0, dtype), of(large, dtype))
    np.testing.assert_allclose(far.variance.cpu().numpy(), 0.5 / large + 0.125 / large**2 + 0.125 / large**3, rtol=rtol)
    at = 1 / np.sqrt(large)
    normal = stats.norm(0, 1 / np.sqrt(large)).logpdf(at)
    np.testing.assert_allclose(far.log_prob(of(at, dtype)).cpu().numpy(), normal, rtol=3e-5)


def test_the_last_of_generalized_pareto_numbers():
    """Of a concentration of -1 all are as likely, the last too; its density is 0 or infinite of others."""
    for c in (-1.0, -0.5, -2.0):
        at = of([0.0, 0.25, -1 / c])
        found = d.GeneralizedPareto(of(0.0), 1.0, of(c)).log_prob(at).cpu().numpy()
        np.testing.assert_allclose(found, stats.genpareto(c).logpdf([0.0, 0.25, -1 / c]), rtol=1e-12)
    c = of(-1.0, requires_grad=True)
    assert gradcheck(lambda c: d.GeneralizedPareto(of(0.0), 1.0, c).log_prob(of([0.0, 0.25, 0.5])), (c,))


def test_the_largest_density_is_that_of_the_mode():
    """Also where it grows to an end, at which it may be infinite."""
    c = of([-3.0, -2.0, -0.5, 0.5], requires_grad=True)
    made = d.GeneralizedPareto(of(1.0), 2.0, c)
    np.testing.assert_allclose(made.mode.detach().cpu().numpy(), [1 + 2 / 3, 2.0, 1.0, 1.0], rtol=1e-12)
    assert d.GeneralizedPareto(of(0.0), 1.0, -2.0).log_prob(of(0.5)).item() == math.inf
    (slope,) = lucid.autograd.grad(made.mode.sum(), c)
    np.testing.assert_allclose(slope.cpu().numpy(), [2 / 9, 2 / 4, 0.0, 0.0], rtol=1e-12)


def test_numbers_of_infinite_freedom():
    """They are normal, beside others."""
    for dtype, rtol in ((lucid.float16, 3e-3), (lucid.float32, 1e-6), (lucid.float64, 1e-13)):
        freedom = of([math.inf, 4.0], dtype)
        normal = d.StudentT(freedom, 0.5, 2.0)
        assert normal.df.tolist() == [math.inf, 4.0]
        x = np.array([[0.25], [-3.0]])
        expected = np.hstack([stats.norm(0.5, 2).logpdf(x), stats.t(4, 0.5, 2).logpdf(x)])
        np.testing.assert_allclose(normal.log_prob(of(x, dtype)).double().cpu().numpy(), expected, rtol=rtol)
        entropies = [stats.norm(0.5, 2).entropy(), stats.t(4, 0.5, 2).entropy()]
        np.testing.assert_allclose(normal.entropy().double().cpu().numpy(), entropies, rtol=rtol)
        np.testing.assert_allclose(normal.variance.double().cpu().numpy(), [4.0, 8.0], rtol=rtol)
        lucid.manual_seed(0)
        assert normal.sample((4000,))[:, 0].double().std().item() == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("kind", [d.Beta, d.Kumaraswamy])
def test_modes_at_ends(kind):
    """A mode is where the density is infinite, also beside a power of 0; uniform numbers have none."""
    first, second = of([0.5, 0.5, 1.0, 2.0, 2.0, 0.5, 0.25]), of([1.0, 2.0, 0.5, 0.5, 1.0, 0.25, 0.5])
    made = kind(first, second, validate_args=False)
    assert made.mode.tolist() == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    assert kind(of(1.0), 1.0).mode.isnan().all()
    at = of([[1e-9], [0.5], [1 - 1e-9]])
    logs = made.log_prob(at)
    rising = logs.argmax(0).tolist()
    assert rising == [0, 0, 2, 2, 2, 2, 0]


def test_moments_without_end_have_no_slopes():
    """Where a mean or a variance is infinite, its gradients are 0."""
    alpha, scale = of([0.5, 1.0, 1.5, 2.0, 3.0], requires_grad=True), of([2.0] * 5, requires_grad=True)
    for made in (d.Pareto(scale, alpha), d.InverseGamma(alpha, scale)):
        for moment, order in ((made.mean, 1.0), (made.variance, 2.0)):
            ends = alpha.detach() <= order
            assert (moment[ends] == math.inf).all()
            for slope in lucid.autograd.grad(moment.sum(), (alpha, scale), retain_graph=True):
                assert (slope[ends] == 0).all()
                assert slope[~ends].isfinite().all()
                assert (slope[~ends] != 0).all()


def test_counts_far_above_a_rate():
    """Of a rate that is lost beside the count the probability has a logarithm, as a density far below a shape has."""
    assert d.Poisson(of(1e-20)).log_prob(of(100.0)).item() == pytest.approx(stats.poisson(1e-20).logpmf(100))
    assert d.Gamma(of(100.0), 1.0).log_prob(of(1e-30)).item() == pytest.approx(stats.gamma(100).logpdf(1e-30))
