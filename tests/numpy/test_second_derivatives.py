"""Derivatives of derivatives: of ufuncs with a number on either side, and where a first derivative has a kink."""

import numpy as np
import pytest

import lucid.numpy as lnp
from lucid.numpy.autograd import grad, jacobian
from lucid.numpy.autograd.test_util import check_grads
from lucid.tensor.numpy_calls.ufuncs import UFUNCS
from tests.numpy.autograd.calls import equal, on_host

X = np.array([1.3, 0.7])
TWO = [name for name in UFUNCS if (getattr(np, name).nin, getattr(np, name).nout) == (2, 1)]


@pytest.mark.parametrize("number", [2.0, 0.5, 0.0, 3])
@pytest.mark.parametrize("name", TWO)
def test_a_number_is_an_operand_of_second_derivatives_too(name, number):
    """A number of Python's on either side is kept for the second derivative as it is, not as an array."""
    ufunc = getattr(lnp, name)
    for function in (lambda x: ufunc(x, number), lambda x: ufunc(number, x)):
        with np.errstate(all="ignore"):
            try:
                value = on_host(function(lnp.asarray(X)))
            except (TypeError, ValueError, AttributeError):
                # of integers, of vectors, or not one of CuPy's
                continue
        if value.dtype.kind == "f" and np.isfinite(value).all():
            check_grads(function, modes=["rev"])(lnp.asarray(X))


def test_powers_of_zero_have_no_slope_of_any_order():
    """``0 ** y`` is 0 for all y > 0, of a number and in an array, where other bases have theirs."""
    equal(grad(grad(lambda y: lnp.power(0.0, y)))(0.5), 0)
    second = jacobian(grad(lambda y: lnp.sum(lnp.asarray([0.0, 2.0]) ** y)))(lnp.asarray([0.5, 0.5]))
    equal(second, np.diag([0, 2**0.5 * np.log(2) ** 2]))


def test_the_angle_of_the_origin_has_no_slope_of_any_order():
    """There it jumps; elsewhere in the array it has its second derivative."""
    f = lambda y: lnp.sum(lnp.arctan2(y, lnp.asarray([0.0, 1.0])))
    at = np.array([0.0, 0.5])
    equal(grad(f)(lnp.asarray(at)), [0, 0.8])
    equal(jacobian(grad(f))(lnp.asarray(at))[1], [0, -2 * 0.5 / 1.25**2])
    assert np.isfinite(on_host(jacobian(grad(f))(lnp.asarray(at)))).all()


@pytest.mark.parametrize("name", ["std", "nanstd"])
@pytest.mark.parametrize("x", [np.full(3, 2.0), np.full(3, 2.0 + 1j), np.array(1.0 - 1j)])
def test_the_deviation_of_equal_numbers_has_the_gradient_zero(name, x):
    """A root at 0: its gradient there is 0, of real and complex numbers."""
    equal(grad(getattr(lnp, name))(lnp.asarray(x)), np.zeros_like(x))


@pytest.mark.cpu("NumPy takes arrays on the CPU alone")
def test_integers_and_bools_are_made_of_recorded_arrays():
    """They carry no gradient; what would is refused, as it would lose it."""

    def f(x):
        assert np.int64(x).tolist() == [1, 0]
        assert np.asarray(x, dtype=bool).tolist() == [True, True]
        with pytest.raises(RuntimeError, match="detach"):
            np.float64(x)
        return lnp.sum(x * np.int64(x))

    equal(grad(f)(lnp.asarray(X)), [1, 0])


def test_matrices_of_diagonals():
    """`make_diagonal` is the other way of `diagonal`, with its gradient, and broadcasts."""
    x = np.arange(6.0).reshape(2, 3)
    made = lnp.make_diagonal(lnp.asarray(x), axis1=-1, axis2=-2)
    equal(lnp.diagonal(made, axis1=-1, axis2=-2), x)
    equal(lnp.make_diagonal(lnp.asarray(x[0]), 1), np.diag(x[0], 1))
    check_grads(lambda x: lnp.make_diagonal(x, axis1=-1, axis2=-2), modes=["rev"])(lnp.asarray(x))


@pytest.mark.parametrize("upper", [False, True])
def test_the_triangle_that_is_not_read_has_no_gradient(upper):
    """Of the functions that read one triangle of a Hermitian matrix, by differences and by zeros in the other."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 3)) + 4 * np.diag([1.0, 2.0, 3.0])
    word = "U" if upper else "L"
    calls = [
        lambda a: lnp.linalg.eigvalsh(a, word),
        lambda a: lnp.abs(lnp.linalg.eigh(a, word)[1]),
        lambda a: lnp.linalg.cholesky(a, upper=upper),
    ]
    if not upper:
        calls += [lambda a: lnp.linalg.svd(a, hermitian=True)[1], lambda a: lnp.linalg.pinv(a, hermitian=True)]
    for call in calls:
        check_grads(call, modes=["rev"])(lnp.asarray(a))
        gradient = on_host(jacobian(call)(lnp.asarray(a)))
        equal(lnp.asarray((np.tril if upper else np.triu)(gradient, -1 if upper else 1)), 0 * gradient)
