"""Distributions at the edges of their parameters: of large, tiny and equal ones, of wider values, and of nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import lucid
from lucid import distributions as d
from lucid.autograd import gradcheck, gradgradcheck
from tests.device import DEVICE
from tests.distributions.samples import FAMILIES, of


@pytest.mark.parametrize("alpha", [29.0, 31.0, 1e3, 1e5, 1e7, 1e9, 1e12, 1e15])
def test_shares_of_gamma_variates_of_large_shapes(alpha):
    """They are SciPy's, which is exact in the middle, and their slopes are their differences."""
    root = math.sqrt(alpha)
    z = alpha + root * np.array([-1.0, -0.2, 0.0, 0.3, 1.0])
    at = of(z, requires_grad=True)
    share = d.Gamma(of(alpha), 1.0).cdf(at)
    np.testing.assert_allclose(share.detach().cpu().numpy(), special.gammainc(alpha, z), rtol=5e-9)
    (slope,) = lucid.autograd.grad(share.sum(), at)
    step = 1e-3 * root
    ends = [d.Gamma(of(alpha), 1.0).cdf(of(z + sign * step)).cpu().numpy() for sign in (1, -1)]
    np.testing.assert_allclose(slope.cpu().numpy() * root, (ends[0] - ends[1]) / 2e-3, rtol=1e-4)


LARGE_ONES = np.array([2.5, 29.0, 31.0, 40.0, 1e4, 1e6, 1e8])


@pytest.mark.parametrize(("dtype", "close"), [(lucid.float32, 2e-6), (lucid.float64, 1e-12)])
def test_entropies_of_large_parameters(dtype, close):
    """They are SciPy's, whose asymptotic series begin somewhere else; so are divergences that are made of them."""
    a = of(LARGE_ONES, dtype)
    gamma = 0.5 * np.log(2 * np.pi * np.e * LARGE_ONES) - 1 / (3 * LARGE_ONES) - 1 / (12 * LARGE_ONES**2)
    gamma = np.where(LARGE_ONES < 1e3, stats.gamma(LARGE_ONES).entropy(), gamma)
    np.testing.assert_allclose(d.Gamma(a, 1.0).entropy().cpu().numpy(), gamma, rtol=close, atol=close)
    inverse = gamma - 2 * special.digamma(LARGE_ONES)
    np.testing.assert_allclose(d.InverseGamma(a, 1.0).entropy().cpu().numpy(), inverse, rtol=close, atol=close)
    student = np.where(LARGE_ONES < 50, stats.t(LARGE_ONES).entropy(), stats.norm.entropy() + 1 / LARGE_ONES)
    close_to = max(close, 3e-9)
    np.testing.assert_allclose(d.StudentT(a).entropy().cpu().numpy(), student, rtol=close_to, atol=close_to)
    found = d.kl_divergence(d.Gamma(of(1e6, dtype), 1.0), d.Normal(of(1e6, dtype), 1e3)).item()
    assert found == pytest.approx(1e-6 / 3, abs=2e-6 if dtype is lucid.float32 else 1e-11)


