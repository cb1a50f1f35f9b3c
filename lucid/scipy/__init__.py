"""SciPy, differentiated as it stands: ``from lucid.scipy import sparse``."""

from __future__ import annotations

from lucid.scipy import sparse

__all__ = ["sparse"]
