"""`lucid.scipy.special`: values of SciPy's, and gradients of differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special as theirs

import lucid
from lucid.scipy import special
from tests.scipy.checks import by_name, check_all, values
from tests.scipy.other_rows import SPECIAL

ROWS = by_name(SPECIAL)
pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients(name, rng):
    """Of each call what SciPy gives, in its dtype, and the slope along a random direction of all its arrays."""
    check_all(ROWS[name], "special", rng)


def test_sums_of_what_is_infinite():
    """Of exponentials none of which, or not all, are finite: SciPy's sums, and the shares as slopes."""
    x = np.array([[-np.inf, -np.inf, -np.inf], [0.5, -np.inf, 1.5], [np.inf, 0.0, 1.0], [-np.inf, np.inf, np.inf]])
    leaf = lucid.tensor(x, requires_grad=True)
    for settings in ({"axis": 1}, {"axis": 1, "b": [1.0, 0.0, 2.0]}, {"axis": (0, 1)}):
        result, expected = special.logsumexp(leaf, **settings), theirs.logsumexp(x, **settings)
        np.testing.assert_allclose(values(result), expected, rtol=1e-12)
    (gradient,) = lucid.autograd.grad(special.logsumexp(leaf, axis=1)[1], leaf)
    np.testing.assert_allclose(values(gradient)[1], theirs.softmax(x[1]), atol=1e-12)