@pytest.mark.parametrize("name", ["Gamma", "InverseGamma", "StudentT"])
def test_derivatives_of_entropies_of_large_parameters(name):
    """On either side of the parameter from which on series are taken, and far beyond."""
    a = of([5.0, 29.9, 30.1, 59.0, 61.0, 1e3], requires_grad=True)
    make = {
        "Gamma": lambda a: d.Gamma(a, 1.0),
        "InverseGamma": lambda a: d.InverseGamma(a, 1.0),
        "StudentT": d.StudentT,
    }
    assert gradcheck(lambda a: make[name](a).entropy(), (a,))
    assert gradgradcheck(lambda a: make[name](a).entropy(), (a,))


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_divergences_of_large_counts(dtype):
    """Of two that are near each other they are half of the square of the distance, in units of the deviation."""
    for size, far in ((1e4, 0.5), (1e6, 1.0), (1e8, 2.0)):
        root = math.sqrt(size)
        # in float32 the distance is that of the parameters as they are rounded
        one, other = of(size, dtype), of(size + far * root, dtype)
        step = (other.double() - one.double()).item()
        s = step / size
        wanted = size * (s**2 / 2 - s**3 / 3 + s**4 / 4 - s**5 / 5)
        assert d.kl_divergence(d.Poisson(one), d.Poisson(other)).item() == pytest.approx(wanted, rel=2e-6)
        ratio = of(1 + 0.5 / root, dtype)
        s = ratio.double().item() - 1
        wanted = size * (s**2 / 2 - s**3 / 3 + s**4 / 4 - s**5 / 5)
        assert d.kl_divergence(d.Gamma(one, 1.0), d.Gamma(one, ratio)).item() == pytest.approx(wanted, rel=2e-6)
        e = step / size
        wanted = size * (e**2 / 2 - e**3 / 6 + e**4 / 12) - (e / 2 - e**2 / 4) + 0.5 * e
        found = d.kl_divergence(d.Gamma(one, 2.0), d.Gamma(other, 2.0)).item()
        assert found == pytest.approx(wanted, rel=2e-6 if size < 1e8 else 1e-4)
    assert d.kl_divergence(d.Poisson(of([1.0, 0.0], dtype)), d.Poisson(of(0.0, dtype))).tolist() == [math.inf, 0.0]
    for a, b in ((10.0, 31.0), (31.0, 10.0), (31.0, 35.0), (2e3, 1e3)):
        wanted = (
            special.gammaln(b) - special.gammaln(a) - (b - a) * special.digamma(a) + b * math.log(1 / 1.5) + 0.5 * a
        )
        found = d.kl_divergence(d.Gamma(of(a, dtype), 1.0), d.Gamma(of(b, dtype), 1.5)).item()
        assert found == pytest.approx(wanted, rel=2e-6 if dtype is lucid.float32 else 1e-11)


def test_derivatives_of_divergences_of_large_counts():
    """By all parameters, near each other and far, on both sides of where series begin."""
    a, b, ratio = (of(v, requires_grad=True) for v in ([40.0, 28.0, 500.0], [41.0, 33.0, 29.0], [1.001, 2.0, 0.999]))
    assert gradcheck(lambda a, b, r: d.kl_divergence(d.Gamma(a, 1.0), d.Gamma(b, r)), (a, b, ratio))
    assert gradcheck(lambda a, b: d.kl_divergence(d.Poisson(a), d.Poisson(b)), (a, b))


def test_the_density_of_gamma_variates_at_both_ends():
    """The slope of the share is the density at 0, also where that has a value, and 0 at infinity."""
    at = of([0.0, math.inf], requires_grad=True)
    (slope,) = lucid.autograd.grad(d.Gamma(of(1.0), 2.0).cdf(at).sum(), at)
    assert slope.tolist() == [2.0, 0.0]


