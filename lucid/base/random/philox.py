"""Philox4x32-10: random words as a pure function of seed, offset and index, the same on every device.

Word ``i`` of the stream of ``seed`` at ``offset`` is::

    block   = philox4x32_10(counter=(c mod 2**32, c div 2**32, 0, 0), key=(seed mod 2**32, seed div 2**32))
              with c = (offset + i div 4) mod 2**64
    word(i) = block[i mod 4]

so neither launch shape nor chunking can change a value. ``philox.cuh`` holds the same function for kernels.

References
----------
Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from numpy.typing import NDArray

    from lucid.base.arrays import Array


_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)

# Counters worked on at a time: on the CPU what stays in a core's second-level cache, on a device what bounds memory.
_CPU_CHUNK = 8192
_DEVICE_CHUNK = 1 << 20

# Row r of a round's operands alternates between (c0, c2) and (c2, c0), see philox4x32_10.
_ROUND_MULTIPLIERS = np.array([_MULTIPLIERS, _MULTIPLIERS[::-1]], np.uint64)[:, :, None]


@lru_cache(maxsize=16)
def _round_keys(seed: int) -> NDArray[np.uint64]:
    """Keys of all rounds, shape (10, 2, 1), in philox4x32_10's order of rows."""
    keys: list[tuple[int, int]] = []
    for index in range(_ROUNDS):
        first, second = (
            (seed >> shift) + index * step & 0xFFFFFFFF for shift, step in zip((0, 32), _KEY_STEPS, strict=True)
        )
        keys.append((first, second) if index % 2 else (second, first))
    return np.array(keys, np.uint64)[:, :, None]


def philox4x32_10(xp: ModuleType, counter_4n: Array, seed: int) -> Array:
    """Words of n Philox4x32-10 blocks.

    One round maps (c0, c1, c2, c3) under the key (k0, k1) to
    (hi(M1*c2) ^ c1 ^ k0, lo(M1*c2), hi(M0*c0) ^ c3 ^ k1, lo(M0*c0)).

    Parameters
    ----------
    xp : module
        ``numpy`` or ``cupy``.
    counter_4n : array, shape (4, n), dtype uint64
        The four counter words of each block, each below 2**32. Used as working memory: its contents are lost.
    seed : int in [0, 2**64)
        The key: low half first.

    Returns
    -------
    array, shape (4 * n,), dtype uint32
        The four words of block 0, then those of block 1, and so on.
    """
    keys, multipliers = xp.asarray(_round_keys(seed)), xp.asarray(_ROUND_MULTIPLIERS)
    # Both multiplications of a round are one operation on two rows. A round leaves the new (c2, c0) in the rows that
    # held (c0, c2), and the next one puts them back: operands alternate instead of rows being moved.
    factors, others, low_words = counter_4n[0::2], counter_4n[::-2], counter_4n[1::2]
    product = xp.empty(factors.shape, np.uint64)
    for index in range(_ROUNDS):
        xp.multiply(factors, multipliers[index % 2], out=product)
        xp.right_shift(product, _HALF_BITS, out=factors)
        xp.bitwise_xor(factors, others, out=factors)
        xp.bitwise_xor(factors, keys[index], out=factors)
        xp.bitwise_and(product, _LOW_HALF, out=low_words)
    words = xp.empty(2 * product.size, np.uint32)
    xp.left_shift(low_words, _HALF_BITS, out=low_words)
    xp.bitwise_or(factors, low_words, out=words.view(np.uint64).reshape(-1, 2).T)
    return words


def word_chunks(xp: ModuleType, blocks: int, seed: int, offset: int) -> Iterator[tuple[int, Array]]:
    """Index of the first word, and the words, of successive pieces of ``blocks`` blocks that start at ``offset``."""
    step = max(1, min(blocks, _CPU_CHUNK if xp is np else _DEVICE_CHUNK))
    index = xp.arange(step, dtype=np.uint64)
    counter_4n = xp.empty((4, step), np.uint64)
    for start in range(0, blocks, step):
        counter = counter_4n[:, : blocks - start]
        xp.add(index[: blocks - start], np.uint64((offset + start) % 2**64), out=counter[0])
        xp.right_shift(counter[0], _HALF_BITS, out=counter[1])
        xp.bitwise_and(counter[0], _LOW_HALF, out=counter[0])
        counter[2:] = 0
        yield 4 * start, philox4x32_10(xp, counter, seed)
