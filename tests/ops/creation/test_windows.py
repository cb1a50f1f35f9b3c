"""Windows: NumPy's, symmetric or periodic, of any dtype, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import lucid

WINDOWS = {
    "hann_window": (lucid.hann_window, np.hanning),
    "hamming_window": (lucid.hamming_window, np.hamming),
    "blackman_window": (lucid.blackman_window, np.blackman),
    "bartlett_window": (lucid.bartlett_window, np.bartlett),
    "kaiser_window": (lucid.kaiser_window, lambda n: np.kaiser(n, 12.0)),
}
each_window = pytest.mark.parametrize(("made", "reference"), WINDOWS.values(), ids=WINDOWS)


@each_window
def test_values(made, reference):
    """A symmetric window is NumPy's, a periodic one that of a sample more without its last."""
    for count in (0, 1, 2, 3, 8):
        symmetric = made(count, periodic=False, dtype=lucid.float64)
        np.testing.assert_allclose(symmetric.numpy(force=True), reference(count), rtol=1e-12, atol=1e-15)
        periodic = made(count, dtype=lucid.float64).numpy(force=True)
        np.testing.assert_allclose(periodic, reference(count + 1)[:count] if count > 1 else np.ones(count), atol=1e-15)


@each_window
def test_dtypes_and_errors(made, reference):
    """The dtype is the default one or the one asked for; wrong lengths and dtypes of no fractions are refused."""
    assert made(3).dtype is lucid.get_default_dtype()
    half = made(5, False, dtype=lucid.float16, requires_grad=True)
    assert (half.dtype, half.requires_grad) == (lucid.float16, True)
    np.testing.assert_allclose(half.numpy(force=True), reference(5), atol=1e-3)
    with pytest.raises(ValueError, match="non-negative window_length"):
        made(-1)
    with pytest.raises(TypeError, match="floating point"):
        made(3, dtype=lucid.int64)


def test_settings():
    """Hamming's weights and the width of Kaiser's window change it."""
    np.testing.assert_allclose(lucid.hamming_window(4, False, 0.6, 0.3).tolist(), [0.3, 0.75, 0.75, 0.3], rtol=1e-6)
    np.testing.assert_allclose(lucid.kaiser_window(5, False, 2.0).tolist(), np.kaiser(5, 2.0), rtol=1e-6)
