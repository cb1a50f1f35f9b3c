"""Gumbel's softmax draws classes as often as their softmax says; hard samples are one-hot with the soft gradient."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from tests.gradients import numbers


def test_classes_come_as_often_as_their_softmax_says():
    """The largest entry of 20,000 samples follows the softmax of the logits, whatever the temperature."""
    lucid.manual_seed(3)
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    for tau in (0.5, 3.0):
        drawn = F.gumbel_softmax(lucid.tensor(np.log(chances)).expand(20000, 4), tau)
        np.testing.assert_allclose(numbers(drawn).sum(1), 1, rtol=1e-6)
        counts = np.bincount(numbers(drawn).argmax(1), minlength=4) / 20000
        assert np.abs(counts - chances).max() < 5 * np.sqrt(0.25 / 20000)


@pytest.mark.parametrize("dim", [0, -1])
def test_hard_samples_have_the_soft_gradient(dim, rng):
    """A hard sample is one where the soft sample of the same draw is largest along `dim`, with the same gradient."""
    logits = lucid.tensor(rng.standard_normal((4, 5)), requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal((4, 5)))
    found = []
    for hard in (False, True):
        lucid.manual_seed(5)
        out = F.gumbel_softmax(logits, 0.7, hard, dim=dim)
        found.append((numbers(out), numbers(lucid.autograd.grad(out, logits, upstream)[0])))
    (soft, slope), (hard, same) = found
    np.testing.assert_allclose(hard, soft == soft.max(dim, keepdims=True), atol=1e-12)
    np.testing.assert_array_equal(same, slope)


def test_temperatures_and_shapes_that_do_not_fit():
    """A temperature that is not positive, and a hard sample of no dimension, are refused; `eps` only warns."""
    state = lucid.get_rng_state()
    with pytest.raises(SettingError, match="tau > 0, got 0"):
        F.gumbel_softmax(lucid.ones(3), 0)
    with pytest.raises(ShapeError, match="0-dim"):
        F.gumbel_softmax(lucid.tensor(1.0), hard=True)
    assert (numbers(lucid.get_rng_state()) == numbers(state)).all()
    with pytest.warns(UserWarning, match="`eps`"):
        F.gumbel_softmax(lucid.ones(3), eps=0.1)


def test_the_temperature_divides(rng):
    """Shares of one draw are as far apart, in their logarithms, as the temperature is low."""
    logits, found = lucid.tensor(rng.standard_normal((3, 5))), []
    for tau in (0.5, 2.0):
        lucid.manual_seed(5)
        logs = np.log(numbers(F.gumbel_softmax(logits, tau)))
        found.append(tau * (logs - logs[:, :1]))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)
