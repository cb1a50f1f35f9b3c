"""Draws have the moments of their distribution, repeat with the seed, and let gradients through where they say so."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid import distributions
from lucid.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Distribution,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    Uniform,
    kl_divergence,
)
from lucid.errors import ArgumentError, SettingError
from tests.device import DEVICE

MANY = 20_000 if DEVICE == "cpu" else 4_000  # a simulated device takes its time
DISTRIBUTIONS = {
    "normal": lambda: Normal(lucid.tensor([0.0, 3.0]), lucid.tensor([1.0, 0.5])),
    "uniform": lambda: Uniform(lucid.tensor([-1.0, 2.0]), lucid.tensor([1.0, 5.0])),
    "binomial": lambda: Binomial(lucid.tensor([3.0, 8.0]), lucid.tensor([0.2, 0.9])),
    "bernoulli": lambda: Bernoulli(lucid.tensor([0.2, 0.9])),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_have_the_moments(name):
    """Mean and variance of many draws are the distribution's, within five deviations of theirs."""
    distribution = DISTRIBUTIONS[name]()
    lucid.manual_seed(0)
    draws = distribution.sample((MANY,))
    assert draws.shape == (MANY, 2)
    assert not draws.requires_grad
    values, mean, variance = (each.cpu().numpy() for each in (draws, distribution.mean, distribution.variance))
    assert (abs(values.mean(0) - mean) < 5 * np.sqrt(variance / MANY)).all()
    np.testing.assert_allclose(values.var(0), variance, rtol=0.08)
    lucid.manual_seed(0)
    assert (distribution.sample((MANY,)) == draws).all()


def test_indices_are_drawn_by_their_weights():
    """Each index of each row comes as often as its probability says; what has none never."""
    weights = np.array([[0.0, 1.0, 3.0], [2.0, 2.0, 4.0]])
    draws = Categorical(lucid.tensor(weights)).sample((MANY,)).cpu().numpy()
    assert draws.shape == (MANY, 2)
    for row, wanted in enumerate(weights / weights.sum(1, keepdims=True)):
        found = np.bincount(draws[:, row], minlength=3) / MANY
        assert (abs(found - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / MANY)).all()


def test_gradients_flow_through_draws_where_they_can():
    """A normal draw is ``loc + scale * n``: its gradients are 1 and n; others have none, and say so."""
    loc, scale = lucid.tensor(1.0, requires_grad=True), lucid.tensor(2.0, requires_grad=True)
    draw = Normal(loc, scale).rsample()
    draw.backward()
    assert loc.grad.item() == 1.0
    np.testing.assert_allclose(scale.grad.item(), (draw.item() - 1.0) / 2.0, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="Bernoulli has no rsample"):
        Bernoulli(0.5).rsample()


def test_the_density_is_that_of_the_distribution():
    """Densities sum to 1 over a fine grid, and their entropy is that of the formula."""
    x = lucid.linspace(-12.0, 12.0, 40_001, dtype=lucid.float64)
    step = 24.0 / 40_000
    for distribution in (Normal(0.5, lucid.tensor(1.5).double()), Uniform(lucid.tensor(-2.0).double(), 3.5, False)):
        logs = distribution.log_prob(x)
        density = logs.exp()
        assert abs(density.sum().item() * step - 1) < 1e-3
        entropy = -(density * logs.nan_to_num(0.0, 0.0, 0.0)).sum().item() * step
        assert abs(entropy - distribution.entropy().item()) < 1e-3
        quantile = distribution.icdf(distribution.cdf(lucid.tensor(1.25).double()))
        assert abs(quantile.item() - 1.25) < 1e-9


