"""Divergences are means of differences of log probabilities, of each pair of classes that is registered."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import lucid
from lucid import distributions as d
from lucid.distributions import kl_divergence, register_kl
from lucid.errors import ArgumentError, ShapeError
from tests.device import DEVICE
from tests.distributions.samples import of

M = [[2.0, 0.3], [0.3, 1.0]]
# Each pair has a p and a q of each class: p from the first, q from the second of both where they are one class.
MAKERS = {
    "Bernoulli": (lambda: d.Bernoulli(of(0.3)), lambda: d.Bernoulli(of(0.6))),
    "Beta": (lambda: d.Beta(of(2.0), of(3.0)), lambda: d.Beta(of(1.5), of(1.2))),
    "Binomial": (lambda: d.Binomial(4, of(0.3)), lambda: d.Binomial(6, of(0.5))),
    "Categorical": (lambda: d.Categorical(of([0.2, 0.3, 0.5])), lambda: d.Categorical(of([0.4, 0.4, 0.2]))),
    "Cauchy": (lambda: d.Cauchy(of(0.5), of(1.0)), lambda: d.Cauchy(of(-1.0), of(2.0))),
    "ContinuousBernoulli": (lambda: d.ContinuousBernoulli(of(0.3)), lambda: d.ContinuousBernoulli(of(0.8))),
    "Dirichlet": (lambda: d.Dirichlet(of([2.0, 3.0, 1.5])), lambda: d.Dirichlet(of([1.0, 2.0, 2.5]))),
    "Exponential": (lambda: d.Exponential(of(1.5)), lambda: d.Exponential(of(0.7))),
    "Gamma": (lambda: d.Gamma(of(2.5), of(1.2)), lambda: d.Gamma(of(1.5), of(0.7))),
    "Geometric": (lambda: d.Geometric(of(0.4)), lambda: d.Geometric(of(0.7))),
    "Gumbel": (lambda: d.Gumbel(of(0.5), of(1.0)), lambda: d.Gumbel(of(-0.3), of(2.0))),
    "HalfCauchy": (lambda: d.HalfCauchy(of(1.0)), lambda: d.HalfCauchy(of(2.0))),
    "HalfNormal": (lambda: d.HalfNormal(of(1.0)), lambda: d.HalfNormal(of(2.0))),
    "Independent": (
        lambda: d.Independent(d.Normal(of([0.0, 1.0]), of(1.0)), 1),
        lambda: d.Independent(d.Normal(of([0.5, 1.5]), of(2.0)), 1),
    ),
    "Laplace": (lambda: d.Laplace(of(0.5), of(1.0)), lambda: d.Laplace(of(-0.3), of(2.0))),
    "LowRankMultivariateNormal": (
        lambda: d.LowRankMultivariateNormal(of([0.0, 1.0]), of([[1.0], [0.5]]), of([1.0, 0.5])),
        lambda: d.LowRankMultivariateNormal(of([0.5, 0.0]), of([[0.3], [1.5]]), of([1.5, 1.0])),
    ),
    "MultivariateNormal": (
        lambda: d.MultivariateNormal(of([0.0, 1.0]), of(M)),
        lambda: d.MultivariateNormal(of([0.5, 0.0]), 2 * of(M)),
    ),
    "Normal": (lambda: d.Normal(of(0.5), of(1.0)), lambda: d.Normal(of(-0.3), of(2.0))),
    "OneHotCategorical": (
        lambda: d.OneHotCategorical(of([0.2, 0.3, 0.5])),
        lambda: d.OneHotCategorical(of([0.4, 0.4, 0.2])),
    ),
    "Pareto": (lambda: d.Pareto(of(0.8), of(5.0)), lambda: d.Pareto(of(0.5), of(2.0))),
    "Poisson": (lambda: d.Poisson(of(2.0)), lambda: d.Poisson(of(3.0))),
    "TransformedDistribution": (lambda: d.LogNormal(of(0.5), of(1.0)), lambda: d.LogNormal(of(-0.3), of(2.0))),
    "Uniform": (lambda: d.Uniform(of(0.6), of(0.9)), lambda: d.Uniform(of(-0.5), of(1.5))),
    "ExponentialFamily": (lambda: d.Wishart(of(3.5), of(M)), lambda: d.Wishart(of(5.0), 2 * of(M))),
}
PAIRS = sorted({(p.__name__, q.__name__) for p, q in d.kl._KL_REGISTRY if p.__module__.startswith("lucid")})
MANY = 60_000
BOUNDS = {
    "Beta": (0, 1),
    "Bernoulli": (0, 1),
    "Binomial": (0, 6),
    "ContinuousBernoulli": (0, 1),
    "Exponential": (0, math.inf),
    "Gamma": (0, math.inf),
    "Pareto": (0.5, math.inf),
    "Uniform": (-0.5, 1.5),
}


@pytest.mark.cpu("many draws: few are the same on each device")
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_is_the_mean_of_the_difference(first, second):
    """Over many draws of p, within six deviations of that mean; infinite where q cannot draw one of them."""
    p, q = MAKERS[first][0](), MAKERS[second][1]()
    q._validate_args = False
    found = kl_divergence(p, q)
    assert found.shape == p.batch_shape
    lucid.manual_seed(0)
    draws = p.sample((MANY,))
    if found.item() == math.inf:
        low, high = BOUNDS[second]
        assert ((draws < low) | (draws > high)).any()
        return
    terms = (p.log_prob(draws) - q.log_prob(draws)).cpu().numpy()
    assert np.isfinite(terms).all()
    assert abs(terms.mean() - found.item()) <= 6 * terms.std() / math.sqrt(MANY) + 1e-9
    assert found.item() >= 0


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "ExponentialFamily"])
def test_is_nothing_of_itself(name):
    """It is 0 of two equal distributions, and its slope there is 0."""
    make = MAKERS[name][0]
    assert kl_divergence(make(), make()).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_batches_broadcast(first, second):
    """Of one p and several q, of several p and one q, and of rows and columns of them, each has that of the two."""
    p, q = MAKERS[first][0](), MAKERS[second][1]()
    expected = kl_divergence(p, q).item()
    for some, others, shape in (((), (3,), (3,)), ((3,), (), (3,)), ((2, 1), (3,), (2, 3)), ((), (4, 1), (4, 1))):
        found = kl_divergence(p.expand(some), q.expand(others))
        assert found.shape == shape
        np.testing.assert_allclose(found.tolist(), np.full(shape, expected), rtol=1e-12)


SCALED = [
    (d.Normal, d.Normal), (d.Cauchy, d.Cauchy), (d.Laplace, d.Laplace), (d.Gumbel, d.Gumbel), (d.Laplace, d.Normal),
    (d.Gumbel, d.Normal), (d.Normal, d.Laplace), (d.Normal, d.Gumbel),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), SCALED)
@pytest.mark.parametrize("unit", [1e-25, 1e-20, 1.0, 1e20, 1e25])
def test_the_unit_does_not_count(first, second, unit):
    """In float32 the divergence of numbers in any unit is that of float64 in unit 1, and none from itself."""
    one, other = (0.25, 1.5), (-0.5, 2.0)
    wanted = d.kl_divergence(first(*map(of, one)), second(*map(of, other))).item()
    p, q = (
        kind(*(lucid.tensor(unit * value, dtype=lucid.float32, device=DEVICE) for value in values))
        for kind, values in ((first, one), (second, other))
    )
    assert d.kl_divergence(p, q).item() == pytest.approx(wanted, rel=1e-4)
    if first is second:
        assert d.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda s: (d.Normal(0 * s, s), d.Normal(0 * s, 1 + 0 * s)), lambda s: 0.5 * (s * s - 1) - math.log(s)),
        (lambda s: (d.HalfNormal(s), d.HalfNormal(1 + 0 * s)), lambda s: 0.5 * (s * s - 1) - math.log(s)),
        (lambda s: (d.LogNormal(0 * s, s), d.LogNormal(0 * s, 1 + 0 * s)), lambda s: 0.5 * (s * s - 1) - math.log(s)),
        (
            lambda s: (d.Cauchy(0 * s, s), d.Cauchy(0 * s, 1 + 0 * s)),
            lambda s: 2 * math.log(0.5 + 0.5 * s) - math.log(s),
        ),
        (lambda s: (d.HalfCauchy(s), d.HalfCauchy(1 + 0 * s)), lambda s: 2 * math.log(0.5 + 0.5 * s) - math.log(s)),
    ],
)
@pytest.mark.parametrize("size", [1e-30, 1e-23, 0.3, 1.0, 3.0])
def test_ratios_whose_squares_underflow(make, wanted, size):
    """They are a logarithm away."""
    scale = lucid.tensor(size, dtype=lucid.float32, device=DEVICE, requires_grad=True)
    value = d.kl_divergence(*make(scale))
    assert value.item() == pytest.approx(wanted(size), rel=1e-5, abs=1e-6)
    (slope,) = lucid.autograd.grad(value, scale)
    ends = [wanted(size * (1 + step)) for step in (1e-5, -1e-5)]
    assert slope.item() * size == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-5)


def test_rates_far_apart():
    """In float32 as well the divergences are finite, and that of shapes far apart keeps its digits."""
    for kind, one, other in (
        (d.Poisson, (1e10,), (1e-10,)), (d.Gamma, (2.0, 1e10), (3.0, 1e-10)), (d.Gamma, (1e-3, 1.0), (1e3, 1e6)),
        (d.Gamma, (1e10, 1.0), (40.0, 1.0)),
    ):  # fmt: skip
        found = []
        for dtype in (lucid.float32, lucid.float64):
            p, q = (kind(*(lucid.tensor(each, dtype=dtype, device=DEVICE) for each in ps)) for ps in (one, other))
            found.append(d.kl_divergence(p, q).item())
        assert found[0] == pytest.approx(found[1], rel=1e-6)
    # rate * log(rate / other) - rate
    assert d.kl_divergence(d.Poisson(of(1e10)), d.Poisson(of(1e-10))).item() == pytest.approx(
        1e10 * math.log(1e20) - 1e10
    )


def test_near_cauchys_have_digits_and_second_derivatives():
    """Of nearly the same place and scale: the divergence is a half of Fisher's information, times a square."""
    away = 1e-4
    value = d.kl_divergence(d.Cauchy(of(0.0), 1.0), d.Cauchy(of(away), 1.0 + away))
    # both have the information 1 / (2 * scale**2)
    assert value.item() == pytest.approx(0.5 * away**2, rel=2e-4)
    narrow = [lucid.tensor([0.0, 1.0 + k * 2.0**-10], dtype=lucid.float32, device=DEVICE) for k in (0, 1)]
    near = d.kl_divergence(*(d.Cauchy(*each.unbind()) for each in narrow)).item()
    assert near == pytest.approx(2.0**-22, rel=2e-3)
    parameters = tuple(of(each).requires_grad_() for each in (0.5, 2.0))

    def divergence(loc, scale):
        return d.kl_divergence(d.Cauchy(loc, scale), d.Cauchy(of(0.5), 2.0))

    assert lucid.autograd.gradcheck(divergence, parameters)
    assert lucid.autograd.gradgradcheck(divergence, parameters)


