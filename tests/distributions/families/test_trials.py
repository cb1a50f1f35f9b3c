"""Chances near 0 and 1, given by probabilities and by logits, of trials, choices and events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import lucid
from lucid import distributions as d
from tests.distributions.samples import of


def close(found, expected, rtol=2e-6, atol=1e-30):
    """Compare a tensor with numbers, by default to float32's digits."""
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_probabilities_nearer_to_zero_than_the_resolution(dtype):
    """Log probabilities and means have their digits, and so have the slopes."""
    p = np.array([1e-30, 1e-20, 1e-10, 1e-8, 1e-7])
    probs, one = of(p, dtype), of(1.0, dtype)
    close(d.Bernoulli(probs).log_prob(one), np.log(p))
    # of one trial the cross entropy has the digits of the logits
    lost = 4e-6 if dtype is lucid.float32 else 1e-14
    close(d.Bernoulli(probs).log_prob(one * 0), np.log1p(-p), atol=lost)
    close(d.Bernoulli(probs).entropy(), special.entr(p) - (1 - p) * np.log1p(-p), atol=lost)
    close(d.Binomial(1_000_000, probs).log_prob(one * 0), 1e6 * np.log1p(-p))
    close(d.Binomial(3, probs).log_prob(one), np.log(3 * p))
    close(d.NegativeBinomial(5.0 * one, probs).mean, 5 * p / (1 - p))
    close(d.NegativeBinomial(5.0 * one, probs).log_prob(one), np.log(5 * p) + 5 * np.log1p(-p))
    close(d.Categorical(of(np.stack([p, 1 - p], -1), dtype)).log_prob(of(0, lucid.int64)), np.log(p))
    close(d.kl_divergence(d.Bernoulli(probs), d.Bernoulli(2 * probs)), p * (1 - math.log(2)), rtol=1e-5)
    near = of(p, dtype, requires_grad=True)
    (slope,) = lucid.autograd.grad(d.Bernoulli(near).log_prob(one * 0).sum(), near)
    close(slope, -1 / (1 - p))


def test_what_is_sure():
    """It has the probability 1 as often as it is tried, and a choice of one the logarithm 0."""
    for probs, count in ((0.0, 0.0), (1.0, 1e6)):
        assert d.Binomial(1_000_000, of(probs, lucid.float32)).log_prob(of(count, lucid.float32)).item() == (
            pytest.approx(0, abs=1e-30)
        )
    assert d.Categorical(of([0.0, 3.0])).log_prob(of(1, lucid.int64)).item() == 0
    assert d.kl_divergence(d.Poisson(of([0.0, 1.0, 0.0])), d.Poisson(of([0.0, 1.0, 2.0]))).tolist() == [0.0, 0.0, 2.0]
    rate = of([0.0, 0.0, 1.5], requires_grad=True)
    (slope,) = lucid.autograd.grad(d.kl_divergence(d.Poisson(rate), d.Poisson(of([0.0, 2.0, 3.0]))).sum(), rate)
    assert slope.isfinite().all()
    assert slope[2].item() == pytest.approx(math.log(0.5))


@pytest.mark.parametrize(("dtype", "rtol"), [(lucid.float32, 2e-6), (lucid.float64, 1e-13)])
def test_geometric_of_any_logits(dtype, rtol):
    """Log probability, mean and slopes are those of the logits, where the probability rounds to 0 or 1."""
    x = np.array([-80.0, -30.0, -2.0, 0.5, 10.0, 17.0, 38.0, 80.0])
    logits = of(x, dtype, requires_grad=True)
    made = d.Geometric(logits=logits)
    value = of(3.0, dtype)
    close(made.log_prob(value), special.log_expit(x) + 3 * special.log_expit(-x), rtol)
    close(made.mean, np.exp(-x), rtol)
    close(made.variance[2:], (np.exp(-x) / special.expit(x))[2:], rtol)
    (slope,) = lucid.autograd.grad(made.log_prob(value).sum(), logits)
    close(slope, special.expit(-x) - 3 * special.expit(x), rtol)
    entropy = -np.exp(-x) * special.log_expit(-x) - special.log_expit(x)
    close(made.entropy(), entropy, rtol)
    other = d.Geometric(logits=logits.detach() + 0.5)
    apart = -entropy - special.log_expit(x + 0.5) - np.exp(-x) * special.log_expit(-x - 0.5)
    close(d.kl_divergence(made, other), apart, 1e-3, 2e-5 if dtype is lucid.float32 else 1e-12)
    assert (made.sample((50,)) >= 0).all()