CONCENTRATIONS = [0.0, 1e-12, -1e-9, 1e-7, 1e-6, -1e-5, 1e-4, 3e-3, -1e-2, 0.2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("z", [0.01, 1.5, 40.0])
def test_generalized_pareto_of_concentrations_near_zero(dtype, z):
    """Densities and quantiles are those of the formula in more digits; at a concentration of 0 they are its limit."""
    c = np.array(CONCENTRATIONS, dtype)
    wide = c.astype(np.longdouble)
    safe = np.where(wide == 0, 1, wide)
    logs = np.where(wide == 0, -np.longdouble(z), -np.log1p(wide * z) / safe) * (1 + wide)
    places = np.where(wide == 0, np.longdouble(z), np.expm1(wide * z) / safe)
    made = d.GeneralizedPareto(of(0.0, lucid.float32), 1.0, lucid.tensor(c, device=DEVICE))
    close = 2e-6 if dtype is np.float32 else 1e-13
    found = made.log_prob(lucid.tensor(np.array([z], dtype), device=DEVICE)).cpu().numpy()
    np.testing.assert_allclose(found, logs.astype(float), rtol=close)
    share = of([-math.expm1(-z)])
    if z < 10:
        np.testing.assert_allclose(made.icdf(share).cpu().numpy(), places.astype(float), rtol=close)


@pytest.mark.parametrize("name", ["log_prob", "cdf", "icdf"])
def test_generalized_pareto_has_derivatives_at_zero(name):
    """By the concentration, on either side of 0 and at it."""
    c = of(CONCENTRATIONS, requires_grad=True)
    at = of(0.7 if name == "icdf" else 1.5)

    def value(c):
        return getattr(d.GeneralizedPareto(of(0.0), 1.0, c), name)(at)

    assert gradcheck(value, (c,))
    assert gradgradcheck(value, (c,))


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 30.0, 1e3, 1e5])
@pytest.mark.parametrize("row", [row for row in FAMILIES if not row.startswith("Wishart")])
def test_no_variance_is_below_zero(row, factor, dtype):
    """Of parameters of any size: a difference of moments may be, and its root is NaN."""
    make, arrays, _ = FAMILIES[row]
    scaled = [a if a.ndim > 2 else a * factor for a in arrays]
    if "," in row or row in NO_SIZE:
        scaled = arrays
    try:
        made = make(d, *(of(a, dtype) for a in scaled))
        variance = made.variance
    except NotImplementedError:
        return
    finite = variance[~variance.isnan()]
    assert (finite >= 0).all(), variance
    if row in {"Weibull", "Kumaraswamy", "Gamma", "Normal", "Gumbel", "Laplace", "LogNormal"}:
        assert not made.stddev.isnan().any()


# Probabilities, and those whose parameters are bounds of each other
NO_SIZE = {
    "Bernoulli", "Binomial", "ContinuousBernoulli", "Geometric", "GeneralizedPareto", "NegativeBinomial",
    "RelaxedBernoulli", "MixtureSameFamily",
}  # fmt: skip


@pytest.mark.parametrize("concentration", [0.3, 2.0, 50.0, 1e3])
def test_variances_of_weibulls_numbers(concentration):
    """They are in proportion to the square of the scale, which may be so large that they are infinite."""
    k = np.longdouble(concentration)
    first, second = (special.gammaln(float(1 + n / k)) for n in (1, 2))
    expected = math.exp(2 * first) * math.expm1(second - 2 * first)
    for scale in (1e-8, 1.0, 1e9):
        variance = d.Weibull(of(scale), concentration).variance.item()
        assert variance == pytest.approx(expected * scale**2, rel=1e-8)
    assert d.Weibull(of(1e30, lucid.float32), concentration).variance.item() == math.inf
    scale = of(1e30, lucid.float32, requires_grad=True)
    k = of(1e-6, lucid.float32, requires_grad=True)
    (slope,) = lucid.autograd.grad(d.Weibull(scale, k).entropy(), k)
    assert slope.item() == pytest.approx(np.euler_gamma * 1e12, rel=1e-3)


def known_moments(log, log_density, s):
    """Return mean and variance of ``exp(log)`` by sums over s, with the digits that are left of 1."""
    weight = np.exp(log_density)
    weight = weight / weight.sum()
    y = np.expm1(log)
    mean = (weight * y).sum()
    return 1 + mean, (weight * (y - mean) ** 2).sum()


@pytest.mark.parametrize(("dtype", "rtol"), [(lucid.float32, 3e-5), (lucid.float64, 1e-9)])
@pytest.mark.parametrize("k", [3.0, 12.0, 40.0, 300.0, 410.0, 1e3, 1e4, 1e6, 1e8])
def test_moments_of_narrow_distributions(k, dtype, rtol):
    """Of large powers variances of a Weibull and a Kumaraswamy distribution are those of sums over their logarithms."""
    s = np.arange(-45, 5, 0.01)
    # the logarithm of a waiting time
    wanted = known_moments(s / k, s - np.exp(s), s)[1]
    parameter = of(k, dtype, requires_grad=True)
    found = d.Weibull(of(1.0, dtype), parameter).variance
    assert found.item() == pytest.approx(wanted, rel=rtol)
    (slope,) = lucid.autograd.grad(found, parameter)
    ends = [known_moments(s / (k * (1 + step)), s - np.exp(s), s)[1] for step in (1e-5, -1e-5)]
    assert slope.item() * k == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=max(30 * rtol, 1e-6))
    s = np.arange(-45, 90, 0.01)
    for b in (0.5, 2.0, 7.0, 1e3):
        # the logarithm of a power, by its logit
        log, density = special.log_expit(s), special.log_expit(s) + b * special.log_expit(-s)
        mean, wanted = known_moments(log / k, density, s)
        made = d.Kumaraswamy(of(k, dtype), of(b, dtype))
        assert made.mean.item() == pytest.approx(mean, rel=rtol)
        assert made.variance.item() == pytest.approx(wanted, rel=rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(lucid.float32, 1e-5), (lucid.float64, 1e-12)])
