"""`lucid.scipy.integrate`: what its rows do not say."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.errors import GraphError
from lucid.scipy import integrate
from lucid.scipy.rules import solvers
from lucid.tensor.numpy_calls.operands import NumpyCallError

pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")


def test_solve_ivp_says_what_to_do():
    """It takes no Tensor that requires grad, and says how its gradient is had."""
    x = lucid.tensor(np.ones(2), requires_grad=True)
    with pytest.raises(NumpyCallError, match=r"scipy.integrate.solve_ivp .* use odeint, .* of fixed size in a loop"):
        integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), x)


def falling(y, t, k):
    """Return the slope of what falls to a cosine, the faster the larger `k`."""
    return -k * (y - np.cos(t))


def test_gradients_of_what_is_stiff():
    """Backwards in time the equation grows by e^30: gradients are those of the solution that is known."""
    y0, k = lucid.tensor(np.array([2.0]), requires_grad=True), lucid.tensor(30.0, requires_grad=True)
    lnp.sum(integrate.odeint(falling, y0, [0.0, 0.1, 1.0], (k,), rtol=1e-9, atol=1e-9)[1:]).backward()

    def solution(start, k, t):
        forced = (k * k * np.cos(t) + k * np.sin(t)) / (k * k + 1)
        return forced + (start - k * k / (k * k + 1)) * np.exp(-k * t)

    def total(start, k):
        return solution(start, k, 0.1) + solution(start, k, 1.0)

    np.testing.assert_allclose(y0.grad.item(), np.exp(-3.0) + np.exp(-30.0), rtol=1e-6)
    step = 1e-3
    expected = (total(2.0, 30 + step) - total(2.0, 30 - step)) / (2 * step)
    np.testing.assert_allclose(k.grad.item(), expected, rtol=1e-5)


def test_what_is_too_stiff_is_refused(monkeypatch):
    """Where the way back is lost however short it is, backward says so, and gives no gradient."""
    monkeypatch.setattr(solvers, "HALVINGS", 1)
    x = lucid.tensor(np.ones(1), requires_grad=True)
    y = integrate.odeint(falling, x, [0.0, 1.0], (1e3,))
    with pytest.raises(GraphError, match=r"between the times .* too stiff there for the tolerances rtol and atol"):
        lnp.sum(y).backward()


def test_what_odeint_does_not_follow():
    """What would get no gradient, or is not taken, is refused by name, before backward."""
    x, k = (lucid.tensor(np.ones(2), requires_grad=True) for _ in range(2))
    with pytest.raises(NumpyCallError, match="depends on a tensor that requires grad and is not among its arguments"):
        integrate.odeint(lambda y, t: -k * y, x, [0.0, 1.0])
    with pytest.raises(NumpyCallError, match=r"args: expected a tuple, got .*: give \(args,\)"):
        integrate.odeint(lambda y, t, k: -k * y, x, [0.0, 1.0], k)
    with pytest.raises(NumpyCallError, match="expected real numbers, got complex128"):
        integrate.odeint(
            lambda y, t, c: -y, x, [0.0, 1.0], (lucid.tensor(1j, requires_grad=True).to(lucid.complex128),)
        )
    with pytest.raises(NumpyCallError, match="got tcrit"):
        integrate.odeint(lambda y, t: -y, x, [0.0, 1.0], tcrit=[0.5])
    with pytest.raises(ValueError, match="must be one-dimensional"):
        integrate.odeint(lambda y, t: -y, x * np.ones((2, 1)), [0.0, 1.0])


def test_a_solution_that_is_not_finite():
    """What is NaN has a gradient that is NaN."""
    x = lucid.tensor(np.ones(1), requires_grad=True)
    y = integrate.odeint(lambda y, t: y * np.nan, x, [0.0, 1.0])
    lnp.sum(y[1]).backward()
    assert np.isnan(x.grad.item())


def test_arguments_in_dictionaries():
    """A number that requires grad is seen in a dictionary among `args`, where nothing else requires grad."""
    k = lucid.tensor(0.3, dtype=lucid.float64, requires_grad=True)
    result = integrate.odeint(lambda y, t, d: -d["k"] * y, [1.0], [0.0, 1.0], args=({"k": k},), rtol=1e-10, atol=1e-10)
    (gradient,) = lucid.autograd.grad(result[1, 0], k)
    np.testing.assert_allclose([result[1, 0].item(), gradient.item()], [np.exp(-0.3), -np.exp(-0.3)], rtol=1e-8)


@pytest.mark.parametrize("limits", [(0.0, np.inf), (-np.inf, 0.0)])
def test_infinite_limits(limits):
    """`fixed_quad` refuses them as SciPy does, whichever of them is recorded."""
    for recorded in (0, 1):
        a, b = (lucid.tensor(x, requires_grad=True) if k == recorded else x for k, x in enumerate(limits))
        with pytest.raises(ValueError, match=r"fixed_quad: expected finite limits"):
            integrate.fixed_quad(lnp.exp, a, b)
