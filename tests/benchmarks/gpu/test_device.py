"""What an error says of the context."""

from __future__ import annotations

import pytest

from benchmarks.gpu import device
from tests.pieces import raising

LOSING = [
    "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
    "cudaErrorIllegalAddress: an illegal memory access was encountered",
    "CUDA_ERROR_MISALIGNED_ADDRESS: misaligned address",
    "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure",
    "cudaErrorLaunchFailure: unspecified launch failure",
    "cudaErrorAssert: device-side assert triggered",
    "CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered",
]
HARMLESS = ["Out of memory allocating 1,024 bytes", "CUDA_ERROR_INVALID_VALUE: invalid argument", "value: not close"]


@pytest.mark.parametrize("words", LOSING)
def test_a_context_is_lost_by_its_error(monkeypatch, words):
    """CUDA's sticky errors, by the names of the driver and of the runtime, whatever the device answers then."""
    monkeypatch.setattr(device, "synchronize", lambda: None)
    assert device.lost(RuntimeError(words)) == f"RuntimeError: {words}"


@pytest.mark.parametrize("words", HARMLESS)
def test_another_error_leaves_the_context(monkeypatch, words):
    """Unless the device does not answer any more."""
    monkeypatch.setattr(device, "synchronize", lambda: None)
    assert device.lost(RuntimeError(words)) == ""

    monkeypatch.setattr(device, "synchronize", raising(RuntimeError("no answer")))
    assert device.lost(RuntimeError(words)) == "RuntimeError: no answer"
