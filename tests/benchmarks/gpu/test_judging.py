"""What stages call right, and by what they measure."""

from __future__ import annotations

import types

import numpy as np
import pytest

from benchmarks.gpu import device
from benchmarks.gpu.stages import battery, capture, large

ONE, OTHER = ([0.5, 0.25], [b"one"]), ([0.5, 0.25], [b"other"])
FAR = [0.5, 0.5], [b"far"]


@pytest.mark.parametrize(
    ("eager", "again", "captured", "ok"),
    [
        (ONE, ONE, ONE, True),
        (ONE, ONE, OTHER, False),
        (ONE, OTHER, OTHER, True),
        (ONE, OTHER, FAR, False),
    ],
)
def test_replayed_steps_have_the_bits_of_eager_ones(monkeypatch, eager, again, captured, ok):
    """Other bits are right only where eager steps do not repeat either, and the losses are near."""
    runs = iter((eager, again, captured))
    monkeypatch.setattr(capture, "trained", lambda *_, **__: next(runs))
    assert capture.compared("float32")["ok"] is ok


@pytest.mark.parametrize(("place", "what"), [(0, "value"), (1, "gradient")])
def test_values_and_gradients_are_both_compared(monkeypatch, place, what):
    """A row of the battery fails where either is another on CUDA, and says which."""
    sample = types.SimpleNamespace(name="made up", tolerance={})

    def outcome(sample, dtype, where):
        made = [np.ones(3, np.float32)], [np.ones(3, np.float32)]
        if where == "cuda":
            made[place][0][1] = wrong
        return made

    monkeypatch.setattr(battery, "outcome", outcome)
    wrong = 1.0
    assert battery.compared(sample, "float32") == {}
    wrong = 1.5
    with pytest.raises(AssertionError, match=what):
        battery.compared(sample, "float32")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("norm", "worst", "ok"), [(1, large.WORST, True), (1.01, 0, False), (0, large.WORST * 1.01, False)]
)
def test_norm_and_largest_element_are_both_bounded(monkeypatch, norm, worst, ok):
    """One element far off in millions moves no norm, and is an error all the same."""
    bound = large.BOUNDS["float32"]
    monkeypatch.setattr(large, "small", lambda _: (4, 4))
    monkeypatch.setattr(large, "error", lambda *_: (norm * bound, worst * bound))
    monkeypatch.setattr(device, "simulated", lambda: True)
    assert large.compared(large.CASES[0], "float32")["ok"] is ok


@pytest.mark.gpu
def test_a_copy_reads_and_writes(monkeypatch):
    """Both count in its bandwidth, by which the shares of all families are told."""
    monkeypatch.setattr(device, "seconds", lambda _: 1e-3)
    assert device.copy_bandwidth.__wrapped__(0.25) == pytest.approx(2 * 0.25 * 2**20 / 1e-3 / 1e9)