def test_infinite_logits():
    """They are of what is certain: its probability is 1, its entropy 0, and that of the other has none."""
    logits, value = of([math.inf, -math.inf], requires_grad=True), of([1.0, 0.0])
    kinds = (d.Bernoulli(logits=logits), d.Binomial(1, logits=logits))
    for made in kinds:
        assert made.log_prob(value).exp().tolist() == [1.0, 1.0]
        assert made.log_prob(1 - value).exp().tolist() == [0.0, 0.0]
        assert made.entropy().tolist() == pytest.approx([0.0, 0.0])
        assert lucid.autograd.grad(made.log_prob(value).sum(), logits)[0].tolist() == pytest.approx([0.0, 0.0])
        assert d.kl_divergence(made, made).tolist() == [0.0, 0.0]
    assert d.Geometric(logits=of(math.inf)).log_prob(of([0.0, 1.0])).tolist() == [0.0, -math.inf]
    assert d.NegativeBinomial(of(2.0), logits=of(-math.inf)).log_prob(of([0.0, 1.0])).tolist() == [0.0, -math.inf]


def test_binomial_counts_of_large_logits():
    """What few of many trials fail has the digits of the logits, in float32 too."""
    n, x = 1000, np.array([-20.0, -12.0, 0.3, 12.0, 20.0])
    for k in (0, 3, 997, 1000):
        found = d.Binomial(n, logits=of(x, lucid.float32)).log_prob(of(float(k), lucid.float32))
        ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
        close(found, ways + k * special.log_expit(x) + (n - k) * special.log_expit(-x), 1e-5, 2e-3)
    sure = d.Binomial(n, logits=of(12.0, lucid.float32)).log_prob(of(1000.0, lucid.float32))
    assert sure.item() == pytest.approx(n * special.log_expit(12.0), rel=1e-5)


@pytest.mark.parametrize(("dtype", "rtol"), [(lucid.float32, 1e-6), (lucid.float64, 1e-8)])
def test_probabilities_of_large_counts(dtype, rtol):
    """They are SciPy's where the logarithms that cancel have no digits left of float32."""
    n = np.array([1e4, 1e6])
    shares = np.array([0.25, 0.25, 0.5])
    for name, p in (("probs", 0.5), ("logits", 0.0)):
        given = {name: of(p, dtype)}
        close(d.Binomial(of(n, dtype), **given).log_prob(of(n / 2, dtype)), stats.binom(n, 0.5).logpmf(n / 2), rtol)
        found = d.NegativeBinomial(of(n, dtype), **given).log_prob(of(n, dtype))
        close(found, stats.nbinom(n, 0.5).logpmf(n), rtol)
        given = {name: of(shares if name == "probs" else np.log(shares), dtype)}
        counts = np.array([2501.0, 2499.0, 5000.0])
        made = d.Multinomial(10_000, **given)
        assert made.log_prob(of(counts, dtype)).dtype is dtype
        close(made.log_prob(of(counts, dtype)), stats.multinomial(10_000, shares).logpmf(counts), 5 * rtol)
    # 10001 chances times logarithms of up to 80000 are added up, of which 5 are left
    entropy = stats.multinomial(10_000, [0.5, 0.5]).entropy()
    close(d.Multinomial(10_000, of([0.5, 0.5], dtype)).entropy(), entropy, max(rtol, 2e-7))
    # rounded probabilities sum to 1 all the same
    counts, shares = np.array([3e5, 3e5, 4e5]), np.array([0.3, 0.3, 0.4]).astype(np.float32).astype(float)
    expected = stats.multinomial(1_000_000, shares / shares.sum()).logpmf(counts)
    close(d.Multinomial(1_000_000, of(shares, dtype)).log_prob(of(counts, dtype)), expected, 2e-3)


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64])
def test_slopes_by_chances_of_zero_and_one(dtype):
    """Of what is drawn with probability 1 they are those of one side, of what is never drawn finite, and its sign."""
    value = of([0.0, 1.0], dtype)
    for make, times in (
        (d.Bernoulli, 1),
        (lambda p: d.Binomial(3, p), 3),
        (lambda p: d.NegativeBinomial(2.0, p, validate_args=False), 2),
    ):
        probs = of([0.0, 1.0], dtype, requires_grad=True)
        if times == 2:
            probs = of([0.0], dtype, requires_grad=True)
            logs = make(probs).log_prob(of([0.0], dtype))
        else:
            logs = make(probs).log_prob(times * value)
        (slope,) = lucid.autograd.grad(logs.sum(), probs)
        close(logs, 0.0)
        close(slope, [-times, times][: len(slope)])
        if times != 2:
            logs = make(probs).log_prob(times * (1 - value))
            (slope,) = lucid.autograd.grad(logs.sum(), probs)
            assert (logs < -80).all()
            assert logs.isfinite().all()
            assert slope.isfinite().all()
            assert (slope.sign() == of([1.0, -1.0], dtype)).all()
    n = of(0.0, dtype, requires_grad=True)
    logs = d.NegativeBinomial(n, of(0.4, dtype)).log_prob(of(0.0, dtype))
    assert lucid.autograd.grad(logs, n)[0].item() == pytest.approx(math.log(0.6))