def test_transforms_that_change_dimensions():
    """The divergence of each of a batch is its base's, with events that gain or lose dimensions by the transforms."""
    away = of([1.0, 2.0, 3.0])
    for transform, size in (
        (d.ReshapeTransform((4,), (2, 2)), (4,)),
        (d.ReshapeTransform((2, 2), (4,)), (2, 2)),
        (d.CorrCholeskyTransform(), (3,)),
    ):
        wide = away.reshape(3, *(1 for _ in size)).expand(3, *size)
        p, q = (d.TransformedDistribution(d.Normal(at, of(1.0)), transform) for at in (wide * 0, wide))
        expected = 0.5 * np.prod(size) * np.array([1.0, 4.0, 9.0])
        np.testing.assert_allclose(kl_divergence(p, q).tolist(), expected, rtol=1e-12)


def test_what_no_parameter_requires_is_on_no_graph():
    """Entropy and divergence by a normaliser require grad if a parameter does, and are numbers in each grad mode."""

    def both(df):
        p, q = (d.Wishart(count, of(M)) for count in (df, of(4.0)))
        return kl_divergence(p, q), d.ExponentialFamily.entropy(d.Gamma(df, of(1.0)))

    expected = [value.item() for value in both(of(3.0))]
    assert not any(value.requires_grad for value in both(of(3.0)))
    assert all(value.requires_grad for value in both(of(3.0).requires_grad_()))
    for mode in (lucid.no_grad, lucid.inference_mode):
        with mode():
            for df in (of(3.0), of(3.0).requires_grad_()):
                found = both(df)
                assert [value.item() for value in found] == expected
                assert not any(value.requires_grad for value in found)
    step = 1e-4
    for which in (0, 1):
        slope = lucid.func.grad(lambda df, which=which: both(df)[which])(of(3.0))
        assert not slope.requires_grad
        above, below = both(of(3.0 + step))[which].item(), both(of(3.0 - step))[which].item()
        assert slope.item() == pytest.approx((above - below) / (2 * step), rel=1e-6)


