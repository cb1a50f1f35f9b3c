"""The memory of a step on the CPU."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import lucid
from lucid import optim
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
