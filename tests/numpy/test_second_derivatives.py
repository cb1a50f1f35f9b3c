"""Derivatives of derivatives: of ufuncs with a number on either side, and where a first derivative has a kink."""

import numpy
import pytest

import lucid.numpy as np
from lucid.numpy.autograd import grad, jacobian
from lucid.numpy.autograd.test_util import check_grads
from lucid.tensor.numpy_calls.ufuncs import UFUNCS
from tests.numpy.autograd.calls import equal, on_host

X = numpy.array([1.3, 0.7])
TWO = [name for name in UFUNCS if (getattr(numpy, name).nin, getattr(numpy, name).nout) == (2, 1)]


@pytest.mark.parametrize("number", [2.0, 0.5, 0.0, 3])
@pytest.mark.parametrize("name", TWO)
def test_a_number_is_an_operand_of_second_derivatives_too(name, number):
    """A number of Python's on either side is kept for the second derivative as it is, not as an array."""
    ufunc = getattr(np, name)
    for function in (lambda x: ufunc(x, number), lambda x: ufunc(number, x)):
        with numpy.errstate(all="ignore"):
            try:
                value = on_host(function(np.asarray(X)))
            except (TypeError, ValueError):
                # of integers, or of vectors
                continue
        if value.dtype.kind == "f" and numpy.isfinite(value).all():
            check_grads(function, modes=["rev"])(np.asarray(X))


def test_powers_of_zero_have_no_slope_of_any_order():
    """``0 ** y`` is 0 for all y > 0, of a number and in an array, where other bases have theirs."""
    equal(grad(grad(lambda y: np.power(0.0, y)))(0.5), 0)
    second = jacobian(grad(lambda y: np.sum(np.asarray([0.0, 2.0]) ** y)))(np.asarray([0.5, 0.5]))
    equal(second, numpy.diag([0, 2**0.5 * numpy.log(2) ** 2]))


def test_the_angle_of_the_origin_has_no_slope_of_any_order():
    """There it jumps; elsewhere in the array it has its second derivative."""
    f = lambda y: np.sum(np.arctan2(y, np.asarray([0.0, 1.0])))  # noqa: E731
    at = numpy.array([0.0, 0.5])
    equal(grad(f)(np.asarray(at)), [0, 0.8])
    equal(jacobian(grad(f))(np.asarray(at))[1], [0, -2 * 0.5 / 1.25**2])
    assert numpy.isfinite(on_host(jacobian(grad(f))(np.asarray(at)))).all()


@pytest.mark.parametrize("name", ["std", "nanstd"])
@pytest.mark.parametrize("x", [numpy.full(3, 2.0), numpy.full(3, 2.0 + 1j), numpy.array(1.0 - 1j)])
def test_the_deviation_of_equal_numbers_has_the_gradient_zero(name, x):
    """A root at 0: its gradient there is 0, of real and complex numbers."""
    equal(grad(getattr(np, name))(np.asarray(x)), numpy.zeros_like(x))


def test_integers_and_bools_are_made_of_recorded_arrays():
    """They carry no gradient; what would is refused, as it would lose it."""

    def f(x):
        assert numpy.int64(x).tolist() == [1, 0]
        assert numpy.asarray(x, dtype=bool).tolist() == [True, True]
        with pytest.raises(RuntimeError, match="detach"):
            numpy.float64(x)
        return np.sum(x * numpy.int64(x))

    equal(grad(f)(np.asarray(X)), [1, 0])


def test_matrices_of_diagonals():
    """`make_diagonal` is the other way of `diagonal`, with its gradient, and broadcasts."""
    x = numpy.arange(6.0).reshape(2, 3)
    made = np.make_diagonal(np.asarray(x), axis1=-1, axis2=-2)
    equal(np.diagonal(made, axis1=-1, axis2=-2), x)
    equal(np.make_diagonal(np.asarray(x[0]), 1), numpy.diag(x[0], 1))
    check_grads(lambda x: np.make_diagonal(x, axis1=-1, axis2=-2), modes=["rev"])(np.asarray(x))


@pytest.mark.parametrize("upper", [False, True])
def test_the_triangle_that_is_not_read_has_no_gradient(upper):
    """Of the functions that read one triangle of a Hermitian matrix, by differences and by zeros in the other."""
    rng = numpy.random.default_rng(0)
    a = rng.standard_normal((3, 3)) + 4 * numpy.diag([1.0, 2.0, 3.0])
    word = "U" if upper else "L"
    calls = [
        lambda a: np.linalg.eigvalsh(a, word),
        lambda a: np.abs(np.linalg.eigh(a, word)[1]),
        lambda a: np.linalg.cholesky(a, upper=upper),
    ]
    if not upper:
        calls += [lambda a: np.linalg.svd(a, hermitian=True)[1], lambda a: np.linalg.pinv(a, hermitian=True)]
    for call in calls:
        check_grads(call, modes=["rev"])(np.asarray(a))
        gradient = on_host(jacobian(call)(np.asarray(a)))
        equal(np.asarray((numpy.tril if upper else numpy.triu)(gradient, -1 if upper else 1)), 0 * gradient)
