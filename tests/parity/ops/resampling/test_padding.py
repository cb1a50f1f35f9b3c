"""Padding against PyTorch: every mode, and edges that add and cut off, for all small sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional

import lucid
from lucid.errors import ShapeError
from lucid.ops.shape.padding import MODES, pad


@pytest.mark.parametrize("mode", MODES)
def test_all_small_edges(mode, rng):
    """What PyTorch pads gives the same values and gradients; what it refuses is refused."""
    for size, before, after in itertools.product((1, 2, 4), range(-3, 5), range(-3, 5)):
        left = size + min(before, 0) + min(after, 0)
        # where less is left than is to be repeated, PyTorch's circular padding repeats memory as it was
        if before + size + after < 1 or (mode == "circular" and left < max(before, after, 1) <= size):
            continue
        x = rng.standard_normal((1, 2, size))
        theirs, ours = torch.tensor(x, requires_grad=True), lucid.tensor(x, requires_grad=True)
        try:
            expected = functional.pad(theirs, (before, after), mode)
        except RuntimeError:
            with pytest.raises(ShapeError):
                pad(ours, (before, after), mode)
            continue
        got = pad(ours, (before, after), mode)
        np.testing.assert_array_equal(got.numpy(force=True), expected.numpy(force=True))
        upstream = rng.standard_normal(got.shape)
        got.backward(lucid.tensor(upstream))
        expected.backward(torch.tensor(upstream))
        np.testing.assert_allclose(ours.grad.numpy(force=True), theirs.grad.numpy(), rtol=1e-12)