@pytest.mark.parametrize("b", [1, 2, 5])
def test_means_of_kumaraswamys_numbers_of_small_powers(b, dtype, rtol):
    """They are a product, of the smallest powers too, with its slope."""
    s = 1 / np.array([1e-10, 1e-8, 1e-4, 0.01, 0.3, 2.0, 1 / b, 1e3])
    a = of(1 / s, dtype, requires_grad=True)
    mean = d.Kumaraswamy(a, float(b)).mean
    terms = np.arange(1, b + 1)
    wanted = math.factorial(b) / np.prod(s[:, None] + terms, -1)
    np.testing.assert_allclose(mean.detach().cpu().numpy(), wanted, rtol=rtol * b, atol=1e-37)
    (slope,) = lucid.autograd.grad(mean.sum(), a)
    steep = wanted * s**2 * (1 / (s[:, None] + terms)).sum(-1)
    np.testing.assert_allclose(slope.cpu().numpy(), steep, rtol=30 * rtol, atol=1e-37)


# parameters of float32 whose variance overflows or underflows, and SciPy's deviation
SPREADS = {
    "HalfNormal": ((1e20,), 1e20 * stats.halfnorm.std()),
    "HalfNormal, small": ((1e-30,), 1e-30 * stats.halfnorm.std()),
    "Normal": ((0.0, 1e-30), 1e-30),
    "Gamma": ((1.0, 1e-20), 1e20),
    "Chi2": ((8.0,), 4.0),
    "InverseGamma": ((3.0, 1e20), 1e20 * stats.invgamma(3).std()),
    "StudentT": ((3.0, 0.0, 1e-25), 1e-25 * stats.t(3).std()),
    "Geometric": ((1e-30,), 1e30),
    "Weibull": ((1e-30, 1.0), 1e-30),
    "Pareto": ((1e-30, 1e3), 1e-30 * stats.pareto(1e3).std()),
    "LogNormal": ((0.0, 1e-30), 1e-30),
    "LogNormal, far": ((60.0, 0.5), math.exp(60) * stats.lognorm(0.5).std()),
    "GeneralizedPareto": ((0.0, 1e20, -0.5), 1e20 * stats.genpareto(-0.5).std()),
    "Laplace": ((0.0, 1e-30), 1e-30 * stats.laplace.std()),
    "Gumbel": ((0.0, 1e25), 1e25 * stats.gumbel_r.std()),
    "Beta": ((1e-25, 3e-25), math.sqrt(3) / 4),
}


@pytest.mark.parametrize("row", SPREADS)
def test_deviations_whose_squares_overflow(row):
    """They are known in the dtype in which the square of them is not, with the slope by a scale."""
    ps, wanted = SPREADS[row]
    tensors = [of(p, lucid.float32, requires_grad=True) for p in ps]
    made = getattr(d, row.split(",")[0])(*tensors)
    assert made.stddev.item() == pytest.approx(wanted, rel=1e-5)
    if "scale" in made.arg_constraints and row != "LogNormal, far":
        scale = tensors[list(made.arg_constraints).index("scale")]
        (slope,) = lucid.autograd.grad(made.stddev, scale)
        assert slope.item() * scale.item() == pytest.approx(wanted, rel=1e-5)