def test_a_policy_gradient():
    """The gradient of the mean log probability of draws is that of the softmax: counts less probabilities."""
    logits = lucid.tensor([0.5, -0.5, 1.0], requires_grad=True)
    choice = Categorical(logits=logits)
    draws = choice.sample((50,))
    choice.log_prob(draws).sum().backward()
    counts = np.bincount(draws.cpu().numpy(), minlength=3)
    expected = counts - 50 * choice.probs.detach().cpu().numpy()
    np.testing.assert_allclose(logits.grad.cpu().numpy(), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Normal(0.0, 0.0), SettingError, "Normal: expected scale above 0, got"),
        (lambda: Normal(math.nan, 1.0), SettingError, "Normal: expected loc that are numbers"),
        (lambda: Normal("a", 1.0), ArgumentError, "Normal: loc: expected a tensor or a number, got str"),
        (lambda: Normal(0.0, 1.0, 3), ArgumentError, "Normal: validate_args: expected a bool, got 3"),
        (lambda: Uniform(1.0, 1.0), SettingError, "Uniform: expected low below 1, got"),
        *(
            (lambda made=made, name=name: getattr(made, name)(1), ArgumentError, "value: expected a Tensor, got int 1")
            for made in (
                Normal(0.0, 1.0),
                Uniform(0.0, 1.0),
                Bernoulli(0.5),
                Binomial(2, 0.5),
                Categorical(lucid.ones(3)),
            )
            for name in ("log_prob", "cdf")
            if getattr(type(made), name) is not getattr(lucid.distributions.Distribution, name)
        ),
        (lambda: Bernoulli(1.5), SettingError, "Bernoulli: expected probs between 0 and 1"),
        (lambda: Bernoulli(), SettingError, "either probs or logits, got both or neither"),
        (lambda: Bernoulli(0.5, 0.5), SettingError, "either probs or logits, got both or neither"),
        (lambda: Binomial(2, 1.5), SettingError, "Binomial: expected probs between 0 and 1"),
        (lambda: Binomial(0.5, 0.5), SettingError, "expected total_count of whole numbers from 0 on"),
        (lambda: Binomial(2), SettingError, "Binomial: expected either probs or logits"),
        (lambda: Binomial(2, 0.5).log_prob(lucid.tensor(3.0)), SettingError, "whole numbers from 0 to 2"),
        (lambda: Categorical(lucid.tensor([0.0, 0.0])), SettingError, "not all 0 in a row"),
        (lambda: Categorical(lucid.tensor([-1.0, 2.0])), SettingError, "of 0 and more"),
        (lambda: Categorical(lucid.tensor(0.5)), SettingError, r"at least one dimension, with events, got shape \(\)"),
        (lambda: Categorical(lucid.tensor([])), SettingError, r"at least one dimension, with events, got shape \(0,\)"),
        (lambda: Categorical(lucid.tensor([math.inf, 1.0])), SettingError, "of 0 and more, finite"),
        (lambda: Categorical(logits=lucid.tensor([math.inf, 1.0])), SettingError, "logits that are numbers below inf"),
        (lambda: Categorical(logits=lucid.tensor([-math.inf] * 2)), SettingError, "not all -infinity in a row"),
        (lambda: Categorical(logits=lucid.tensor([math.nan, 1.0])), SettingError, "logits that are numbers"),
        (lambda: Binomial(math.inf, 0.5), SettingError, "expected total_count of whole numbers from 0 on"),
        (
            lambda: Categorical(logits=lucid.ones(3)).log_prob(lucid.tensor(3)),
            SettingError,
            "whole numbers from 0 to 2",
        ),
        (lambda: Categorical(logits=lucid.ones(3)).log_prob(lucid.tensor(0.5)), SettingError, "whole numbers from 0"),
        (lambda: Bernoulli(0.5).log_prob(lucid.tensor(0.5)), SettingError, "values of 0 and 1"),
        (lambda: Uniform(0.0, 1.0).log_prob(lucid.tensor(2.0)), SettingError, "values between 0 and 1"),
        (lambda: Normal(0.0, 1.0).log_prob(1.0), ArgumentError, "value: expected a Tensor, got float"),
        (lambda: kl_divergence(Normal(0.0, 1.0), Bernoulli(0.5)), NotImplementedError, "got Normal and Bernoulli"),
        (lambda: Distribution().entropy(), NotImplementedError, "Distribution has no entropy"),
    ],
)
@pytest.mark.cpu("values are looked at on the CPU")
def test_what_is_wrong_is_refused(make, error, words):
    """Parameters and values out of their range, and what a distribution does not have, are named."""
    with pytest.raises(error, match=words):
        make()


def test_values_are_looked_at_where_that_is_asked():
    """With `validate_args=False` nothing is looked at, with True everything, on any device."""
    assert Normal(0.0, lucid.tensor(-1.0), validate_args=False).scale.item() == -1.0
    with pytest.raises(SettingError, match="expected scale above 0"):
        Normal(0.0, lucid.tensor(-1.0), validate_args=True)
    logs = Uniform(0.0, lucid.tensor(1.0), validate_args=False).log_prob(lucid.tensor([-0.5, 0.0, 1.0, 2.0]))
    assert logs.tolist() == [-math.inf, 0.0, -math.inf, -math.inf]
    below = Uniform(0.0, lucid.tensor(1.0), validate_args=False).cdf(lucid.tensor([-0.5, 0.25, 2.0]))
    assert below.tolist() == [0.0, 0.25, 1.0]
    number = lucid.tensor(0.5)
    wide = MultivariateNormal(lucid.zeros(3), lucid.eye(3), validate_args=False)
    assert wide.log_prob(number).item() == pytest.approx(wide.log_prob(number.expand(3)).item())
    with pytest.raises(ValueError, match=r"expected values whose last dimensions are \(3,\), got shape \(\)"):
        MultivariateNormal(lucid.zeros(3), lucid.eye(3), validate_args=True).log_prob(number)


