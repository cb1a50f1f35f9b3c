"""`lucid.scipy.fft`: what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.scipy import fft

pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


def test_axes_given_twice():
    """They are refused, as SciPy does."""
    x = lucid.tensor(np.ones((4, 4)), requires_grad=True)
    for transform in (fft.fftn, fft.rfft2, fft.dctn):
        with pytest.raises(ValueError, match=r"axes must be unique, got \[?\(0, "):
            transform(x, axes=(0, -2))
