"""The adaptive softmax is a softmax of two steps: probabilities, losses, gradients, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import IndexOutOfRangeError, SettingError, ShapeError
from tests.gradients import numbers


def made(rng):
    """Return a loss of 11 classes in three steps, with random parameters, and an input."""
    m = nn.AdaptiveLogSoftmaxWithLoss(8, 11, [3, 6], div_value=2.0, head_bias=True).double()
    for parameter in m.parameters():
        parameter.data = lucid.tensor(rng.standard_normal(parameter.shape))
    return m, lucid.tensor(rng.standard_normal((7, 8)), requires_grad=True)


def softmax(x):
    """Return the softmax of rows."""
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


def test_probabilities(rng):
    """A rare class has the probability of its cluster in the head, times its own in the cluster; all sum to 1."""
    m, x = made(rng)
    rows = numbers(x)
    head = softmax(rows @ numbers(m.head.weight).T + numbers(m.head.bias))
    clusters = [softmax(rows @ numbers(down.weight).T @ numbers(up.weight).T) for down, up in m.tail]
    parts = [head[:, :3], *(head[:, 3 + i, None] * cluster for i, cluster in enumerate(clusters))]
    expected = np.concatenate(parts, 1)
    got = m.log_prob(x)
    np.testing.assert_allclose(numbers(got.exp()), expected, rtol=1e-10)
    np.testing.assert_allclose(numbers(got.exp()).sum(1), 1, rtol=1e-12)
    np.testing.assert_array_equal(numbers(m.predict(x)), expected.argmax(1))
    assert [tuple(layer.weight.shape) for cluster in m.tail for layer in cluster] == [(4, 8), (3, 4), (2, 8), (5, 2)]


@pytest.mark.parametrize("targets", [[0, 2, 3, 5, 6, 10, 1], [0, 1, 2, 0, 1, 2, 0], [10, 9, 8, 7, 6, 7, 8]])
def test_losses_are_those_of_all_probabilities(targets, rng):
    """Output, loss and gradients are what the log-probabilities of all classes give, whichever clusters are hit."""
    m, x = made(rng)
    target = lucid.tensor(targets)
    outputs = m(x, target).output, m.log_prob(x).gather(1, target.unsqueeze(1))[:, 0]
    found = [[output, *lucid.autograd.grad(output.square().sum(), [x, m.head.weight])] for output in outputs]
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(numbers(got), numbers(expected), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(m(x, target).loss.item(), -numbers(found[1][0]).mean(), rtol=1e-12)
    one = m(x[1], target[1])
    assert one.output.shape == one.loss.shape == ()
    np.testing.assert_allclose(one.output.item(), numbers(found[0][0])[1], rtol=1e-12)


@pytest.mark.parametrize("cutoffs", [[], [0, 3], [3, 3], [5, 3], [3, 11]])
def test_cutoffs_that_do_not_fit(cutoffs):
    """Cutoffs are there, positive, in order, and below the number of classes."""
    with pytest.raises(SettingError, match="cutoffs should be a sequence"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 11, cutoffs)


@pytest.mark.parametrize("cutoffs", [[1], [10], [1, 10]])
def test_cutoffs_at_the_ends(cutoffs, rng):
    """The first class may be the only one in the head, and the last one the only one of its cluster."""
    m = nn.AdaptiveLogSoftmaxWithLoss(16, 11, cutoffs)
    assert m.cutoffs == [*cutoffs, 11]
    assert m.log_prob(lucid.tensor(rng.standard_normal((3, 16)), dtype=lucid.float32)).shape == (3, 11)


def test_targets_that_do_not_fit(rng):
    """Targets are classes, one for each example."""
    m, x = made(rng)
    with pytest.raises(IndexOutOfRangeError, match=r"in \[0, 10\], but values in range \[-1, 6\]"):
        m(x, lucid.tensor([1, 2, 3, 4, 5, 6, -1]))
    with pytest.raises(IndexOutOfRangeError, match=r"in \[0, 10\], but values in range \[1, 11\]"):
        m(x, lucid.tensor([1, 2, 3, 4, 5, 6, 11]))
    with pytest.raises(ShapeError, match=r"got \[7, 8\] and \[3\]"):
        m(x, lucid.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match=r"got \[7, 8\] and \[\]"):
        m(x, lucid.tensor(1))


def test_all_parameters_are_drawn_anew(rng):
    """Those of the head, and both of each cluster."""
    m, _ = made(rng)
    for parameter in m.parameters():
        parameter.data.fill_(7)
    m.reset_parameters()
    assert [name for name, parameter in m.named_parameters() if (parameter == 7).any()] == []
