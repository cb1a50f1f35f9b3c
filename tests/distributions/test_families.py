"""Families of distributions: densities, moments and draws are those of their formulas, with gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import lucid
from lucid import distributions
from lucid.autograd import gradcheck, gradgradcheck
from tests.device import DEVICE
from tests.distributions.samples import FAMILIES

# SciPy's distributions of the same parameters, for all elements at once
REFERENCES = {
    "Bernoulli": stats.bernoulli,
    "Beta": stats.beta,
    "Binomial": lambda p: stats.binom(4, p),
    "Cauchy": stats.cauchy,
    "Chi2": stats.chi2,
    "Exponential": lambda a: stats.expon(scale=1 / a),
    "FisherSnedecor": stats.f,
    "Gamma": lambda a, b: stats.gamma(a, scale=1 / b),
    "GeneralizedPareto": lambda a, b, c: stats.genpareto(c, a, b),
    "Geometric": lambda p: stats.geom(p, loc=-1),
    "Gumbel": stats.gumbel_r,
    "HalfCauchy": lambda b: stats.halfcauchy(scale=b),
    "HalfNormal": lambda b: stats.halfnorm(scale=b),
    "InverseGamma": lambda a, b: stats.invgamma(a, scale=b),
    "Laplace": stats.laplace,
    "LogNormal": lambda a, b: stats.lognorm(b, scale=np.exp(a)),
    "NegativeBinomial": lambda a, p: stats.nbinom(a, 1 - p),
    "Normal": stats.norm,
    "Pareto": lambda a, b: stats.pareto(b, scale=a),
    "Poisson": stats.poisson,
    "StudentT": stats.t,
    "Uniform": stats.uniform,
    "VonMises": lambda a, b: stats.vonmises(b, a),
    "Weibull": lambda a, b: stats.weibull_min(b, scale=a),
}
# What does not exist where it says inf or NaN: PyTorch, and lucid with it, says the other.
INFINITE_OR_NONE = {("Cauchy", "variance"), ("FisherSnedecor", "variance"), ("StudentT", "mean")}
MANY = 20_000 if DEVICE == "cpu" else 4_000  # a simulated device takes its time
# Heavy tails: a mean of many draws says nothing of what has no variance.
NO_MOMENTS = {"LogNormal", "Cauchy", "HalfCauchy", "InverseGamma", "StudentT", "FisherSnedecor", "Pareto", "VonMises"}
# Those whose values are any numbers around the ones of the table.
FREE = {
    "Beta", "Cauchy", "FisherSnedecor", "Gamma", "Gumbel", "Independent", "InverseGamma", "Kumaraswamy", "Laplace",
    "LogNormal", "LowRankMultivariateNormal", "MultivariateNormal", "Normal", "StudentT", "VonMises", "Weibull",
}  # fmt: skip
CONTINUOUS = [
    row for row in REFERENCES if row not in {"Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"}
]


def made(row, dtype=np.float64, requires_grad=False, device=DEVICE):
    """Return a distribution of the table and its parameters."""
    make, arrays, _ = FAMILIES[row]
    parameters = [lucid.tensor(a.astype(dtype), device=device, requires_grad=requires_grad) for a in arrays]
    return make(distributions, *parameters), parameters


def value_of(row, dtype=np.float64):
    """Return values that a distribution of the table can draw."""
    value = FAMILIES[row][2]
    return lucid.tensor(value if value.dtype == np.int64 else value.astype(dtype), device=DEVICE)


def test_all_families_are_in_the_table():
    """Each public distribution has a row."""
    kinds = {
        name
        for name in distributions.__all__
        if isinstance(kind := getattr(distributions, name), type) and issubclass(kind, distributions.Distribution)
    }
    assert kinds - {row.partition(",")[0] for row in FAMILIES} == {"Distribution", "ExponentialFamily"}


@pytest.mark.parametrize("row", REFERENCES)
def test_says_what_scipy_says(row):
    """Log probabilities, distribution functions, means, variances and entropies, where both know them."""
    reference, (ours, _) = REFERENCES[row](*FAMILIES[row][1]), made(row)
    value, x = value_of(row), FAMILIES[row][2]
    logs = reference.logpmf(x) if row not in CONTINUOUS else reference.logpdf(x)
    np.testing.assert_allclose(ours.log_prob(value).cpu().numpy(), logs, rtol=1e-9, atol=1e-10)
    pairs = {
        "cdf": lambda: (ours.cdf(value), reference.cdf(x)),
        "icdf": lambda: (ours.icdf(value_of("Beta")), reference.ppf(FAMILIES["Beta"][2])),
        "entropy": lambda: (ours.entropy(), reference.entropy()),
        "mean": lambda: (ours.mean, reference.mean()),
        "variance": lambda: (ours.variance, reference.var()),
    }
    for what, both in pairs.items():
        if row == "VonMises" and what == "variance":
            continue  # SciPy's is not that on the circle
        try:
            found, expected = both()
        except NotImplementedError:
            continue
        found = found.cpu().numpy()
        if (row, what) in INFINITE_OR_NONE:
            expected = np.where(np.isfinite(expected), expected, found)
        np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-7, atol=1e-9, err_msg=what)


@pytest.mark.cpu("many draws: few are the same on each device")
@pytest.mark.parametrize("row", [row for row in REFERENCES if row != "VonMises"])
def test_draws_are_distributed(row):
    """Kolmogorov's distance of many draws from the distribution function is what chance allows, for each element."""
    reference = REFERENCES[row](*FAMILIES[row][1])
    lucid.manual_seed(3)
    draws = made(row)[0].sample((MANY,)).cpu().numpy()
    steps = np.arange(1, MANY + 1) / MANY
    for place in np.ndindex(draws.shape[1:]):
        mine = np.sort(draws[(slice(None), *place)])
        whole = lambda x: np.broadcast_to(reference.cdf(x), draws.shape[1:])[place]
        if row in CONTINUOUS:
            theirs = np.array([whole(x) for x in mine[:: MANY // 200]])
            distance = np.abs(theirs - steps[:: MANY // 200]).max()
        else:
            values = np.arange(0, 12)
            distance = max(abs(whole(k) - (mine <= k).mean()) for k in values)
        assert distance < 1.95 / math.sqrt(MANY) + 0.001, place


@pytest.mark.cpu("many draws: few are the same on each device")
@pytest.mark.parametrize("row", [row for row in FAMILIES if row.partition(",")[0] not in NO_MOMENTS])
def test_draws_have_the_moments(row):
    """The mean of many draws is the distribution's, within six deviations of it, and the variance nearly so."""
    ours, _ = made(row)
    try:
        mean, variance = ours.mean.cpu().numpy(), ours.variance.cpu().numpy()
    except NotImplementedError:
        return
    if np.isnan(mean).all():
        return
    lucid.manual_seed(1)
    draws = ours.sample((MANY,))
    assert not draws.requires_grad
    values = draws.cpu().numpy()
    assert (abs(values.mean(0) - mean) <= 6 * np.sqrt(variance / MANY)).all()
    fourth = ((values - mean) ** 4).mean(0)
    assert (abs(((values - mean) ** 2).mean(0) - variance) <= 8 * np.sqrt(fourth / MANY) + 1e-12).all()
    lucid.manual_seed(1)
    assert (ours.sample((MANY,)) == draws).all()


@pytest.mark.cpu("many draws: few are the same on each device")
def test_von_mises_draws():
    """Cosine and sine of many draws have the means that Bessel functions give, and no draw leaves the circle."""
    for kappa in (1e-6, 0.3, 2.0, 50.0, 3000.0):
        lucid.manual_seed(0)
        angle = distributions.VonMises(lucid.tensor(0.5).double(), kappa).sample((MANY,)).cpu().numpy()
        assert (abs(angle) <= math.pi).all()
        expected = special.i1e(kappa) / special.i0e(kappa)
        cos, sin = np.cos(angle - 0.5), np.sin(angle - 0.5)
        assert abs(cos.mean() - expected) < 6 * cos.std() / math.sqrt(MANY) + 1e-9
        assert abs(sin.mean()) < 6 * sin.std() / math.sqrt(MANY)


@pytest.mark.cpu("many draws: few are the same on each device")
@pytest.mark.parametrize("rate", [0.0, 1e-3, 3.0, 9.9, 10.1, 250.0, 1e6])
def test_counts_of_any_size(rate):
    """Poisson and binomial counts have mean and variance for few and for many, by either way of drawing them."""
    lucid.manual_seed(2)
    n = 4_000_000
    rows = [distributions.Poisson(lucid.tensor(rate).double())]
    rows += [distributions.Binomial(n, lucid.tensor(p).double()) for p in (rate / n, 1 - rate / n)]
    for each in rows:
        draws = each.sample((MANY,)).cpu().numpy()
        assert (draws == np.floor(draws)).all()
        assert (draws >= 0).all()
        mean, variance = each.mean.item(), each.variance.item()
        assert abs(draws.mean() - mean) <= 6 * math.sqrt(variance / MANY)
        assert abs(draws.var() - variance) <= 8 * math.sqrt((2 * variance**2 + variance) / MANY)


@pytest.mark.parametrize("row", FAMILIES)
def test_same_draws_on_each_device(row):
    """After one seed the CPU draws what the device does, but for the last places of its logarithms."""
    found = []
    for device in (DEVICE, "cpu"):
        lucid.manual_seed(5)
        found.append(made(row, np.float32, device=device)[0].sample((40,)).cpu().numpy())
    np.testing.assert_allclose(*found, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("row", FAMILIES)
def test_gradients(row):
    """Log probabilities have the derivatives of differences by parameters and values, and second ones."""
    make, _, _ = FAMILIES[row]
    _, parameters = made(row, requires_grad=True)
    value = value_of(row)
    # a difference leads out of the simplex, of triangles, and of the matrices that are symmetric
    inside = row.partition(",")[0] in FREE
    if inside:
        parameters.append(value.requires_grad_())

    def logs(*given):
        return make(distributions, *given[: len(given) - inside]).log_prob(given[-1] if inside else value)

    assert gradcheck(logs, parameters, atol=1e-5, rtol=1e-4)
    if row in {
        "Normal",
        "Gamma",
        "Beta",
        "Dirichlet",
        "StudentT",
        "MultivariateNormal",
        "VonMises",
        "Categorical",
        "Weibull",
    }:
        assert gradgradcheck(logs, parameters, atol=1e-4, rtol=1e-3)


@pytest.mark.cpu("many draws: few are the same on each device")
@pytest.mark.parametrize("row", [row for row in FAMILIES if made(row, device="cpu")[0].has_rsample])
def test_draws_have_gradients(row):
    """The mean slope of draws is the slope of their mean, as far as both are known and chance allows."""
    ours, parameters = made(row, requires_grad=True)
    try:
        mean, variance = ours.mean, ours.variance.detach()
    except NotImplementedError:
        return
    if (
        row in {"Cauchy", "HalfCauchy", "FisherSnedecor", "InverseGamma", "StudentT", "Pareto"}
        or "StraightThrough" in row
    ):
        return
    lucid.manual_seed(4)
    draws = ours.rsample((MANY,))
    assert draws.requires_grad
    used = [p for p in parameters if p.requires_grad]
    expected = lucid.autograd.grad(mean.sum(), used, retain_graph=True, allow_unused=True)
    found = lucid.autograd.grad(draws.mean(0).sum(), used, allow_unused=True)
    for a, b, p in zip(found, expected, used, strict=True):
        slope = np.zeros(p.shape) if b is None else b.cpu().numpy()
        size = 1 + abs(slope).max() + variance.cpu().numpy().max()
        np.testing.assert_allclose(a.cpu().numpy(), slope, atol=12 * size / math.sqrt(MANY))


def slope_of(quantile, at, share):
    """Return the derivative of a quantile by a parameter, by differences of the fourth order."""
    h = at * 1e-3
    points = [quantile(at + k * h, share) for k in (-2, -1, 1, 2)]
    return (points[0] - 8 * points[1] + 8 * points[2] - points[3]) / (12 * h)


@pytest.mark.parametrize("alpha", [0.05, 0.6, 1.0, 1.7, 12.0, 400.0])
def test_slopes_of_gamma_draws(alpha):
    """A draw moves with its concentration as the quantile of its share does."""
    lucid.manual_seed(6)
    a = lucid.full((200,), alpha, dtype=lucid.float64, device=DEVICE, requires_grad=True)
    draws = distributions.Gamma(a, 1.0).rsample()
    draws.sum().backward()
    z = draws.detach().cpu().numpy()
    share = special.gammainc(alpha, z)
    known = (share > 1e-4) & (share < 1 - 1e-4)
    expected = slope_of(special.gammaincinv, alpha, share)
    np.testing.assert_allclose(a.grad.cpu().numpy()[known], expected[known], rtol=1e-5)


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.3), (0.7, 4.0), (5.0, 1.0), (30.0, 80.0), (900.0, 2.5)])
def test_slopes_of_beta_draws(first, second):
    """A draw moves with each of both as the quantile of its share does, and shares of more than two in proportion."""
    lucid.manual_seed(7)
    a, b = (lucid.full((200,), x, dtype=lucid.float64, device=DEVICE, requires_grad=True) for x in (first, second))
    draws = distributions.Beta(a, b).rsample()
    draws.sum().backward()
    x = draws.detach().cpu().numpy()
    share = special.betainc(first, second, x)
    known = (share > 1e-4) & (share < 1 - 1e-4) & (x < 1 - 1e-7)
    by_first = slope_of(lambda at, u: special.betaincinv(at, second, u), first, share)
    by_second = slope_of(lambda at, u: special.betaincinv(first, at, u), second, share)
    np.testing.assert_allclose(a.grad.cpu().numpy()[known], by_first[known], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(b.grad.cpu().numpy()[known], by_second[known], rtol=1e-4, atol=1e-9)


def test_slopes_of_dirichlet_draws():
    """One share moves with its concentration as a beta variate; the others give in proportion to what they have."""
    lucid.manual_seed(8)
    a = lucid.tensor([0.5, 2.0, 3.5], dtype=lucid.float64, device=DEVICE, requires_grad=True)
    draw = distributions.Dirichlet(a).rsample()
    x = draw.detach().cpu().numpy()
    total = 6.0
    for j, at in enumerate((0.5, 2.0, 3.5)):
        share = special.betainc(at, total - at, x[j])
        own = slope_of(lambda c, u, at=at: special.betaincinv(c, total - at, u), at, share)
        for i in range(3):
            (grad,) = lucid.autograd.grad(draw[i], [a], retain_graph=True)
            expected = own if i == j else -x[i] / (1 - x[j]) * own
            np.testing.assert_allclose(grad[j].item(), expected, rtol=1e-5)


def test_share_of_gamma_variates():
    """The distribution function is SciPy's incomplete gamma function from small to large, with both derivatives."""
    alpha = np.array([[1e-3], [0.3], [1.0], [4.0], [90.0], [5e4]])
    z = alpha * np.array([0.0, 1e-3, 0.5, 0.97, 1.02, 1.5, 30.0])
    ours = distributions.Gamma(lucid.tensor(alpha, device=DEVICE), 1.0).cdf(lucid.tensor(z, device=DEVICE))
    np.testing.assert_allclose(ours.cpu().numpy(), special.gammainc(alpha, z), rtol=1e-8, atol=1e-12)
    a, x = (lucid.tensor([0.4, 2.5, 2.5], dtype=lucid.float64, device=DEVICE, requires_grad=True) for _ in range(2))
    assert gradcheck(
        lambda a, x: distributions.Gamma(a, 1.0).cdf(x * lucid.tensor([0.5, 1.5, 0.4], device=DEVICE)), (a, x)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("row", [row for row in REFERENCES if row != "VonMises"])
def test_other_dtypes(row, dtype):
    """Parameters of a dtype give draws, log probabilities and moments of it."""
    try:
        ours, _ = made(row, dtype)
    except lucid.errors.DtypeError:
        pytest.fail("a half type is refused")
    value = value_of(row, dtype)
    exact = made(row)[0].log_prob(value_of(row))
    found = ours.log_prob(value)
    assert {each.dtype for each in (ours.sample((3,)), found, ours.mean, ours.variance)} == {value.dtype}
    close = 3e-2 if dtype == np.float16 else 2e-4
    np.testing.assert_allclose(found.double().cpu().numpy(), exact.cpu().numpy(), rtol=close, atol=close)


@pytest.mark.parametrize("row", [row for row in FAMILIES if made(row, device="cpu")[0].has_enumerate_support])
def test_all_values(row):
    """The probabilities of all values sum to 1."""
    ours, _ = made(row)
    for values in (ours.enumerate_support(), ours.enumerate_support(expand=False)):
        total = ours.log_prob(values).exp().sum(0)
        np.testing.assert_allclose(total.cpu().numpy(), np.ones(ours.batch_shape), rtol=1e-9)


@pytest.mark.parametrize("row", ["ContinuousBernoulli", "Kumaraswamy", "RelaxedBernoulli", "TransformedDistribution"])
def test_densities_between_bounds(row):
    """Their integral from 0 to 1 is 1, and over a part what the distribution function says."""
    ours, _ = made(row)
    shape = (-1, *(1 for _ in ours.batch_shape))
    logit = np.linspace(-33, 33, 20_001).reshape(shape)
    x = special.expit(logit)
    density = ours.log_prob(lucid.tensor(x, device=DEVICE)).exp().cpu().numpy()
    mass = density * x * special.expit(-logit) * (66 / 20_000)
    np.testing.assert_allclose(mass.sum(0), np.ones(ours.batch_shape), rtol=5e-3)
    try:
        share = ours.cdf(lucid.tensor(x, device=DEVICE)).cpu().numpy()
    except NotImplementedError:
        return
    np.testing.assert_allclose(mass.cumsum(0)[2000:-2000:500], share[2000:-2000:500], atol=5e-3)


def test_vectors_and_matrices():
    """Log probabilities of vectors and of matrices are SciPy's, of each of the batch."""
    loc, covariance = FAMILIES["MultivariateNormal"][1]
    x = FAMILIES["MultivariateNormal"][2]
    for i in range(2):
        ours = made("MultivariateNormal")[0].log_prob(value_of("MultivariateNormal"))[i].item()
        assert ours == pytest.approx(stats.multivariate_normal.logpdf(x, loc[i], 2 * covariance[i]), rel=1e-9)
        ours = made("Wishart")[0].log_prob(value_of("Wishart"))[i].item()
        wishart = stats.wishart(FAMILIES["Wishart"][1][0][i] if i else 3, 2 * covariance[i])
        if i:
            assert ours == pytest.approx(wishart.logpdf(FAMILIES["Wishart"][2]), rel=1e-9)
            assert made("Wishart")[0].entropy()[i].item() == pytest.approx(wishart.entropy(), rel=1e-9)
        shares = FAMILIES["Multinomial"][1][0][i]
        ours = made("Multinomial")[0].log_prob(value_of("Multinomial"))[i].item()
        assert ours == pytest.approx(stats.multinomial.logpmf([1, 0, 4], 5, shares), rel=1e-9)
        assert made("Multinomial")[0].entropy()[i].item() == pytest.approx(
            stats.multinomial.entropy(5, shares), rel=1e-9
        )
    loc, factor, diag = FAMILIES["LowRankMultivariateNormal"][1]
    reference = stats.multivariate_normal(loc[0], factor @ factor.T + np.diag(diag))
    ours = made("LowRankMultivariateNormal")[0]
    value = FAMILIES["LowRankMultivariateNormal"][2]
    assert ours.log_prob(value_of("LowRankMultivariateNormal"))[0].item() == pytest.approx(
        reference.logpdf(value), rel=1e-9
    )
    assert ours.entropy()[0].item() == pytest.approx(reference.entropy(), rel=1e-9)


@pytest.mark.cpu("many draws: few are the same on each device")
@pytest.mark.parametrize("concentration", [0.5, 1.0, 4.0])
def test_correlations(concentration):
    """Each correlation of LKJ's matrices is beta distributed, and their density's integral is 1."""
    lucid.manual_seed(9)
    lkj = distributions.LKJCholesky(3, lucid.tensor(concentration, dtype=lucid.float64, device=DEVICE))
    factor = lkj.sample((MANY,))
    assert lkj.support.check(factor).all()
    matrix = (factor @ factor.mT).cpu().numpy()
    beta = concentration + 0.5
    for i, j in ((1, 0), (2, 0), (2, 1)):
        assert stats.kstest(matrix[:, i, j], stats.beta(beta, beta, -1, 2).cdf).statistic < 1.95 / math.sqrt(MANY)
    # of two dimensions: the row is (r, sqrt(1 - r**2)), and the density one of r
    plane = distributions.LKJCholesky(2, lucid.tensor(concentration).double())
    r = np.linspace(-1, 1, 200_001)[1:-1]
    rows = np.zeros((r.size, 2, 2))
    rows[:, 0, 0], rows[:, 1, 0], rows[:, 1, 1] = 1, r, np.sqrt(1 - r * r)
    density = plane.log_prob(lucid.tensor(rows)).exp().numpy()
    assert (density.sum() * (r[1] - r[0])) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("what", ["mean", "variance", "log_prob", "cdf", "icdf"])
def test_the_middle_of_a_continuous_bernoulli(what):
    """Around one half, where its formulas divide by nothing, values and slopes go on as on both sides of it."""

    def said(p):
        ours = distributions.ContinuousBernoulli(p)
        return (
            getattr(ours, what)
            if what in {"mean", "variance"}
            else getattr(ours, what)(lucid.tensor(0.3).double().to(p.device))
        )

    p = lucid.tensor(0.5, dtype=lucid.float64, device=DEVICE, requires_grad=True)
    middle = said(p)
    middle.backward()
    low, high = (said(lucid.tensor(0.5 + step, dtype=lucid.float64, device=DEVICE)).item() for step in (-2e-3, 2e-3))
    assert middle.item() == pytest.approx((low + high) / 2, abs=1e-5)
    assert p.grad.item() == pytest.approx((high - low) / 4e-3, abs=1e-4)
