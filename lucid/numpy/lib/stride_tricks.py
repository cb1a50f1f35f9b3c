"""`numpy.lib.stride_tricks`, differentiated: see `lucid.numpy`."""

from __future__ import annotations

from lucid.numpy.border import names_of, wrapped

__getattr__, __dir__ = names_of("lib.stride_tricks", globals(), wrapped)
