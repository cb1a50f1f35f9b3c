"""Chains of ufuncs on NumPy over blocks that stay in the cache, so that a fused kernel reads and writes memory once."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.memory import LINE, c_copy
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.base.arrays import Array, Ints

# Linux's number of the size of the second-level cache; Python has no name for it.
_SECOND_LEVEL_CACHE = 191


def _second_level_cache() -> int:
    """Return the bytes of a core's second-level cache; 0 if they are not told."""
    try:
        return os.sysconf(_SECOND_LEVEL_CACHE) if sys.platform == "linux" else 0
    except (OSError, ValueError):
        return 0


# Elements of a block: few enough that a handful of float32 blocks lie in the second-level cache, and enough that a call
# costs a tenth of its work. Gelu of 512 x 512 takes 775 us by 1 << 14 and 580 by 1 << 16 where that cache has 1 MiB.
BLOCK = 1 << 16 if _second_level_cache() >= 1 << 20 else 1 << 14
# Elements below which a call costs more than what it does.
FEW = 1 << 10


def in_blocks(xp: ModuleType, kernel: Callable[..., None], scratch: int, *arrays: Array, **settings: Any) -> Array:
    """Return the result of an elementwise kernel of arrays, in the shape and dtype of the last.

    Parameters
    ----------
    xp : module
        On CuPy there is one block: the whole.
    kernel : callable
        ``kernel(xp, out, *arrays, *temporaries, **settings)`` writes to `out`, from ufuncs with ``out=``. Half types
        are given to it in float32.
    scratch : int
        Number of temporaries, like `out`, that it needs.
    *arrays : Array
        Of one shape, or of its last dimension alone, repeated; the last decides the dtype of all but bools. The kernel
        may write to those of the dtype in which it computes.
    **settings : object
        Passed on.
    """
    model = arrays[-1]
    dtype = model.dtype
    work = accumulation_dtype(dtype)
    if xp is not np or model.size <= BLOCK:
        made = [xp.empty(model.shape, work) for _ in range(scratch + 1)]
        kernel(xp, made[0], *[_in(work, a) for a in arrays], *made[1:], **settings)
        return made[0] if work is dtype else made[0].astype(dtype)
    width = min(a.size for a in arrays)
    step = BLOCK if width == model.size else max(BLOCK // width, 1) * width
    flat = [_flat(a) if a.size == model.size else _in(work, np.tile(a, step // width)) for a in arrays]
    out = np.empty(model.shape, dtype)
    target = out.reshape(-1)
    temporaries = _on_lines(scratch + (work is not dtype), step, work)
    for start in range(0, target.size, step):
        here = slice(start, start + step)
        count = min(step, target.size - start)
        # what is repeated is as long as a block, and every block begins with a row
        blocks = [_in(work, a[:count] if a.size == step else a[here]) for a in flat]
        spare = [t[:count] for t in temporaries]
        if work is dtype:
            kernel(np, target[here], *blocks, *spare, **settings)
        else:
            kernel(np, spare[-1], *blocks, *spare[:-1], **settings)
            target[here] = spare[-1]
    return out


def _on_lines(count: int, length: int, dtype: Any) -> list[Array]:
    """Return new arrays that begin with a line of the cache: a product of two takes half the time of others."""
    size = length * np.dtype(dtype).itemsize
    step = -(-size // LINE) * LINE
    room = np.empty(count * step + LINE, np.uint8)
    first = -room.__array_interface__["data"][0] % LINE
    return [room[start : start + size].view(dtype) for start in range(first, first + count * step, step)]


def rounded_once(function: Callable[..., Array], xp: ModuleType, *operands: Any, **settings: Any) -> Array:
    """Return an elementwise function of arrays of one dtype and numbers; half types in float32, as kernels do.

    One of the first two operands is an array.
    """
    first = operands[0]
    dtype = first.dtype if hasattr(first, "dtype") else operands[1].dtype
    if dtype.itemsize != 2 or dtype.kind not in "fV":
        return function(xp, *operands, **settings)
    wide = [_in(np.float32, a) if hasattr(a, "dtype") else a for a in operands]
    return function(xp, *wide, **settings).astype(dtype)


def _in(work: Any, array: Array) -> Array:
    return array if array.dtype == work or array.dtype.kind == "b" else array.astype(work)


def _flat(array: Array) -> Array:
    """Return `array` in one dimension, without a copy if it is contiguous or one number broadcast."""
    if not any(array.strides):
        return np.broadcast_to(array[(0,) * array.ndim], (array.size,))
    return (array if array.flags.c_contiguous else c_copy(array)).reshape(-1)


def repeated(xp: ModuleType, number: float, array: Array) -> Any:
    """Return a number for the ufuncs that take three times as long for a number and a block than for two blocks.

    So do minimum, maximum and the bitwise ones of NumPy, whose loops of vectors want two arrays.
    """
    if xp is not np or not FEW <= array.size <= BLOCK:
        return number
    # as text, since both zeros are one key
    return _repeated(repr(number), array.dtype)[: array.size].reshape(array.shape)


@lru_cache(16)
def _repeated(number: str, dtype: np.dtype[Any]) -> Array:
    block = np.full(BLOCK, number, dtype)
    block.flags.writeable = False
    return block


def give_sign(xp: ModuleType, out: Array, signs: Array, spare: Array) -> None:
    """Give numbers that have no sign those of `signs`, with `spare` for room."""
    # bits, as below: copysign takes five times as long
    bits = np.int32 if out.itemsize == 4 else np.int64
    signs = signs.view(bits)
    kept = xp.bitwise_and(signs, repeated(xp, np.iinfo(bits).min, signs), out=spare.view(bits))
    xp.bitwise_or(out.view(bits), kept, out=out.view(bits))


def keep_where(xp: ModuleType, out: Array, values: Array, mask: Array) -> None:
    """Write `values` to `out` under `mask`, and zero elsewhere, also for infinite values and NaN."""
    _masked(xp, out, values, mask, xp.negative, ())


def drop_where(xp: ModuleType, out: Array, values: Array, mask: Array) -> None:
    """Write zero to `out` under `mask`, and `values` elsewhere."""
    _masked(xp, out, values, mask, xp.subtract, (1,))


def choose(xp: ModuleType, out: Array, a: Any, b: Any, mask: Array, spare: Array) -> None:
    """Write `a` to `out` under `mask`, and `b` elsewhere: each an array or a number; `spare` may be `a`."""
    if xp is not np or out.size < FEW:
        xp.copyto(out, b)
        xp.copyto(out, a, where=mask)
        return
    # bits, as below: b, and where the mask holds what a differs from it by
    bits = np.int32 if out.itemsize == 4 else np.int64
    a, b = [x.view(bits) if hasattr(x, "view") else out.dtype.type(x).view(bits) for x in (a, b)]
    ones, apart = out.view(bits), spare.view(bits)
    np.bitwise_xor(a, b, out=apart)
    np.negative(mask.view(np.int8), out=ones, dtype=bits)
    np.bitwise_and(ones, apart, out=ones)
    np.bitwise_xor(ones, b, out=ones)


def _masked(xp: ModuleType, out: Array, values: Array, mask: Array, to_bits: Any, operands: Ints) -> None:
    # Bits, and not a product with 0 and 1, which makes NaN of infinities; nor a choice, which costs NumPy a branch for
    # each element: a tenth of the time where the mask is random.
    bits = np.int32 if out.itemsize == 4 else np.int64
    ones = out.view(bits)
    to_bits(mask.view(np.int8), *operands, out=ones, dtype=bits)
    xp.bitwise_and(ones, values.view(bits), out=ones)
