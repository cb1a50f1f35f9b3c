"""Reading and writing elements of the stand-in's arrays: views, and CuPy's rules for arrays of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid.cuda.simulator.arrays import around, host, is_numpy, is_sequence, ndarray, new, used
from lucid.cuda.simulator.counting import counters
from lucid.cuda.simulator.places import current_device

__all__ = ["add_indexing"]


def getitem(self: ndarray, key: Any) -> ndarray:
    """Return elements: a view, or a copy where an array points to them."""
    parts, waits, copies = raw_index(key, self)
    if copies:
        used(self)
    counters.synchronisations += waits
    # with an ellipsis NumPy gives an array of no dimension where it would give a scalar
    full = parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)
    found = self.values[full]
    if copies:
        counters.library_call(found.nbytes, found.nbytes)
    return new(found) if copies else around(found, self.memory, self)


def setitem(self: ndarray, key: Any, value: Any) -> None:
    """Write elements."""
    used(self)
    parts, waits, _ = raw_index(key, self)
    counters.library_call(value.nbytes if isinstance(value, ndarray) else 0, self.values[parts].nbytes)
    counters.synchronisations += waits and isinstance(value, ndarray) and value.ndim > 0
    if is_sequence(value):
        raise TypeError(f"Unsupported type {type(value).__name__}")
    raw = host(value, current_device(), [])
    with np.errstate(all="ignore"):
        self.values[parts] = raw


def add_indexing() -> None:
    """Give the array class its brackets."""
    setattr(ndarray, "__getitem__", getitem)  # noqa: B010
    setattr(ndarray, "__setitem__", setitem)  # noqa: B010


def raw_index(key: Any, array: ndarray) -> tuple[tuple[Any, ...], bool, bool]:
    """Return an index as NumPy takes it, whether its result's size depends on values, and whether it makes a copy.

    Integers in arrays that are out of range wrap around, as on a GPU, where nobody looks.
    """
    given: Any = (key,) if type(key) is not tuple else key  # pyright: ignore[reportUnknownVariableType]
    parts: list[Any] = [raw_part(part) for part in given]
    taken = sum(consumed(part) for part in parts)
    axis = 0
    waits = copies = False
    for place, part in enumerate(parts):
        if part is Ellipsis:
            axis += array.ndim - taken
            continue
        if is_numpy(part) or type(part) in {bool, np.bool}:
            copies = True
            if is_numpy(part) and part.dtype.kind in "iu":
                size = array.shape[axis] if axis < array.ndim else 0
                if size:
                    parts[place] = part.astype(np.int64) % size
            else:
                waits = True
        axis += consumed(part)
    return tuple(parts), waits, copies


def raw_part(part: Any) -> Any:
    """Return one part of an index as NumPy takes it; CuPy copies lists and NumPy's arrays to the device."""
    if isinstance(part, ndarray):
        return host(part, current_device(), [])
    if is_sequence(part) or is_numpy(part):
        listed: Any = np.asarray(part)
        counters.to_device += listed.nbytes
        return listed if listed.size else listed.astype(np.intp)
    return part


def consumed(part: Any) -> int:
    """Return how many axes one part of an index stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool | np.bool):
        return 0
    return part.ndim if is_numpy(part) and part.dtype.kind == "b" else 1
