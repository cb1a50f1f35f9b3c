"""Modules whose weights are computed of others are copied and saved after a call, and each copy has its own weights."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest

import lucid
from lucid import nn
from lucid.nn.utils import parametrizations, prune
from lucid.optim.swa_utils import AveragedModel


def older(make):
    """Return what calls a function that warns of its age."""

    def call(module, name):
        with warnings.catch_warnings(action="ignore", category=FutureWarning):
            return make(module, name)

    return call


def several(module, name):
    prune.l1_unstructured(module, name, 0.2)
    return prune.random_structured(module, name, 1, 0)


def both(module, name):
    """Compute one tensor by a hook and another by a parametrization."""
    parametrizations.weight_norm(module, next(other for other, _ in module.named_parameters() if other != name), None)
    return older(nn.utils.weight_norm)(module, name)


WAYS = {
    "weight_norm": older(nn.utils.weight_norm),
    "spectral_norm": nn.utils.spectral_norm,
    "identity": prune.identity,
    "random_unstructured": lambda m, name: prune.random_unstructured(m, name, 0.3),
    "l1_unstructured": lambda m, name: prune.l1_unstructured(m, name, 2),
    "random_structured": lambda m, name: prune.random_structured(m, name, 1, 0),
    "ln_structured": lambda m, name: prune.ln_structured(m, name, 1, 2, 0),
    "custom_from_mask": lambda m, name: prune.custom_from_mask(m, name, lucid.ones_like(getattr(m, name)).tril()),
    "several": several,
    "parametrized weight_norm": parametrizations.weight_norm,
    "parametrized spectral_norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
    "both": both,
}
LAYERS = {
    "linear": (lambda: nn.Linear(3, 4), "weight", (2, 3)),
    "convolution": (lambda: nn.Conv1d(3, 4, 2), "weight", (2, 3, 5)),
    "lstm": (lambda: nn.LSTM(3, 4), "weight_hh_l0", (5, 2, 3)),
}


def through_pickle(module):
    return pickle.loads(pickle.dumps(module))


def averaged(module):
    return AveragedModel(module).module


def output(module, x):
    out = module(x)
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize("copied", [copy.deepcopy, through_pickle, averaged])
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_after_a_call(way, layer, copied, rng):
    """It gives what the original gives, and trains its own parameters, also by what is read before it is called."""
    make, name, shape = LAYERS[layer]
    module = nn.Sequential(make())
    WAYS[way](module[0], name)
    x = lucid.tensor(rng.standard_normal(shape), dtype=lucid.float32)
    output(module, x).sum().backward()
    other = copied(module)
    module.eval()
    other.eval()
    assert getattr(other[0], name).grad_fn is not None
    assert lucid.equal(output(other, x), output(module, x))
    assert [key for key, _ in other.named_parameters()] == [key for key, _ in module.named_parameters()]
    before = output(module, x).detach()
    module.zero_grad()
    getattr(other[0], name).square().sum().backward()
    read = [p.grad is not None for p in other.parameters()]
    assert any(read)
    assert all(p.grad is None for p in module.parameters())
    with lucid.no_grad():
        for param in other.parameters():
            param.add_(0.5)
    assert lucid.equal(output(module, x), before)
    assert not lucid.allclose(output(other, x), before)