@pytest.mark.parametrize(
    ("kind", "parameters", "values", "expected"),
    [
        ("Uniform", (1.0, 3.0), [1.0], [-math.log(2)]),
        ("Exponential", (2.0,), [0.0], [math.log(2)]),
        ("Gamma", (1.0, 2.0), [0.0], [math.log(2)]),
        ("Chi2", (2.0,), [0.0], [-math.log(2)]),
        ("Pareto", (2.0, 3.0), [2.0], [math.log(1.5)]),
        ("GeneralizedPareto", (1.0, 2.0, 0.5), [1.0], [-math.log(2)]),
        ("HalfNormal", (2.0,), [0.0], [-0.5 * math.log(2 * math.pi)]),
        ("HalfCauchy", (2.0,), [0.0], [-math.log(math.pi)]),
        ("Beta", (1.0, 2.0), [0.0, 1.0], [math.log(2), -math.inf]),
        ("Dirichlet", ([1.0, 1.0, 2.0],), [[0.0, 0.0, 1.0]], [math.log(6)]),
        ("ContinuousBernoulli", (0.5,), [0.0, 1.0], [0.0, 0.0]),
        ("Geometric", (1.0,), [0.0, 1.0, 2.0], [0.0, -math.inf, -math.inf]),
        ("Geometric", (0.25,), [0.0], [math.log(0.25)]),
        ("Poisson", (0.0,), [0.0, 1.0], [0.0, -math.inf]),
        ("NegativeBinomial", (2.0, 0.75), [0.0], [2 * math.log(0.25)]),
    ],
)
def test_the_first_and_the_last_that_is_drawn(kind, parameters, values, expected):
    """The ends of what can be drawn have the density of the formula, and what is impossible has none."""
    made = getattr(distributions, kind)(*map(lucid.tensor, parameters))
    np.testing.assert_allclose(made.log_prob(lucid.tensor(values)).tolist(), expected, rtol=1e-5, atol=1e-5)


def test_what_is_never_drawn_has_no_part_in_the_entropy():
    """A logit of minus infinity adds nothing: the entropy of what is left is that of a coin."""
    found = Categorical(logits=lucid.tensor([-math.inf, 1.0, 1.0])).entropy()
    assert found.item() == pytest.approx(math.log(2), rel=1e-6)


def test_repr():
    """A distribution shows its parameters, or their shapes."""
    assert repr(Normal(0.0, lucid.tensor(2.0, device="cpu"))) == "Normal(loc: 0.0, scale: 2.0)"
    assert repr(Categorical(lucid.ones(2, 3))) == "Categorical(probs: lucid.Size([2, 3]))"


def test_no_numbers_of_trials_have_no_draws():
    """Of parameters without elements a sample is empty, of the shape that is asked for."""
    for kind in (lambda p: lucid.distributions.Binomial(p, probs=p), lambda p: lucid.distributions.Bernoulli(probs=p)):
        assert kind(lucid.zeros(0, 3)).sample((2,)).shape == (2, 0, 3)


def test_what_is_sure_or_impossible():
    """Chances of 0 and 1 are chances: what is drawn is always the same, and its variance and entropy are nothing."""
    chances = lucid.tensor([0.0, 1.0])
    for distribution, sure in ((Bernoulli(chances), [0, 1]), (Binomial(3, chances), [0, 3])):
        assert distribution.sample((50,)).unique(dim=0).tolist() == [sure]
        assert (distribution.mean.tolist(), distribution.variance.tolist()) == (sure, [0, 0])
        assert distribution.mode.tolist() == sure
        np.testing.assert_allclose(distribution.log_prob(lucid.tensor(sure).float()).tolist(), [0, 0], atol=1e-5)
    np.testing.assert_allclose(Bernoulli(chances).entropy().tolist(), [0, 0], atol=1e-5)
    one = Categorical(lucid.tensor([0.0, 2.0, 0.0]))
    assert one.sample((50,)).unique().tolist() == [1]
    assert one.mode.item() == 1


