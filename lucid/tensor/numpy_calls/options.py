"""Options of NumPy's functions without an effect on recorded values."""

from __future__ import annotations

import numpy as np


def is_usual(key: str, value: object, default: object) -> bool:
    """Return whether an option is the default, or without effect on recorded values, as of a class or a layout."""
    if isinstance(value, str):
        return value == default or (key == "order" and value in {"K", "C", "A"})
    is_true = value is True or value is np.True_
    return value is default or (key == "subok" and isinstance(value, bool)) or (key == "where" and is_true)
