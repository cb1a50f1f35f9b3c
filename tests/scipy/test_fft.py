"""`lucid.scipy.fft`: values of SciPy's, and gradients of differences."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.scipy import fft
from tests.scipy.checks import by_name, check_all
from tests.scipy.other_rows import FFT

ROWS = by_name(FFT)
pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients(name, rng):
    """Of each call what SciPy gives, in its dtype, and the slope along a random direction of all its arrays."""
    check_all(ROWS[name], "fft", rng)


def test_axes_given_twice():
    """They are refused, as SciPy does."""
    x = lucid.tensor(np.ones((4, 4)), requires_grad=True)
    for transform in (fft.fftn, fft.rfft2, fft.dctn):
        with pytest.raises(ValueError, match=r"axes must be unique, got \[?\(0, "):
            transform(x, axes=(0, -2))
