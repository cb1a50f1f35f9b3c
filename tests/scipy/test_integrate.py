"""`lucid.scipy.integrate`: values of SciPy's, and gradients of differences."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.scipy import integrate
from lucid.tensor.numpy_calls.definition import NumpyCallError
from tests.scipy.checks import by_name, check_all
from tests.scipy.other_rows import INTEGRATE

ROWS = by_name(INTEGRATE)
pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients(name, rng):
    """Of each call what SciPy gives, in its dtype, and the slope along a random direction of all its arrays."""
    check_all(ROWS[name], "integrate", rng)


def test_solvers_say_what_to_do():
    """Solvers of differential equations take no Tensor that requires grad, and say how its gradient is had."""
    x = lucid.tensor(np.ones(2), requires_grad=True)
    with pytest.raises(NumpyCallError, match=r"scipy.integrate.odeint .* steps of fixed size in a loop of lucid.numpy"):
        integrate.odeint(lambda y, t, k: -k * y, np.ones(2), [0.0, 1.0], (x,))
    with pytest.raises(NumpyCallError, match=r"scipy.integrate.solve_ivp .* steps of fixed size in a loop of lucid"):
        integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), x)
