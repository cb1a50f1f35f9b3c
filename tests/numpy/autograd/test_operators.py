"""Each operator: its value, what it is made of inside and outside, and how it refuses."""

import re
import warnings

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.numpy import autograd as ag
from tests.numpy.autograd.calls import (
    cubes,
    equal,
    gradient_of_product,
    hessian_of_product,
    jacobian_of_cubes,
    on_host,
    product,
)

X = np.array([0.5, -1.5, 0.75])
V = np.array([1.0, -2.0, 0.5])
J, G, H = jacobian_of_cubes(X), gradient_of_product(X), hessian_of_product(X)
E = np.exp(X)
ROWS = {
    "grad": (lambda x, v: ag.grad(product)(x), G),
    "value_and_grad": (lambda x, v: ag.value_and_grad(product)(x)[1], G),
    "grad_and_aux": (lambda x, v: ag.grad_and_aux(lambda x: (product(x), x))(x)[0], G),
    "grad_named": (lambda x, v: ag.grad_named(lambda a, b: product(b) * a, "b")(2.0, x), 2 * G),
    "multigrad_dict": (lambda x, v: ag.multigrad_dict(lambda a, b=3.0: product(a) * b)(x)["a"], 3 * G),
    "elementwise_grad": (lambda x, v: ag.elementwise_grad(lnp.exp)(x), E),
    "egrad": (lambda x, v: ag.egrad(ag.egrad(lnp.exp))(x), E),
    "deriv": (lambda x, v: ag.deriv(lambda x: x**3)(x), 3 * X**2),
    "jacobian": (lambda x, v: ag.jacobian(cubes)(x), J),
    "hessian": (lambda x, v: ag.hessian(product)(x), H),
    "make_vjp": (lambda x, v: ag.make_vjp(cubes)(x)[0](v), V @ J),
    "make_jvp": (lambda x, v: ag.make_jvp(cubes)(x)(v)[1], J @ V),
    "make_jvp_reversemode": (lambda x, v: ag.make_jvp_reversemode(cubes)(x)(v), J @ V),
    "make_hvp": (lambda x, v: ag.make_hvp(product)(x)[0](v), H @ V),
    "hessian_vector_product": (lambda x, v: ag.hessian_vector_product(product)(x, v), H @ V),
    "hessian_tensor_product": (
        lambda x, v: ag.hessian_tensor_product(lambda a, x: product(x) * a, 1)(2.0, x, v), 2 * H @ V,
    ),
    "tensor_jacobian_product": (lambda x, v: ag.tensor_jacobian_product(cubes)(x, v), V @ J),
    "vector_jacobian_product": (lambda x, v: ag.vector_jacobian_product(cubes)(x, v), V @ J),
    "make_ggnvp": (lambda x, v: ag.make_ggnvp(cubes)(x)(v), J.T @ J @ V),
    "make_ggnvp of another": (
        lambda x, v: ag.make_ggnvp(cubes, lambda y: lnp.sum(y**4))(x)(v), J.T @ (12 * on_host(cubes(X)) ** 2 * (J @ V)),
    ),
    "checkpoint": (lambda x, v: ag.grad(ag.checkpoint(product))(x), G),
}  # fmt: skip


def test_names_of_a_method():
    """The parameters of a bound method are those that a call gives."""

    class Loss:
        def of(self, a, b, *, c=2.0):
            return a * b**c

    equal(ag.grad_named(Loss().of, "a")(3.0, 4.0), 16.0)
    equal(ag.grad_named(Loss().of, "b")(3.0, 4.0), 24.0)
    with pytest.raises(ValueError, match="not in list"):
        ag.grad_named(Loss().of, "c")


def test_defaults_are_arguments_by_name():
    """The gradients by name have those of parameters that were left to their defaults."""
    slopes_of = ag.multigrad_dict(lambda a, b=3.0, *, c=2.0: a * b * c)
    for given, expected in [
        (((5.0,), {}), {"a": 6.0, "b": 10.0, "c": 15.0}),
        (((5.0, 7.0), {}), {"a": 14.0, "b": 10.0, "c": 35.0}),
        (((5.0,), {"c": 4.0}), {"a": 12.0, "b": 20.0, "c": 15.0}),
    ]:
        slopes = slopes_of(*given[0], **given[1])
        assert {name: float(slope) for name, slope in slopes.items()} == expected


def test_every_operator_has_a_row():
    """What the package exports is proved here, but for Python's own names and `primitive`."""
    others = {"dict", "isinstance", "list", "tuple", "type", "primitive", "holomorphic_grad"}
    assert {*ag.__all__} - others == {row.partition(" ")[0] for row in ROWS}


@pytest.mark.parametrize("name", ROWS)
def test_values_are_plain_outside(name):
    """An operator gives plain arrays of the known values."""
    call, expected = ROWS[name]
    equal(call(lnp.asarray(X), lnp.asarray(V)), expected)