def test_the_deviation_of_independent_parts():
    """It is theirs, where their variance is not known in the dtype too."""
    assert d.Independent(d.Normal(of([0.0], lucid.float32), 1e30), 1).stddev.item() == pytest.approx(1e30)


def test_the_deviation_of_a_negative_binomial_of_large_odds():
    """It is in proportion to the odds, and its square would overflow."""
    made = d.NegativeBinomial(of(4.0, lucid.float32), logits=of(60.0, lucid.float32))
    assert made.stddev.item() == pytest.approx(2 * math.exp(60), rel=1e-5)


@pytest.mark.parametrize("row", FAMILIES)
def test_wider_values_keep_their_digits(row):
    """Of float64 beside parameters of float32 the logarithm of a density is float64, and a share has all its digits."""
    make, arrays, value = FAMILIES[row]
    narrow = [lucid.tensor(a.astype(np.float32), device=DEVICE) for a in arrays]
    made = make(d, *narrow)
    # of a choice it is that of the parameter
    if value.dtype.kind == "i" or row.startswith(("Uniform", "OneHot")):
        return
    at = lucid.tensor(value, device=DEVICE)
    assert made.log_prob(at).dtype is lucid.float64
    if row.startswith(("Transformed", "Mixture", "Logistic", "Relaxed", "ContinuousBernoulli", "Independent")):
        return
    try:
        share = made.cdf(at)
    except NotImplementedError:
        return
    wide = make(d, *(each.double() for each in narrow))
    np.testing.assert_allclose(share.cpu().numpy(), wide.cdf(at).cpu().numpy(), rtol=1e-13)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
@pytest.mark.parametrize("size", [20.0, 100.0, 1e30])
def test_sure_pieces_of_a_stick(size, dtype):
    """Each piece has a logarithm, and so has the determinant, with a gradient."""
    x = of([size, -1.0, size, 0.5], dtype, requires_grad=True)
    transform = d.StickBreakingTransform()
    y = transform(x)
    assert (y > 0).all()
    assert y.sum().item() == pytest.approx(1.0)
    size_of = transform.log_abs_det_jacobian(x, y)
    (slope,) = lucid.autograd.grad(size_of, x)
    assert size_of.isfinite()
    assert slope.isfinite().all()


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_a_continuous_bernoulli_of_sure_logits(dtype):
    """It is as finite on one side as on the other."""
    made = [d.ContinuousBernoulli(logits=of([5.0, 40.0, 1e3, math.inf], dtype) * sign) for sign in (1, -1)]
    means = [each.mean.cpu().numpy() for each in made]
    np.testing.assert_allclose(means[0] + means[1], 1, rtol=1e-5)
    for what in ("variance", "entropy"):
        values = [getattr(each, what) for each in made]
        found = [(each() if callable(each) else each).cpu().numpy() for each in values]
        assert np.isfinite(found).all()
        np.testing.assert_allclose(*found, rtol=2e-2)
    assert (made[0].icdf(of([0.5], dtype)) > 0.5).all()


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
@pytest.mark.parametrize(
    ("first", "second"),
    [(d.Normal, d.Normal), (d.Normal, d.Gumbel), (d.Gumbel, d.Gumbel), (d.Laplace, d.Normal), (d.Normal, d.Laplace)],
)
def test_divergences_do_not_depend_on_where(first, second, dtype):
    """Two that are shifted as far are as far from each other."""
    here = d.kl_divergence(first(of(0.25, dtype), 0.125), second(of(0.5, dtype), 0.25))
    for far in (64.0, 1024.0):
        there = d.kl_divergence(first(of(far + 0.25, dtype), 0.125), second(of(far + 0.5, dtype), 0.25))
        assert there.item() == pytest.approx(here.item(), rel=1e-4)


