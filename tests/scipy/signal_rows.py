"""Calls of `scipy.signal`."""

from __future__ import annotations

import numpy as np

from tests.scipy.checks import Row, between, complex_of, spaced

SOS = [[0.2, 0.3, 0.1, 1, -0.5, 0.2], [0.4, -0.1, 0, 1, 0.3, 0]]
LINE = (30,)
STABLE = between(-0.2, 0.2, 4)  # beside a first coefficient of 1.5


def division(a):
    """Return the denominator of a stable filter."""
    return a + 1.5 * (np.arange(4) == 0)


CONVOLUTIONS = [
    *[
        Row(name, lambda l, x, w, n=name, m=m: getattr(l, n)(x, w, m), ((6, 9), second))
        for name in ("fftconvolve", "oaconvolve", "convolve", "correlate", "convolve2d", "correlate2d")
        for m, second in (("full", (3, 4)), ("same", (2, 4)), ("valid", (8, 11)), ("same", (8, 11)))
    ],
    *[
        Row(name, lambda l, x, w, n=name, m=m: getattr(l, n)(x, w, m), (complex_of(6, 9), complex_of(*second)))
        for name in ("fftconvolve", "correlate", "correlate2d")
        for m, second in (("full", (3, 4)), ("valid", (8, 11)))
    ],
    *[
        Row(name, lambda l, x, w, n=name, m=m: getattr(l, n)(x, w, m, "direct"), (LINE, second), True)
        for name in ("convolve", "correlate")
        for m, second in (("full", (5,)), ("same", (4,)), ("valid", (33,)))
    ],
    *[
        Row(name, lambda l, x, w, n=name, m=m, b=b: getattr(l, n)(x, w, m, b, 1.5), ((6, 9), (4, 3)))
        for name in ("convolve2d", "correlate2d")
        for m, b in (("full", "wrap"), ("same", "symm"), ("same", "fill"), ("valid", "wrap"))
    ],
    Row("fftconvolve", lambda l, x, w: l.fftconvolve(x, w, axes=1), ((6, 9), (1, 5)), True),
    Row("oaconvolve", lambda l, x, w: l.oaconvolve(x, w, axes=1), ((6, 9), (6, 5))),
    Row("fftconvolve", lambda l, x, w: l.fftconvolve(x, w, "same", axes=[0]), ((6, 9), (4, 9))),
]

FILTERS = [
    Row("lfilter", lambda l, b, a, x: l.lfilter(b, division(a), x), ((4,), STABLE, LINE), True),
    Row("lfilter", lambda l, b, a, x: l.lfilter(b, division(a), x, axis=0), ((2,), STABLE, (6, 9))),
    Row("lfilter", lambda l, b, a, x, z: l.lfilter(b, division(a), x, 0, z), ((5,), STABLE, (6, 9), (4, 9)), True),
    Row("lfilter", lambda l, b, a, x, z: l.lfilter(b, division(a), x, zi=z), ((2,), STABLE, (2,), (3,))),
    Row("lfilter", lambda l, b, x, z: l.lfilter(b, [2.0], x, zi=z), ((4,), LINE, (3,))),
    Row("lfilter", lambda l, a, x: l.lfilter([1.0], division(a), x), (STABLE, complex_of(30))),
    Row("lfilter", lambda l, b, a, x: l.lfilter(b, division(a * (1 + 0.5j)), x), (complex_of(3), STABLE, LINE)),
    Row("lfilter_zi", lambda l, b, a: l.lfilter_zi(b, division(a)), ((3,), STABLE)),
    *[
        Row(
            "filtfilt",
            lambda l, b, a, x, p=p: l.filtfilt(b, division(a), x, padtype=p),
            ((3,), STABLE, LINE),
            p == "odd",
        )
        for p in ("odd", "even", "constant", None)
    ],
    Row("filtfilt", lambda l, b, a, x: l.filtfilt(b, division(a), x, axis=0, padlen=4), ((3,), STABLE, (6, 9))),
    Row("filtfilt", lambda l, x: l.filtfilt([0.5, 0.2], [1.5, 0.2], x, padlen=-1), (LINE,)),
    Row("sosfilt", lambda l, x: l.sosfilt(SOS, x, axis=0), (LINE,)),
    Row("sosfilt", lambda l, x, z: l.sosfilt(SOS, x, axis=0, zi=z), ((6, 9), (2, 2, 9))),
    Row("filtfilt", lambda l, b, a, x: l.filtfilt(b, division(a), x, method="pad"), ((3,), STABLE, LINE)),
    Row(
        "sosfilt_zi",
        lambda l, x: l.sosfilt_zi(x * np.array([1, 1, 1, 0, 1, 1.0]) + np.array(SOS)),
        (between(-0.1, 0.1, 2, 6),),
    ),
    Row("sosfiltfilt", lambda l, x: l.sosfiltfilt(SOS, x, axis=0), ((30, 2),)),
    *[
        Row("sosfiltfilt", lambda l, x, s=s, p=p: l.sosfiltfilt(s, x, 1, p), ((2, 30),))
        for s, p in ((SOS, "even"), ([[0.2, 0.3, 0, 1, -0.5, 0.2]], "constant"), ([[0.2, 0.3, 0, 1, -0.5, 0]], None))
    ],
    Row("sosfiltfilt", lambda l, x: l.sosfiltfilt(SOS, x, padlen=3), (LINE,)),
    Row("savgol_filter", lambda l, x: l.savgol_filter(x, 5, 2, mode="constant", cval=0.5), ((6, 9),)),
    Row("savgol_filter", lambda l, x: l.savgol_filter(x, 7, 3, 1, 0.5), ((6, 9),)),
    Row("savgol_filter", lambda l, x: l.savgol_filter(x, 5, 2, axis=0, mode="mirror"), ((6, 9),)),
    Row("medfilt", lambda l, x: l.medfilt(x, [3, 5]), (spaced(6, 9),)),
    Row("freqz", lambda l, b, a: l.freqz(b, division(a), 7), ((3,), STABLE)),
    Row("freqz", lambda l, b: l.freqz(b, worN=6, whole=True), ((3,),)),
    *[Row("freqz", lambda l, b, n=n: l.freqz(b, worN=n), ((9,),)) for n in (2, 4, 5)],
    *[Row("freqz", lambda l, b, n=n: l.freqz(b, worN=n, whole=True), ((9,),)) for n in (8, 9)],
    *[Row("freqz", lambda l, b, n=n: l.freqz(b, worN=n, include_nyquist=True), ((9,),)) for n in (5, 6)],
    Row("freqz", lambda l, b: l.freqz(b, worN=6, include_nyquist=True), ((3,),)),
    *[Row("freqz", lambda l, b, w=w: l.freqz(b, worN=w), ((3,),)) for w in (2.0, np.float64(1), np.int64(3), None)],
    *[Row("freqz", lambda l, b, w=w: l.freqz(b, worN=w, fs=3.0), ((3,),)) for w in ([0.1, 0.2], 0.4)],
]

