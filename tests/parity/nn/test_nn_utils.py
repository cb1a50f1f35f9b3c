"""Weights that are functions of others: names, state dicts both ways, values, gradients and signatures as PyTorch's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import lucid
from tests.parity.pieces import agree, close, parameters

RECIPES = {
    "weight_norm": lambda lib: lib.nn.utils.parametrizations.weight_norm(lib.nn.Conv2d(3, 4, 2), dim=1),
    "weight_norm all": lambda lib: lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(5, 4), dim=None),
    "spectral_norm": lambda lib: lib.nn.utils.parametrizations.spectral_norm(lib.nn.Linear(5, 4)),
    "spectral_norm transposed": lambda lib: lib.nn.utils.parametrizations.spectral_norm(
        lib.nn.ConvTranspose2d(3, 4, 2), n_power_iterations=3
    ),
    "old weight_norm": lambda lib: lib.nn.utils.weight_norm(lib.nn.Linear(5, 4)),
    "old spectral_norm": lambda lib: lib.nn.utils.spectral_norm(lib.nn.Conv2d(3, 4, 2)),
}


@pytest.mark.parametrize("name", RECIPES)
def test_weights(name, rng):
    """Repr, names, outputs in training and evaluation, gradients and buffers agree; states load both ways."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (RECIPES[name](lib).double() for lib in (torch, lucid))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({name: lucid.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    values = rng.standard_normal((2, 5) if hasattr(theirs, "in_features") else (2, 3, 4, 4))
    for mode in (True, False):
        outs = [module.train(mode)(lib.tensor(values)) for lib, module in ((lucid, ours), (torch, theirs))]
        for out in outs:
            (out * out).sum().backward()
        close(outs[:1], outs[1:], 1e-9, 1e-12)
    close([q.grad for q in ours.parameters()], [p.grad for p in theirs.parameters()], 1e-8, 1e-10)
    close(ours.state_dict().values(), theirs.state_dict().values(), 1e-9, 1e-12)
    theirs.load_state_dict({name: torch.tensor(value.numpy(force=True)) for name, value in ours.state_dict().items()})


def test_signatures():
    """Functions have PyTorch's parameters, in its order and with its defaults."""
    pairs = [
        (getattr(getattr(lucid.nn.utils, space), name), getattr(getattr(torch.nn.utils, space), name))
        for space, names in (
            ("parametrize", lucid.nn.utils.parametrize.__all__),
            ("parametrizations", lucid.nn.utils.parametrizations.__all__),
        )
        for name in names
    ]
    pairs += [
        (getattr(lucid.nn.utils, name), getattr(torch.nn.utils, name))
        for name in ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm")
    ]
    pairs.append((lucid.func.functional_call, torch.func.functional_call))
    for ours, theirs in pairs:
        assert parameters(ours) == parameters(theirs), ours


def test_functional_call(rng):
    """Values and gradients are PyTorch's, with tied weights and buffers."""
    weights = rng.standard_normal((3, 3))

    def called(lib):
        net = lib.nn.Sequential(lib.nn.Linear(3, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 3)).double()
        net[2].weight = net[0].weight
        w, x = lib.tensor(weights, requires_grad=True), lib.tensor(np.arange(12.0).reshape(4, 3) % 5)
        given = {"0.weight": w, "0.bias": lib.zeros(3, dtype=lib.float64), "2.bias": lib.zeros(3, dtype=lib.float64)}
        out = lib.func.functional_call(net, given, (x,))
        (out**3).sum().backward()
        return out, w.grad, net[1].running_var

    agree(called, 1e-9, 1e-9)
