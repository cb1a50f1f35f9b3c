"""Arrays of images in all layouts, and results between guards."""

from __future__ import annotations

import numpy as np

GUARD = 64
MARK = 0x5A


def laid_out(rng, x):
    """Return the same array in memory of some layout: in steps, backwards, channels last, repeated, or as it is."""
    kind = rng.integers(0, 6)
    if kind == 0:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), x.dtype)
        wide[..., 1::2] = x
        return wide[..., 1::2]
    if kind == 1:
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if kind == 2:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)
    if kind == 3 and x.ndim > 1 and x.shape[0]:
        return np.broadcast_to(x[:1], x.shape)
    if kind == 4 and x.shape[-1]:
        return np.broadcast_to(x[..., :1], x.shape)
    return x


class Guarded:
    """An array between elements that nobody may write."""

    def __init__(self, shape, dtype):
        dtype = np.dtype(dtype)
        self.size = int(np.prod(shape)) * dtype.itemsize
        self.memory = np.full(2 * GUARD + self.size, MARK, np.uint8)
        self.array = self.memory[GUARD : GUARD + self.size].view(dtype).reshape(shape)

    def untouched(self):
        """Return whether the elements around the array are as they were."""
        return bool((self.memory[:GUARD] == MARK).all() and (self.memory[GUARD + self.size :] == MARK).all())


def guarded(made):
    """Return what is called for ``np.empty``, and appends each array between guards to a list."""

    def empty(shape, dtype):
        made.append(Guarded(shape, dtype))
        return made[-1].array

    return empty