@pytest.mark.parametrize("make", [lambda p: Bernoulli(p), lambda p: Categorical(lucid.stack([1 - p, p], -1))])
def test_all_values(make):
    """They come along a new first dimension, and their probabilities sum to 1; only expanded they fill the others."""
    distribution = make(lucid.tensor([[0.2, 0.9, 0.5]]))
    plain, wide = distribution.enumerate_support(expand=False), distribution.enumerate_support()
    assert (plain.shape, plain.flatten().tolist()) == ((2, 1, 1), [0, 1])
    assert (wide.shape, wide.tolist()) == ((2, 1, 3), [[[0] * 3], [[1] * 3]])
    for values in (plain, wide):
        found = distribution.log_prob(values).exp()
        np.testing.assert_allclose(found.tolist(), [[[0.8, 0.1, 0.5]], [[0.2, 0.9, 0.5]]], rtol=1e-5)


def test_one_choice_for_a_batch_of_components():
    """Each of the batch makes it for itself, by the same probabilities, which PyTorch cannot draw."""
    weights, parts = lucid.tensor([0.2, 0.3, 0.5]), lucid.tensor([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]])
    one = MixtureSameFamily(Categorical(weights), Normal(parts, 1e-3))
    each = MixtureSameFamily(Categorical(weights.expand(2, 3)), Normal(parts, 1e-3))
    lucid.manual_seed(0)
    draws = one.sample((2000,)).round()
    assert tuple(draws.shape) == (2000, 2)
    for row, low in enumerate((0, 10)):
        found = np.bincount((draws[:, row] - low).long().cpu().numpy(), minlength=3) / 2000
        assert (abs(found - weights.cpu().numpy()) < 0.06).all()
    assert (draws[:, 0] + 10 != draws[:, 1]).any()
    value = lucid.tensor([1.0, 11.0])
    for name in ("mean", "variance"):
        np.testing.assert_allclose(getattr(one, name).tolist(), getattr(each, name).tolist(), rtol=1e-6)
    for name in ("log_prob", "cdf"):
        np.testing.assert_allclose(getattr(one, name)(value).tolist(), getattr(each, name)(value).tolist(), rtol=1e-6)


@pytest.mark.parametrize("counts", [[4.0, 2.0], [2.0, 4.0]])
def test_values_of_several_numbers_of_trials_are_not_listed(counts):
    """There is no list of values that fits each of the batch, whichever has most."""
    several = Binomial(lucid.tensor(counts), 0.5)
    for asked in (several.enumerate_support, several.entropy):
        with pytest.raises(NotImplementedError, match="enumerated of one total_count"):
            asked()


def test_divergences_are_sums_over_what_can_be():
    """They are sums of ``p * (log(p) - log(q))``, over values or a fine grid; of one from itself 0."""
    grid = lucid.linspace(-20.0, 20.0, 80_001, dtype=lucid.float64)
    step = 40.0 / 80_000
    number = lambda x: lucid.tensor(x, dtype=lucid.float64)
    normals = Normal(number(0.5), 1.5), Normal(number(-1.0), 2.0)
    uniforms = Uniform(number(-1.0), 2.0, False), Uniform(number(-2.0), 2.5, False)
    coins = Bernoulli(number(0.3)), Bernoulli(number(0.9))
    choices = Categorical(number([0.2, 0.5, 0.3])), Categorical(number([0.6, 0.3, 0.1]))
    for (p, q), values, each in (
        (normals, grid, step),
        (uniforms, grid, step),
        (coins, number([0.0, 1.0]), 1),
        (choices, lucid.arange(3), 1),
    ):
        for a, b in ((p, q), (p, p)) if p is uniforms[0] else ((p, q), (q, p), (p, p)):
            logs = a.log_prob(values)
            terms = lucid.where(logs > -math.inf, logs.exp() * (logs - b.log_prob(values)), 0.0)
            assert kl_divergence(a, b).item() == pytest.approx(terms.sum().item() * each, abs=1e-3)


