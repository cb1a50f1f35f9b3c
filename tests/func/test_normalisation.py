"""Batch normalisation without running statistics."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError
from lucid.func import functional_call, replace_all_batch_norm_modules_, vmap
from tests.func.test_derivatives import draw
from tests.gradients import numbers


def test_statistics_of_each_batch(rng):
    """In training and evaluation outputs are those by the batch's own statistics, also of batches of batches."""
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm1d(3))).double()
    assert replace_all_batch_norm_modules_(model) is model
    assert (list(model.named_buffers()), model[0].track_running_stats) == ([], False)
    x = draw(rng, 4, 5, 3)
    at = numbers(x)
    expected = (at - at.mean(1, keepdims=True)) / np.sqrt(at.var(1, keepdims=True) + 1e-5)
    again = (expected - expected.mean(1, keepdims=True)) / np.sqrt(expected.var(1, keepdims=True) + 1e-5)
    for mode in (True, False):
        model.train(mode)
        found = vmap(lambda batch: functional_call(model, {}, (batch,)))(x)
        np.testing.assert_allclose(numbers(found), again, rtol=1e-10, atol=1e-12)
    alone = nn.BatchNorm2d(2)
    assert replace_all_batch_norm_modules_(alone).running_mean is None
    kept = nn.InstanceNorm1d(2, track_running_stats=True)
    assert replace_all_batch_norm_modules_(kept).running_mean is not None
    with pytest.raises(ArgumentError, match="root: expected a Module"):
        replace_all_batch_norm_modules_(lucid.ones(2))
