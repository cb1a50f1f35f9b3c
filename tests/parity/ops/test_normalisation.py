"""Normalisation against PyTorch where rows cannot reach: running statistics, defaults, dtypes, empty batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from lucid.nn import functional as F
from tests.parity.pieces import agree, close, differentiated

T = torch.nn.functional


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("momentum", [0.1, 0.9])
def test_running_statistics(name, momentum, rng):
    """They move as PyTorch's do, through several batches."""
    ours = [lucid.zeros(3, dtype=lucid.float64), lucid.ones(3, dtype=lucid.float64)]
    theirs = [torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)]
    for _ in range(3):
        array = rng.standard_normal((4, 3, 5)) * 3 + 1
        for functional, module, running in ((F, lucid, ours), (T, torch, theirs)):
            settings = {"training": True} if name == "batch_norm" else {"use_input_stats": True}
            getattr(functional, name)(module.tensor(array), *running, momentum=momentum, **settings)
    close(ours, theirs, 1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_default_eps_of_rms_norm(dtype):
    """Without eps the smallest step of the dtype is used."""
    array = np.array([[1e-4, -2e-4, 3e-4, 0.0]])
    got = F.rms_norm(lucid.tensor(array).to(getattr(lucid, dtype)), 4)
    expected = T.rms_norm(torch.tensor(array).to(getattr(torch, dtype)), (4,))
    assert str(got.dtype).endswith(dtype)
    error = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-6)
    np.testing.assert_allclose(got.to(lucid.float64).numpy(force=True), expected.double().numpy(), rtol=error)


@pytest.mark.parametrize("kind", ["half", "mixed"])
def test_half_types(kind, rng):
    """Half inputs give half results, with parameters of either dtype, near to PyTorch's."""
    array, weight = rng.standard_normal((4, 6)), rng.uniform(0.5, 1.5, 6)
    # apart from the input: along the input itself the gradient cancels, and half types compare rounding with rounding
    upstream = rng.standard_normal((4, 6))
    wide = "float32" if kind == "mixed" else "bfloat16"
    found = []
    for functional, module in ((F, lucid), (T, torch)):
        x = module.tensor(array).to(module.bfloat16).requires_grad_()
        w = module.tensor(weight).to(getattr(module, wide)).requires_grad_()
        out = functional.layer_norm(x, (6,), w, None)
        out.backward(module.tensor(upstream).to(module.bfloat16))
        found.append((out, x.grad, w.grad))
    for got, expected in zip(*found, strict=True):
        assert str(got.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        reference = expected.detach().double().numpy()
        np.testing.assert_allclose(
            got.to(lucid.float64).numpy(force=True), reference, rtol=0, atol=3e-2 * np.abs(reference).max()
        )


def test_empty_batches():
    """Rows that are not there are normalised to nothing, with zero gradients for the parameters."""
    arrays, upstream = (np.zeros((0, 4), np.float32), np.ones(4, np.float32)), np.ones((0, 4), np.float32)
    agree(lambda lib: differentiated(lib, lambda x, w: lib.nn.functional.layer_norm(x, (4,), w), arrays, upstream), 0.0)