def test_divergences_from_what_cannot_be():
    """What p never gives adds nothing; what p gives and q never does makes it infinite, on either side of a range."""
    one = Uniform(0.0, 1.0)
    for low, high, infinite in (
        (0.0, 1.0, False),
        (-1.0, 2.0, False),
        (0.5, 2.0, True),
        (-1.0, 0.5, True),
        (0.2, 0.8, True),
    ):
        assert math.isinf(kl_divergence(one, Uniform(low, high)).item()) == infinite
    for p, q, expected in ((0.0, 0.0, 0), (1.0, 1.0, 0), (0.0, 0.5, math.log(2)), (1.0, 0.5, math.log(2))):
        assert kl_divergence(Bernoulli(p), Bernoulli(q)).item() == pytest.approx(expected, abs=1e-5)
    for p, q in ((0.0, 1.0), (1.0, 0.0), (0.5, 0.0), (0.5, 1.0)):
        assert kl_divergence(Bernoulli(p), Bernoulli(q)).item() == math.inf
    sure, fair = Categorical(lucid.tensor([0.0, 1.0])), Categorical(lucid.tensor([1.0, 1.0]))
    assert kl_divergence(sure, fair).item() == pytest.approx(math.log(2), rel=1e-5)
    assert kl_divergence(fair, sure).item() == math.inf
    # neither gives the first
    for other, expected in (([0.0, 0.5, 0.5], 0), ([0.0, 0.25, 0.75], math.log(4 / 3) / 2)):
        both = (Categorical(lucid.tensor(p)) for p in ([0.0, 0.5, 0.5], other))
        assert kl_divergence(*both).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.float64])
def test_a_number_beside_a_tensor_has_its_dtype(dtype):
    """On either side, so that what is drawn and computed has it too."""
    half = lucid.tensor([0.5, 0.25], dtype=dtype)
    for made in (Normal(half, 2.0), Normal(0, half), Uniform(half, 2), Uniform(-1.0, half), Binomial(3, half)):
        parameters = [value for value in vars(made).values() if isinstance(value, lucid.Tensor)]
        assert {each.dtype for each in (*parameters, made.sample((2,)), made.mean)} == {dtype}
        assert {each.shape for each in parameters} == {(2,)}


@pytest.mark.parametrize("make", [Bernoulli, lambda p: Binomial(3, p), lambda p: Categorical(lucid.stack([1 - p, p]))])
def test_what_is_certain_has_finite_logits(make):
    """The logits of chances of 0 and 1 are numbers, as large as the dtype can tell from these."""
    for p in (0.0, 1.0):
        assert make(lucid.tensor(p)).logits.isfinite().all()


@pytest.mark.cpu("values are looked at on the CPU")
def test_counts_are_whole_numbers():
    """A count between two numbers has no probability, and is refused."""
    with pytest.raises(SettingError, match="of whole numbers from 0 to 3"):
        Binomial(3, probs=0.5).log_prob(lucid.tensor(1.5))


def test_what_can_be_drawn_has_the_dtype_of_draws():
    """0 and 1 are of that of the parameters, indices are int64."""
    probs = lucid.tensor([0.25, 0.75], dtype=lucid.float64)
    for kind in (Bernoulli, Categorical):
        assert kind(probs=probs).enumerate_support().dtype is kind(probs=probs).sample().dtype


def test_one_number_is_shown():
    """A parameter of one number is shown with it in any shape, others by their shape."""
    one, several = lucid.tensor([1.0]), lucid.ones(3)
    assert repr(Normal(one, one * 2)) == f"Normal(loc: {one}, scale: {one * 2})"
    assert repr(Normal(several, 1.0)) == f"Normal(loc: {several.shape}, scale: {several.shape})"


def test_a_parameter_of_the_shape_is_kept():
    """It is the tensor that was given, with its gradient; only what is broadcast is another one."""
    wide, number = lucid.zeros(3, requires_grad=True), lucid.tensor(1.0, requires_grad=True)
    made = Normal(wide, number)
    assert made.loc is wide
    made.log_prob(lucid.ones(3)).sum().backward()
    assert made.loc.grad.tolist() == [1.0, 1.0, 1.0]
    assert number.grad is not None


@pytest.mark.cpu("values are looked at on the CPU")
def test_the_default_of_looking():
    """It is set for all distributions that do not say, and for those made before."""
    try:
        Distribution.set_default_validate_args(False)
        made = Normal(0.0, -1.0)
        with pytest.raises(SettingError, match="expected scale above 0"):
            Normal(0.0, -1.0, validate_args=True)
        Distribution.set_default_validate_args(True)
        with pytest.raises(SettingError, match="expected values that are numbers"):
            made.log_prob(lucid.tensor(math.nan))
        with pytest.raises(ArgumentError, match="set_default_validate_args: value: expected a bool, got 1"):
            Distribution.set_default_validate_args(1)
    finally:
        Distribution._validate_args = None


def test_errors_of_a_call_name_the_family():
    """Too many arguments of a public family, or of a subclass, are an error that begins with its name."""

    class Own(distributions.Normal):
        pass

    public = [value for name in distributions.__all__ if isinstance(value := getattr(distributions, name), type)]
    for family in [*(kind for kind in public if issubclass(kind, distributions.Distribution)), Own]:
        with pytest.raises(TypeError, match=rf"{family.__name__}\.__init__\(\) takes "):
            family(*range(12))
