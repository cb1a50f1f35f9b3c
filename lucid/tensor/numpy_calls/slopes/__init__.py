"""Slopes of functions with values by SciPy, by families: each file enters its own into the table."""

from __future__ import annotations

from lucid.tensor.numpy_calls.by_scipy import SLOPES
from lucid.tensor.numpy_calls.slopes import bessel, densities, gammas, integrals, polynomials

__all__ = ["SLOPES"]

del bessel, densities, gammas, integrals, polynomials
