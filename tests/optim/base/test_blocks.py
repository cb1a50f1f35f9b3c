"""The memory of a step on the CPU."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.optim.base import blocks
from lucid.optim.base.blocks import BLOCK_BYTES
from tests.optimizers import SETTINGS


@pytest.mark.cpu("memory of NumPy's arrays is counted")
def test_a_step_has_two_temporaries(rng):
    """Whatever the optimizer and its settings: what a formula computes goes into them, but for masks of its signs."""
    values, grad = rng.standard_normal((2, BLOCK_BYTES // 4), np.float32)
    for row, (name, settings) in SETTINGS.items():
        param = lucid.tensor(values).requires_grad_()
        optimizer = getattr(optim, name)([param], **settings)
        param.grad = lucid.tensor(grad)
        optimizer.step()
        tracemalloc.start()
        try:
            optimizer.step()
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < 2.8 * BLOCK_BYTES, row


@pytest.mark.cpu("only NumPy works in blocks")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", SETTINGS)
def test_small_parameters(row, dtype, rng, monkeypatch):
    """A parameter of one block is changed as by blocks: of no dimension or element, and in any memory order."""
    name, settings = SETTINGS[row]
    values = [rng.standard_normal(shape).astype(dtype) for shape in ((), (0, 2), (3,), (5, 4))]
    grads = [rng.standard_normal(each.shape).astype(dtype) for each in values]
    results = []
    for size in (BLOCK_BYTES, 0):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
        params = [*map(lucid.tensor, values)]
        params[-1] = params[-1].t().contiguous().t()
        params = [each.requires_grad_() for each in params]
        optimizer = getattr(optim, name)(params, **settings)
        for _ in range(2):
            for param, grad in zip(params, grads, strict=True):
                param.grad = lucid.tensor(grad)
            optimizer.step()
        results.append([each.detach().numpy() for each in params])
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
