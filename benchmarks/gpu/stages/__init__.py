"""The stages, in the order of what is worth most: does it compute at all, is it right, how fast is it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.gpu.rows import Stage

# Seconds of each, in all those of a machine that is held for ten minutes with what starts and ends it.
BOXES = {
    "hello": 40, "battery": 60, "large": 40, "capture": 25, "nccl": 15, "host": 40, "steps": 45, "kernels": 55,
    "tests": 65, "sanitizer": 30, "profile": 35,
}  # fmt: skip


def stage(name: str) -> Stage:
    """Return a stage by its name; its module is imported now, since one that cannot be costs no other."""
    return import_module(f"benchmarks.gpu.stages.{name}").STAGE
