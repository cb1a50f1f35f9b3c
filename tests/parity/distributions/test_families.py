"""Distributions are PyTorch's: what each family says, with the gradients of its parameters, its shapes and errors."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import lucid
from tests.device import DEVICE
from tests.distributions.samples import DIGAMMA, FAMILIES

ASKED = {
    "log_prob": lambda d, value: d.log_prob(value),
    "entropy": lambda d, value: d.entropy(),
    "perplexity": lambda d, value: d.perplexity(),
    "mean": lambda d, value: d.mean,
    "mode": lambda d, value: d.mode,
    "variance": lambda d, value: d.variance,
    "stddev": lambda d, value: d.stddev,
    "cdf": lambda d, value: d.cdf(value),
    "icdf": lambda d, value: d.icdf(value.abs() / (1 + value.abs())),
    "probs": lambda d, value: d.probs,
    "logits": lambda d, value: d.logits,
    "scale_tril": lambda d, value: d.scale_tril,
    "covariance_matrix": lambda d, value: d.covariance_matrix,
    "precision_matrix": lambda d, value: d.precision_matrix,
    "log_survival_function": lambda d, value: d.log_survival_function(value),
    "log_cdf": lambda d, value: d.log_cdf(value),
    "expanded log_prob": lambda d, value: d.expand((2, *d.batch_shape)).log_prob(value),
    "expanded entropy": lambda d, value: d.expand((2, *d.batch_shape)).entropy(),
    "enumerate_support": lambda d, value: d.enumerate_support(),
    "enumerate_support once": lambda d, value: d.enumerate_support(expand=False),
    "support": lambda d, value: d.support.check(value),
    "support elsewhere": lambda d, value: d.support.check(value * -1.5),
    "has": lambda d, value: value.new_tensor([d.has_rsample, d.has_enumerate_support]),
}
# PyTorch's polynomials for Bessel functions are not of float64's precision.
CLOSE = {"VonMises": 1e-5}
# terms of its formulas cancel near one half, where lucid has series
CLOSE |= dict.fromkeys(("ContinuousBernoulli", "ContinuousBernoulli, logits"), 1e-11)
# a density that is infinite at one end, at both, or NaN in PyTorch for a concentration above 1
OURS = {("Beta", "mode"), ("Kumaraswamy", "mode"), ("Weibull", "mode")}
# in PyTorch an expanded one breaks
OURS |= {(row, "expanded entropy") for row in ("Multinomial", "Multinomial, logits")}


@pytest.fixture(autouse=True)
def float64():
    """Let numbers in PyTorch's formulas have the precision of the parameters: some are of the default dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def made(library, row):
    """Return a distribution of a library, its parameters, and values for it."""
    make, arrays, value = FAMILIES[row]
    where = DEVICE if library is lucid else "cpu"
    parameters = [library.tensor(array, device=where, requires_grad=True) for array in arrays]
    return make(library.distributions, *parameters), parameters, library.tensor(value, device=where)


def asked(library, row, what):
    """Return what a distribution says, and the gradients of its parameters; the error where it does not know that."""
    distribution, parameters, value = made(library, row)
    try:
        said = ASKED[what](distribution, value)
    except (NotImplementedError, AttributeError) as error:
        return type(error) if isinstance(error, AttributeError) else NotImplementedError
    if said.is_floating_point() and said.requires_grad:
        try:
            said.nan_to_num(0.0, 0.0, 0.0).sum().backward()
        except RuntimeError:  # PyTorch has no such gradient, or one of a wrong dtype
            assert library is torch
            return [said.detach().cpu().numpy()]
    return [each.detach().cpu().numpy() for each in (said, *[p.grad for p in parameters if p.grad is not None])]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("row", FAMILIES)
def test_says_what_pytorch_says(row, what):
    """Each property and method, in float64, and the gradients of the parameters where PyTorch has them."""
    if (row, what) in OURS:
        return
    ours, theirs = asked(lucid, row, what), asked(torch, row, what)
    if isinstance(theirs, type) or isinstance(ours, type):
        assert ours is theirs
        return
    rough = row.partition(",")[0] in DIGAMMA and ("entropy" in what or what == "perplexity")
    close = CLOSE.get(row, 1e-9 if rough else 1e-12)
    assert ours[0].dtype == theirs[0].dtype
    np.testing.assert_allclose(ours[0], theirs[0], rtol=min(close, 1e-9), atol=close)
    for a, b in zip(ours[1:], theirs[1:], strict=False):
        # NaN is the gradient there of what a `where` has left out
        np.testing.assert_allclose(np.where(np.isnan(b), b, a), b, rtol=min(10 * close, 1e-8), atol=close)


@pytest.mark.filterwarnings("ignore:Low df values", "ignore:Singular sample")
@pytest.mark.parametrize("sample_shape", [(), (1,), (0,), (2, 3)])
@pytest.mark.parametrize("row", FAMILIES)
def test_shapes(row, sample_shape):
    """Of the batch, of an event and of draws, also of an expanded distribution and of no elements."""
    for change in (lambda d: d, lambda d: d.expand((2, *d.batch_shape)), lambda d: d.expand((0, *d.batch_shape))):
        ours, theirs = (change(made(library, row)[0]) for library in (lucid, torch))
        assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
        assert tuple(ours.event_shape) == tuple(theirs.event_shape)
        shape = ours.sample(sample_shape)
        assert tuple(shape.shape) == (*sample_shape, *theirs.batch_shape, *theirs.event_shape)
        assert str(shape.dtype).partition(".")[2] == str(made(torch, row)[0].sample().dtype).partition(".")[2]
        if theirs.has_rsample:
            assert ours.rsample(sample_shape).shape == shape.shape


@pytest.mark.filterwarnings("ignore:Low df values", "ignore:Singular sample")
@pytest.mark.parametrize("row", FAMILIES)
def test_repr_and_support(row):
    """What is shown of a distribution and of its parameters' constraints, and by which names."""
    ours, theirs = (made(library, row)[0] for library in (lucid, torch))
    # a mixture in PyTorch has already asked for the logits of its weights
    shown = re.sub(r", logits: torch.Size[^)]*\)", "", repr(theirs)) if row.startswith("Mixture") else repr(theirs)
    if row != "Beta":  # PyTorch's has parameters of another object, and shows none
        assert repr(ours).replace("lucid.Size", "torch.Size") == shown
    assert sorted(ours.arg_constraints) == sorted(theirs.arg_constraints)
    assert type(ours.support).__name__ == type(theirs.support).__name__
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
