"""`numpy.linalg`, differentiated: see `lucid.numpy`."""

from __future__ import annotations

from typing import Any

import numpy as _np

from lucid.numpy.border import wrapped as _wrapped


def __getattr__(name: str) -> Any:
    value = getattr(_np.linalg, name)
    if callable(value) and not isinstance(value, type):
        value = _wrapped(f"linalg.{name}", value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_np.linalg)})