def test_divergences_from_gumbel_in_its_own_tails():
    """Factors overflow, and what is made of them does not."""
    low = d.kl_divergence(d.Uniform(of(99.0), 101.0), d.Gumbel(of(100.0), 0.1)).item()
    assert low == pytest.approx(d.kl_divergence(d.Uniform(of(-1.0), 1.0), d.Gumbel(of(0.0), 0.1)).item(), rel=1e-9)
    sums = (np.arange(100_000) + 0.5) * 2e-4
    density = np.exp(-sums)
    for p, weight in ((d.Exponential(of(1.0)), density), (d.Gamma(of(2.0), 1.0), density * sums)):
        q = d.Gumbel(of(4.0), 0.5)
        logs = p.log_prob(of(sums)) - q.log_prob(of(sums))
        expected = (of(weight) * logs).sum().item() * 2e-4
        assert d.kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-4)


def test_the_divergence_of_what_succeeds_at_once():
    """Of a sure trial nothing is unknown."""
    sure = d.Geometric(of(1.0))
    assert d.kl_divergence(sure, d.Geometric(of(1.0))).item() == pytest.approx(0.0, abs=1e-12)
    assert d.kl_divergence(sure, d.Geometric(of(0.5))).item() == pytest.approx(math.log(2))


def test_nothing_to_draw():
    """Batches without elements are distributions as well."""
    assert d.Independent(d.Normal(of([]).reshape(0, 3), 1.0), 1).log_prob(of([]).reshape(0, 3)).shape == (0,)
    assert d.Wishart(of([]), of(np.eye(2)).expand(0, 2, 2)).sample((3,)).shape == (3, 0, 2, 2)
    assert d.CorrCholeskyTransform()(of([])).tolist() == [[1.0]]
    assert d.CorrCholeskyTransform().inv(of([[1.0]])).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: d.LogNormal(0.0, 1.0, validate_args=True).cdf(lucid.tensor(-1.0)),
            ValueError,
            "expected values above 0",
        ),
        (
            lambda: d.InverseGamma(1.0, 1.0, validate_args=True).cdf(lucid.tensor(-1.0)),
            ValueError,
            "expected values above 0",
        ),
        (
            lambda: d.Weibull(1.0, 1.5, validate_args=True).cdf(lucid.tensor(math.nan)),
            ValueError,
            "values before the transforms",
        ),
        (lambda: d.Normal(0.0, 1.0).sample(((2,),)), TypeError, r"sample_shape\[0\]: expected an int"),
        (
            lambda: d.MultivariateNormal(
                lucid.zeros(2), lucid.tensor([[math.inf, 0.0], [0.0, 1.0]]), validate_args=True
            ),
            ValueError,
            "positive definite",
        ),
        (lambda: d.CorrCholeskyTransform().inv(lucid.ones(3)), ValueError, "expected 2 dimensions"),
    ],
)
def test_what_is_outside_is_refused(call, error, words):
    """Values and parameters that no draw could have."""
    with pytest.raises(error, match=words):
        call()


def test_a_share_of_what_is_not_looked_at():
    """Below all that is drawn it is 0."""
    assert d.LogNormal(0.0, 1.0, validate_args=False).cdf(lucid.tensor(-1.0)).item() == 0
    assert d.LogNormal(0.0, 1.0).cdf(lucid.tensor(0.0)).item() == 0


