"""Distributions are PyTorch's: log probabilities, moments, entropies and divergences, with their gradients."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
import torch

import lucid
from tests.device import DEVICE

LOGITS = np.array([[0.5, -1.0, 2.0, 0.0], [0.0, 3.0, -2.0, 1.0], [-30.0, 0.0, 30.0, 1.0]])
PLACE = np.array([[0.3], [-2.0]])
WIDTH = np.array([0.5, 1.0, 3.0])
# What makes a distribution of a library's module from arrays, these arrays, and values for it.
TABLE = {
    "normal": (lambda d, a, b: d.Normal(a, b), (PLACE, WIDTH), np.array([0.1, -3.0, 2.0])),
    "uniform": (lambda d, a, b: d.Uniform(a, a + b), (PLACE, WIDTH), PLACE + 0.25),
    "bernoulli of logits": (lambda d, a: d.Bernoulli(logits=a), (LOGITS,), np.array([0.0, 1.0, 1.0, 0.0])),
    "bernoulli of probs": (
        lambda d, a: d.Bernoulli(a),
        (np.array([0.0, 0.2, 0.7, 1.0]),),
        np.array([[0.0], [1.0]]),
    ),
    "binomial of probs": (lambda d, a: d.Binomial(6, a), (np.array([0.2, 0.7, 0.5]),), np.array([[0.0], [4.0]])),
    "binomial of logits": (
        lambda d, a: d.Binomial(
            total_count=d.Normal(6.0, 1.0).mean.new_tensor([3.0, 7.0, 5.0, 9.0]).double(), logits=a
        ),
        (LOGITS,),
        np.array([0.0, 1.0, 2.0, 3.0]),
    ),
    "categorical of logits": (lambda d, a: d.Categorical(logits=a), (LOGITS,), np.array([[0, 2, 3], [1, 1, 0]])),
    "categorical of probs": (
        lambda d, a: d.Categorical(a),
        (np.array([[0.0, 1.0, 3.0], [2.0, 2.0, 0.5]]),),
        np.array([0, 2]),
    ),
}
ASKED = {
    "log_prob": lambda d, value: d.log_prob(value),
    "entropy": lambda d, value: d.entropy(),
    "perplexity": lambda d, value: d.perplexity(),
    "mean": lambda d, value: d.mean,
    "variance": lambda d, value: d.variance,
    "stddev": lambda d, value: d.stddev,
    "cdf": lambda d, value: d.cdf(value),
    "icdf": lambda d, value: d.icdf(value.abs() / 4),
    "probs": lambda d, value: d.probs,
    "logits": lambda d, value: d.logits,
    "mode": lambda d, value: d.mode,
    "enumerate_support": lambda d, value: d.enumerate_support(),
    "enumerate_support once": lambda d, value: d.enumerate_support(expand=False),
    "shapes": lambda d, value: d.sample((2, 3)).new_tensor([*d.sample((2, 3)).shape, *d.batch_shape, *d.event_shape]),
}


def asked(library, row, what):
    """Return what a distribution says, and the gradients of its parameters; None where it does not know that."""
    make, arrays, value = TABLE[row]
    where = DEVICE if library is lucid else "cpu"
    parameters = [library.tensor(array, device=where, requires_grad=True) for array in arrays]
    try:
        said = ASKED[what](make(library.distributions, *parameters), library.tensor(value, device=where))
    except (NotImplementedError, AttributeError):
        return None
    if said.is_floating_point() and said.requires_grad:
        said.nan_to_num(0.0, 0.0, 0.0).sum().backward()
    return [each.detach().cpu().numpy() for each in (said, *[p.grad for p in parameters if p.grad is not None])]


@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("row", TABLE)
def test_says_what_pytorch_says(row, what):
    """Each property and method, in float64, and the gradients of the parameters."""
    if row.startswith("categorical") and what in {"mean", "variance", "stddev"}:
        return  # PyTorch gives NaN; here there are none
    if row.startswith("binomial") and what in {
        "entropy",
        "perplexity",
        "enumerate_support",
        "enumerate_support once",
        "mode",
    }:
        return  # not there
    if row.startswith(("bernoulli", "uniform")) and what == "mode":
        return  # NaN there, at one half and everywhere
    ours, theirs = asked(lucid, row, what), asked(torch, row, what)
    assert (ours is None) == (theirs is None)
    for a, b in zip(ours or (), theirs or (), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("row", TABLE)
def test_divergence(row):
    """The divergence from a shifted distribution, and its gradients, and of the two in the other order."""
    make, arrays, _ = TABLE[row]
    if row.startswith("binomial"):
        return  # not there
    for flip, shift in itertools.product((False, True), (0.0, 0.125)):
        results = []
        for library in (lucid, torch):
            where = DEVICE if library is lucid else "cpu"
            first = [library.tensor(array, device=where, requires_grad=True) for array in arrays]
            second = [library.tensor(abs(array - shift), device=where, requires_grad=True) for array in arrays]
            pair = [make(library.distributions, *first), make(library.distributions, *second)]
            value = library.distributions.kl_divergence(*(pair[::-1] if flip else pair))
            finite = value.nan_to_num(0.0, 0.0, 0.0)
            finite.sum().backward()
            grads = [p.grad.detach().cpu().numpy() for p in (*first, *second) if p.grad is not None]
            results.append([value.detach().cpu().numpy(), *grads])
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-10, atol=1e-12)
        if np.isfinite(results[0][0]).all():
            for a, b in zip(results[0][1:], results[1][1:], strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", lucid.distributions.__all__)
def test_signatures(name):
    """Constructors take PyTorch's arguments, in its order."""
    if name in {"Distribution", "kl_divergence"}:
        return
    ours, theirs = (inspect.signature(getattr(m.distributions, name)).parameters for m in (lucid, torch))
    assert list(ours) == list(theirs)
