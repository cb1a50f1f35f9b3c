"""Memory of what goes in and comes out: derivatives have their own, and changes of the rest are noticed."""

import numpy as np
import pytest

import lucid.numpy as lnp
import lucid.numpy.autograd as ag
from lucid.errors import InplaceError
from tests.numpy.autograd.calls import equal, on_host

DERIVATIVES = {
    "sum": lambda x, y: ag.grad(lambda x, y: lnp.sum(x + y), (0, 1))(x, y),
    "of a dictionary": lambda x, y: ag.grad(lambda p: lnp.sum(p["x"] + p["y"]))({"x": x, "y": y}).values(),
    "transposed": lambda x, y: ag.grad(lambda x, y: lnp.mean(x.T + y.T), (0, 1))(x, y),
    "value_and_grad": lambda x, y: ag.value_and_grad(lambda x, y: lnp.sum(x + y), (0, 1))(x, y)[1],
    "grad_and_aux": lambda x, y: ag.grad_and_aux(lambda x, y: (lnp.sum(x + y), 0), (0, 1))(x, y)[0],
    "elementwise": lambda x, y: ag.elementwise_grad(lambda x, y: x + y, (0, 1))(x, y),
    "vjp": lambda x, y: ag.make_vjp(lambda x, y: x + y, (0, 1))(x, y)[0](lnp.ones((2, 3))),
    "jvp": lambda x, y: [ag.make_jvp(lambda x: x)(x)(lnp.ones((2, 3)))[1], ag.grad(lnp.sum)(y)],
    "reverse jvp": lambda x, y: [ag.make_jvp_reversemode(lambda x: (x, x))(x)(lnp.ones((2, 3)))[k] for k in (0, 1)],
    "parts": lambda x, y: ag.grad(lambda p: lnp.sum(lnp.concatenate(p)))([x, y]),
    "zeros": lambda x, y: ag.grad(lambda x, y: 1.0, (0, 1))(x, y),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_have_memory_of_their_own(name, rng):
    """Each may be written into, which changes no other."""
    x, y = (lnp.asarray(rng.standard_normal((2, 3))) for _ in range(2))
    one, other = DERIVATIVES[name](x, y)
    before = on_host(other).copy()
    one += 1
    equal(one, before + 1)
    equal(other, before)
    other *= 3
    equal(one, before + 1)


@pytest.mark.parametrize("make", [ag.make_vjp, ag.make_jvp_reversemode])
def test_a_product_is_no_vector(make):
    """The product of the identity's derivative with a vector is a copy of that."""
    x, g = lnp.ones(3), lnp.ones(3)
    made = make(lambda x: x)(x)
    product = made[0](g) if make is ag.make_vjp else made(g)
    product *= 5
    equal(g, np.ones(3))


HELD = {
    "make_vjp": (lambda x: ag.make_vjp(lambda x: x**2)(x)[0], [2.0, 4.0]),
    "make_hvp": (lambda x: ag.make_hvp(lambda x: lnp.sum(x**3))(x)[0], [6.0, 12.0]),
    "make_ggnvp": (lambda x: ag.make_ggnvp(lambda x: x**2)(x), [4.0, 16.0]),
}


@pytest.mark.cpu("arrays on a device are not looked at, which would wait for it")
@pytest.mark.parametrize("name", HELD)
def test_a_changed_argument_is_noticed(name):
    """A product that needs what the argument held is refused once that was changed in place."""
    made, product = HELD[name]
    x = np.array([1.0, 2.0])
    multiply = made(x)
    equal(multiply(np.ones(2)), product)
    x -= 0.5
    with pytest.raises(InplaceError, match="changed in place"):
        multiply(np.ones(2))


def test_a_result_may_be_changed():
    """Later products need the result, or the gradient, which is handed out as a copy; jvp's factors are made before."""
    x = lnp.asarray([1.0, 2.0])
    vjp, y = ag.make_vjp(lnp.exp)(x)
    y *= 0
    equal(vjp(lnp.ones(2)), np.exp([1.0, 2.0]))
    hvp, gradient = ag.make_hvp(lambda x: lnp.sum(lnp.exp(x)))(x)
    gradient *= 0
    equal(hvp(lnp.ones(2)), np.exp([1.0, 2.0]))
    given = lnp.asarray([1.0, 2.0])
    jvp = ag.make_jvp_reversemode(lambda x: x**2)(given)
    given *= 0
    equal(jvp(lnp.ones(2)), [2.0, 4.0])
    _, same = ag.make_vjp(lambda x: x)(x)
    same *= 0
    equal(x, [1.0, 2.0])