@pytest.mark.parametrize("name", ROWS)
def test_results_are_recorded_inside_of_another_and_differentiated(name):
    """Inside of a function that is differentiated it gives a recorded array, with the right gradient."""
    call, _ = ROWS[name]
    weight = np.random.default_rng(0).standard_normal(np.shape(ROWS[name][1]))

    def outer(x):
        result = call(x, lnp.asarray(V))
        assert type(result) is lnp.ndarray
        return lnp.sum(result * lnp.asarray(weight))

    gradient = on_host(ag.grad(outer)(lnp.asarray(X)))

    def at(x):
        return np.sum(on_host(call(lnp.asarray(x), lnp.asarray(V))) * weight)

    slope = [(at(X + 1e-6 * unit) - at(X - 1e-6 * unit)) / 2e-6 for unit in np.eye(3)]
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-7)


def test_numbers_are_differentiated_as_numbers_of_double_precision():
    """Python's floats come to float64, and derivatives of any order are taken."""
    f = lambda x: lnp.sin(x) * x
    first, second = ag.grad(f), ag.grad(ag.grad(f))
    x = 1.3
    assert on_host(first(x)).dtype == np.float64
    equal(first(x), np.cos(x) * x + np.sin(x))
    equal(second(x), 2 * np.cos(x) - np.sin(x) * x)
    equal(ag.grad(second)(x), -3 * np.sin(x) - np.cos(x) * x)
    single = ag.grad(lambda x: lnp.sum(x**2))(lnp.asarray(X.astype(np.float32)))
    assert on_host(single).dtype == np.float32


def test_what_a_function_sees_beside_its_argument_belongs_to_the_outer_one():
    """The gradient of a function that is taken inside of another knows which of the two a value is of."""
    f = lambda x: x * ag.grad(lambda y: x * y**2)(3.0)
    equal(ag.grad(f)(2.0), 24.0)


def test_containers_are_arguments_and_gradients():
    """Tuples, lists and dictionaries come in as they are, and gradients have their form; what is unused has zeros."""
    given = {"w": (lnp.asarray(X), 2.0), "b": [lnp.asarray(V)], "rest": lnp.asarray(X)}

    def f(p):
        assert type(p) is dict
        assert type(p["w"]) is tuple
        assert type(p["b"]) is list
        return lnp.sum(p["w"][0] * p["b"][0]) * p["w"][1]

    found = ag.grad(f)(given)
    equal(found["w"][0], 2 * V)
    equal(found["w"][1], X @ V)
    equal(found["b"][0], 2 * X)
    equal(found["rest"], 0 * X)
    both = ag.grad(lambda a, b, c=1.0: lnp.sum(a * b) * c, (1, 0))(lnp.asarray(X), lnp.asarray(V), c=2.0)
    assert type(both) is tuple
    equal(both[0], 2 * X)
    equal(both[1], 2 * V)
    assert len(ag.grad(lambda a, b: lnp.sum(a * b), [1])(lnp.asarray(X), lnp.asarray(V))) == 1


def test_results_may_be_nested():
    """A vjp takes what has the form of a nested result."""
    vjp, y = ag.make_vjp(lambda x: {"a": (x**2, 1.0), "b": [lnp.sum(x)]})(lnp.asarray(X))
    equal(y["a"][0], X**2)
    equal(vjp({"a": (lnp.asarray(V), 0.0), "b": [2.0]}), 2 * X * V + 2)
    tangent = ag.make_jvp(lambda x: {"a": x**2, "b": 1.0})(lnp.asarray(X))(lnp.asarray(V))[1]
    equal(tangent["a"], 2 * X * V)
    equal(tangent["b"], 0)


def test_complex_gradients_are_those_of_hips_autograd():
    """Of a real result u it is ``du/dx - i du/dy``; products with holomorphic derivatives have no conjugates."""
    z, g = 0.3 + 0.4j, 1.5 - 0.5j
    equal(ag.grad(lambda z: lnp.abs(z) ** 2 + lnp.real(z))(z), 2 * z.real + 1 - 2j * z.imag)
    vjp, _ = ag.make_vjp(lambda z: z**3)(z)
    equal(vjp(g), g * 3 * z**2)
    equal(ag.make_jvp(lambda z: z**3)(z)(g)[1], g * 3 * z**2)
    equal(ag.make_jvp_reversemode(lambda z: z**3)(z)(g), g * 3 * z**2)
    equal(ag.holomorphic_grad(lambda z: z**3)(z), 3 * z**2)
    equal(ag.holomorphic_grad(ag.holomorphic_grad(lambda z: z**3))(z), 6 * z)
    # x (du/dx) of a real argument, through complex numbers
    equal(ag.grad(lambda x: lnp.imag(lnp.exp(1j * x)))(0.3), np.cos(0.3))
    row = ag.jacobian(lambda z: lnp.real(z) * lnp.imag(z))(lnp.asarray([z, 1j]))
    equal(row, np.diag([z.imag - 1j * z.real, 1.0]))
    with pytest.warns(UserWarning, match="Input to holomorphic_grad is not complex"):
        ag.holomorphic_grad(lambda x: x * (1 + 2j))(1.0)


