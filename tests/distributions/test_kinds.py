"""Parameters and values of any kind: integers, numbers, arrays, two dtypes, and those that are not looked at."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import lucid
from lucid import distributions as d
from lucid.errors import ArgumentError, SettingError, ShapeError
from tests.device import DEVICE
from tests.distributions.samples import of


def whole(value, dtype=lucid.int64):
    """Return a tensor of integers."""
    return of(value, dtype)


BESIDE = {
    "Normal": (lambda: d.Normal(whole(3), 1.5), stats.norm(3, 1.5), 1.0),
    "Normal, scale": (lambda: d.Normal(of(0.0), whole(3)), stats.norm(0, 3), 1.0),
    "Laplace": (lambda: d.Laplace(whole(0), 1.5), stats.laplace(0, 1.5), 1.0),
    "StudentT": (lambda: d.StudentT(whole(3), 0.5, 1.5), stats.t(3, 0.5, 1.5), 1.0),
    "Binomial": (lambda: d.Binomial(whole(5), 0.5), stats.binom(5, 0.5), 2),
    "Binomial, many": (lambda: d.Binomial(whole(100), of(0.3)), stats.binom(100, 0.3), 40),
    "Binomial, narrow": (lambda: d.Binomial(whole(255, lucid.uint8), of(0.5)), stats.binom(255, 0.5), 100),
    "Poisson": (lambda: d.Poisson(of(1e4)), stats.poisson(1e4), 10500),
    "NegativeBinomial": (lambda: d.NegativeBinomial(whole(50), of(0.3)), stats.nbinom(50, 0.7), 40),
    "Gamma": (lambda: d.Gamma(whole(2), of(3.0)), stats.gamma(2, scale=1 / 3), 2),
    "LogNormal": (lambda: d.LogNormal(of(0.3), 1.5), stats.lognorm(1.5, scale=math.exp(0.3)), 3),
    "Pareto": (lambda: d.Pareto(of(1.5), whole(2)), stats.pareto(2, scale=1.5), 3),
    "AffineTransform": (
        lambda: d.TransformedDistribution(d.Normal(of(0.0), 1.0), [d.AffineTransform(0.0, whole(3))]),
        stats.norm(0, 3),
        1,
    ),
    "PowerTransform": (
        lambda: d.TransformedDistribution(d.Exponential(of(2.0)), [d.PowerTransform(whole(3))]),
        stats.weibull_min(1 / 3, scale=1 / 8),
        0.7,
    ),
}

# those of numbers and integers alone are of the default dtype
DEFAULT = {"Normal", "Laplace", "StudentT", "Binomial"}


@pytest.mark.parametrize("name", BESIDE)
def test_integers_beside_floats_are_of_their_dtype(name):
    """Densities have the digits of their dtype, whether the value is an integer or the float that is equal to it."""
    make, reference, value = BESIDE[name]
    made = make()
    logs = reference.logpmf if hasattr(reference.dist, "logpmf") else reference.logpdf
    for at in {of(value), of(value) if value % 1 else whole(value)}:
        found = made.log_prob(at)
        assert found.item() == pytest.approx(float(logs(value)), rel=1e-6 if name in DEFAULT else 1e-12)
        assert found.dtype is (lucid.float32 if name in DEFAULT and at.dtype is lucid.int64 else lucid.float64)


@pytest.mark.parametrize(("dtype", "most"), [(lucid.uint8, 255), (lucid.int8, 127)])
def test_counts_of_narrow_integers_do_not_wrap_around(dtype, most):
    """The largest count has a probability."""
    counts = np.array([most - 1, most])
    values = of(counts.astype(f"{dtype}".partition(".")[2]), dtype)
    np.testing.assert_allclose(
        d.Poisson(of(100.0)).log_prob(values).cpu().numpy(), stats.poisson(100).logpmf(counts), rtol=1e-12
    )
    made = d.Multinomial(2 * most, of([0.5, 0.5]))
    both = made.log_prob(of([most, most], dtype)).item()
    assert both == pytest.approx(stats.multinomial(2 * most, [0.5, 0.5]).logpmf([most, most]), rel=1e-12)


def test_counts_of_bools():
    """Of one trial the count may be a bool, of each family."""
    for made in (d.Bernoulli(of(0.3)), d.Binomial(1, of(0.3))):
        logs = made.log_prob(lucid.tensor([True, False], device=DEVICE))
        np.testing.assert_allclose(logs.cpu().numpy(), np.log([0.3, 0.7]), rtol=1e-12)


def test_integers_are_parameters():
    """Draws and moments are those of the same numbers as floats of the default dtype."""
    for kind, first, second in (("Beta", 1, 2), ("Gamma", 2, 1), ("Normal", 2, 1), ("Cauchy", 0, 1), ("Uniform", 0, 1)):
        ours = getattr(d, kind)(whole([first] * 3), whole(second))
        floats = getattr(d, kind)(of([first] * 3, lucid.float32), float(second))
        lucid.manual_seed(0)
        drawn = ours.sample((5,))
        lucid.manual_seed(0)
        np.testing.assert_array_equal(drawn.cpu().numpy(), floats.sample((5,)).cpu().numpy())
        assert drawn.dtype is lucid.float32
        np.testing.assert_array_equal(ours.variance.cpu().numpy(), floats.variance.cpu().numpy())
    shares = d.Dirichlet(whole([1, 2])).sample((4,)).cpu().numpy()
    assert ((shares > 0) & (shares < 1)).all()
    assert d.Bernoulli(whole(1)).log_prob(of(1.0)).item() == pytest.approx(0, abs=1e-6)
    # an index stays one
    assert d.Categorical(whole([1, 3])).sample((4,)).dtype is lucid.int64


def test_broadcast_all_keeps_what_is_between_integers():
    """A float beside integers is not rounded, and an integer there stays one."""
    one, half = d.utils.broadcast_all(whole([1, 2]), 0.5)
    assert (one.dtype, one.tolist(), half.tolist()) == (lucid.int64, [1, 2], [0.5, 0.5])
    assert [each.dtype for each in d.utils.broadcast_all(whole([1, 2]), 2)] == [lucid.int64] * 2
    assert [each.dtype for each in d.utils.broadcast_all(1, 2)] == [lucid.float32] * 2


EYE = np.eye(2)
TWO = {
    "Normal": lambda a, b: d.Normal(a(0.0), b(1.0)),
    "Normal, vectors": lambda a, b: d.Normal(a([0.0]), b([1.0])),
    "Normal, one": lambda a, b: d.Normal(a([0.0, 0.0]), b(1.0)),
    "Laplace": lambda a, b: d.Laplace(a(0.0), b(1.0)),
    "StudentT": lambda a, b: d.StudentT(a(3.0), b(0.0), a(1.0)),
    "RelaxedBernoulli": lambda a, b: d.RelaxedBernoulli(a(1.0), b(0.5)),
    "RelaxedOneHotCategorical": lambda a, b: d.RelaxedOneHotCategorical(a(1.0), b([0.5, 0.5])),
    "MultivariateNormal": lambda a, b: d.MultivariateNormal(a([0.0, 0.0]), b(EYE)),
    "MultivariateNormal, factor": lambda a, b: d.MultivariateNormal(a([0.0, 0.0]), scale_tril=b(EYE)),
    "LowRankMultivariateNormal": lambda a, b: d.LowRankMultivariateNormal(
        a([0.0, 0.0]), b([[1.0], [1.0]]), a([1.0, 1.0])
    ),
    "Wishart": lambda a, b: d.Wishart(a(3.0), b(EYE)),
}


@pytest.mark.parametrize("name", TWO)
def test_parameters_of_two_dtypes_become_the_wider_one(name):
    """Draws are of it in any shape, with its digits."""
    narrow = lambda value: of(value, lucid.float32)
    for made in (TWO[name](narrow, of), TWO[name](of, narrow)):
        for shape in ((), (100,)):
            drawn = made.rsample(shape)
            assert drawn.dtype is lucid.float64
        assert (drawn != drawn.float().double()).any()


def test_a_parameter_of_the_widest_dtype_is_kept():
    """Itself, and the others have gradients of their own dtypes."""
    wide, narrow = of([0.0, 1.0], requires_grad=True), of([1.0, 2.0], lucid.float32, requires_grad=True)
    made = d.Normal(wide, narrow)
    assert made.loc is wide
    made.log_prob(of([0.5, 0.5])).sum().backward()
    assert (wide.grad.dtype, narrow.grad.dtype) == (lucid.float64, lucid.float32)
    np.testing.assert_allclose(narrow.grad.cpu().numpy(), [0.25 - 1, 0.25 / 8 - 0.5], rtol=1e-6)


def test_a_temperature_is_beside_its_probabilities():
    """As a number it has their dtype and device: the density is that of the formula."""
    p, t, x = np.array([0.2, 0.3, 0.5]), 0.7, np.array([0.1, 0.6, 0.3])
    made = d.RelaxedOneHotCategorical(t, of(p))
    # Maddison, Mnih, Teh (2017), equation 10
    terms = p * x ** (-t - 1) / (p * x**-t).sum()
    expected = math.lgamma(3) + 2 * math.log(t) + np.log(terms).sum()
    assert made.log_prob(of(x)).item() == pytest.approx(expected, rel=1e-12)


def test_scalars_and_arrays_of_numpy_are_parameters():
    """NumPy's numbers count as Python's do; an array is a tensor, of the dtype of others or wider."""
    made = d.Normal(of([1.0]).array, 2.0)
    assert (made.scale.device, made.scale.dtype) == (of(1.0).device, lucid.float64)
    for number in (np.float32(2.0), np.int64(2), np.float64(2.0), np.float16(2.0)):
        made = d.Normal(number, of([1.0]))
        assert (made.loc.tolist(), made.loc.dtype) == ([2.0], lucid.float64)
    assert d.Normal(np.float32(0.0), 1.0).scale.dtype is lucid.float32
    assert d.Normal(np.array([0.0, 1.0]), of(1.0, lucid.float32)).scale.dtype is lucid.float64
    counts = d.Multinomial(np.int64(3), of([1.0, 1.0])).sample()
    assert counts.sum().item() == 3
    assert d.LKJCholesky(np.int64(3)).event_shape == (3, 3)
    assert d.Independent(d.Normal(of([0.0, 0.0]), 1.0), np.int64(1)).event_shape == (2,)
    affine = d.AffineTransform(np.float32(1.0), np.int64(2))
    assert affine(of(3.0)).item() == 7
    loc, matrix = np.zeros(2), np.array([[2.0, 0.5], [0.5, 1.0]])
    expected = stats.multivariate_normal(loc, matrix).logpdf([1.0, 2.0])
    for made in (
        d.MultivariateNormal(loc, of(matrix)),
        d.MultivariateNormal(of(loc), matrix),
        d.LowRankMultivariateNormal(of(loc), np.sqrt(0.5) * np.ones((2, 1)), np.array([1.5, 0.5])),
    ):
        assert made.log_prob(of([1.0, 2.0])).item() == pytest.approx(expected, rel=1e-12)
    assert d.Wishart(3, of(matrix)).mean.tolist() == (3 * matrix).tolist()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: d.MultivariateNormal(0.0, lucid.eye(2)), ShapeError, "loc of at least one dimension, got a number"),
        (lambda: d.MultivariateNormal(lucid.zeros(2), 1.0), ShapeError, "covariance_matrix of square matrices"),
        (lambda: d.Wishart("a", lucid.eye(2)), ArgumentError, "Wishart: df: expected a tensor or a number, got str"),
        (lambda: d.Wishart(3.0, "a"), ArgumentError, "Wishart: covariance_matrix: expected a tensor or a number"),
        (lambda: d.Normal(1j, 1.0), ArgumentError, "Normal: loc: expected a tensor or a number, got complex"),
        (lambda: d.Normal(0.0, 1.0).sample(None), ArgumentError, "sample_shape: expected an int"),
        (lambda: d.ExpTransform()("a"), ArgumentError, "ExpTransform: value: expected a Tensor, an array or a number"),
        (lambda: d.Cauchy(0.0, 1.0).icdf("a"), ArgumentError, "Cauchy: value: expected a Tensor, an array or a number"),
        (lambda: d.LogNormal(0.0, 1.0).cdf(1.0), ArgumentError, "value: expected a Tensor, got float"),
    ],
)
def test_other_kinds_are_refused(make, error, words):
    """The message names the parameter."""
    with pytest.raises(error, match=words):
        make()


QUANTILES = {
    "Cauchy": (lambda **k: d.Cauchy(of(0.0), 1.5, **k), stats.cauchy(0, 1.5)),
    "ContinuousBernoulli": (lambda **k: d.ContinuousBernoulli(of(0.5), **k), stats.uniform()),
    "Exponential": (lambda **k: d.Exponential(of(2.0), **k), stats.expon(scale=0.5)),
    "GeneralizedPareto": (lambda **k: d.GeneralizedPareto(of(0.0), 1.0, 0.5, **k), stats.genpareto(0.5)),
    "Gumbel": (lambda **k: d.Gumbel(of(0.0), 1.5, **k), stats.gumbel_r(0, 1.5)),
    "HalfCauchy": (lambda **k: d.HalfCauchy(of(1.5), **k), stats.halfcauchy(scale=1.5)),
    "HalfNormal": (lambda **k: d.HalfNormal(of(1.5), **k), stats.halfnorm(scale=1.5)),
    "Kumaraswamy": (lambda **k: d.Kumaraswamy(of(2.0), 1.0, **k), stats.beta(2, 1)),
    "Laplace": (lambda **k: d.Laplace(of(0.0), 1.5, **k), stats.laplace(0, 1.5)),
    "LogNormal": (lambda **k: d.LogNormal(of(0.0), 1.5, **k), stats.lognorm(1.5)),
    "Normal": (lambda **k: d.Normal(of(0.0), 1.5, **k), stats.norm(0, 1.5)),
    "Pareto": (lambda **k: d.Pareto(of(1.0), 2.0, **k), stats.pareto(2)),
    "Uniform": (lambda **k: d.Uniform(of(0.0), 2.0, **k), stats.uniform(0, 2)),
    "Weibull": (lambda **k: d.Weibull(of(1.5), 2.0, **k), stats.weibull_min(2, scale=1.5)),
}


@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles_are_of_probabilities(name):
    """Of numbers and arrays too; beyond 0 and 1 there is none, and it is refused where values are looked at."""
    make, reference = QUANTILES[name]
    shares = np.array([0.2, 0.975])
    made = make()
    for asked in (shares, of(shares)):
        np.testing.assert_allclose(made.icdf(asked).cpu().numpy(), reference.ppf(shares), rtol=1e-10)
    assert made.icdf(0.3).item() == pytest.approx(reference.ppf(0.3), rel=1e-10)
    beyond = of([-0.5, 0.3, 1.5])
    found = make(validate_args=False).icdf(beyond).cpu().numpy()
    assert np.isnan(found).tolist() == [True, False, True]
    with pytest.raises(SettingError, match="expected probabilities between 0 and 1"):
        make(validate_args=True).icdf(beyond)


def test_transforms_of_numbers_and_arrays():
    """They are taken as tensors, in both directions and by each transform of a chain."""
    exp = d.ExpTransform()
    chain = d.ComposeTransform([d.AffineTransform(0.0, 2.0), exp])
    for given in (0.5, np.array(0.5), np.float32(0.5)):
        assert exp(given).item() == pytest.approx(math.exp(0.5), rel=1e-6)
        assert exp.inv(given).item() == pytest.approx(math.log(0.5), rel=1e-6)
        assert chain(given).item() == pytest.approx(math.e, rel=1e-6)
        assert isinstance(d.AffineTransform(0.0, 1.0)(given), lucid.Tensor)


@pytest.mark.parametrize(
    "make",
    [
        d.ExpTransform, d.SigmoidTransform, d.SoftplusTransform, lambda: d.TanhTransform(),
        lambda: d.SigmoidTransform().inv, lambda: d.SoftplusTransform().inv, d.SoftmaxTransform,
        d.StickBreakingTransform, lambda: d.StickBreakingTransform().inv, d.CorrCholeskyTransform,
        lambda: d.CorrCholeskyTransform().inv, d.LowerCholeskyTransform, d.PositiveDefiniteTransform,
        lambda: d.PositiveDefiniteTransform().inv, lambda: d.IndependentTransform(d.SigmoidTransform(), 1),
        lambda: d.ComposeTransform([d.AffineTransform(0, 1), d.SoftplusTransform()]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [lucid.int64, lucid.uint8, lucid.bool])
def test_transforms_of_whole_numbers(make, dtype):
    """They have the default dtype, and the values of the same numbers as floats."""
    square = any(word in repr(make()) for word in ("Lower", "Positive", "Inverse"))
    given = of([[1, 0, 0], [0, 1, 0], [0, 0, 1]] if square else [1, 0, 1], dtype)
    found = make()(given)
    assert found.dtype is lucid.float32
    np.testing.assert_array_equal(found.cpu().numpy(), make()(given.float()).cpu().numpy())


def test_transforms_that_keep_whole_numbers():
    """Those that compute with no functions of theirs."""
    whole = of([-1, 2], lucid.int64)
    for transform in (
        d.AbsTransform(),
        d.AffineTransform(1, 2),
        d.ReshapeTransform((2,), (1, 2)),
        d.ComposeTransform([]),
    ):
        assert transform(whole).dtype is lucid.int64


OUTSIDE = {
    "Bernoulli": (d.Bernoulli, (0.3,), [-1.0, 2.0, 0.5]),
    "Beta": (d.Beta, (1.0, 1.0), [-0.5, 1.5]),
    "Binomial": (d.Binomial, (2.0, 0.3), [-1.0, 3.0, 0.5]),
    "ContinuousBernoulli": (d.ContinuousBernoulli, (0.3,), [-0.5, 1.5]),
    "Exponential": (d.Exponential, (1.0,), [-1.0]),
    "Gamma": (d.Gamma, (1.0, 1.0), [-1.0]),
    "GeneralizedPareto": (d.GeneralizedPareto, (0.0, 1.0, 0.5), [-1.0]),
    "GeneralizedPareto, bounded": (d.GeneralizedPareto, (0.0, 1.0, -0.5), [-1.0, 3.0]),
    "Geometric": (d.Geometric, (0.5,), [-1.0, 0.5]),
    "HalfCauchy": (d.HalfCauchy, (1.0,), [-1.0]),
    "HalfNormal": (d.HalfNormal, (1.0,), [-1.0]),
    "InverseGamma": (d.InverseGamma, (1.0, 1.0), [-1.0]),
    "Kumaraswamy": (d.Kumaraswamy, (1.0, 1.0), [-0.5, 1.5]),
    "LogNormal": (d.LogNormal, (0.0, 1.0), [-1.0]),
    "NegativeBinomial": (d.NegativeBinomial, (2.0, 0.3), [-1.0, 0.5]),
    "Pareto": (d.Pareto, (1.0, 2.0), [-1.0, 0.5]),
    "Poisson": (d.Poisson, (2.0,), [-1.0, 0.5]),
    "Uniform": (d.Uniform, (0.0, 1.0), [-0.5, 1.5]),
    "Weibull": (d.Weibull, (1.0, 2.0), [-1.0]),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_never_drawn_has_no_density(name):
    """Values that are not looked at have none out of the support; below it `cdf` is 0, above 1, and NaN stays NaN."""
    kind, parameters, values = OUTSIDE[name]
    made = kind(*map(of, parameters), validate_args=False)
    assert made.log_prob(of(values)).tolist() == [-math.inf] * len(values)
    if name not in {"Uniform", "HalfCauchy", "HalfNormal"}:
        assert math.isnan(made.log_prob(of(math.nan)).item())
    try:
        shares = made.cdf(of(values))
    except NotImplementedError:
        return
    assert shares.tolist() == [0.0 if value < 1 else 1.0 for value in values]


def test_an_index_of_no_choice_has_no_probability():
    """Nor has one between two."""
    made = d.Categorical(of([0.3, 0.7]), validate_args=False)
    np.testing.assert_allclose(made.log_prob(whole([5, -1, 1])).exp().tolist(), [0, 0, 0.7])
    assert made.log_prob(of(0.5)).item() == -math.inf


def test_weights_of_each_row_choose_among_the_same_components():
    """A mixture has the batch of its weights where the components have fewer dimensions, and draws by each row."""
    weights = np.array([[0.0, 1.0], [1.0, 0.0], [0.25, 0.75]])
    loc = np.array([-100.0, 100.0])
    components = (d.Normal(of(loc), 1.0), d.Normal(of(loc[None]), 1.0))
    for parts in components:
        made = d.MixtureSameFamily(d.Categorical(of(weights)), parts)
        assert made.batch_shape == (3,)
        drawn = made.sample((40,)).cpu().numpy()
        assert drawn.shape == (40, 3)
        assert (drawn[:, 0] > 0).all()
        assert (drawn[:, 1] < 0).all()
        assert made.sample().shape == made.mean.shape == (3,)
        expected = [np.log((row * stats.norm(loc, 1).pdf(99.0)).sum()) for row in weights[[0, 2]]]
        np.testing.assert_allclose(made.log_prob(of(99.0)).cpu().numpy()[[0, 2]], expected, rtol=1e-10)
        assert made.expand((2, 3)).sample((4,)).shape == (4, 2, 3)


@pytest.mark.parametrize("name", ["sample", "rsample"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: d.StudentT(of(3.0)),
        lambda: d.Normal(of(0.0), 1.0),
        lambda: d.LowRankMultivariateNormal(of([0.0, 0.0]), of([[0.0], [0.0]]), of([1.0, 1.0])),
        lambda: d.LKJCholesky(3, of(1.0)),
        lambda: d.MixtureSameFamily(d.Categorical(of([1.0, 1.0])), d.Normal(of([0.0, 0.0]), 1.0)),
        lambda: d.RelaxedBernoulli(of(1.0), of(0.5)),
    ],
)
def test_an_iterator_is_no_shape(make, name):
    """As one that is used up gave all draws the same numbers."""
    made = make()
    if name == "rsample" and not made.has_rsample:
        return
    for sizes in (iter([1000]), map(int, ["1000"]), (size for size in (1000,))):
        with pytest.raises(ArgumentError, match=r"sample_shape: expected a sequence of sizes, as tuple\(sizes\)"):
            getattr(made, name)(sizes)
    assert getattr(made, name)(np.array([2, 3])).shape[:2] == (2, 3)


def test_one_number_of_draws():
    """It is a shape of one dimension."""
    assert d.Normal(of([0.0, 1.0]), 1.0).sample(5).shape == (5, 2)
    assert d.Normal(of([0.0, 1.0]), 1.0).rsample(np.int64(5)).shape == (5, 2)
    assert d.Categorical(of([1.0, 1.0])).sample(5).shape == (5,)
    assert d.Multinomial(2, of([1.0, 1.0])).sample(5).shape == (5, 2)
    mixture = d.MixtureSameFamily(d.Categorical(of([1.0, 1.0])), d.Normal(of([0.0, 1.0]), 1.0))
    assert mixture.sample(5).shape == (5,)
    assert d.LogNormal(of([0.0, 1.0]), 1.0).sample(5).shape == (5, 2)


@pytest.mark.parametrize("kind", ["Normal", "MixtureSameFamily"])
def test_expand_leaves_what_a_subclass_has_set(kind):
    """`expand` fills in what the object that a subclass has made for it lacks, and nothing else."""
    base = getattr(d, kind)

    class Mine(base):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Mine, _instance)
            new.extra = self.extra.expand(batch_shape)
            return super().expand(batch_shape, new)

    parts = (lucid.zeros(2), 1.0) if kind == "Normal" else (d.Categorical(lucid.ones(2)), d.Normal(lucid.zeros(2), 1.0))
    made = Mine(*parts)
    made.extra = lucid.ones(1)
    shape = (3, *made.batch_shape)
    wide = made.expand(shape)
    assert type(wide) is Mine
    assert wide.batch_shape == shape
    assert wide.sample().shape == shape
    assert wide.extra.shape == shape


def test_expand_keeps_a_size():
    """-1 stands for the size that a dimension has, as it does in `Tensor.expand`."""
    base = d.Normal(of([[0.0], [1.0]]), 1.0)
    mixture = d.MixtureSameFamily(d.Categorical(of([[1.0, 1.0]] * 2)), d.Normal(of([[0.0, 1.0]] * 2), 1.0))
    for made, shape in (
        (base.expand((-1, 3)), (2, 3)),
        (base.expand((4, -1, -1)), (4, 2, 1)),
        (d.LogNormal(of([0.0, 1.0]), 1.0).expand((3, -1)), (3, 2)),
        (d.Independent(base, 1).expand((-1,)), (2,)),
        (mixture.expand((3, -1)), (3, 2)),
        (d.Categorical(of([[1.0, 1.0]] * 2)).expand((-1,)), (2,)),
    ):
        assert made.batch_shape == shape
        assert made.sample().shape == (*shape, *made.event_shape)
    with pytest.raises(ShapeError):
        base.expand((-1, 2, 1))


def test_empty_batches_have_empty_answers():
    """Of no normal vectors and of no numbers of trials."""
    vectors = d.MultivariateNormal(of([]).reshape(0, 2), of(EYE).expand(0, 2, 2))
    assert vectors.log_prob(of([]).reshape(0, 2).expand(3, 0, 2)).shape == (3, 0)
    none = d.Binomial(of([]), of([]))
    assert none.entropy().shape == (0,)
    assert none.enumerate_support().shape[1:] == (0,)
