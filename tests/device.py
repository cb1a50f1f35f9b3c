"""Where tests put the tensors that they make without naming a device: LUCID_TEST_DEVICE=cuda runs them all there."""

from __future__ import annotations

import os

import numpy as np

DEVICE = os.environ.get("LUCID_TEST_DEVICE", "cpu")


def shares_memory(a, b):
    """Return whether two tensors lie in the same memory."""
    if a.device.type == "cpu":
        return np.shares_memory(a.detach().numpy(), b.detach().numpy())
    return a.array.data.mem is b.array.data.mem
