"""Primitives: derivatives from either side, by argument, of any order, and how they are refused."""

import re

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp
from lucid.errors import ArgumentError, InplaceError, NotDifferentiableError
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


def test_what_would_lose_its_gradient_is_refused():
    """A result that depends on a recorded keyword, or variable, is refused where it would be taken for a constant."""
    w = lucid.tensor(2.0, requires_grad=True, dtype=lucid.float64)
    f, g = primitive(lambda x, scale=1.0: np.multiply(x, scale)), primitive(lambda x: {"y": x * w})
    defvjp(f, lambda ans, x, scale=1.0: lambda g: g * scale)
    defvjp(g, lambda ans, x: lambda g: g["y"] * w)
    for call in (lambda t: f(t, scale=t), lambda t: f(t, scale=w), lambda t: g(t)["y"]):
        with pytest.raises(NotDifferentiableError, match="requires grad and is no positional argument"):
            grad(call)(3.0)
    equal(grad(lambda t: f(t, scale=w.detach()))(3.0), 2.0)
    # through the function, as no argument is recorded
    f(3.0, scale=w).backward()
    g(4.0)["y"].backward()
    assert w.grad.item() == 7.0


def test_keywords_are_plain_inside():
    """A function gets plain arrays and numbers by keyword too, recorded or not; so does its derivative."""
    seen = []
    f = primitive(lambda x, s=None: seen.extend([s["a"][0], s["b"]]) or x * s["b"])
    defvjp(f, lambda ans, x, s=None: lambda g: seen.extend([s["a"][0], s["b"]]) or g * s["b"])
    keyword = {"a": [lucid.tensor(Y)], "b": lucid.tensor(2.0)}
    assert f(3.0, s=keyword) == f(lucid.tensor(3.0, requires_grad=True), s=keyword).item() == 6.0
    equal(grad(lambda x: f(x, s=keyword))(3.0), 2.0)
    assert not any(isinstance(value, lucid.Tensor) for value in seen)


def test_a_result_has_memory_of_its_own():
    """What is written into a result changes no argument, also where the function returns a part of it."""
    f = primitive(lambda x, c: (x[::2], c.T, x + 1))
    defvjp(f, lambda ans, x, c: lambda g: g[2], None)
    x, c = lucid.tensor(np.arange(3.0), requires_grad=True), lnp.ones((2, 3))
    z = (x**2).sum()
    for part in f(x, c):
        part *= 10
    z.backward()
    np.testing.assert_array_equal(x.grad.cpu().numpy(), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(x.detach().cpu().numpy(), np.arange(3.0))
    equal(c, np.ones((2, 3)))


@pytest.mark.cpu("arrays on a device are not looked at, which would wait for it")
def test_arrays_that_are_changed_before_backward_are_noticed():
    """A plain argument, on its own, in a container or as a keyword, holds what the derivative needs."""
    f = primitive(lambda x, c, more=None: x * c[0] * more)
    defvjp(f, lambda ans, x, c, more=None: lambda g: g * c[0] * more, None)
    for which in (0, 1, 2):
        x, c, more = lucid.tensor(X, requires_grad=True), [np.array(X), np.array(X)], np.array(Y)
        y = f(x, c, more=more).sum()
        changed = [*c, more][which]
        changed *= 0
        with pytest.raises(InplaceError, match="one of the arrays that it was called with has been modified"):
            y.backward()


def test_results_of_several_parts_are_joined():
    """Derivatives along vectors of several arguments are added part by part, and one that is zero has all parts."""
    f, g = (primitive(lambda x, y: (x * y, [lnp.sum(y)])) for _ in range(2))
    defjvp(f, lambda g, ans, x, y: (y * g, [0.0 * ans[1][0]]), lambda g, ans, x, y: (x * g, [lnp.sum(g)]))
    defjvp(g, None, lambda g, ans, x, y: (x * g, [lnp.sum(g)]))
    x, y = lnp.asarray(X), lnp.asarray(Y)

    def total(f):
        return lambda x, y: lnp.sum(3 * f(x, y)[0]) + f(x, y)[1][0]

    for found, expected in zip(grad(total(f), (0, 1))(x, y), (3 * Y, 3 * X + 1), strict=True):
        equal(found, expected)
    for found, expected in zip(grad(total(g), (0, 1))(x, y), (0 * Y, 3 * X + 1), strict=True):
        equal(found, expected)


def test_a_primitive_is_a_method_of_its_class():
    """It gets the object first, and its derivatives are by the positions behind it."""

    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        @primitive
        def __call__(self, x):
            return self.factor * x

    defvjp(Scaled.__call__, None, lambda ans, self, x: lambda g: self.factor * g)
    equal(Scaled(3.0)(2.0), 6.0)
    equal(grad(Scaled(3.0))(2.0), 3.0)
    assert Scaled.__call__.__name__ == "__call__"


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
