"""Weights that are functions of others: names, state dicts both ways, values, gradients and signatures as PyTorch's."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import torch

import lucid


def as_torch(state):
    """Return a state dict of PyTorch's tensors."""
    return {name: torch.tensor(value.numpy(force=True)) for name, value in state.items()}


def as_lucid(state):
    """Return a state dict of lucid's tensors."""
    return {name: lucid.tensor(value.numpy()) for name, value in state.items()}


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
    ours.load_state_dict(as_lucid(theirs.state_dict()))
    values = rng.standard_normal((2, 5) if hasattr(theirs, "in_features") else (2, 3, 4, 4))
    for mode in (True, False):
        outs = []
        for lib, module in ((torch, theirs), (lucid, ours)):
            module.train(mode)
            out = module(lib.tensor(values))
            (out * out).sum().backward()
            outs.append(out.detach().numpy(force=True))
        np.testing.assert_allclose(outs[1], outs[0], rtol=1e-9, atol=1e-12)
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.numpy(force=True), p.grad.numpy(), rtol=1e-8, atol=1e-10)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(force=True), value.numpy(), rtol=1e-9, atol=1e-12)
    theirs.load_state_dict(as_torch(ours.state_dict()))


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
        forms = [
            [(p.name, p.default, p.kind) for p in inspect.signature(f).parameters.values()] for f in (ours, theirs)
        ]
        assert forms[0] == forms[1], ours


def test_functional_call(rng):
    """Values and gradients are PyTorch's, with tied weights and buffers."""
    found = []
    weights = rng.standard_normal((3, 3))
    for lib in (torch, lucid):
        net = lib.nn.Sequential(lib.nn.Linear(3, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 3)).double()
        net[2].weight = net[0].weight
        w, x = lib.tensor(weights, requires_grad=True), lib.tensor(np.arange(12.0).reshape(4, 3) % 5)
        given = {"0.weight": w, "0.bias": lib.zeros(3, dtype=lib.float64), "2.bias": lib.zeros(3, dtype=lib.float64)}
        out = lib.func.functional_call(net, given, (x,))
        (out**3).sum().backward()
        found.append([out.detach().numpy(force=True), w.grad.numpy(force=True), net[1].running_var.numpy(force=True)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
