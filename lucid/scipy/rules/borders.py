"""Extension of an array beyond its edges, by SciPy's names of the modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid import numpy as lnp
from lucid.scipy.rules.rule import Array, as_array, in_dtype, put
from lucid.tensor.numpy_calls.operands import axis_in, is_tensor

MODES = {
    "reflect": "reflect", "grid-mirror": "reflect", "mirror": "mirror", "nearest": "nearest", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
"""Of filters, whose places are whole numbers."""


def place_in(index: Array, size: int, mode: str) -> Any:
    """Return the index of the element for a whole number that may lie beyond an edge; -1 for a constant."""
    if mode == "constant":
        return lnp.where((index < 0) | (index >= size), -1, index)
    if mode == "nearest" or size == 1:
        return lnp.clip(index, 0, size - 1)
    if mode == "wrap":
        return index % size
    period = 2 * size - (2 if mode == "mirror" else 0)
    index = index % period
    turned: Any = (period if mode == "mirror" else period - 1) - index
    return lnp.where(index < size, index, turned)


def extended(x: Array, axis: int, before: int, after: int, mode: str, cval: Array = 0.0) -> Any:
    """Return an array with some elements more in front and behind along an axis."""
    if mode not in MODES:
        raise RuntimeError(f"boundary mode not supported: expected one of {', '.join(MODES)}, got {mode!r}")
    axis, mode = axis_in(axis, x.ndim), MODES[mode]
    size = x.shape[axis]

    def beyond(start: int, count: int) -> list[Any]:
        if not count:
            return []
        if mode == "constant":
            shape = [count if k == axis else n for k, n in enumerate(x.shape)]
            return [filled(x, shape, cval)]
        places = place_in(np.arange(start, start + count), size, mode)
        return [lnp.take(x, put(places, x), axis=axis)]

    parts = [*beyond(-before, before), x, *beyond(size, after)]
    return parts[0] if len(parts) == 1 else lnp.concatenate(parts, axis)


def filled(x: Array, shape: list[int], value: Array) -> Any:
    """Return a constant in a shape, beside an array and in its dtype; a recorded one is broadcast."""
    if is_tensor(value):
        return lnp.broadcast_to(in_dtype(as_array(value), x.dtype), shape)
    return put(np.full(shape, value, x.dtype), x)