def test_divergences_of_no_events():
    """From trials they are those of drawing 0, and infinite of any other rate."""
    rate, p = of([0.0, 1.0]), of(0.3, requires_grad=True)
    found = d.kl_divergence(d.Poisson(rate), d.Bernoulli(p))
    assert found.tolist() == [pytest.approx(-math.log(0.7)), math.inf]
    assert lucid.autograd.grad(found[0], p)[0].item() == pytest.approx(1 / 0.7)
    trials = of([[2.0], [3.0]])
    found = d.kl_divergence(d.Poisson(rate), d.Binomial(trials, p)).tolist()
    assert found == [[pytest.approx(-n * math.log(0.7)), math.inf] for n in (2, 3)]
    assert d.kl_divergence(d.Poisson(of(0.0)), d.Bernoulli(logits=of(math.inf))).item() == math.inf


@pytest.mark.parametrize("factor", [1.0, 2.0, 1e4])
def test_gradients_beside_masked_choices(factor):
    """A logit of minus infinity has the gradient 0, and the others those that they have without it."""
    masked, left = [0.3, -math.inf, -1.0], [0.3, -1.0]
    other = {3: [0.1, -math.inf, 0.5], 2: [0.1, 0.5]}
    for what in (
        lambda x: d.Categorical(logits=x).entropy(),
        lambda x: d.Categorical(logits=x).perplexity(),
        lambda x: d.OneHotCategorical(logits=x).entropy(),
        lambda x: d.Multinomial(2, logits=x).entropy(),
        lambda x: d.kl_divergence(d.Categorical(logits=x), d.Categorical(logits=of(other[x.shape[0]]))),
    ):
        slopes = []
        for logits in (masked, left):
            x = of(logits, requires_grad=True)
            (slope,) = lucid.autograd.grad(factor * what(x), x)
            slopes.append(slope.tolist())
        assert slopes[0][1] == 0
        assert slopes[0][::2] == pytest.approx(slopes[1], rel=1e-9)


def test_divergences_of_choices():
    """They are infinite where the second never takes what the first does, and finite where both never do."""
    p = d.Categorical(of([0.5, 0.5, 0.0]))
    assert d.kl_divergence(p, d.Categorical(of([0.25, 0.75, 0.0]))).item() == pytest.approx(
        stats.entropy([0.5, 0.5], [0.25, 0.75])
    )
    assert d.kl_divergence(p, d.Categorical(of([1.0, 0.0, 1.0]))).item() == math.inf
    assert d.kl_divergence(p, d.Categorical(logits=of([0.0, -math.inf, 0.0]))).item() == math.inf
