"""The table of all rules, of which each file beside this one enters those of its kind."""

from __future__ import annotations

from lucid.tensor.numpy_calls import (
    creation,
    differences,
    fft,
    joining,
    linalg,
    places,
    padding,
    polynomials,
    reductions,
    selection,
    shapes,
    statistics,
)
from lucid.tensor.numpy_calls.rules import RULES

__all__ = [
    "RULES",
    "creation",
    "differences",
    "fft",
    "joining",
    "linalg",
    "places",
    "reductions",
    "selection",
    "shapes",
    "statistics",
]
