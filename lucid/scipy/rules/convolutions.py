"""Convolutions of `scipy.signal`: by transforms, or by sums of products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid import numpy as lnp
from lucid.scipy.rules.images.filters import axes_of, extended
from lucid.scipy.rules.products import spread, windows
from lucid.scipy.rules.rule import Array, PerAxis, arrays, host_library, in_dtype, put, rule

if TYPE_CHECKING:
    from collections.abc import Sequence


def operands(name: str, in1: Array, in2: Array, mode: str) -> list[Any]:
    """Return two arrays of as many dimensions, in their common dtype."""
    if mode not in {"full", "same", "valid"}:
        raise ValueError(f"acceptable mode flags are 'valid', 'same', or 'full', got {mode!r}")
    one, two = arrays(in1, in2)
    if one.ndim != two.ndim:
        raise ValueError(
            f"scipy.signal.{name}: in1 and in2 should have the same dimensionality, got {one.ndim} and {two.ndim}"
        )
    dtype = lnp.result_type(one, two)
    return [in_dtype(each, dtype) for each in (one, two)]


def ordered(one: Array, two: Array, mode: str, axes: Sequence[int]) -> list[Any]:
    """Return two arrays; in the mode 'valid' the larger one comes first."""
    pairs = [(one.shape[k], two.shape[k]) for k in axes]
    if mode != "valid" or all(m >= n for m, n in pairs):
        return [one, two]
    if all(m <= n for m, n in pairs):
        return [two, one]
    raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")


def centred(full: Array, shape: Sequence[int]) -> Any:
    """Return the middle of an array."""
    starts = [(n - m) // 2 for n, m in zip(full.shape, shape, strict=True)]
    return full[tuple([slice(start, start + m) for start, m in zip(starts, shape, strict=True)])]


def in_mode(full: Array, one: Array, two: Array, mode: str, axes: Sequence[int]) -> Any:
    """Return the part of a full convolution that a mode asks for."""
    if mode == "full":
        return full
    if mode == "same":
        return centred(full, one.shape)
    sizes = [one.shape[k] - two.shape[k] + 1 if k in axes else n for k, n in enumerate(full.shape)]
    return centred(full, sizes)


@rule("signal.fftconvolve signal.oaconvolve")
def fftconvolve(in1: Array, in2: Array, mode: str = "full", axes: PerAxis = None) -> Any:
    """Return ``scipy.signal.fftconvolve``; `oaconvolve` is the same function, in one piece."""
    one, two = operands("fftconvolve", in1, in2, mode)
    if not one.ndim:
        return one * two
    if not one.size or not two.size:
        return put(np.zeros(0), one)
    if axes is not None and not np.size(axes):
        raise ValueError("when provided, axes cannot be empty")
    along = [k for k in axes_of(axes, one.ndim) if one.shape[k] != 1 and two.shape[k] != 1]
    pairs = enumerate(zip(one.shape, two.shape, strict=True))
    if any(m != n and 1 not in {m, n} for k, (m, n) in pairs if k not in along):
        raise ValueError(f"incompatible shapes for in1 and in2: {one.shape} and {two.shape}")
    one, two = ordered(one, two, mode, along)
    if not along:
        return in_mode(one * two, one, two, mode, along)
    # integers are transformed in double precision
    work = np.result_type(one.dtype, *[np.float64 for each in arrays(in1, in2) if each.dtype.kind in "biu"])
    one, two = in_dtype(one, work), in_dtype(two, work)
    is_complex = one.dtype.kind == "c"
    sizes = [one.shape[k] + two.shape[k] - 1 for k in along]
    fast = host_library("fft").next_fast_len
    padded = [fast(size, not is_complex) for size in sizes]
    forward, inverse = (lnp.fft.fftn, lnp.fft.ifftn) if is_complex else (lnp.fft.rfftn, lnp.fft.irfftn)
    result = inverse(forward(one, padded, axes=along) * forward(two, padded, axes=along), padded, axes=along)
    kept = [slice(None)] * one.ndim
    for k, size in zip(along, sizes, strict=True):
        kept[k] = slice(size)
    return in_mode(result[tuple(kept)], one, two, mode, along)


@rule("signal.convolve")
def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto") -> Any:
    """Return ``scipy.signal.convolve``."""
    one, two = operands("convolve", in1, in2, mode)
    if method not in {"auto", "direct", "fft"}:
        raise ValueError(f"Acceptable method flags are 'auto', 'direct', or 'fft', got {method!r}")
    if not one.ndim:
        return one * two
    one, two = ordered(one, two, mode, range(one.ndim))
    if not one.size or not two.size:
        if mode == "same" and two.size:
            return one * lnp.sum(two)
        raise ValueError(f"expected two arrays with elements, got shapes {one.shape} and {two.shape}")
    if method == "auto":
        stand_ins = [np.broadcast_to(np.zeros((), each.dtype), each.shape) for each in (one, two)]
        method = host_library("signal").choose_conv_method(*stand_ins, mode=mode)
    if method == "fft":
        return in_dtype(fftconvolve(one, two, mode), one.dtype)
    if one.dtype == np.float16:
        single = [in_dtype(each, np.float32) for each in (one, two)]
        return in_dtype(convolve(*single, mode, "direct"), one.dtype)
    if mode == "valid":
        return windows(one, turned(two))
    # the smaller one moves along the larger
    full = spread(two, one) if two.size <= one.size else spread(one, two)
    return in_mode(full, one, two, mode, range(one.ndim))


def turned(x: Array) -> Any:
    """Return an array backwards along all axes."""
    return x[(slice(None, None, -1),) * x.ndim]


@rule("signal.correlate")
def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto") -> Any:
    """Return ``scipy.signal.correlate``: the convolution with the second array backwards, and conjugated."""
    one, two = operands("correlate", in1, in2, mode)
    return convolve(one, conjugated(turned(two)), mode, method)


BOUNDARIES = {
    "fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "reflect",
    "symmetric": "reflect",
}  # fmt: skip


@rule("signal.convolve2d")
def convolve2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: Array = 0) -> Any:
    """Return ``scipy.signal.convolve2d``."""
    one, two = operands("convolve2d", in1, in2, mode)
    if one.ndim != 2:
        raise ValueError("convolve2d inputs must both be 2-D arrays")
    if boundary not in BOUNDARIES:
        raise ValueError(
            f"Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric', got {boundary!r}"
        )
    one, two = ordered(one, two, mode, (0, 1))
    if mode == "valid":
        return windows(one, turned(two))
    wide = one
    for k, size in enumerate(two.shape):
        wide = extended(wide, k, size - 1, size - 1, BOUNDARIES[boundary], fillvalue)
    return in_mode(windows(wide, turned(two)), one, two, mode, (0, 1))


@rule("signal.correlate2d")
def correlate2d(in1: Array, in2: Array, mode: str = "full", boundary: str = "fill", fillvalue: Array = 0) -> Any:
    """Return ``scipy.signal.correlate2d``."""
    one, two = operands("correlate2d", in1, in2, mode)
    if one.ndim == 2 and ordered(one, two, mode, (0, 1))[0] is not one:
        # the second one is not conjugated where it is the larger one
        return turned(correlate2d(two, one, mode, boundary, fillvalue))
    full = convolve2d(one, conjugated(turned(two)), "full" if mode == "same" else mode, boundary, fillvalue)
    if mode != "same":
        return full
    # the middle lies half an element later than that of a convolution, where the size is even
    return full[tuple([slice(n // 2, n // 2 + m) for m, n in zip(one.shape, two.shape, strict=True)])]


def conjugated(x: Array) -> Any:
    """Return the conjugate of an array: the array itself if it is real."""
    return lnp.conj(x) if x.dtype.kind == "c" else x
