"""The table of all rules, of which each file beside this one enters those of its kind."""

from __future__ import annotations

from importlib import import_module

from lucid.tensor.numpy_calls.rules import RULES

__all__ = ["RULES"]

for _kind in (
    "creation", "differences", "fft", "joining", "linalg", "padding", "places", "polynomials", "reductions",
    "selection", "shapes", "statistics",
):  # fmt: skip
    import_module(f"lucid.tensor.numpy_calls.{_kind}")