FAMILIES = ["Bernoulli", "Beta", "ContinuousBernoulli", "Dirichlet", "Exponential", "Gamma", "Normal", "Poisson"]


@pytest.mark.parametrize("name", FAMILIES)
def test_an_exponential_family_follows_from_its_normaliser(name):
    """Divergence and entropy, with gradients, are by the slopes of the normaliser what the family's formulas say."""
    p, q = MAKERS[name][0](), MAKERS[name][1]()
    general = d.kl._KL_REGISTRY[d.ExponentialFamily, d.ExponentialFamily]
    assert general(p, q).item() == pytest.approx(
        kl_divergence(p, q).item(), rel=1e-3 if name.startswith("Cont") else 1e-9
    )
    if name != "Poisson":
        assert d.ExponentialFamily.entropy(p).item() == pytest.approx(p.entropy().item(), rel=1e-9)
    if name == "Gamma":
        grads = []
        for entropy in (d.ExponentialFamily.entropy, d.Gamma.entropy):
            a, b = of(2.5).requires_grad_(), of(1.2).requires_grad_()
            entropy(d.Gamma(a, b)).backward()
            grads.append([a.grad.item(), b.grad.item()])
        np.testing.assert_allclose(*grads, rtol=1e-8)


def test_binomials_of_several_counts():
    """With more trials q can draw what p does, with fewer not; and the value is the sum over all counts."""
    p, q = d.Binomial(of([2.0, 4.0, 5.0]), of(0.3)), d.Binomial(of([4.0, 4.0, 3.0]), of(0.6))
    found = kl_divergence(p, q).tolist()
    for i, (few, many) in enumerate(((2, 4), (4, 4))):
        one, two = d.Binomial(few, of(0.3)), d.Binomial(many, of(0.6))
        logs = one.log_prob(one.enumerate_support())
        expected = (logs.exp() * (logs - two.log_prob(one.enumerate_support()))).sum().item()
        assert found[i] == pytest.approx(expected, rel=1e-9)
    assert found[2] == math.inf


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
@pytest.mark.parametrize("logit", [20.0, 40.0])
def test_binomials_of_nearly_sure_trials(dtype, logit):
    """A trial of q that p has not fails with a chance whose logarithm is that of its logits."""
    p, q = (
        d.Binomial(count, logits=lucid.tensor(at, dtype=dtype, device=DEVICE)) for count, at in ((2, 1.0), (3, logit))
    )
    k, low = np.arange(3), -np.log1p(math.e)
    chance = np.array([1, 2, 1]) * np.exp(k + 2 * low)
    logs = np.log([1, 3, 3]) - k * np.logaddexp(0, -logit) - (3 - k) * np.logaddexp(0, logit)
    expected = (chance * (np.log([1, 2, 1]) + k + 2 * low - logs)).sum()
    assert kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-6 if dtype is lucid.float32 else 1e-13)


