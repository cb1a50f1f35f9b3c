"""Losses against PyTorch where rows cannot reach: edges of their domains, gradients there, half types."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.nn import functional as F
from tests.parity.pieces import agree, differentiated

T = torch.nn.functional


def compare(name, arrays, rng, **settings):
    """Fail unless a loss and its gradients are PyTorch's."""
    settings = {"reduction": "none", **settings}
    shape = getattr(F, name)(*[lucid.tensor(a) for a in arrays], **settings).shape
    upstream = rng.standard_normal(shape)
    count = sum(array.dtype.kind == "f" for array in arrays)

    def program(lib):
        constants = [lib.tensor(array) for array in arrays[count:]]
        loss = lambda *x: getattr(lib.nn.functional, name)(*x, *constants, **settings)
        return differentiated(lib, loss, arrays[:count], upstream)

    agree(program, 1e-12, 1e-14)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.5}),
        ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {"delta": 0.5}),
    ],
)
def test_kinks(name, settings, rng):
    """At zero difference and where the square ends, value and slope are PyTorch's."""
    compare(name, [np.array([0.0, 0.5, -0.5, 1.0, -2.0]), np.zeros(5)], rng, **settings)


def test_binary_cross_entropy_at_its_ends(rng):
    """At probabilities 0 and 1 logarithms and slopes end where PyTorch's do."""
    x = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1e-13])
    truth = np.array([0.0, 1.0, 0.0, 1.0, 0.5, 0.5])
    upstream = rng.standard_normal(6)

    def program(lib):
        loss = lambda p: lib.nn.functional.binary_cross_entropy(p, lib.tensor(truth), reduction="none")
        return differentiated(lib, loss, [x], upstream)

    agree(program, 1e-7)  # PyTorch's smallest divisor, 1e-12, is a float32


def test_logits_far_out(rng):
    """Large logits neither overflow nor lose their slope."""
    x = np.array([-800.0, -30.0, 0.0, 30.0, 800.0])
    compare("binary_cross_entropy_with_logits", [x, rng.uniform(0, 1, 5)], rng)
    compare("cross_entropy", [np.stack([x, -x, x + 1]), np.array([0, 1, 4])], rng)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_ignored_classes(reduction, smoothing, rng):
    """An ignore_index that is a class counts for nothing, in loss, mean and gradient."""
    arrays = [rng.standard_normal((5, 4)), np.array([1, 2, 2, 0, 3])]
    compare("cross_entropy", arrays, rng, ignore_index=2, reduction=reduction, label_smoothing=smoothing)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["cross_entropy", "mse_loss", "binary_cross_entropy_with_logits"])
def test_half_types(name, dtype, rng):
    """Half types give half types, near to PyTorch's."""
    array = rng.standard_normal((6, 5))
    other = rng.integers(0, 5, 6) if name == "cross_entropy" else rng.uniform(0, 1, (6, 5))
    found = []
    for module, functional in ((lucid, F), (torch, T)):
        target = module.tensor(other)
        target = target if name == "cross_entropy" else target.to(getattr(module, dtype))
        out = getattr(functional, name)(module.tensor(array).to(getattr(module, dtype)), target)
        assert str(out.dtype).endswith(dtype)
        found.append(float(out))
    assert found[0] == pytest.approx(found[1], rel={"float16": 2e-3, "bfloat16": 2e-2}[dtype])
