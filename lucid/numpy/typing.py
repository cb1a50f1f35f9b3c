"""`numpy.typing`: annotations of arrays. An `ndarray` of lucid's is one of NumPy's to none of them."""

from __future__ import annotations

from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["ArrayLike", "DTypeLike", "NDArray"]