def test_chances_that_underflow():
    """Of finite logits the divergence is finite, though a probability underflows; of one of 0 it is not."""
    p = 1 / (1 + math.exp(-1))
    expected = p * math.log(p) + (1 - p) * (math.log(1 - p) + 200)
    low, high = (lucid.tensor(at, device=DEVICE) for at in (1.0, 200.0))
    for one, other in (
        (d.Bernoulli(logits=low), d.Bernoulli(logits=high)),
        (d.Bernoulli(logits=-low), d.Bernoulli(logits=-high)),
        (d.Categorical(logits=lucid.stack([low, low * 0])), d.Categorical(logits=lucid.stack([high, high * 0]))),
    ):
        assert kl_divergence(one, other).item() == pytest.approx(expected, rel=1e-6)
    half = lucid.tensor([0.5, 0.5], device=DEVICE)
    sure = lucid.tensor([0.0, 1.0], device=DEVICE)
    assert kl_divergence(d.Categorical(half), d.Categorical(sure)).item() == math.inf
    assert kl_divergence(d.Categorical(half), d.Categorical(logits=sure.log())).item() == math.inf
    for ends in (d.Bernoulli(sure), d.Bernoulli(logits=lucid.tensor([-math.inf, math.inf], device=DEVICE))):
        assert kl_divergence(d.Bernoulli(half), ends).tolist() == [math.inf, math.inf]
        assert kl_divergence(ends, ends).tolist() == [0.0, 0.0]


