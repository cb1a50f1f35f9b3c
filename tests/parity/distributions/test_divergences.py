"""Divergences are PyTorch's, of all pairs of classes that it registers, with gradients."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest
import torch
from torch.distributions import kl

import lucid
from tests.device import DEVICE
from tests.distributions.samples import DIGAMMA, FAMILIES

BY_CLASS = {}
for _row in FAMILIES:
    BY_CLASS.setdefault(_row.partition(",")[0], []).append(_row)
PAIRS = sorted({(p.__name__, q.__name__) for p, q in kl._KL_REGISTRY})
ROWS = [
    (p, q, inside)
    for first, second in PAIRS
    if "ExponentialFamily" not in {first, second} and first != "TransformedDistribution"
    for p, q in itertools.product(BY_CLASS[first][:2], BY_CLASS[second][:2])
    for inside in ((False, True) if "Uniform" in {first, second} else (False,))
]
# those of `TransformedDistribution`; of two Wishart distributions PyTorch's is below 0, as it adds up the batch
SAME = [("LogNormal", "LogNormal"), ("TransformedDistribution", "TransformedDistribution")]


def arrays_of(row, inside, shift):
    """Return parameters; of uniform numbers ones from 0 to 1."""
    arrays = FAMILIES[row][1]
    if row == "Uniform" and inside:
        arrays = (np.array([[0.1], [0.2]]), np.array([0.4, 0.5, 0.6]))
    if row == "Binomial" or row.startswith(("Categorical", "OneHot")) or shift == 0:
        return arrays
    return tuple(array * (1 + shift) if array.ndim < 3 else array for array in arrays)


@pytest.mark.filterwarnings("ignore:Low df values")
@pytest.mark.parametrize(("p", "q", "inside"), [*ROWS, *((*pair, False) for pair in SAME)])
def test_divergence(p, q, inside):
    """The value, and the gradients of both distributions' parameters where it is finite."""
    results = []
    for library in (lucid, torch):
        where = DEVICE if library is lucid else "cpu"
        made, parameters = [], []
        for row, shift in ((p, 0), (q, 0 if inside else 0.05)):
            make = FAMILIES[row][0]
            if row == "Uniform" and inside and row != p:
                make = lambda d, a, b: d.Uniform(a * 0 - 0.5, a * 0 + b * 0 + 1.5)
            mine = [library.tensor(a, device=where, requires_grad=True) for a in arrays_of(row, inside, shift)]
            if row == "TransformedDistribution":
                make = lambda d, a, b: d.TransformedDistribution(d.Normal(a, b), [d.ExpTransform()])
            made.append(make(library.distributions, *mine))
            parameters += mine
        value = library.distributions.kl_divergence(*made)
        if value.requires_grad:
            value.nan_to_num(0.0, 0.0, 0.0).sum().backward()
        grads = [None if each.grad is None else each.grad.cpu().numpy() for each in parameters]
        results.append((value.detach().cpu().numpy(), grads))
    (ours, our_grads), (theirs, their_grads) = results
    close = 1e-7 if p.partition(",")[0] in DIGAMMA else 1e-12
    np.testing.assert_allclose(ours, np.broadcast_to(theirs, ours.shape), rtol=close, atol=close)
    if np.isfinite(theirs).all():
        for a, b in zip(our_grads, their_grads, strict=True):
            if b is not None and np.isfinite(b).all():
                np.testing.assert_allclose(np.zeros_like(b) if a is None else a, b, rtol=10 * close, atol=close)


def test_all_pairs_are_registered():
    """Each pair of classes that PyTorch registers has a function here."""
    ours = {(p.__name__, q.__name__) for p, q in lucid.distributions.kl._KL_REGISTRY}
    assert set(PAIRS) - ours == set()


@pytest.mark.parametrize(
    "make",
    [
        lambda d: (d.Normal(0.0, 1.0), d.Bernoulli(0.5)),
        lambda d: (d.Cauchy(0.0, 1.0), d.Normal(0.0, 1.0)),
        lambda d: (d.Weibull(1.0, 2.0), d.Weibull(1.0, 3.0)),
        lambda d: (
            d.Independent(d.Normal(0.0, 1.0).expand((2, 3)), 1),
            d.Independent(d.Normal(0.0, 1.0).expand((2, 3)), 2),
        ),
    ],
)
def test_what_is_not_registered(make):
    """It raises a NotImplementedError in both."""
    for library in (lucid, torch):
        with pytest.raises(NotImplementedError):
            library.distributions.kl_divergence(*make(library.distributions))


def test_modules_have_the_names():
    """Each submodule of PyTorch's has its public names here, and `torch.distributions` its own."""
    missing = {
        f"{name}.{each}"
        for name, module in inspect.getmembers(torch.distributions, inspect.ismodule)
        if module.__name__.startswith("torch.distributions.")
        for each in getattr(module, "__all__", ())
        if not hasattr(getattr(lucid.distributions, name), each)
    }
    assert missing == set()
    assert set(torch.distributions.__all__) <= set(lucid.distributions.__all__)


@pytest.mark.parametrize("name", torch.distributions.__all__)
def test_signatures(name):
    """Constructors take PyTorch's arguments, in its order."""
    ours, theirs = (getattr(library.distributions, name) for library in (lucid, torch))
    if inspect.isclass(theirs):
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
