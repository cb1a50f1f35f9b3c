"""The memory of a step on the CPU."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import lucid
from lucid import optim
from tests.optimizers import SETTINGS


@pytest.mark.cpu("memory of NumPy's arrays is counted")
def test_a_step_has_two_temporaries(rng):
    """Whatever the optimizer and its settings: what a formula computes goes into them, but for masks of its signs."""
    size = 1 << 15
    for row, (name, settings) in SETTINGS.items():
        param = lucid.tensor(rng.standard_normal(size).astype(np.float32)).requires_grad_()
        optimizer = getattr(optim, name)([param], **settings)
        param.grad = lucid.tensor(rng.standard_normal(size).astype(np.float32))
        optimizer.step()
        tracemalloc.start()
        try:
            optimizer.step()
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < 2.8 * param.numel() * 4, row
