"""Fixed points: their derivatives, of every order, by the equation and not by the steps."""

import numpy as np
import pytest

import lucid.numpy as lnp
from lucid.errors import NotDifferentiableError
from lucid.numpy.autograd import grad, jacobian, make_vjp
from lucid.numpy.autograd.misc.fixed_points import fixed_point
from tests.numpy.autograd.calls import equal, on_host


def distance(x, y):
    return lnp.max(lnp.abs(x - y))


def test_a_root_has_the_derivatives_of_the_root():
    """By one parameter, from any start, of the first and second order."""
    newton = lambda a: lambda x: 0.5 * (x + a / x)
    root = lambda a: fixed_point(newton, a, 1.0, distance, 1e-13)
    equal(root(2.0), np.sqrt(2))
    equal(grad(root)(2.0), 0.5 / np.sqrt(2))
    equal(grad(grad(root))(2.0), -0.25 * 2**-1.5, rtol=1e-8)


def test_parameters_and_points_may_be_arrays_in_containers(rng):
    """The solution of ``x = m x + b`` has the derivatives of that of equations."""
    m, b = 0.2 * rng.standard_normal((3, 3)), rng.standard_normal(3)
    solution = lambda p: fixed_point(lambda p: lambda x: p[0] @ x + p[1], p, lnp.zeros(3), distance, 1e-14)
    given = lnp.asarray(m), lnp.asarray(b)
    expected = np.linalg.solve(np.eye(3) - m, b)
    equal(solution(given), expected)
    inverse = np.linalg.inv(np.eye(3) - m)
    by_m, by_b = jacobian(solution)(given)
    equal(by_b, inverse, rtol=1e-8)
    np.testing.assert_allclose(on_host(by_m), inverse[:, :, None] * expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_derivatives_of_any_size(scale):
    """`tol` is meant for the points: neither small points nor small gradients end the iteration early or never."""

    def point(a, size=1.0):
        step = lambda a: lambda x: size * lnp.cos(a * x / size)
        return fixed_point(step, a, size, distance, 1e-13 * size)

    y = float(on_host(point(0.9)))
    slope = lambda a, y: -y * np.sin(a * y) / (1 + a * np.sin(a * y))
    equal(grad(lambda a: scale * point(a))(0.9) / scale, slope(0.9, y))
    equal(grad(lambda a: point(a, scale))(0.9) / scale, slope(0.9, y))
    above, below = (slope(a, float(on_host(point(a)))) for a in (0.9 + 1e-4, 0.9 - 1e-4))
    equal(grad(grad(lambda a: scale * point(a)))(0.9) / scale, (above - below) / 2e-4, rtol=1e-6)
    # the fixed point is zero
    equal(grad(lambda a: scale * fixed_point(lambda a: lambda x: x / 2 + a, a, 0.0, distance, 1e-12))(0.0), 2 * scale)


def test_a_parameter_from_outside_is_refused():
    """It would be taken for a constant; among the parameters it has its gradient, of 2 b**2 here."""
    step = lambda a, b: lambda x: 0.5 * x + a * b
    outside = lambda b: fixed_point(lambda a: step(a, b), b, 0.0, distance, 1e-13)
    equal(outside(2.0), 8.0)
    with pytest.raises(NotDifferentiableError, match="fixed_point: the result depends on a tensor that requires grad"):
        grad(outside)(2.0)
    equal(grad(lambda b: fixed_point(lambda p: step(*p), (b, b), 0.0, distance, 1e-13))(2.0), 8.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("other", [np.inf, np.nan])
def test_gradients_that_are_not_finite_stay_with_their_elements(other):
    """Of points that do not depend on each other, each has the gradient by its own parameter."""
    newton = lambda a: lambda x: 0.5 * (x + a / x)
    pullback, _ = make_vjp(lambda a: fixed_point(newton, a, lnp.ones(2), distance, 1e-13))(lnp.array([2.0, 9.0]))
    made = on_host(pullback(lnp.array([other, 1.0])))
    assert not np.isfinite(made[0])
    assert made[1] == pytest.approx(1 / 6)