def test_constant_results_have_zeros():
    """What does not depend on the argument has the gradient 0, also of the second order, and without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        equal(ag.grad(lambda x: 1.0)(2.0), 0)
        equal(ag.grad(lambda x: lnp.sum(x > 0))(lnp.asarray(X)), np.zeros(3))
        equal(ag.grad(ag.grad(lambda x: 3 * x))(2.0), 0)
        equal(ag.jacobian(lambda x: lnp.ones(2))(lnp.asarray(X)), np.zeros((2, 3)))
        equal(ag.make_vjp(lambda x: x > 0)(2.0)[0](1.0), 0)


def test_tensors_outside_keep_their_graph():
    """A gradient by a tensor that requires grad is recorded, and the tensor itself stays what it was."""
    x = lucid.tensor(X, requires_grad=True)
    gradient = ag.grad(product)(x)
    assert type(gradient) is lnp.ndarray
    assert type(x) is lucid.Tensor
    lnp.sum(gradient).backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), H.sum(0), rtol=1e-12)
    y = lucid.tensor(2.0, requires_grad=True, dtype=lucid.float64)
    value, _ = ag.value_and_grad(lambda x: y)(lnp.asarray(1.0))
    assert type(y) is lucid.Tensor
    assert value.requires_grad


def test_a_checkpoint_runs_again_and_takes_any_names():
    """The function runs once forward and once for backward; its parameters may be named as a checkpoint's settings."""
    runs = []

    def f(x, debug, *, early_stop):
        runs.append(debug + early_stop)
        return lnp.exp(x) * debug

    equal(ag.grad(lambda x: ag.checkpoint(f)(x, 2.0, early_stop=1))(0.5), 2 * np.exp(0.5))
    assert len(runs) == 2
    equal(ag.grad(ag.grad(lambda x: ag.checkpoint(f)(x, 2.0, early_stop=1)))(0.5), 2 * np.exp(0.5))


def test_the_names_of_what_is_made_say_what_it_is():
    """A derivative is named by the operator, the function and the argument."""

    def foo(x, y):
        return x * y

    assert ag.grad(foo, 1).__name__ == "grad_of_foo_wrt_argnum_1"
    assert ag.jacobian(foo).__doc__.startswith("    jacobian of function foo with respect to argument number 0")


@pytest.mark.parametrize("x", [1, True, np.arange(3), [1.0, 2]])
def test_integers_are_refused(x):
    """They have no derivatives, on their own and inside of others."""
    with pytest.raises(TypeError, match=re.escape("Can't differentiate w.r.t. type <class '")):
        ag.grad(lambda x: 1.0)(x)


REFUSED = {
    "complex result": (lambda: ag.grad(lambda x: x * 1j)(1.0), DtypeError, "grad only applies to real scalar-output"),
    "several numbers": (lambda: ag.grad(lambda x: x)(lnp.ones(2)), DtypeError, "of shape (2,)"),
    "no number": (lambda: ag.grad(lambda x: "text")(1.0), DtypeError, "expected arrays and numbers"),
    "bool": (lambda: ag.grad(lambda x: x > 0)(1.0), DtypeError, "this one returned bool"),
    "value": (lambda: ag.value_and_grad(lambda x: x)(lnp.ones(2)), DtypeError, "value_and_grad only applies"),
    "elements": (lambda: ag.elementwise_grad(lambda x: x * 1j)(1.0), DtypeError, "only applies to real-output"),
    "complex Jacobian": (lambda: ag.jacobian(lambda x: x * 1j)(1.0), DtypeError, "expected a real result"),
    "argnum": (lambda: ag.grad(lambda x: x, 1)(1.0), SettingError, "argnums=1, but only 1 positional"),
    "argnum kind": (lambda: ag.grad(lambda x: x, "x")(1.0), SettingError, "expected argnums to be an int"),
    "shape": (lambda: ag.make_vjp(lambda x: x)(lnp.ones(2))[0](1.0), ShapeError, "shape"),
    "structure": (lambda: ag.make_jvp(lambda x: x[0])([1.0])(1.0), ShapeError, "structure"),
    "complex vector": (lambda: ag.make_vjp(lambda x: x)(1.0)[0](1j), DtypeError, "expected real numbers"),
    "aux": (lambda: ag.grad_and_aux(lambda x: x)(1.0), SettingError, "expected the function to return two results"),
    "function": (lambda: ag.grad(1.0), TypeError, "expected a callable, got float 1.0"),
    "name": (lambda: ag.grad_named(lambda a: a, "b"), ValueError, "not in list"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name):
    """Each mistake raises with what was expected."""
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=re.escape(words)):
        call()