def test_sure_binomials_beside_those_of_more_trials():
    """An element of as many trials has a slope where another one has more, and is infinite with one more sure trial."""
    q = of([1.0, 0.5]).requires_grad_()
    kl_divergence(d.Binomial(of([2.0, 2.0]), of([1.0, 0.5])), d.Binomial(of([2.0, 3.0]), q)).sum().backward()
    assert q.grad.isfinite().all()
    assert q.grad[1].item() == pytest.approx(2.0)  # -(1 / 0.5) + 2 / 0.5, of one win and two losses
    sure = d.Binomial(of([3.0, 3.0]), of([1.0, 1.0]))
    assert kl_divergence(d.Binomial(of([2.0, 2.0]), of([1.0, 0.5])), sure).tolist() == [math.inf, math.inf]


def test_the_curvature_of_laplaces_numbers_at_one_place():
    """The divergence is smooth where the places are the same: it is there what it is beside."""

    def slopes(at):
        p, q = (of(value).requires_grad_() for value in (at, 0.0))
        (first,) = lucid.autograd.grad(
            kl_divergence(d.Laplace(p, of(2.0)), d.Laplace(q, of(3.0))), p, create_graph=True
        )
        return [first.item(), *(each.item() for each in lucid.autograd.grad(first, (p, q)))]

    for at in (0.0, 1e-9, -1e-9):
        assert slopes(at) == pytest.approx([at / 6, 1 / 6, -1 / 6], abs=1e-9)


def test_draws_of_other_sizes_have_none():
    """Two distributions of vectors of other lengths, or numbers of choices, are refused."""
    for p, q in (
        (d.Categorical(lucid.ones(3)), d.Categorical(lucid.ones(1))),
        (d.OneHotCategorical(lucid.ones(3)), d.OneHotCategorical(lucid.ones(1))),
        (d.Dirichlet(lucid.ones(3)), d.Dirichlet(lucid.ones(1))),
        (d.Independent(d.Normal(lucid.zeros(3), 1.0), 1), d.Independent(d.Normal(lucid.zeros(1), 2.0), 1)),
    ):
        with pytest.raises(ShapeError, match=r"kl_divergence: expected .* got \(?3"):
            kl_divergence(p, q)


def test_transforms_with_slopes_of_their_own():
    """The divergence of the bases has no slope by a transform: it is taken where p and q share what requires grad."""
    loc, other = (of(0.0).requires_grad_() for _ in range(2))

    def moved(mean, loc):
        return d.TransformedDistribution(d.Normal(of(mean), of(1.0)), d.AffineTransform(loc, of(2.0)))

    assert kl_divergence(moved(0.0, loc), moved(1.0, loc)).item() == 0.5
    with pytest.raises(NotImplementedError, match="share the tensors that require grad"):
        kl_divergence(moved(0.0, loc), moved(1.0, other))
    a, b, c = (of(value).requires_grad_() for value in (2.0, 2.0, 3.0))
    with pytest.raises(NotImplementedError, match="share the tensors that require grad"):
        kl_divergence(d.Kumaraswamy(a, b), d.Kumaraswamy(of(2.0), c))
    with lucid.no_grad():
        assert kl_divergence(moved(0.0, loc), moved(1.0, other)).item() == 0.5


