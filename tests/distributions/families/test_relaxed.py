"""Relaxed choices with a temperature for each row, and with low ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

import lucid
from lucid import distributions as d
from lucid.distributions.relaxed_categorical import ExpRelaxedCategorical
from lucid.errors import SettingError
from tests.distributions.samples import of


def log_density(temperature, logits, logs):
    """Return the logarithm of the density at logarithms of shares: Maddison, Mnih, Teh (2017), equation 26."""
    n, score = logs.size, logits - temperature * logs
    return math.lgamma(n) + (n - 1) * math.log(temperature) + (score - special.logsumexp(score)).sum()


def test_a_temperature_for_each_row(rng):
    """It broadcasts with the rows of logits, those that are given without rows too, and is expanded with them."""
    logits, logs = rng.standard_normal((3, 4)), special.log_softmax(rng.standard_normal((3, 4)), -1)
    temperatures = np.array([0.5, 0.7, 2.0])
    table = np.array([[log_density(t, *pair) for pair in zip(logits, logs, strict=True)] for t in temperatures])
    made = ExpRelaxedCategorical(of(temperatures), logits=of(logits))
    np.testing.assert_allclose(made.log_prob(of(logs)).cpu().numpy(), table.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(made.expand((2, 3)).log_prob(of(logs)).cpu().numpy(), [table.diagonal()] * 2, rtol=1e-12)
    made = d.RelaxedOneHotCategorical(of(temperatures[:, None]), logits=of(logits))
    found = made.log_prob(of(np.exp(logs))) + of(logs).sum(-1)
    np.testing.assert_allclose(found.cpu().numpy(), table, rtol=1e-12)
    assert made.batch_shape == (3, 3)
    assert made.sample((2,)).shape == (2, 3, 3, 4)
    row = d.RelaxedOneHotCategorical(of(temperatures), probs=of(np.exp(logs[0])))
    assert row.batch_shape == row.log_prob(row.rsample()).shape == (3,)
    one = d.RelaxedOneHotCategorical(of([0.5]), logits=of(logits[0]))
    assert one.batch_shape == one.log_prob(one.sample()).shape == ()
    number = ExpRelaxedCategorical(0.7, logits=of(logits[1])).log_prob(of(logs[1])).item()
    assert number == pytest.approx(table[1, 1], rel=1e-13)


def test_draws_of_each_row_have_its_temperature():
    """Draws and their slopes are those of one row made with its temperature alone."""
    temperatures = of([0.5, 2.0], requires_grad=True)
    lucid.manual_seed(1)
    draws = d.RelaxedOneHotCategorical(temperatures, logits=of([[0.0, 1.0, 2.0]] * 2)).rsample((4,))
    lucid.manual_seed(1)
    noise = -of(np.empty((4, 2, 3))).exponential_().log()
    for i, t in enumerate((0.5, 2.0)):
        single = of(t, requires_grad=True)
        expected = ((of([0.0, 1.0, 2.0]) + noise[:, i]) / single).softmax(-1)
        np.testing.assert_allclose(draws[:, i].detach().cpu().numpy(), expected.detach().cpu().numpy(), rtol=1e-10)
        (slope,) = lucid.autograd.grad(draws[:, i, 0].sum(), temperatures, retain_graph=True)
        (own,) = lucid.autograd.grad(expected[:, 0].sum(), single)
        assert slope[i].item() == pytest.approx(own.item(), rel=1e-9)


@pytest.mark.parametrize(("n", "temperature"), [(10, 0.01), (10, 0.05), (100, 0.1), (1000, 0.1)])
def test_low_temperatures(n, temperature):
    """Draws are in the support, and have a logarithm of their density, in float32 too."""
    lucid.manual_seed(0)
    logits = of(np.linspace(-2, 2, n), lucid.float32)
    relaxed = d.RelaxedOneHotCategorical(of(temperature, lucid.float32), logits=logits, validate_args=True)
    draws = relaxed.rsample((200,))
    assert relaxed.log_prob(draws).isfinite().all()


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
@pytest.mark.parametrize("kind", [d.RelaxedBernoulli, d.RelaxedOneHotCategorical, ExpRelaxedCategorical])
def test_temperatures_that_are_not_above_zero(kind, temperature):
    """They are refused where parameters are looked at."""
    for given in (temperature, of([0.5, temperature])):
        with pytest.raises(SettingError, match=r"expected temperature above 0, got"):
            kind(given, of([[0.5, 0.5]] * 2), validate_args=True)
    kind(temperature, of([0.5, 0.5]), validate_args=False)


def test_what_is_never_chosen():
    """Its share is 0."""
    draw = d.RelaxedOneHotCategorical(0.5, logits=of([0.0, -math.inf, 1.0])).sample((3,))
    assert draw[:, 1].tolist() == [0.0] * 3
    assert draw.sum(-1).cpu().numpy() == pytest.approx(1)
