"""`lucid.scipy.signal`: what its rows do not say, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal as theirs

import lucid
from lucid import numpy as lnp
from lucid.scipy import signal
from tests.scipy.checks import values

pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


def test_a_filter_backwards(rng):
    """The gradient of a filter by its input is the filter, run backwards in time."""
    b, a, x, g = rng.standard_normal(4), [1.0, -0.4, 0.2], rng.standard_normal(50), rng.standard_normal(50)
    leaf = lucid.tensor(x, requires_grad=True)
    (gradient,) = lucid.autograd.grad(signal.lfilter(b, a, leaf), leaf, lucid.tensor(g))
    np.testing.assert_allclose(values(gradient), theirs.lfilter(b, a, g[::-1])[::-1], atol=1e-12)


def test_single_precision(rng):
    """float32 stays float32 where SciPy keeps it."""
    x, k = rng.standard_normal(40).astype("f4"), rng.standard_normal(5).astype("f4")
    leaf = lucid.tensor(x, requires_grad=True)
    for call in (
        lambda l, x: l.fftconvolve(x, k), lambda l, x: l.convolve(x, k), lambda l, x: l.lfilter(k, k[:1], x),
        lambda l, x: l.resample(x, 30), lambda l, x: l.hilbert(x), lambda l, x: l.detrend(x),
        lambda l, x: l.savgol_filter(x, 5, 2), lambda l, x: l.resample_poly(x, 2, 3),
    ):  # fmt: skip
        mine, other = call(signal, leaf), call(theirs, x)
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(values(mine), other, rtol=1e-4, atol=1e-4)


def test_small_weights_count(rng):
    """A convolution is linear in its weights, as SciPy's here is, also below what `scipy.ndimage` leaves out."""
    x, w = rng.standard_normal((6, 7)), rng.standard_normal((3, 2))
    leaf = lucid.tensor(x, requires_grad=True)
    for scale in (1e-17, 1e-100, 1e-300):
        for call in (
            lambda l, x, w: l.convolve2d(x, w, "valid"),
            lambda l, x, w: l.convolve(x, w, "same", "direct"),
            lambda l, x, w: l.correlate(x, w, "full", "direct"),
        ):
            mine, other = values(call(signal, leaf, w * scale)) / scale, call(theirs, x, w * scale) / scale
            np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["convolve", "correlate", "convolve2d", "correlate2d"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_small_weights_beside_others(name, mode):
    """Each weight counts: of a size below 1e-16 beside what is large, and zeros beside NaN and infinities."""
    settings = {} if name.endswith("2d") else {"method": "direct"}
    for x, w in (
        ([[1e20, 1.0, 2.0], [1.0, -3e19, 2.0]], [[1.0, 1e-17], [0.0, 2e-18]]),
        ([[np.nan, 1.0, 2.0], [0.0, 1.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]]),
        ([[1.0, 1.0, np.inf], [0.0, 1.0, 3.0]], [[1.0, 2.0], [0.0, 1.0]]),
        ([[1.0, 1.0, 2.0], [0.0, 1.0, 3.0]], [[1.0, np.inf], [3.0, 1.0]]),
        ([[np.nan, 1.0, 2.0]], [[1.0, 2.0]]),
        ([[3.0, 1.0, 2.0]], [[1.0, np.nan]]),
    ):
        x, w = np.array(x), np.array(w)
        if not np.isfinite(w).all() and not name.endswith("2d"):
            # SciPy multiplies them by zeros beyond the edges
            continue
        with np.errstate(invalid="ignore"):
            expected = getattr(theirs, name)(x, w, mode, **settings)
            for one, other in ((lucid.tensor(x, requires_grad=True), w), (x, lucid.tensor(w, requires_grad=True))):
                result = getattr(signal, name)(one, other, mode, **settings)
                np.testing.assert_allclose(values(result), expected, rtol=1e-14)
    # the gradient is the same sum, with the weights turned round
    leaf = lucid.tensor(np.ones((2, 3)), requires_grad=True)
    result = getattr(signal, name)(leaf, [[1.0, 1e-17], [0.0, 2e-18]], mode, **settings)
    upstream = np.zeros(result.shape)
    upstream[0, 0] = 1e20
    (gradient,) = lucid.autograd.grad(result, leaf, lucid.tensor(upstream))
    rows = []
    for k in range(6):
        unit = np.eye(6)[k].reshape(2, 3)
        rows.append(1e20 * getattr(theirs, name)(unit, [[1.0, 1e-17], [0.0, 2e-18]], mode, **settings)[0, 0])
    np.testing.assert_allclose(values(gradient).ravel(), rows, rtol=1e-12)


def test_half_precision(rng):
    """What SciPy computes in single or double precision is that here, of the same numbers."""
    x = rng.uniform(1, 2, 90).astype("e")
    for call in (
        lambda l, x: l.decimate(x, 3), lambda l, x: l.decimate(x, 3, ftype="fir"),
        lambda l, x: l.resample_poly(x, 2, 1), lambda l, x: l.resample_poly(x, 2, 3, padtype="mean"),
        lambda l, x: l.upfirdn(np.ones(2, "e"), x, 2),
    ):  # fmt: skip
        result, expected = call(signal, lucid.tensor(x, requires_grad=True)), call(theirs, x)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(values(result), expected, rtol=1e-3)


def test_leading_zeros_of_a_denominator(rng):
    """States of a filter at rest are the same with zeros in front of the denominator, which SciPy drops, or refuses."""
    b, a = rng.uniform(0.5, 1, 3), np.array([0, 0, 1.5, 0.2, -0.1])
    grads = []
    for denominator in (a, a[2:]):
        leaf = lucid.tensor(denominator, requires_grad=True)
        state = signal.lfilter_zi(b, leaf)
        np.testing.assert_allclose(values(state), theirs.lfilter_zi(b, a[2:]), rtol=1e-12)
        grads.append(values(lucid.autograd.grad(state.sum(), leaf)[0]))
    np.testing.assert_allclose(grads[0], [0, 0, *grads[1]], rtol=1e-12)


def test_what_is_plain(rng):
    """Without a gradient, and of functions that can have none, a result is SciPy's own."""
    x = rng.standard_normal(40)
    leaf = lucid.tensor(x, requires_grad=True)
    np.testing.assert_array_equal(
        signal.lfilter([1.0], [1.0, 0.5], leaf.detach()), theirs.lfilter([1.0], [1.0, 0.5], x)
    )
    np.testing.assert_array_equal(signal.find_peaks(leaf)[0], theirs.find_peaks(x)[0])
    assert type(signal.lfilter([1.0], [1.0, 0.5], lnp.asarray(leaf) * 2)) is lnp.ndarray
    assert type(signal.get_window("hann", 5)) is np.ndarray


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: signal.wiener(x), r"scipy.signal.wiener has no counterpart here"),
        (lambda x: signal.filtfilt([1.0], [1.0, 0.2], x, method="gust"), r"filtfilt: with a Tensor only method='pad'"),
        (lambda x: signal.detrend(x, overwrite_data=True), r"scipy.signal.detrend: .* got overwrite_data"),
        (
            lambda x: signal.convolve(x, np.ones((2, 2))),
            r"in1 and in2 should have the same dimensionality, got 1 and 2",
        ),
        (lambda x: signal.fftconvolve(x, x, "half"), r"acceptable mode flags are"),
        (lambda x: signal.resample_poly(x, 2, 1, padtype="mean", cval=1.0), r"cval has no effect when padtype is"),
        (
            lambda x: signal.lfilter([1.0], [1.0, 0.2], x, zi=[1.0, 2.0]),
            r"zi: expected \(1,\) with its axis last, found \(2,",
        ),
        (lambda x: signal.lfilter([1.0], [0.0, 1.0], x), r"a\[0\] is zero"),
        (lambda x: signal.convolve(x, []), r"expected two arrays with elements"),
        (lambda x: signal.resample_poly(x, 2, 1, padtype="ends"), r"padtype must be one of"),
        (lambda x: signal.upfirdn([1.0], x, mode="ends"), r"Unknown mode: 'ends'"),
        (lambda x: signal.lfilter([[1.0]], [1.0], x), r"Parameter b is not a non-empty 1d array"),
        (lambda x: signal.filtfilt([1.0], [1.0, 0.2], x[:4]), r"must be greater than padlen, which is 6"),
        (lambda x: signal.sosfilt([[1, 0, 0, 2, 0, 0]], x), r"sos\[:, 3\] should be all ones"),
        (
            lambda x: signal.sosfilt([[1, 0, 0, 1, 0, 0]], x, zi=np.zeros((2, 2))),
            r"zi must have shape \(1, 2\), got \(2, 2\)",
        ),
        (lambda x: signal.lfilter_zi(x, [0.0, 0.0]), r"lfilter_zi: expected vectors b and a, and in a a number that"),
    ],
)
def test_what_is_refused(call, message):
    """What cannot be recorded is a TypeError by its name; what SciPy refuses is refused as SciPy does."""
    with pytest.raises((TypeError, ValueError), match=message):
        call(lnp.asarray(lucid.tensor(np.ones(9), requires_grad=True)))
