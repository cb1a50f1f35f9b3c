"""`lucid.scipy.special`: values of SciPy's, and gradients of differences."""

from __future__ import annotations

import pytest

from tests.scipy.checks import by_name, check_all
from tests.scipy.other_rows import SPECIAL

ROWS = by_name(SPECIAL)
pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients(name, rng):
    """Of each call what SciPy gives, in its dtype, and the slope along a random direction of all its arrays."""
    check_all(ROWS[name], "special", rng)
