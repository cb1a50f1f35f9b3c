"""Random arrays: draws from a generator's stream of Philox words, the same bits on every device.

A draw of n values that need w words each takes words ``w*i .. w*i + w - 1`` of the stream
(``lucid.base.random.philox``) for value ``i``, counted from the generator's offset, and advances the offset by
ceil(w*n / 4) blocks. float64 and integers need w = 2, of which the first word is the low half of a 64-bit word;
everything else needs one.

The array code runs on NumPy and CuPy alike, ``philox.cuh`` holds the same functions for kernels, and all of
them agree bit for bit: integers throughout, and floating point made of single IEEE operations (see
``lucid.base.random.inverse_normal``). Half types are rounded from float32.
"""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.random.generator import Generator, default_generator_for
from lucid.base.random.inverse_normal import inverse_normal, minus_log
from lucid.base.random.philox import word_chunks
from lucid.errors import ArgumentError, CaptureError, SettingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.base.arrays import Array

__all__ = [
    "Generator", "bernoulli", "default_generator_for", "exponential", "normal", "permutation", "randint", "uniform",
]  # fmt: skip

_UNIFORM_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}

_fills: dict[bool, Callable[..., bool]] = {}
_order: list[Callable[[Array], Array | None]] = []


def register_kernels(fill: Callable[..., bool], order: Callable[[Array], Array | None] | None = None) -> None:
    """Let ``fill(array, seed, offset, name, *numbers)`` draw; it returns whether it has a kernel.

    It draws on CUDA devices, or with `order`, which gives the indices that sort keys, or None, on the CPU.
    """
    _fills[order is not None] = fill
    if order is not None:
        _order[:] = [order]


