"""The order of hooks in docs/users/hooks.md is PyTorch's, for every kind that PyTorch has."""

from __future__ import annotations

import runpy
from pathlib import Path

import torch

OURS_ONLY = {"backward hook", "Hook: prehook", "Hook: posthook"}


def test_the_order_is_that_of_pytorch():
    """One step of the same model with the same hooks records the same events in the same order."""
    script = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "hooks_order.py"))
    ours = [event for event in script["record"]() if event.kind not in OURS_ONLY]
    step = [event for event in ours if event.phase not in {"saving", "loading"}]
    assert len(step) > 25
    assert [tuple(event) for event in script["record"](torch)] == [tuple(event) for event in step]
