"""Numbers in a row, and what is made of places alone: NumPy's values for each setting, in the dtype asked for."""

from __future__ import annotations

import numpy as np
import pytest

import lucid

# By the name: settings, and what NumPy has for them.
ROWS = {
    "arange": (np.arange, [((5,), {}), ((2, 9, 3), {}), ((5, -3, -2), {}), ((0.5, 2.0, 0.25), {}), ((3, 3), {})]),
    "linspace": (np.linspace, [((2, -1, steps), {}) for steps in (0, 1, 2, 7)]),
    "logspace": (
        np.logspace,
        [((2, -1, 7), {}), ((0, 5, 6), {"base": 2.0}), ((1, 2, 3), {"base": 0.5}), ((2, 3, 1), {"base": 3.0})],
    ),
    "eye": (np.eye, [((3,), {}), ((2, 4), {}), ((4, 2), {}), ((0, 2), {}), ((3, 0), {})]),
    "fft.fftfreq": (np.fft.fftfreq, [((n,), {}) for n in range(1, 8)] + [((5,), {"d": 0.25}), ((6,), {"d": -2.0})]),
    "fft.rfftfreq": (np.fft.rfftfreq, [((n,), {}) for n in range(1, 8)] + [((5,), {"d": 0.25}), ((6,), {"d": -2.0})]),
    "tril_indices": (
        lambda n, m, k=0: np.stack(np.tril_indices(n, k, m)),
        [((3, 3), {}), ((2, 4), {}), ((4, 2, 1), {}), ((3, 4, -1), {}), ((3, 0), {}), ((0, 3), {})],
    ),
    "triu_indices": (
        lambda n, m, k=0: np.stack(np.triu_indices(n, k, m)),
        [((3, 3), {}), ((2, 4), {}), ((4, 2, 1), {}), ((3, 4, -1), {}), ((3, 0), {}), ((0, 3), {})],
    ),
}


@pytest.mark.parametrize(
    ("name", "given", "named"), [(name, *settings) for name, (_, rows) in ROWS.items() for settings in rows]
)
def test_values(name, given, named):
    """Each has as many numbers as NumPy's, and the same."""
    make = lucid
    for part in name.split("."):
        make = getattr(make, part)
    whole = name.endswith("indices")
    out = make(*given, **named, dtype=lucid.int64 if whole else lucid.float64)
    expected = ROWS[name][0](*given, **named)
    assert tuple(out.shape) == expected.shape
    np.testing.assert_allclose(out.cpu().numpy(), expected, rtol=1e-13, atol=1e-15)