MOMENTS = {
    "Cauchy": (lambda a: d.Cauchy(0.0, a), lambda a: stats.cauchy(0, a)),
    "FisherSnedecor": (lambda a: d.FisherSnedecor(3.0, a), lambda a: stats.f(3, a)),
    "GeneralizedPareto": (lambda a: d.GeneralizedPareto(0.0, 1.0, 1 / a), lambda a: stats.genpareto(1 / a)),
    "HalfCauchy": (d.HalfCauchy, lambda a: stats.halfcauchy(scale=a)),
    "InverseGamma": (lambda a: d.InverseGamma(a, 1.0), stats.invgamma),
    "Pareto": (lambda a: d.Pareto(1.0, a), stats.pareto),
    "StudentT": (lambda a: d.StudentT(a, 1.0, 2.0), lambda a: stats.t(a, 1, 2)),
    "Weibull": (lambda a: d.Weibull(1.0, a), stats.weibull_min),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_end_where_their_integrals_do(name):
    """Mean and variance are SciPy's up to the parameter from which on they are infinite or there are none."""
    parameters = np.array([0.5, 1.0, 1.25, 2.0, 2.25, 3.0, 4.0, 4.5])
    made = MOMENTS[name][0](of(parameters))
    with np.errstate(all="ignore"):
        known = [MOMENTS[name][1](each) for each in parameters]
        wanted = np.array([[each.mean(), each.var()] for each in known]).T
    for moment, expected in zip(("mean", "variance"), wanted, strict=True):
        array = getattr(made, moment).cpu().numpy()
        np.testing.assert_array_equal(np.isfinite(array), np.isfinite(expected))
        np.testing.assert_allclose(array[np.isfinite(array)], expected[np.isfinite(array)], rtol=1e-10)
        if (name, moment) == ("StudentT", "variance"):
            np.testing.assert_array_equal(np.isnan(array), np.isnan(expected))


def test_straight_through_draws_are_choices_with_the_gradient_of_shares(rng):
    """A draw is one of the unit vectors, and counts in a gradient as the probabilities do."""
    probs = of(np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]), requires_grad=True)
    weights = of(rng.standard_normal((4, 2, 3)))
    draw = d.OneHotCategoricalStraightThrough(probs).rsample((4,))
    np.testing.assert_allclose(
        np.sort(draw.detach().cpu().numpy(), -1), np.broadcast_to([0, 0, 1], (4, 2, 3)), atol=1e-15
    )
    expected = lucid.autograd.grad((d.OneHotCategorical(probs).probs.expand(4, 2, 3) * weights).sum(), probs)[0]
    (found,) = lucid.autograd.grad((draw * weights).sum(), probs)
    np.testing.assert_allclose(found.cpu().numpy(), expected.cpu().numpy(), rtol=1e-10)


def test_each_form_of_a_covariance_is_of_the_same_numbers(rng):
    """Whichever of them a family of normal vectors is made of, it has all: the matrix, its inverse and its factor."""
    factor, shift = rng.standard_normal((2, 4, 2)), rng.uniform(0.5, 2, (2, 4))
    matrix = factor @ factor.transpose(0, 2, 1) + shift[:, :, None] * np.eye(4)
    loc = of(np.zeros((2, 4)))
    forms = [
        d.LowRankMultivariateNormal(loc, of(factor), of(shift)),
        d.MultivariateNormal(loc, covariance_matrix=of(matrix)),
        d.MultivariateNormal(loc, precision_matrix=of(np.linalg.inv(matrix))),
        d.MultivariateNormal(loc, scale_tril=of(np.linalg.cholesky(matrix))),
    ]
    for form in forms:
        for each in (form, form.expand((3, 2))):
            named = (each.covariance_matrix, each.precision_matrix, each.scale_tril, each.variance)
            wanted = (matrix, np.linalg.inv(matrix), np.linalg.cholesky(matrix), matrix[:, range(4), range(4)])
            for found, expected in zip(named, wanted, strict=True):
                array = found.cpu().numpy()
                np.testing.assert_allclose(array, np.broadcast_to(expected, array.shape), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
@pytest.mark.parametrize(("above", "size"), [(0.01, 2), (0.05, 2), (0.2, 3), (0.01, 5), (1.0, 10)])
def test_drawn_matrices_are_definite(above, size, dtype):
    """Each draw of few degrees of freedom is in the support, whatever rounding does, and has the mean of all."""
    found = d.Wishart(of(size - 1 + above, dtype), scale_tril=of(np.eye(size), dtype))
    draws = found.sample((2000,))
    assert found.support.check(draws).all()
    assert found.log_prob(draws).isfinite().all()
    away = (draws.mean(0) - found.mean).abs() / found.stddev * 2000**0.5
    assert away.max().item() < 6


def test_powers_are_not_zero():
    """Draws of a Weibull distribution of a small concentration are above 0, as its support is."""
    found = d.Weibull(of(1.0, lucid.float32), of(0.02, lucid.float32))
    for draws in (found.sample((2000,)), found.rsample((2000,))):
        assert found.support.check(draws).all()
