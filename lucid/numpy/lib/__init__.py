"""`numpy.lib`, differentiated: see `lucid.numpy`."""

from __future__ import annotations

from lucid.numpy.border import names_of, wrapped
from lucid.numpy.lib import scimath, stride_tricks

__all__ = ["scimath", "stride_tricks"]

__getattr__, __dir__ = names_of("lib", globals(), wrapped)