def test_transforms_that_bring_values_together():
    """Absolute values of two distributions may be one distribution: what is not bijective is refused."""
    p, q = (d.TransformedDistribution(d.Normal(of(mean), of(1.0)), d.AbsTransform()) for mean in (1.0, -1.0))
    with pytest.raises(NotImplementedError, match="have to be bijective"):
        kl_divergence(p, q)


def test_counts_that_cannot_be():
    """Where p expects no events its divergence is what q expects; q of none has none of what p draws."""
    found = kl_divergence(d.Poisson(of([0.0, 1.0, 0.0])), d.Poisson(of([2.0, 0.0, 0.0]))).tolist()
    assert found[:2] == [2.0, math.inf]


def test_the_nearest_classes_are_taken():
    """A class that is derived has its base's, until it has its own; two that are as near are warned of."""

    class Mine(d.Normal):
        pass

    assert kl_divergence(Mine(of(0.0), 1.0), d.Normal(of(1.0), 1.0)).item() == 0.5
    before = dict(d.kl._KL_REGISTRY)
    try:
        register_kl(Mine, d.Normal)(lambda p, q: of(7.0))
        assert kl_divergence(Mine(of(0.0), 1.0), d.Normal(of(1.0), 1.0)).item() == 7
        assert kl_divergence(d.Normal(of(0.0), 1.0), Mine(of(1.0), 1.0)).item() == 0.5
        register_kl(d.Normal, Mine)(lambda p, q: of(8.0))
        with pytest.warns(RuntimeWarning, match=r"fit \(Mine, Normal\) and \(Normal, Mine\)"):
            assert kl_divergence(Mine(of(0.0), 1.0), Mine(of(1.0), 1.0)).item() == 7
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            register_kl(Mine, Mine)(lambda p, q: of(9.0))
            assert kl_divergence(Mine(of(0.0), 1.0), Mine(of(1.0), 1.0)).item() == 9
    finally:
        d.kl._KL_REGISTRY.clear()
        d.kl._KL_REGISTRY.update(before)
        d.kl._KL_MEMOIZE.clear()
    with pytest.raises(ArgumentError, match="type_p: expected a class of distributions, got 3"):
        register_kl(3, Mine)


@pytest.mark.parametrize("name", [q for p, q in PAIRS if p == "Uniform" and q in BOUNDS])
def test_what_reaches_beyond_a_bound(name):
    """Of uniform numbers it is infinite where these pass one bound of q's draws, whichever, and finite up to both."""
    q, (low, high) = MAKERS[name][1](), BOUNDS[name]
    top = min(high, low + 3)
    assert math.isfinite(kl_divergence(d.Uniform(of(low), of(top)), q).item())
    assert kl_divergence(d.Uniform(of(low - 0.5), of(top)), q).item() == math.inf
    if top == high:
        assert kl_divergence(d.Uniform(of(low), of(high + 0.5)), q).item() == math.inf


@pytest.mark.parametrize("name", ["Exponential", "Normal", "Gamma"])
def test_where_moments_are_infinite(name):
    """A Pareto whose mean or variance is infinite is infinitely far, and has no part in the gradients of the others."""
    alpha, order = [3.5, 2.0, 1.5, 1.0, 0.5], 2 if name == "Normal" else 1
    given = [of(each).requires_grad_() for each in ([1.2, 0.3, 1.0, 2.0, 0.7], alpha, [0.5, 3.0, 1.0, 2.0, 1.5])]

    def divergence(scale, alpha, rate):
        q = d.Exponential(rate) if name == "Exponential" else getattr(d, name)(rate + 0.5, rate)
        return kl_divergence(d.Pareto(scale, alpha), q)

    values = divergence(*given)
    assert values.isinf().tolist() == [each <= order for each in alpha]
    values[values.isfinite()].sum().backward()
    for tensor in given:
        assert [slope == 0 for slope in tensor.grad.tolist()] == values.isinf().tolist()
    for place, infinite in enumerate(values.isinf().tolist()):
        if not infinite:
            alone = [tensor.detach()[place].requires_grad_() for tensor in given]
            slopes = lucid.autograd.grad(divergence(*alone), alone)
            assert [s.item() for s in slopes] == pytest.approx([t.grad[place].item() for t in given], rel=1e-12)
