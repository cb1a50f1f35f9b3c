"""Sums by one thread of many terms: no kernel loses digits to how many of them a thread adds up."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.cuda.launch import reduction
from lucid.ops.layers.norms import batch_cuda
from tests.stress.rounding import ROWS, errors_of

pytestmark = pytest.mark.gpu

# No other test has arrays of these lengths: launches are remembered by shape.
MANY, MORE = 8221, 12347


@pytest.fixture(autouse=True)
def small_device(monkeypatch):
    """Launch few threads, so that each has as many terms as on a large device of arrays that fill its memory."""
    monkeypatch.setattr(reduction, "BLOCK", 32)
    monkeypatch.setattr(reduction, "FULL", 1)
    monkeypatch.setattr(reduction, "FEW", 1)
    monkeypatch.setattr(batch_cuda, "BLOCKS", 1)


@pytest.mark.parametrize(("length", "width"), [(MORE, 1), (MANY, 2)])
@pytest.mark.parametrize("name", ROWS)
def test_many_terms(name, length, width, rng):
    """Of equal numbers, where each addition is rounded in the same direction, and of others around 0 and 10."""
    one = np.broadcast_to(np.float32(rng.uniform(1, 2)), (length, width))
    others = rng.standard_normal((length, width), np.float32)
    for array in (one, others, others + np.float32(10)):
        assert errors_of(ROWS[name], array, "dense", "cuda") <= ROWS[name].allowed
