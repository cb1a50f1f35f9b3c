"""Primitives: derivatives from either side, by argument, of any order, and how they are refused."""

import re

import numpy as np
import pytest

import lucid.numpy as lnp
from lucid.errors import ArgumentError, NotDifferentiableError
from lucid.numpy.autograd import elementwise_grad, grad, jacobian, make_jvp, make_vjp
from lucid.numpy.autograd.extend import (
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
)
from lucid.numpy.autograd.test_util import check_grads
from tests.numpy.autograd.calls import equal, on_host

X, Y = np.array([0.5, 1.5]), np.array([2.0, -1.0])


def made():
    """Return a primitive of two arguments, which gets plain ones."""

    @primitive
    def power_of(x, y, times=1.0):
        on_host(x), on_host(y)
        return times * x**2 * y

    return power_of


def by_arguments(f):
    defvjp(
        f,
        lambda ans, x, y, times=1.0: lambda g: g * 2 * times * x * y,
        lambda ans, x, y, times=1.0: lambda g: g * times * x**2,
    )


def by_number(f):
    slopes = (lambda x, y: 2 * x * y, lambda x, y: x**2)
    defvjp_argnum(f, lambda argnum, ans, args, kwargs: lambda g: g * kwargs.get("times", 1.0) * slopes[argnum](*args))


def by_numbers(f):
    slopes = (lambda x, y: 2 * x * y, lambda x, y: x**2)
    defvjp_argnums(
        f,
        lambda argnums, ans, args, kwargs: lambda g: [g * kwargs.get("times", 1.0) * slopes[k](*args) for k in argnums],
    )


def from_the_right(f):
    defjvp(f, lambda g, ans, x, y, times=1.0: g * 2 * times * x * y, lambda g, ans, x, y, times=1.0: times * x**2 * g)


def from_the_right_by_number(f):
    slopes = (lambda x, y: 2 * x * y, lambda x, y: x**2)
    defjvp_argnum(f, lambda argnum, g, ans, args, kwargs: g * kwargs.get("times", 1.0) * slopes[argnum](*args))


def from_the_right_by_numbers(f):
    slopes = (lambda x, y: 2 * x * y, lambda x, y: x**2)
    defjvp_argnums(
        f,
        lambda argnums, gs, ans, args, kwargs: sum(
            g * kwargs.get("times", 1.0) * slopes[k](*args) for k, g in zip(argnums, gs)
        ),
    )


WAYS = [by_arguments, by_number, by_numbers, from_the_right, from_the_right_by_number, from_the_right_by_numbers]


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_are_those_given_of_every_order_and_side(way):
    """Gradients, Jacobians and products from both sides follow from any one way of saying it; keywords come along."""
    f = made()
    way(f)
    x, y = lnp.asarray(X), lnp.asarray(Y)
    total = lambda x, y: lnp.sum(f(x, y, times=3.0))
    equal(f(x, y), X**2 * Y)
    for found, expected in zip(grad(total, (0, 1))(x, y), (6 * X * Y, 3 * X**2), strict=True):
        equal(found, expected)
    equal(elementwise_grad(elementwise_grad(f))(x, y), 2 * Y)
    equal(jacobian(f, 1)(x, y), np.diag(X**2))
    equal(make_jvp(f, (0, 1))(x, y)((lnp.asarray(Y), lnp.asarray(X)))[1], 2 * X * Y * Y + X**2 * X)
    equal(grad(lambda x: lnp.sum(grad(total)(x, y) * y))(x), 6 * Y * Y)
    check_grads(f, (0, 1))(x, y)


def test_a_result_saved_for_the_derivative_is_differentiated():
    """A rule may use the result, which is on the graph where it is differentiated itself."""
    f = primitive(lambda x: lnp.exp(x))
    defvjp(f, lambda ans, x: lambda g: g * ans)
    equal(grad(grad(grad(f)))(0.5), np.exp(0.5))


