"""Random draws on CUDA devices, bit for bit those of `lucid.base.random.draws` on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.base.random import draws as random
from lucid.cuda.launch.indexing import launch_for
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.memory import array_apart

if TYPE_CHECKING:
    from lucid.base.arrays import Array

_WHOLE = ("signed char", "unsigned char", "short", "int", "long long")


FILLS = {
    name: Kernel("random", f"lucid::fill_{name}", [(dtype,) for dtype in dtypes])
    for name, dtypes in (
        ("uniform", FLOATS),
        ("normal", FLOATS),
        ("exponential", FLOATS),
        ("integers", _WHOLE),
        ("bernoulli", ("bool",)),
    )
}
_dropout = Kernel("random", "lucid::dropout", EACH_FLOAT)


_store_seed = Kernel("random", "lucid::store_seed", [()])


class DeviceSeed:
    """Seed and offset in a device's memory, read by the draws of a captured graph.

    Attributes
    ----------
    array : Array
        Both, as integers of 64 bits.
    """

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = array_apart(2, np.uint64)

    def store(self, seed: int, offset: int) -> None:
        """Let draws queued from now on continue the stream of `seed` at `offset`."""
        _store_seed[()](1, 1, self.array.data.ptr, seed, offset)


def _where(seed: int | DeviceSeed) -> tuple[int, int]:
    """Return the address of seed and offset, or 0, and the seed, or 0."""
    return (0, seed) if isinstance(seed, int) else (seed.array.data.ptr, 0)


def fill(out: Array, seed: int | DeviceSeed, offset: int, name: str, *numbers: Any) -> bool:
    """Fill a new array with a draw from the stream of `seed` at `offset`; returns whether there is a kernel for it."""
    if name == "integers":
        low, count = numbers
        # a kernel counts modulo 2**64, and so takes unsigned words for signed ones
        numbers = (low + 2**63) % 2**64 - 2**63, count % 2**64
    dtype = "long long" if out.dtype == "uint64" else C_TYPES.get(out.dtype)
    if dtype is None or (dtype,) not in FILLS[name].instances:
        return False
    if out.size:
        words = 2 if name == "integers" or out.itemsize == 8 else 1
        grid, block = launch_for(-(-out.size * words // 4))
        FILLS[name][dtype](grid, block, out.data.ptr, out.size, *_where(seed), offset, *numbers)
    return True


def dropout(x: Array, *, seed: int | DeviceSeed, offset: int, threshold: int, scale: float) -> Array:
    """Return ``x * scale`` for elements with a random word below `threshold`, and 0 for the others.

    Words are those of the stream of `seed` from `offset` on. Returns NotImplemented for dtypes without a kernel.
    """
    dtype = C_TYPES.get(x.dtype)
    if dtype not in FLOATS:
        return NotImplemented
    module = gpu.cupy()
    out = module.empty(x.shape, x.dtype)
    x = module.ascontiguousarray(x)
    if out.size:
        grid, block = launch_for(-(-out.size // 4))
        _dropout[dtype](grid, block, x.data.ptr, out.data.ptr, out.size, *_where(seed), offset, threshold, scale)
    return out


random.register_kernels(fill)
