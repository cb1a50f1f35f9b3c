"""`scipy.linalg`, differentiated: see `lucid.scipy`."""

from __future__ import annotations

from lucid.numpy.border import names_of, wrapped
from lucid.scipy.rules import equations, matrices

__all__: list[str] = []

__getattr__, __dir__ = names_of("scipy.linalg", globals(), wrapped)
del equations, matrices