def test_containers_are_arguments_and_results():
    """Trees of arrays go in and come out, and gradients have their form, in any order of keys."""

    @primitive
    def f(p, scale):
        return {"sum": p["a"] + p["b"][0], "double": (2 * p["a"] * scale,)}

    defvjp(f, lambda ans, p, scale: lambda g: {"b": [g["sum"]], "a": g["sum"] + 2 * scale * g["double"][0]}, None)
    given = {"a": lnp.asarray(X), "b": [lnp.asarray(Y)]}
    vjp, out = make_vjp(f)(given, 3.0)
    equal(out["double"][0], 6 * X)
    found = vjp({"sum": lnp.asarray(Y), "double": (lnp.asarray(X),)})
    equal(found["a"], Y + 6 * X)
    equal(found["b"][0], Y)
    equal(grad(lambda s: lnp.sum(f(given, s)["sum"]))(3.0), 0)


def test_complex_rules_follow_the_convention_of_the_package():
    """A rule of a holomorphic function multiplies by its derivative, and nothing is conjugated."""
    f = primitive(lambda z: z**2)
    defvjp(f, lambda ans, z: lambda g: g * 2 * z)
    z, g = 0.3 + 0.4j, 1.0 - 2.0j
    equal(make_vjp(f)(z)[0](g), 2 * z * g)
    equal(make_jvp(f)(z)(g)[1], 2 * z * g)
    equal(grad(lambda z: lnp.abs(f(z)) ** 2)(z), 4 * abs(z) ** 2 * np.conj(z))


def test_a_linear_function_is_its_own_derivative():
    """It is called with what goes along, also where it is linear in one argument alone."""
    f, g = (primitive(lambda x, y: lnp.sum(x * y**2)) for _ in range(2))
    defjvp(f, "same", lambda g, ans, x, y: lnp.sum(2 * x * y * g))
    for found, expected in zip(grad(f, (0, 1))(lnp.asarray(X), lnp.asarray(Y)), (Y**2, 2 * X * Y), strict=True):
        equal(found, expected)
    defjvp(g, "same", None)
    for found, expected in zip(grad(g, (0, 1))(lnp.asarray(X), lnp.asarray(Y)), (Y**2, 0 * X), strict=True):
        equal(found, expected)
    h = primitive(lambda x, y: lnp.sum(x * y))
    def_linear(h)
    for found, expected in zip(grad(h, (0, 1))(lnp.asarray(X), lnp.asarray(Y)), (Y, X), strict=True):
        equal(found, expected)


def test_broken_derivatives_are_found():
    """A check names the function, or the derivative, that is wrong."""
    f, g = primitive(lambda x: 2.0 * x), primitive(lambda x: x)
    f.__name__ = "twice"
    defvjp(f, lambda ans, x: lambda u: 2.001 * u)
    with pytest.raises(AssertionError, match=re.escape("(VJP) check of twice failed")):
        check_grads(f, modes=["rev"])(1.0)
    defvjp(f, lambda ans, x: lambda u: 2 * g(u))
    defvjp(g, lambda ans, x: lambda u: 1.001 * u)
    with pytest.raises(AssertionError, match=re.escape("(VJP) check of vjp_twice failed")):
        check_grads(f, modes=["rev"])(1.0)
    with pytest.raises(AssertionError, match="Value mismatch"):
        check_grads(f, modes=["fwd"])(1.0)


def test_what_is_not_defined_is_said():
    """A derivative that was not given raises when it is asked for; values need none."""
    f = primitive(lambda x, y: x * y)
    equal(f(2.0, 3.0), 6.0)
    with pytest.raises(NotDifferentiableError, match=re.escape("wrt argnums (1,) not defined: give it one by defvjp")):
        grad(f, 1)(2.0, 3.0)
    defvjp(f, lambda ans, x, y: lambda g: g * y)
    equal(grad(f)(2.0, 3.0), 3.0)
    with pytest.raises(NotImplementedError, match="VJP of <lambda> wrt argnum 1 not defined"):
        grad(f, 1)(2.0, 3.0)
    defvjp(f, lambda ans, x, y: lambda g: g * x, argnums=[1])
    equal(grad(f, 1)(2.0, 3.0), 2.0)
    with pytest.raises(ArgumentError, match="expected a function that primitive"):
        defvjp(lnp.sin, None)
    with pytest.raises(ArgumentError, match="Bad VJP 'same'"):
        defvjp(f, "same")
