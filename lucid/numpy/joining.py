"""``r_[...]`` and ``c_[...]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.numpy.border import any_recorded, computed, settled
from lucid.tensor.numpy_calls.places import selected


class Joining:
    """What joins what it is indexed with, as NumPy's object of the name does: slices are ranges, strings directions."""

    def __init__(self, name: str) -> None:
        self.name, self.joined = name, getattr(np, name)

    def __repr__(self) -> str:
        return f"lucid.numpy.{self.name}"

    def __getitem__(self, key: Any) -> Any:
        parts = key if type(key) is tuple else (key,)
        if not any_recorded(parts):
            return computed(f"{self.name}.__getitem__", self.joined.__getitem__, (key,), {})
        parts = [self.joined[part] if isinstance(part, slice) else part for part in parts]
        moved = {str(k): part for k, part in enumerate(parts) if not isinstance(part, str)}

        def join(**numbers: Any) -> Any:
            return self.joined[tuple([numbers.get(str(k), part) for k, part in enumerate(parts)])]

        return settled(selected(join, moved, moved), ())


r_, c_ = Joining("r_"), Joining("c_")
