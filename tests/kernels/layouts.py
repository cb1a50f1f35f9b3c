"""Ways in which an array can lie in memory, as functions of a NumPy array and of a CUDA array alike."""

from __future__ import annotations

import numpy as np

from lucid.base import gpu


def repeated(array):
    """Return the first element along the first dimension in place of all, without a copy."""
    module = np if isinstance(array, np.ndarray) else gpu.cupy()
    return module.broadcast_to(array[:1], array.shape)


def moved_on(array):
    """Return a copy, contiguous, that begins one element behind where memory of its own would begin."""
    module = np if isinstance(array, np.ndarray) else gpu.cupy()
    line = module.zeros(array.size + 1, array.dtype)
    line[1:] = array.ravel()
    return line[1:].reshape(array.shape)


LAYOUTS = {
    "whole": lambda a: a,
    "turned": lambda a: a.T,
    "stepped": lambda a: a[..., ::2],
    "backwards": lambda a: a[::-1, ..., ::-1] if a.ndim > 1 else a[::-1],
    "one off": lambda a: a[..., 1:],
    "moved on": moved_on,
    "repeated": repeated,
}
