"""Functions of `scipy.signal` of whole signals: their trend, other rates, the analytic signal, smoothing."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any, cast

import numpy as np

from lucid import numpy as lnp
from lucid.numpy.writes import is_plain
from lucid.scipy.rules.images.filters import convolve1d, for_each
from lucid.scipy.rules.images.ranks import median_of_parts
from lucid.scipy.rules.products import spread
from lucid.scipy.rules.recursions import along_last, lfilter, sosfilt, sosfiltfilt, with_zeros
from lucid.scipy.rules.rule import (
    Array,
    PerAxis,
    arrays,
    as_array,
    at_least_single,
    counted,
    host_library,
    in_dtype,
    in_one_dtype,
    put,
    real_or_complex,
    rule,
)
from lucid.tensor.numpy_calls.operands import NumpyCallError, axis_in, is_tensor


@rule("signal.hilbert")
def hilbert(x: Array, N: int | None = None, axis: int = -1) -> Any:
    """Return ``scipy.signal.hilbert``: the transform without its negative frequencies."""
    (x,) = in_one_dtype(x)
    if x.dtype.kind == "c":
        raise ValueError("x must be real.")
    axis = axis_in(axis, x.ndim)
    size = x.shape[axis] if N is None else N
    if size <= 0:
        raise ValueError("N must be positive.")
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    return lnp.fft.ifft(lnp.fft.fft(x, size, axis=axis) * put(one_sided(size, x.dtype).reshape(shape), x), axis=axis)


def one_sided(size: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the factors that double positive frequencies and drop negative ones."""
    factors = np.zeros(size, dtype)
    factors[0] = 1
    factors[1 : (size + 1) // 2] = 2
    if size % 2 == 0:
        factors[size // 2] = 1
    return factors


@rule("signal.detrend")
def detrend(data: Array, axis: int = -1, type: str = "linear", bp: PerAxis = 0) -> Any:
    """Return ``scipy.signal.detrend``."""
    (x,) = in_one_dtype(data)
    if type not in {"linear", "l", "constant", "c"}:
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    if type in {"constant", "c"}:
        return x - lnp.mean(x, axis, keepdims=True)
    axis = axis_in(axis, x.ndim)
    size = x.shape[axis]
    x = lnp.moveaxis(in_dtype(x, np.float64) if x.dtype == np.float16 else x, axis, -1)
    ends: list[int] = np.unique([0, *np.atleast_1d(bp).tolist(), size]).tolist()
    if ends[-1] > size:
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    parts: list[Any] = []
    for start, stop in itertools.pairwise(ends):
        count = stop - start
        lines = np.stack([np.arange(1, count + 1) / count, np.ones(count)])
        part = x[..., start:stop]
        slopes = part @ put(np.linalg.pinv(lines).astype(x.dtype), x)
        parts.append(part - slopes @ put(lines.astype(x.dtype), x))
    return lnp.moveaxis(lnp.concatenate(parts, -1), -1, axis)


@rule("signal.resample")
def resample(x: Array, num: int, t: Array = None, axis: int = 0, window: Array = None, domain: str = "time") -> Any:
    """Return ``scipy.signal.resample``: the transform cut, or continued by zeros."""
    if domain not in {"time", "freq"}:
        raise ValueError(f"Parameter domain={domain!r} not in ('time', 'freq')!")
    (x,) = in_one_dtype(x)
    axis = axis_in(axis, x.ndim)
    x = lnp.moveaxis(in_dtype(x, np.float32) if x.dtype == np.float16 else x, axis, -1)
    is_real = x.dtype.kind != "c"
    size = x.shape[-1]
    spectrum = lnp.fft.fft(x) if domain == "time" else x
    if window is not None:
        factors = window_of(window, size, spectrum)
        if is_real and domain == "time" and factors.dtype.kind == "c":
            # SciPy keeps half of the spectrum, with the means of both frequencies' factors
            factors = (factors + lnp.roll(lnp.flip(factors, 0), 1)) * 0.5
            factors = lnp.where(put(counted(size) <= size // 2, x), factors, lnp.conj(factors))
        spectrum = spectrum * factors
    kept = min(num, size)
    low = spectrum[..., : (kept + 1) // 2]
    high = spectrum[..., size - (kept - 1) // 2 :] if kept > 1 else spectrum[..., :0]
    middle: list[Any] = []
    zeros = num - low.shape[-1] - high.shape[-1]
    if kept % 2 == 0:
        positive = spectrum[..., kept // 2 : kept // 2 + 1]
        negative = spectrum[..., size - kept // 2 : size - kept // 2 + 1]
        if num < size:
            middle = [positive + negative]
        elif num > size:
            middle = [positive * 0.5, (lnp.conj(positive) if is_real else positive) * 0.5]
        else:
            middle = [positive]
        zeros -= len(middle)
    gap = put(np.zeros((*x.shape[:-1], zeros), spectrum.dtype), x)
    result = lnp.fft.ifft(lnp.concatenate([low, *middle[:1], gap, *middle[1:], high], -1)) * (num / size)
    result = lnp.moveaxis(lnp.real(result) if is_real and domain == "time" else result, -1, axis)
    result = result if not is_real else in_dtype(result, x.dtype) if domain == "time" else result
    if t is None:
        return result
    return result, t[0] + (t[1] - t[0]) * (size / num) * np.arange(num)


def window_of(window: Array, size: int, like: Array) -> Any:
    """Return the factors of frequencies that `resample` is asked for."""
    if callable(window):
        return put(window(put(np.fft.fftfreq(size), like)), like)
    if is_tensor(window) or is_plain(window):
        if window.shape != (size,):
            raise ValueError(f"window.shape={window.shape} != ({size},)")
        return arrays(window, like)[0]
    return put(np.fft.fftshift(host_library("signal").get_window(window, size)), like)


@rule("signal.upfirdn")
def upfirdn(
    h: Array, x: Array, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: float = 0
) -> Any:
    """Return ``scipy.signal.upfirdn``: the filter's phases, one beside another, keeping each `down`-th sample."""
    h, x = at_least_single(*in_one_dtype(h, x))
    if h.ndim != 1 or not h.size:
        raise ValueError("h must be 1-D with non-zero length")
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    up, down = int(up), int(down)
    axis = axis_in(axis, x.ndim)
    x = lnp.moveaxis(x, axis, -1)
    count = (x.shape[-1] - 1) * up + h.shape[0]
    # as many elements beyond the ends as the filter meets
    beyond = -(-h.shape[0] // up) if x.size and (mode != "constant" or cval) else 0
    x = continued(x, beyond, mode, cval)
    h = with_zeros(h, -(-h.shape[0] // up) * up)
    phases = [spread(along_last(h[p::up], x.ndim), x) for p in range(up)]
    line = lnp.stack(phases, -1)
    line = lnp.reshape(line, (*x.shape[:-1], -1))[..., beyond * up : beyond * up + count]
    return lnp.moveaxis(line[..., ::down], -1, axis)


CONTINUED = {"symmetric": "symmetric", "antisymmetric": "symmetric", "reflect": "reflect", "wrap": "wrap"}
"""What continues a signal beyond its ends by its own elements, by the names of `lucid.numpy.pad`."""


def continued(x: Any, count: int, mode: str, cval: float) -> Any:
    """Return a signal with some elements more at both ends of its last axis, in a mode of `upfirdn`."""
    widths = [(0, 0)] * (x.ndim - 1) + [(count, count)]
    if mode == "constant":
        return lnp.pad(x, widths, mode="constant", constant_values=cval) if count else x
    if mode not in UPFIRDN_MODES:
        raise ValueError(f"Unknown mode: {mode!r}: expected one of {', '.join(map(repr, UPFIRDN_MODES))}")
    if not count:
        return x
    size = x.shape[-1]
    first, last = x[..., :1], x[..., -1:]
    places = cast("Any", np.arange(-count, size + count))
    if mode in CONTINUED:
        wide = lnp.pad(x, widths, mode=CONTINUED[mode])
        turned = 1 - 2 * (places // size % 2)
        return wide * put(turned.astype(x.dtype), x) if mode == "antisymmetric" else wide
    if mode == "edge" or size == 1:
        slopes = [first * 0] * 2
    elif mode == "smooth":
        slopes = [x[..., 1:2] - first, last - x[..., -2:-1]]
    elif mode == "line":
        slopes = [(last - first) / (size - 1)] * 2
    else:
        return lnp.pad(x, widths, mode="reflect", reflect_type="odd")
    ends: list[Any] = [places[:count], places[size + count :] - size + 1]
    before, behind = (put(part.astype(x.dtype), x) for part in ends)
    return lnp.concatenate([first + before * slopes[0], x, last + behind * slopes[1]], -1)


UPFIRDN_MODES = (
    "constant", "symmetric", "antisymmetric", "reflect", "antireflect", "wrap", "edge", "smooth", "line",
)  # fmt: skip

BACKGROUNDS: dict[str, Any] = {"mean": lnp.mean, "median": lnp.median, "minimum": lnp.min, "maximum": lnp.max}


@rule("signal.resample_poly")
def resample_poly(
    x: Array,
    up: int,
    down: int,
    axis: int = 0,
    window: Array = ("kaiser", 5.0),
    padtype: str = "constant",
    cval: float | None = None,
) -> Any:
    """Return ``scipy.signal.resample_poly``."""
    if padtype != "constant" and cval is not None:
        raise ValueError(f"cval has no effect when padtype is {padtype!r}: leave it out")
    if padtype not in {*BACKGROUNDS, *UPFIRDN_MODES}:
        raise ValueError(
            f"padtype must be one of {', '.join(map(repr, (*BACKGROUNDS, *UPFIRDN_MODES)))}, got {padtype!r}"
        )
    if up != int(up) or down != int(down) or up < 1 or down < 1:
        raise ValueError("up and down must be integers, and >= 1")
    shared = math.gcd(int(up), int(down))
    up, down = int(up) // shared, int(down) // shared
    (x,) = in_one_dtype(x)
    if up == down == 1:
        return x * 1
    (x,) = at_least_single(x)
    axis = axis_in(axis, x.ndim)
    if is_tensor(window) or is_plain(window) or isinstance(window, list):
        h, x = arrays(window, x)
        half = (h.shape[0] - 1) // 2
    else:
        half = 10 * max(up, down)
        h = host_library("signal").firwin(2 * half + 1, 1 / max(up, down), window=window)
        h = put(h.astype(x.dtype), x)
    before = down - half % down
    skipped = (half + before) // down
    count = -(-x.shape[axis] * up // down)
    wanted = (skipped + count - 1) * down + 1 - (x.shape[axis] - 1) * up
    h = lnp.concatenate([put(np.zeros(before, h.dtype), x), h * up])
    h = with_zeros(h, wanted)
    kept = (slice(None),) * axis + (slice(skipped, skipped + count),)
    if padtype not in BACKGROUNDS:
        return upfirdn(h, x, up, down, axis, padtype, cval or 0)[kept]
    background = BACKGROUNDS[padtype](x, axis=axis, keepdims=True)
    return upfirdn(h, x - background, up, down, axis)[kept] + background


@rule("signal.decimate")
def decimate(
    x: Array, q: int, n: int | None = None, ftype: str = "iir", axis: int = -1, zero_phase: bool = True
) -> Any:
    """Return ``scipy.signal.decimate``, by the filters that SciPy makes."""
    if ftype not in {"iir", "fir"}:
        raise NumpyCallError("scipy.signal.decimate: with a Tensor only ftype='iir' and 'fir' can be used")
    (x,) = in_one_dtype(x)
    x = in_dtype(x, np.float64) if x.dtype == np.float16 else x
    axis = axis_in(axis, x.ndim)
    signal = host_library("signal")
    every = (slice(None),) * axis + (slice(None, None, q),)
    if ftype == "iir":
        sos = put(signal.cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos").astype(x.dtype), x)
        return (sosfiltfilt(sos, x, axis=axis) if zero_phase else sosfilt(sos, x, axis))[every]
    h = put(signal.firwin((20 * q if n is None else n) + 1, 1 / q, window="hamming").astype(x.dtype), x)
    return resample_poly(x, 1, q, axis, h) if zero_phase else lfilter(h, put(np.ones(1, x.dtype), x), x, axis)[every]


@rule("signal.savgol_filter")
def savgol_filter(
    x: Array,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Array = 0.0,
) -> Any:
    """Return ``scipy.signal.savgol_filter``."""
    if mode not in {"mirror", "constant", "nearest", "interp", "wrap"}:
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    (x,) = in_one_dtype(x)
    if x.dtype.kind == "c":
        raise NumpyCallError(
            "scipy.signal.savgol_filter: expected real numbers, got complex ones: filter x.real and x.imag"
        )
    x = in_dtype(x, np.float64) if x.dtype == np.float16 else x
    axis = axis_in(axis, x.ndim)
    weights = host_library("signal").savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    y = convolve1d(x, put(weights, x), axis, mode="constant" if mode == "interp" else mode, cval=cval)
    if mode != "interp":
        return y
    if window_length > x.shape[axis]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    half = window_length // 2
    x, y = lnp.moveaxis(x, axis, -1), lnp.moveaxis(y, axis, -1)
    # the polynomials that fit both ends, as a matrix: the map depends on the lengths alone
    places = np.arange(window_length)
    coefficients = np.polynomial.polynomial.polyfit(places, np.eye(window_length), polyorder)
    derived = np.polynomial.polynomial.polyder(coefficients, deriv) if deriv else coefficients
    fitted = np.polynomial.polynomial.polyval(places, derived) / delta**deriv
    fitted = put(fitted.astype(x.dtype), x)
    size = x.shape[-1]
    first = x[..., :window_length] @ fitted[:, :half]
    last = x[..., size - window_length :] @ fitted[:, window_length - half :]
    return lnp.moveaxis(lnp.concatenate([first, y[..., half : size - half], last], -1), -1, axis)


@rule("signal.medfilt")
def medfilt(volume: Array, kernel_size: PerAxis = None) -> Any:
    """Return ``scipy.signal.medfilt``: medians of windows, with zeros beyond the edges."""
    (x,) = real_or_complex("signal.medfilt", volume)
    sizes = for_each(3 if kernel_size is None else kernel_size, x.ndim)
    if any(size % 2 != 1 for size in sizes):
        raise ValueError("Each element of kernel_size should be odd.")
    return median_of_parts(x, sizes)


def frequencies(worN: Array, whole: bool, include_nyquist: bool) -> Any:
    """Return the angles of a requested frequency response."""
    if not is_count(worN):
        return lnp.atleast_1d(worN)
    end = 2 * np.pi if whole else np.pi
    return np.linspace(0, end, worN, endpoint=include_nyquist and not whole)


def is_count(value: Array) -> bool:
    """Return whether a value is an integer: 2.0 is a frequency."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


@rule("signal.freqz")
def freqz(
    b: Array,
    a: Array = 1,
    worN: Array = 512,
    whole: bool = False,
    fs: float = 2 * math.pi,
    include_nyquist: bool = False,
) -> Any:
    """Return ``scipy.signal.freqz``, of coefficients that are vectors."""
    (numerator,) = in_one_dtype(b)
    b, a = in_one_dtype(b, a)
    b, a = lnp.atleast_1d(b), lnp.atleast_1d(a)
    if b.ndim != 1 or a.ndim != 1:
        raise NumpyCallError("scipy.signal.freqz: with a Tensor the coefficients must be vectors")
    worN = 512 if worN is None else worN
    angles = as_array(frequencies(worN, whole, include_nyquist))
    chosen = not is_count(worN)
    if chosen:
        angles = angles * (2 * math.pi / fs)
    angles = put(angles, b)

    def response(c: Array) -> Any:
        steps = put(np.arange(c.shape[0]), b)
        return lnp.exp(lnp.reshape(angles, (-1, 1)) * steps * -1j) @ (c + 0j)

    responses = response(b) / response(a)
    # SciPy transforms b alone, if that is as long
    if not chosen and a.shape[0] == 1 and (worN if whole else 2 * (worN - include_nyquist)) >= b.shape[0]:
        responses = responses.astype(np.result_type(numerator.dtype, np.complex64))
    return angles * (fs / (2 * math.pi)), responses
