"""`lucid.scipy.linalg`: values of SciPy's, and gradients of differences."""

from __future__ import annotations

import pytest

from tests.scipy.checks import by_name, check_all
from tests.scipy.other_rows import LINALG

ROWS = by_name(LINALG)
pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients(name, rng):
    """Of each call what SciPy gives, in its dtype, and the slope along a random direction of all its arrays."""
    check_all(ROWS[name], "linalg", rng)
