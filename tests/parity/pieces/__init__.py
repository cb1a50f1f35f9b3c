"""What comparisons with PyTorch are made of: numbers that are the same in both, and what both make of them."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import torch

import lucid

LIBRARIES = {"torch": torch, "lucid": lucid}


def seeded(lib, *shape, seed=0, requires_grad=False):
    """Return the same normal numbers in either library."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return lib.tensor(values, dtype=lib.float64, requires_grad=requires_grad)


def linear(lib, inputs, outputs, seed):
    """Return the same layer in either library."""
    layer = lib.nn.Linear(inputs, outputs, dtype=lib.float64)
    with lib.no_grad():
        layer.weight.copy_(seeded(lib, outputs, inputs, seed=seed))
        layer.bias.copy_(seeded(lib, outputs, seed=seed + 100))
    return layer


def plain(value):
    """Return nested tuples and lists of Python numbers in the place of tensors."""
    if isinstance(value, torch.Tensor | lucid.Tensor):
        return np.round(np.array(value.detach().tolist()), 9).tolist()
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value


def parameters(function):
    """Return names, kinds and defaults of the parameters of a function."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def close(ours, theirs, rtol, atol=0.0):
    """Fail unless tensors hold the same numbers."""
    for got, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=rtol, atol=atol)


def agree(program, rtol, atol=0.0):
    """Fail unless `program(lib)` gives tensors of the same numbers in both libraries."""
    close(program(lucid), program(torch), rtol, atol)


def differentiated(lib, function, arrays, upstream):
    """Return what a function gives of tensors of these arrays, and the gradients of these tensors."""
    tensors = [lib.tensor(array, requires_grad=True) for array in arrays]
    out = function(*tensors)
    return [out, *lib.autograd.grad(out, tensors, lib.tensor(upstream))]


def same(program):
    """Fail unless `program(lib, events)` records the same in both libraries, numbers to 12 digits; return lucid's."""
    theirs, ours = [], []
    program(torch, theirs)
    program(lucid, ours)
    assert len(theirs) == len(ours) > 0
    for a, b in zip(theirs, ours, strict=True):
        if isinstance(a, torch.Tensor):
            np.testing.assert_allclose(b.numpy(force=True), a.numpy(force=True), rtol=1e-12, atol=1e-14)
        else:
            assert a == b
    return ours


def as_in_pytorch(program):
    """Return the test that `program(lib, events, ...)` records the same in both libraries."""

    @functools.wraps(program)
    def test(**given):
        same(functools.partial(program, **given))

    own = inspect.signature(program)
    test.__signature__ = own.replace(parameters=list(own.parameters.values())[2:])
    return test