UPFIRDN_MODES = (
    "constant", "symmetric", "antisymmetric", "reflect", "antireflect", "wrap", "edge", "smooth", "line",
)  # fmt: skip

RATES = [
    *[
        Row("hilbert", lambda l, x, n=n, k=k: l.hilbert(x, n, axis=k), ((6, 9),))
        for n, k in ((None, 0), (None, 1), (12, 0))
    ],
    Row("detrend", lambda l, x: l.detrend(x), ((6, 9),)),
    Row("detrend", lambda l, x: l.detrend(x, 0, "constant"), ((6, 9),)),
    Row("detrend", lambda l, x: l.detrend(x, bp=[4]), ((6, 9),)),
    *[Row("resample", lambda l, x, n=n: l.resample(x, n), ((6, 9),)) for n in (1, 4, 5, 6, 12, 13)],
    Row("resample", lambda l, x: l.resample(x, 4, axis=1, window="hann"), ((6, 9),)),
    *[Row("resample", lambda l, x, n=n: l.resample(x, n), (complex_of(6, 2),)) for n in (4, 12)],
    Row("resample", lambda l, x: l.resample(x, 9, 2 + np.arange(6.0)), ((6, 2),)),
    *[
        Row("resample", lambda l, x, w, n=n: l.resample(x, n, window=w), ((k, 2), complex_of(k)))
        for k in (5, 6)
        for n in (3, 4, k, 8, 9)
    ],
    Row("resample", lambda l, x: l.resample(x, 9, window=lambda f: (0.8 - 0.5j) ** f), ((6, 2),)),
    Row("resample", lambda l, x: l.resample(x, 9, domain="freq"), (complex_of(6, 2),)),
    Row("upfirdn", lambda l, h, x: l.upfirdn(h, x, 3, 2), ((5,), LINE), True),
    Row("upfirdn", lambda l, h, x: l.upfirdn(h, x, 3, mode="constant", cval=0), ((5,), LINE)),
    *[
        Row("upfirdn", lambda l, h, x, m=m: l.upfirdn(h, x, 2, 3, mode=m, cval=1.5), ((11,), (2, 3)))
        for m in UPFIRDN_MODES
    ],
    Row("upfirdn", lambda l, h, x: l.upfirdn(h, x, 2.0, 3.0), ((5,), LINE)),
    Row("upfirdn", lambda l, h, x: l.upfirdn(h, x, 2, 5, axis=0), ((5,), (6, 9))),
    *[
        Row("resample_poly", lambda l, x, u=u, d=d, p=p: l.resample_poly(x, u, d, padtype=p), (spaced(30),))
        for u, d, p in ((3, 2, "constant"), (2, 3, "mean"), (1, 4, "median"), (4, 6, "maximum"))
    ],
    *[Row("resample_poly", lambda l, x, p=p: l.resample_poly(x, 3, 2, padtype=p), ((6, 2),)) for p in UPFIRDN_MODES],
    Row("resample_poly", lambda l, x: l.resample_poly(x, 3, 2, cval=1.5), ((6, 2),)),
    Row("resample_poly", lambda l, x, w: l.resample_poly(x, 3, 2, 1, w), ((6, 9), (5,))),
    Row("resample_poly", lambda l, x: l.resample_poly(x, 3, 2, cval=0.5), (LINE,)),
    Row("decimate", lambda l, x: l.decimate(x, 3, 5, axis=0), ((80, 2),)),
    Row("decimate", lambda l, x: l.decimate(x, 3, 12, "fir", axis=0), ((80, 2),)),
    *[
        Row("decimate", lambda l, x, f=f, z=z: l.decimate(x, 3, ftype=f, zero_phase=z), ((80,),))
        for f in ("iir", "fir")
        for z in (True, False)
    ],
]