def _draw(
    xp: ModuleType,
    generator: Generator,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    words_each: int,
    values_of: Callable[[Array], Array],
    *kernel: object,
) -> Array:
    """Array of ``shape`` filled with ``values_of`` its words; whatever can fail comes before the reservation.

    ``kernel`` names what does the same in one pass, followed by the numbers that it needs.
    """
    drawn = xp.empty(shape, dtype)
    flat = drawn.reshape(-1)
    blocks = -(-flat.size * words_each // 4)
    seed, offset = generator.reserve(blocks)
    fill = _fills.get(type(drawn) is np.ndarray)
    if fill is not None and fill(drawn, seed, offset, *kernel):
        return drawn
    if not isinstance(seed, int):
        raise CaptureError(
            f"drawing {drawn.dtype} numbers cannot be captured in a CUDA graph: no kernel draws them; draw them before "
            "the capture, or convert those of another dtype"
        )
    # what leaves the range of the dtype is infinite, without a word
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for first_word, words in word_chunks(xp, blocks, seed, offset):
            first = first_word // words_each
            values = values_of(words)
            flat[first : first + values.size] = values[: flat.size - first]
    return drawn


@lru_cache(64)
def _float_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    checked = np.dtype(dtype)
    if checked.name not in _UNIFORM_BITS:
        raise ArgumentError(f"{name}: expected a floating dtype out of {', '.join(_UNIFORM_BITS)}, got {checked.name}")
    return checked


# ---- distributions ----


def uniform(
    generator: Generator,
    shape: tuple[int, ...],
    dtype: object,
    low: float = 0.0,
    high: float = 1.0,
    xp: ModuleType = np,
) -> Array:
    """Uniform values low + (k / 2**b) * (high - low) in [low, high), k an integer of b random bits.

    b is 8 for bfloat16, 11 for float16, 24 for float32 (the upper bits of one word) and 53 for float64 (of two words);
    ``high`` itself is never returned, also where the sum would round to it. On a CUDA device what is subnormal in
    float32 is 0, as there in all else.

    Parameters
    ----------
    generator : Generator
        Its stream gives the numbers and is advanced.
    shape : tuple of int
        Shape of the result.
    dtype : floating dtype
        dtype of the result; the bounds are rounded to it first.
    low, high : float
        Bounds, finite, with a finite difference, ``low <= high``; where both are equal every value is ``low``.
    xp : module
        ``numpy`` or ``cupy``: where the values are made.

    Raises
    ------
    TypeError
        If ``dtype`` is not one of the four floating dtypes.
    ValueError
        If ``low > high``, or a bound or their difference (for half types: in float32) is not finite in ``dtype``.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.random.draws import Generator, uniform
    >>> values = uniform(Generator("cpu", 0), (1000,), np.float32, -2.0, 3.0)
    >>> bool(values.min() >= -2) and bool(values.max() < 3)
    True
    """
    dtype = _float_dtype("uniform", dtype)
    start, span, last = _uniform_bounds(dtype, low, high)
    bits = _UNIFORM_BITS[dtype.name]
    # The shifted words are below 2**63 and 2**31: conversion from signed integers is exact and the faster one.
    if dtype == np.float64:
        word, signed, working = np.uint64, np.int64, np.float64
    else:
        word, signed, working = np.uint32, np.int32, np.float32
    shift = word(word(0).nbytes * 8 - bits)

    def values_of(words: Array) -> Array:
        values = (words.view(word) >> shift).view(signed).astype(working)
        values *= 2.0**-bits  # exact, while the span divided by it may be no normal number
        values *= span
        values += start
        return xp.minimum(values, last, out=values)

    return _draw(xp, generator, shape, dtype, word(0).nbytes // 4, values_of, "uniform", start, span, last, bits)


@lru_cache(64)
def _uniform_bounds(dtype: np.dtype[Any], low: float, high: float) -> tuple[float, float, float]:
    """Lower bound, difference and largest value of uniform numbers in ``dtype``, exact in its working dtype."""
    working = np.float64 if dtype == np.float64 else np.float32
    with np.errstate(over="ignore"):
        start, stop = float(dtype.type(low)), float(dtype.type(high))
        span = float(working(stop - start))
    if not (low <= high and math.isfinite(start) and math.isfinite(stop) and math.isfinite(span)):
        raise SettingError(
            f"uniform: expected low <= high, both and their difference finite in {dtype.name}, "
            f"got low={low}, high={high}"
        )
    last = start if start == stop else float(np.nextafter(dtype.type(stop), dtype.type(start)))
    return start, span, last


def _float_words(dtype: np.dtype[Any]) -> int:
    return 2 if dtype == np.float64 else 1


def _round_half(values: Array, dtype: np.dtype[Any]) -> Array:
    """Values as float32 if ``dtype`` is a half type: devices differ in rounding float64 to it directly."""
    return values.astype(np.float32) if dtype.itemsize == 2 else values


def _centred(words: Array, dtype: np.dtype[Any]) -> Array:
    """Exact u - 1/2 in float64, for u = (k + 1/2) / 2**32, or for float64 (k + 1/2) / 2**52."""
    if dtype == np.float64:
        values = (words.view(np.uint64) >> np.uint64(12)).view(np.int64).astype(np.float64)
        bits = 52
    else:
        values = words.astype(np.float64)
        bits = 32
    values += 0.5 - 2.0 ** (bits - 1)
    values *= 2.0**-bits
    return values


def normal(
    generator: Generator,
    shape: tuple[int, ...],
    dtype: object,
    mean: float = 0.0,
    std: float = 1.0,
    xp: ModuleType = np,
) -> Array:
    """Values mean + std * Z(u), normally distributed: Z the inverse distribution function, u uniform in (0, 1).

    u is (k + 1/2) / 2**32 with k one word, so that values reach 6.2 standard deviations, and for float64
    (k + 1/2) / 2**52 with k the upper bits of two words, so that they reach 8.2. Z is Wichura's AS 241 (PPND16) in
    float64, relative error about 1e-15; the result is rounded to ``dtype`` once, half types by way of float32.

    Parameters
    ----------
    generator : Generator
        Its stream gives the numbers and is advanced.
    shape : tuple of int
        Shape of the result.
    dtype : floating dtype
        dtype of the result.
    mean, std : float
        Mean and standard deviation, ``std >= 0``.
    xp : module
        ``numpy`` or ``cupy``: where the values are made.

    Raises
    ------
    TypeError
        If ``dtype`` is not one of the four floating dtypes.
    ValueError
        If ``std`` is negative or not a number.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.random.draws import Generator, normal
    >>> normal(Generator("cpu", 0), (2, 3), np.float32, std=0.02).shape
    (2, 3)
    """
    dtype = _float_dtype("normal", dtype)
    if not std >= 0:
        raise SettingError(f"normal: expected a standard deviation >= 0, got {std}")

    def values_of(words: Array) -> Array:
        values = inverse_normal(xp, _centred(words, dtype))
        values *= float(std)
        values += float(mean)
        return _round_half(values, dtype)

    return _draw(xp, generator, shape, dtype, _float_words(dtype), values_of, "normal", float(mean), float(std))


def exponential(
    generator: Generator, shape: tuple[int, ...], dtype: object, rate: float = 1.0, xp: ModuleType = np
) -> Array:
    """Exponential values -log(u) / rate, with u in (0, 1) as for ``normal``.

    Parameters are those of ``normal``, with ``rate`` in place of mean and deviation.

    Raises
    ------
    TypeError
        If ``dtype`` is not one of the four floating dtypes.
    ValueError
        If ``rate`` is not positive.
    """
    dtype = _float_dtype("exponential", dtype)
    if not rate > 0:
        raise SettingError(f"exponential: expected a rate > 0, got {rate}")

    def values_of(words: Array) -> Array:
        values = _centred(words, dtype)
        values += 0.5
        values = minus_log(xp, values)
        values /= float(rate)
        return _round_half(values, dtype)

    return _draw(xp, generator, shape, dtype, _float_words(dtype), values_of, "exponential", float(rate))


def randint(
    generator: Generator, low: int, high: int, shape: tuple[int, ...], dtype: Any = np.int64, xp: ModuleType = np
) -> Array:
    """Integers low + floor(x * (high - low) / 2**64) in [low, high), x a random 64-bit word.

    With m = high - low the probability of each value differs from 1/m by less than 2**-64, which is m / 2**64 of
    itself: below 1e-9 for every m up to 2**34, and growing to order one as m nears 2**64.

    Parameters
    ----------
    generator : Generator
        Its stream gives the numbers and is advanced, two words for each value.
    low, high : int
        Bounds, ``low < high``; ``high`` itself is not drawn. The full range of int64 or uint64 is allowed.
    shape : tuple of int
        Shape of the result.
    dtype : integer dtype
        dtype of the result.
    xp : module
        ``numpy`` or ``cupy``: where the values are made.

    Raises
    ------
    TypeError
        If ``dtype`` is not an integer dtype, or a bound not an integer.
    ValueError
        If ``low >= high``, or the dtype cannot hold ``low`` or ``high - 1``.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.base.random.draws import Generator, randint
    >>> dice = randint(Generator("cpu", 0), 1, 7, (100,))
    >>> int(dice.min()), int(dice.max())
    (1, 6)
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "iu":
        raise ArgumentError(f"randint: expected an integer dtype, got {dtype.name}")
    low, high = operator.index(low), operator.index(high)
    if low >= high:
        raise SettingError(f"randint: expected low < high, got low={low}, high={high}")
    limits = np.iinfo(dtype)
    if low < limits.min or high - 1 > limits.max:
        raise SettingError(
            f"randint: {dtype.name} holds {limits.min} to {limits.max}, got low={low}, high={high}; "
            "choose a wider dtype or narrower bounds"
        )
    count = high - low

    def values_of(words: Array) -> Array:
        values = _multiply_shift(words, count)
        values += np.uint64(low % 2**64)
        return values.view(np.int64).astype(dtype)

    return _draw(xp, generator, shape, dtype, 2, values_of, "integers", low, count)


def _multiply_shift(words: Array, count: int) -> Array:
    """Floor of x * count / 2**64 for the 64-bit words x, dtype uint64, with count in [1, 2**64]."""
    if count == 2**64:
        return words.view(np.uint64)
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    x_low, x_high = words[0::2].astype(np.uint64), words[1::2].astype(np.uint64)
    count_low, count_high = np.uint64(count & 0xFFFFFFFF), np.uint64(count >> 32)
    # No sum overflows: (2**32 - 1)**2 + 2 * (2**32 - 1) = 2**64 - 1.
    middle = x_high * count_low
    middle += (x_low * count_low) >> half
    x_low *= count_high
    x_low += middle & low_half
    x_high *= count_high
    x_high += middle >> half
    x_high += x_low >> half
    return x_high


def bernoulli(generator: Generator, p: float, shape: tuple[int, ...], xp: ModuleType = np) -> Array:
    """Boolean values that are true with probability round(p * 2**32) / 2**32, so exactly never for 0, always for 1.

    A value is true where its word is below round(p * 2**32); dropout with drop probability q keeps where
    ``bernoulli(p=1 - q)`` is true.

    Raises
    ------
    ValueError
        If ``p`` is outside [0, 1] or not a number.

    Examples
    --------
    >>> from lucid.base.random.draws import Generator, bernoulli
    >>> bool(bernoulli(Generator("cpu", 0), 1.0, (100,)).all())
    True
    """
    if not 0 <= p <= 1:
        raise SettingError(f"bernoulli: expected a probability in [0, 1], got {p}")
    threshold = threshold_of(p)

    def values_of(words: Array) -> Array:
        # word < threshold, written so that the constant fits a word also for p = 1.
        return words <= np.uint32(threshold - 1) if threshold else xp.zeros(words.shape, np.bool_)

    return _draw(xp, generator, shape, np.dtype(np.bool_), 1, values_of, "bernoulli", threshold)


def threshold_of(p: float) -> int:
    """Upper bound of the words that make up a share ``p`` of all words."""
    return round(float(p) * 2**32)


def bernoulli_blocks(shape: tuple[int, ...]) -> int:
    """Blocks of four words that ``bernoulli`` takes of the stream."""
    return -(-math.prod(shape) // 4)


def permutation(generator: Generator, n: int, xp: ModuleType = np) -> Array:
    """Random order of 0 .. n-1, shape (n,), dtype int64: indices sorted by random 64-bit keys, ties by index.

    Raises
    ------
    ValueError
        If ``n`` is negative.

    Examples
    --------
    >>> from lucid.base.random.draws import Generator, permutation
    >>> sorted(permutation(Generator("cpu", 0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    if n < 0:
        raise SettingError(f"permutation: expected a length n >= 0, got {n}")
    word = np.dtype(np.uint64)
    keys = _draw(xp, generator, (n,), word, 2, lambda words: words.view(np.uint64), "integers", 0, 2**64)
    if xp is np:
        order = _order[0](keys) if _order else None
        if order is not None:
            return order
        # NumPy sorts by vectors where ties may fall in any order; that there is one is next to impossible
        order = np.argsort(keys)
        ascending = keys[order]
        if not (ascending[1:] == ascending[:-1]).any():
            return order.astype(np.int64, copy=False)
    return xp.argsort(keys, kind="stable").astype(np.int64, copy=False)
