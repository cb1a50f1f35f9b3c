"""Where tests put the tensors that they make without naming a device: LUCID_TEST_DEVICE=cuda runs them all there."""

from __future__ import annotations

import contextlib
import os

import numpy as np
import pytest

from lucid.base import device

DEVICE = os.environ.get("LUCID_TEST_DEVICE", "cpu")
two_devices = pytest.mark.skipif("lucid.cuda.device_count() < 2", reason="needs two CUDA devices")


def shares_memory(a, b):
    """Return whether two tensors lie in the same memory."""
    if a.device.type == "cpu":
        return np.shares_memory(a.detach().numpy(), b.detach().numpy())
    return a.array.data.mem is b.array.data.mem


class Asked(Exception):
    """Something was to be made on the default device."""


class Nowhere:
    """A default device that nobody may ask for anything."""

    def __getattribute__(self, name):
        raise Asked("without a device of its own")


@contextlib.contextmanager
def without_default_device():
    """Raise `Asked` where something is made without the device of what it goes with."""
    before, device._default = device._default, Nowhere()
    try:
        yield
    finally:
        device._default = before
