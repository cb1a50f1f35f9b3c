"""`numpy.emath`, differentiated: see `lucid.numpy`."""

from __future__ import annotations

from lucid.numpy.border import names_of, wrapped

__getattr__, __dir__ = names_of("lib.scimath", globals(), wrapped)
