"""Derivatives of functions as functions: values, structures, nesting, what is on the graph, and what is refused."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from typing import NamedTuple

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.modes.state import thread
from lucid.errors import ArgumentError, DtypeError, GraphError, InplaceError, SettingError, ShapeError
from lucid.func import functional_call, grad, grad_and_value, jvp, linearize, vjp, vmap
from lucid.func.trees import leaves
from lucid.utils.checkpoint import checkpoint
from tests.gradients import numbers
from tests.pieces import raising


def draw(rng, *shape):
    """Return a tensor of random float64 numbers."""
    return lucid.tensor(rng.standard_normal(shape))


def cube(x):
    """Return the sum of the third powers."""
    return (x**3).sum()


# ---- grad ----


def test_grad_of_structures(rng):
    """Gradients have the structure of the argument, or a tuple for a tuple of them; the value may come beside them."""
    a, b, c = (draw(rng, 3) for _ in range(3))

    def func(tree, x, *, factor):
        return (tree["a"] * tree["b"][0] * x).sum() * factor

    tree = {"a": a, "b": [b]}
    found = grad(func)(tree, c, factor=2)
    np.testing.assert_allclose(numbers(found["a"]), 2 * numbers(b) * numbers(c), rtol=1e-12)
    np.testing.assert_allclose(numbers(found["b"][0]), 2 * numbers(a) * numbers(c), rtol=1e-12)
    (by_c, by_tree), value = grad_and_value(func, argnums=(-1, 0))(tree, c, factor=3)
    np.testing.assert_allclose(numbers(by_c), 3 * numbers(a) * numbers(b), rtol=1e-12)
    np.testing.assert_allclose(numbers(by_tree["a"]), 3 * numbers(b) * numbers(c), rtol=1e-12)
    np.testing.assert_allclose(float(value), 3 * (numbers(a) * numbers(b) * numbers(c)).sum(), rtol=1e-12)


def test_what_has_no_part_in_it_gets_zeros(rng):
    """An argument that the result does not depend on has a gradient of zeros, of its dtype and shape."""
    unused = draw(rng, 2, 3).float()
    found = grad(lambda x, y: x.sum(), argnums=1)(draw(rng, 2), unused)
    assert (found.dtype, found.shape) == (lucid.float32, (2, 3))
    np.testing.assert_array_equal(numbers(found), 0)


@pytest.mark.parametrize("both", [False, True])
def test_aux(both, rng):
    """What comes beside the output is returned as it is, whatever it is."""
    x = draw(rng, 3)

    def func(x):
        return cube(x), {"twice": x * 2, "word": "aside"}

    if both:
        slope, (value, aux) = grad_and_value(func, has_aux=True)(x)
        np.testing.assert_allclose(float(value), (numbers(x) ** 3).sum(), rtol=1e-12)
    else:
        slope, aux = grad(func, has_aux=True)(x)
    np.testing.assert_allclose(numbers(slope), 3 * numbers(x) ** 2, rtol=1e-12)
    np.testing.assert_allclose(numbers(aux["twice"]), 2 * numbers(x), rtol=1e-12)
    assert aux["word"] == "aside"
    assert not aux["twice"].requires_grad


def test_the_function_keeps_its_name():
    """What comes back has name and docstring of the function."""
    assert (grad(cube).__name__, grad_and_value(cube).__doc__) == ("cube", cube.__doc__)


# ---- products from both sides ----


def test_vjp(rng):
    """The product with a random vector, for outputs and arguments in structures, as often as is asked for."""
    x, y, u, v = (draw(rng, 4) for _ in range(4))
    output, vjp_fn = vjp(lambda x, y: {"product": x * y, "square": (y**2,)}, x, y)
    np.testing.assert_allclose(numbers(output["square"][0]), numbers(y) ** 2, rtol=1e-12)
    for _ in range(2):
        by_x, by_y = vjp_fn({"product": u, "square": (v,)})
        np.testing.assert_allclose(numbers(by_x), numbers(u) * numbers(y), rtol=1e-12)
        expected = numbers(u) * numbers(x) + 2 * numbers(v) * numbers(y)
        np.testing.assert_allclose(numbers(by_y), expected, rtol=1e-12)
    vjp_fn({"product": u, "square": (v,)}, retain_graph=False)
    with pytest.raises(GraphError, match="second time"):
        vjp_fn({"product": u, "square": (v,)})


def test_products_from_both_sides_agree(rng):
    """For random u and v the product of u with (J v) is that of (J^T u) with v, and J v is a difference quotient."""
    x, v, u = draw(rng, 3, 2), draw(rng, 3, 2), draw(rng, 3)

    def func(x):
        return (x.exp() @ lucid.ones(2, dtype=lucid.float64)).sin() * x.sum()

    value, pushed = jvp(func, (x,), (v,))
    np.testing.assert_allclose(numbers(value), numbers(func(x)), rtol=1e-12)
    pulled = vjp(func, x)[1](u)[0]
    np.testing.assert_allclose((numbers(u) * numbers(pushed)).sum(), (numbers(pulled) * numbers(v)).sum(), rtol=1e-10)
    step = 1e-6
    quotient = (numbers(func(x + step * v)) - numbers(func(x - step * v))) / (2 * step)
    np.testing.assert_allclose(numbers(pushed), quotient, rtol=1e-6, atol=1e-6)
    again, jvp_fn = linearize(func, x)
    np.testing.assert_array_equal(numbers(again), numbers(value))
    for _ in range(2):
        np.testing.assert_allclose(numbers(jvp_fn(v)), numbers(pushed), rtol=1e-12)


def test_jvp_of_complex_numbers(rng):
    """The derivative in a complex direction: of z * conj(z) it is 2 Re(z * conj(v))."""
    z = lucid.tensor(rng.standard_normal(3) + 1j * rng.standard_normal(3))
    v = lucid.tensor(rng.standard_normal(3) + 1j * rng.standard_normal(3))
    _, pushed = jvp(lambda z: z * z.conj(), (z,), (v,))
    np.testing.assert_allclose(numbers(pushed), 2 * (numbers(z) * numbers(v).conj()).real, rtol=1e-12)
    _, pushed = jvp(lambda z: z**2, (z,), (v,))
    np.testing.assert_allclose(numbers(pushed), 2 * numbers(z) * numbers(v), rtol=1e-12)


def test_strict_jvp(rng):
    """An output that does not depend on the arguments has zeros, or raises where that is asked for."""
    x, aside = draw(rng, 2), draw(rng, 3).requires_grad_()
    value, pushed, aux = jvp(lambda x: (aside * 1, x), (x,), (x,), has_aux=True)
    np.testing.assert_array_equal(numbers(pushed), 0)
    np.testing.assert_array_equal(numbers(aux), numbers(x))
    assert (value.requires_grad, pushed.requires_grad) == (True, False)
    with pytest.raises(GraphError, match=r"output 0 .* is independent"):
        jvp(lambda x: aside * 1, (x,), (x,), strict=True)
    np.testing.assert_array_equal(numbers(linearize(lambda x: aside * 1, x)[1](x)), 0)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two numbers with names."""

    x: object
    y: object


class Named(NamedTuple):
    """Two numbers with names."""

    x: object
    y: object


class Listed(list):
    """A list of the user's own."""


@pytest.mark.parametrize(
    "tree",
    [
        lambda a, b: (a, b),
        lambda a, b: [a, b],
        lambda a, b: {"x": a, "y": b},
        lambda a, b: OrderedDict(x=a, y=b),
        lambda a, b: defaultdict(list, x=a, y=b),
        lambda a, b: Listed([a, b]),
        Named,
        Pair,
    ],
)
def test_a_structure_keeps_its_type(tree, rng):
    """Gradients, outputs and their tangents come in what arguments and outputs came in, of the user's types too."""
    a, b = draw(rng, 3), draw(rng, 2)
    slopes = grad(lambda given: sum(cube(leaf) for leaf in leaves(given)))(tree(a, b))
    value, pushed = jvp(lambda a, b: tree(a * 2, b * 2), (a, b), (a, b))
    for found, factor in ((slopes, None), (value, 2), (pushed, 2)):
        assert type(found) is type(tree(a, b))
        for got, x in zip(leaves(found), (a, b), strict=True):
            np.testing.assert_allclose(numbers(got), factor * numbers(x) if factor else 3 * numbers(x) ** 2, rtol=1e-12)


# ---- nesting ----


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_grad_of_grad(order, rng):
    """The n-th derivative of x ** 4."""
    func = lambda x: x**4
    for _ in range(order):
        func = grad(func)
    x = draw(rng)
    expected = np.polyval(np.polyder([1, 0, 0, 0, 0], order), float(x))
    np.testing.assert_allclose(float(func(x)), expected, rtol=1e-10)


def test_derivatives_inside_of_each_other_are_told_apart(rng):
    """d/dx of x * d/dy (x + y) is 1 by either product, and of x * d/dy (x y^2) at y = x it is 4 x^2 + 2 x^2."""
    x, one = draw(rng), lucid.tensor(1.0, dtype=lucid.float64)
    assert float(grad(lambda x: x * grad(lambda y: x + y)(one))(x)) == 1
    found = jvp(lambda x: x * jvp(lambda y: x + y, (one,), (one,))[1], (x,), (one,))
    assert float(found[1]) == 1
    # as x is both where the inner one is taken and a number inside of it
    found = grad(lambda x: x * grad(lambda y: x * y * y)(x))(x)
    np.testing.assert_allclose(float(found), 6 * float(x) ** 2, rtol=1e-12)


def test_the_product_is_differentiable_by_its_vector(rng):
    """Gradients go through tangents and cotangents too, of functions that were made before."""
    x, c = draw(rng, 3), draw(rng, 3)
    expected = 8 * numbers(c) * numbers(x) ** 2
    _, vjp_fn = vjp(lambda x: x**2, x)
    np.testing.assert_allclose(numbers(grad(lambda c: (vjp_fn(c)[0] ** 2).sum())(c)), expected, rtol=1e-12)
    _, jvp_fn = linearize(lambda x: x**2, x)
    np.testing.assert_allclose(numbers(grad(lambda c: (jvp_fn(c) ** 2).sum())(c)), expected, rtol=1e-12)
    found = grad(lambda c: (jvp(lambda x: x**2, (x,), (c,))[1] ** 2).sum())(c)
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-12)


# ---- the graph outside ----


def test_closures_and_arguments_are_differentiated_outside(rng):
    """A gradient that depends on tensors that require grad is itself on the graph: by them, and by its argument."""
    weight, x = draw(rng, 3).requires_grad_(), draw(rng, 3).requires_grad_()
    u = draw(rng, 3)
    slope, value = grad_and_value(lambda x: (weight**2 * x**3).sum())(x)
    by_weight, by_x = lucid.autograd.grad(slope, (weight, x), u, retain_graph=True)
    w, at, up = numbers(weight), numbers(x), numbers(u)
    np.testing.assert_allclose(numbers(by_weight), 6 * w * at**2 * up, rtol=1e-12)
    np.testing.assert_allclose(numbers(by_x), 6 * w**2 * at * up, rtol=1e-12)
    (by_weight,) = lucid.autograd.grad(value, weight, retain_graph=True)
    np.testing.assert_allclose(numbers(by_weight), 2 * w * at**3, rtol=1e-12)
    slope.sum().backward()
    np.testing.assert_allclose(numbers(x.grad), 6 * w**2 * at, rtol=1e-12)


def test_only_what_depends_on_the_outside_requires_grad(rng):
    """Not a gradient on which a closed-over tensor has no influence, nor one inside of another derivative."""
    x, weight = draw(rng, 3), draw(rng, 3).requires_grad_()
    assert not grad(cube)(x).requires_grad
    slope, value = grad_and_value(lambda x: cube(x) + weight.sum())(x)
    assert (slope.requires_grad, value.requires_grad) == (False, True)
    by_factor = grad(lambda factor: grad(lambda y: (factor * y**2).sum())(x).sum())(draw(rng))
    assert not by_factor.requires_grad
    np.testing.assert_allclose(float(by_factor), 2 * numbers(x).sum(), rtol=1e-12)


def test_products_that_were_made_before(rng):
    """What `vjp` and `linearize` returned serves other derivatives, and leaves nothing of its own on their graph."""
    x, c, weight = draw(rng, 3), draw(rng, 3), draw(rng, 3).requires_grad_()
    with lucid.no_grad():
        _, vjp_fn = vjp(lambda x: x**2, x)
        _, jvp_fn = linearize(lambda x: x**2, x)
    for product in (lambda c: vjp_fn(c)[0], jvp_fn):
        slope = grad(lambda c, product=product: (product(c) ** 2).sum())(c)
        assert not slope.requires_grad
        np.testing.assert_allclose(numbers(slope), 8 * numbers(x) ** 2 * numbers(c), rtol=1e-12)
        (by_weight,) = lucid.autograd.grad(product(weight).sum(), weight)
        np.testing.assert_allclose(numbers(by_weight), 2 * numbers(x), rtol=1e-12)


def test_what_comes_beside_keeps_its_own_way_to_the_outside(rng):
    """An aux that shares nodes with an output can be differentiated after the output's pass."""
    x, weight = draw(rng, 3), draw(rng, 3).requires_grad_()

    def func(x):
        power = x**2
        return power.sum(), power * weight

    _, aux = grad(func, has_aux=True)(x)
    (by_weight,) = lucid.autograd.grad(aux.sum(), weight)
    np.testing.assert_allclose(numbers(by_weight), numbers(x) ** 2, rtol=1e-12)
    # a pass that asks for nothing in particular goes through the shared nodes again
    _, aux = grad(func, has_aux=True)(x)
    aux.sum().backward()
    np.testing.assert_allclose(numbers(weight.grad), numbers(x) ** 2, rtol=1e-12)


def test_no_grad_outside_and_inside(rng):
    """Outside it keeps the result off the graph and changes no value; inside it hides what is computed in it."""
    x, weight = draw(rng, 3), draw(rng, 3).requires_grad_()
    with lucid.no_grad():
        slope, value = grad_and_value(lambda x: (weight * x**2).sum())(x)
    assert not slope.requires_grad
    assert not value.requires_grad
    np.testing.assert_allclose(numbers(slope), 2 * numbers(weight) * numbers(x), rtol=1e-12)

    def func(x):
        with lucid.no_grad():
            factor = x * 2
        return (factor * x).sum()

    np.testing.assert_allclose(numbers(grad(func)(x)), 2 * numbers(x), rtol=1e-12)

    def outer(x):
        with lucid.no_grad():
            factor = grad(cube)(x)
        return (factor * x).sum()

    np.testing.assert_allclose(numbers(grad(outer)(x)), 3 * numbers(x) ** 2, rtol=1e-12)


@pytest.mark.parametrize("on_graph", [False, True, None])
def test_a_product_is_on_the_graph_as_told(on_graph, rng):
    """`create_graph` decides, and without it whether the vector is on a graph; the values are the same."""
    x = draw(rng, 3)
    vector = draw(rng, 3).requires_grad_()
    _, product_with = lucid.func.vjp(lambda x: x**3, x)
    (product,) = product_with(vector, create_graph=on_graph)
    assert product.requires_grad is (on_graph is not False)
    np.testing.assert_allclose(numbers(product), 3 * numbers(x) ** 2 * numbers(vector), rtol=1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_inference_mode_changes_no_value(own, rng):
    """Derivatives are taken there as anywhere, of tensors that were made in it too."""
    given = rng.standard_normal(3)
    x = lucid.tensor(given)
    with lucid.inference_mode():
        if own:
            x = lucid.tensor(given)
        slope = grad(cube)(x)
        pushed = jvp(lambda x: x**2, (x,), (x,))[1]
    np.testing.assert_allclose(numbers(slope), 3 * given**2, rtol=1e-12)
    np.testing.assert_allclose(numbers(pushed), 2 * given**2, rtol=1e-12)


def test_gradients_of_leaves_stay_as_they_are(rng):
    """No `.grad` is touched, of the argument or of what the function sees, and the argument stays the leaf it was."""
    x, weight = draw(rng, 3).requires_grad_(), draw(rng, 3).requires_grad_()
    grad(lambda x: (x * weight).sum())(x)
    jvp(lambda x: x * weight, (x,), (x,))
    assert (x.grad, weight.grad, x.is_leaf) == (None, None, True)


def test_hooks_inside_see_the_pass(rng):
    """A tensor hook that the function registers changes the gradient."""
    x = draw(rng, 3)

    def func(x):
        square = x**2
        square.register_hook(lambda g: g * 10)
        return square.sum()

    np.testing.assert_allclose(numbers(grad(func)(x)), 20 * numbers(x), rtol=1e-12)


def test_checkpoints_inside(rng):
    """What a checkpoint computes again belongs to the pass, also where the derivative is on the graph outside."""
    x, weight = draw(rng, 3), draw(rng, 3).requires_grad_()

    def func(x):
        return checkpoint(lambda a: (a.sin() * weight).exp(), x, use_reentrant=False).sum()

    slope = grad(func)(x)
    at, w = numbers(x), numbers(weight)
    np.testing.assert_allclose(numbers(slope), np.exp(np.sin(at) * w) * w * np.cos(at), rtol=1e-12)
    (by_weight,) = lucid.autograd.grad(slope.sum(), weight)
    expected = np.exp(np.sin(at) * w) * np.cos(at) * (1 + w * np.sin(at))
    np.testing.assert_allclose(numbers(by_weight), expected, rtol=1e-10)


def test_hooks_of_modules_inside(rng):
    """A full backward hook fires once for each pass, and what it returns is the gradient, also in single samples."""
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    x, fired = draw(rng, 5, 3), []

    def loss(parameters, x):
        return functional_call(net, parameters, (x,)).sum()

    plain = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    with net[1].register_full_backward_hook(lambda module, inputs, outputs: fired.append(1) or (inputs[0] * 2,)):
        hooked = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    assert len(fired) == 5
    np.testing.assert_allclose(numbers(hooked["0.weight"]), 2 * numbers(plain["0.weight"]), rtol=1e-12)
    np.testing.assert_array_equal(numbers(hooked["2.weight"]), numbers(plain["2.weight"]))


# ---- what is refused ----

X = (1.0, 2.0)
WRONG = {
    "no tensor": (lambda x: grad(cube)(2.0), ArgumentError, "only tensors, got float"),
    "an integer": (lambda x: grad(cube)(x.long()), DtypeError, "floating point"),
    "several elements": (lambda x: grad(lambda x: x)(x), GraphError, "scalar tensor"),
    "one element": (lambda x: grad(lambda x: x.sum(0, keepdim=True))(x), GraphError, "shape \\(1,\\)"),
    "a number": (lambda x: grad(lambda x: 1.0)(x), ArgumentError, "only tensors"),
    "a complex one": (lambda x: grad(lambda x: (x * 1j).sum())(x), GraphError, "real"),
    "out of range": (lambda x: grad(cube, argnums=1)(x), SettingError, "argnums=1, but only 1"),
    "twice": (lambda x: grad(lambda x, y: cube(x), argnums=(0, -2))(x, x), SettingError, "unique"),
    "none": (lambda x: grad(cube, argnums=())(x), SettingError, "non-empty"),
    "no pair": (lambda x: grad(cube, has_aux=True)(x), SettingError, "tuple: \\(output, aux\\)"),
    "changed": (lambda x: grad(lambda x: x.mul_(2).sum())(x), InplaceError, "argument of a function"),
    "cotangents": (lambda x: vjp(lambda x: x * 2, x)[1](x[:1]), ShapeError, "shape \\(1,\\), expected \\(2,\\)"),
    "turned cotangents": (lambda x: vjp(lambda x: x[None], x)[1](x[:, None]), ShapeError, "shape \\(2, 1\\), expected"),
    "turned tangents": (lambda x: jvp(cube, (x,), (x[None],)), ShapeError, "shape \\(1, 2\\), expected \\(2,\\)"),
    "turned tangent": (lambda x: linearize(cube, x)[1](x[None]), ShapeError, "shape \\(1, 2\\), expected \\(2,\\)"),
    "structure": (lambda x: vjp(lambda x: [x, x], x)[1]((x, x)), ShapeError, "\\[\\*, \\*\\], got \\(\\*, \\*\\)"),
    "integers out": (lambda x: vjp(lambda x: x > 1, x), DtypeError, "floating point"),
    "a list of positions": (lambda x: grad(cube, [0])(x), SettingError, r"an int or a tuple of ints, got \[0\]"),
    "primals": (lambda x: jvp(cube, x, x), ArgumentError, "primals: expected a tuple"),
    "no primals": (lambda x: jvp(lambda: x, (), ()), ArgumentError, "at least one Tensor"),
    "tangents": (lambda x: jvp(cube, (x,), (x[:1],)), ShapeError, "tangents"),
    "number of tangents": (lambda x: jvp(cube, (x,), (x, x)), ShapeError, "\\(\\*,\\), got \\(\\*, \\*\\)"),
    "jvp_fn": (lambda x: linearize(cube, x)[1](x, x), ShapeError, "expected 1 tangents"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_refused(what):
    """The error says what was expected, and the argument is as it was."""
    call, kind, match = WRONG[what]
    x = lucid.tensor(X)
    with pytest.raises(kind, match=match):
        call(x)
    np.testing.assert_array_equal(numbers(x), X)


@pytest.mark.parametrize("call", ["grad", "grad_and_value", "jacrev", "jacfwd", "vjp", "jvp"])
@pytest.mark.parametrize("shape", [lambda y: y, lambda y: (y,), lambda y: [y, 1], lambda y: (y, 1, 2)])
def test_beside_an_output_is_one_thing(call, shape):
    """Where `has_aux` is asked for, what is no pair is refused by all: fewer, more, and a list of two."""
    x, transform = lucid.tensor(X), getattr(lucid.func, call)
    given = {"vjp": (x,), "jvp": ((x,), (x,))}.get(call)
    with pytest.raises(SettingError, match="has_aux=True: expected the function to return a tuple"):
        if given is None:
            transform(lambda x: shape(cube(x)), has_aux=True)(x)
        else:
            transform(lambda x: shape(cube(x)), *given, has_aux=True)


def test_a_function_that_raises_leaves_nothing_behind(rng):
    """Its error comes out as it is, and grad mode is as before."""
    with lucid.no_grad(), pytest.raises(KeyError, match="mine"):
        try:
            grad(raising(KeyError("mine")))(draw(rng, 2))
        finally:
            assert not lucid.is_grad_enabled()


def test_a_function_that_raises_ends_its_level():
    """What a function kept before it raised is a constant to later derivatives, as what one that ends has kept."""
    kept = []

    def keeping(x, error=None):
        kept.append(x * 2)
        if error:
            raise error
        return x

    grad(keeping)(lucid.ones(()))
    with pytest.raises(ZeroDivisionError):
        grad(keeping)(lucid.ones(()), error=ZeroDivisionError())
    for constant in kept:
        found = grad(lambda y, constant=constant: y * constant)(lucid.ones(()))
        assert (found.item(), found.requires_grad) == (2, False)


CHANGED_BY = {
    "grad": lambda f, x: lucid.func.grad(lambda x: f(x).sum())(x),
    "grad with aux": lambda f, x: lucid.func.grad(lambda x: (f(x).sum(), x * 2), has_aux=True)(x)[0],
    "grad_and_value": lambda f, x: lucid.func.grad_and_value(lambda x: f(x).sum())(x)[0],
    "vjp": lambda f, x: lucid.func.vjp(f, x)[1](lucid.ones(3))[0],
    "jvp": lambda f, x: lucid.func.jvp(f, (x,), (lucid.ones(3),))[1],
    "linearize": lambda f, x: lucid.func.linearize(f, x)[1](lucid.ones(3)),
    "jacrev": lambda f, x: lucid.func.jacrev(f)(x).sum(0),
    "jacfwd": lambda f, x: lucid.func.jacfwd(f)(x).sum(1),
    "hessian": lambda f, x: lucid.func.hessian(lambda x: (f(x) * x).sum() / 2)(x).sum(0),
    "grad of grad": lambda f, x: lucid.func.grad(
        lambda y: lucid.func.grad(lambda x: (f(x) * y).sum())(x).sum()
    )(x),
    "vmap of grad": lambda f, x: lucid.vmap(lucid.func.grad(lambda x: f(x).sum()))(x.expand(2, 3).clone())[0] * 1,
}  # fmt: skip


@pytest.mark.parametrize("part", ["whole", "view"])
@pytest.mark.parametrize("name", CHANGED_BY)
def test_nothing_outside_stays_on_the_graph_of_a_derivative(name, part):
    """A tensor that the function sees and changes in place has the new values, and no graph, when it is done."""
    x, seen = lucid.tensor([1.0, 2.0, 3.0]), lucid.zeros(3)
    view = seen.view(3)

    def function(x):
        (seen if part == "whole" else seen[:]).copy_(x * x)
        return seen * 1

    found = CHANGED_BY[name](function, x)
    expected = [2.0, 4.0, 6.0] if name not in {"hessian", "grad of grad"} else None
    if expected is not None:
        assert found.tolist() == expected
    for tensor in (seen, view, seen[:1]):
        assert not tensor.requires_grad
        assert tensor.grad_fn is None
    assert seen.tolist() == [1.0, 4.0, 9.0]
    assert not found.requires_grad


def test_a_buffer_of_a_module_is_off_the_graph_afterwards():
    """The buffer of a module that counts its inputs by a recorded op is a buffer as before."""

    class Mean(lucid.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", lucid.zeros(3))

        def forward(self, x):
            self.mean.mul_(0.5).add_(x, alpha=0.5)
            return x - self.mean

    module = Mean()
    x = lucid.tensor([2.0, 4.0, 6.0])
    assert lucid.func.grad(lambda x: module(x).sum())(x).tolist() == [0.5] * 3
    assert module.mean.tolist() == [1.0, 2.0, 3.0]
    assert not module.mean.requires_grad
    module.state_dict()


def test_what_depends_on_the_outside_stays_on_its_graph():
    """As a result does: a change that depends on a leaf outside can be differentiated by that."""
    w, x, seen = lucid.full((3,), 2.0, requires_grad=True), lucid.ones(3), lucid.zeros(3)
    lucid.func.grad(lambda x: seen.copy_(w * x).sum())(x)
    assert seen.requires_grad
    seen.sum().backward()
    assert w.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, GeneratorExit])
def test_a_function_that_raises_leaves_no_graph(error):
    """What was changed before it has no graph either, whatever is raised, and the level is closed."""
    seen = lucid.zeros(3)

    def function(x):
        seen.add_(x)
        raise error

    with pytest.raises(error):
        lucid.func.grad(function)(lucid.ones(3))
    assert not seen.requires_grad
    assert thread.state.levels == ()


@pytest.mark.parametrize("transform", ["vjp", "jvp"])
def test_a_changed_tensor_that_is_returned(transform):
    """It is a result, and differentiated, and as a captured tensor off the graph."""
    x, seen = lucid.tensor([1.0, 2.0]), lucid.zeros(2)

    def function(x):
        return seen.copy_(x * x), {"aux": seen}

    if transform == "vjp":
        out, pull, aux = lucid.func.vjp(function, x, has_aux=True)
        assert pull(lucid.ones(2))[0].tolist() == [2.0, 4.0]
    else:
        out, pushed, aux = lucid.func.jvp(function, (x,), (lucid.ones(2),), has_aux=True)
        assert pushed.tolist() == [2.0, 4.0]
    assert not any(tensor.requires_grad for tensor in (out, aux["aux"], seen))
    assert out.tolist() == seen.tolist() == [1.0, 4.0]


@pytest.mark.parametrize("name", ["grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd"])
def test_aux_with_a_graph(name):
    """What comes beside the output has no graph outside, unless it depends on what has."""
    x, w = lucid.tensor([1.0, 2.0]), lucid.full((2,), 3.0, requires_grad=True)
    func = lucid.func

    def run(aux_of):
        def function(x):
            out = x * x
            return (out.sum() if name.startswith("grad") else out), {"aux": aux_of(x)}

        runs = {
            "grad": lambda: func.grad(function, has_aux=True)(x)[1],
            "grad_and_value": lambda: func.grad_and_value(function, has_aux=True)(x)[1][1],
            "vjp": lambda: func.vjp(function, x, has_aux=True)[2],
            "jvp": lambda: func.jvp(function, (x,), (lucid.ones(2),), has_aux=True)[2],
            "jacrev": lambda: func.jacrev(function, has_aux=True)(x)[1],
            "jacfwd": lambda: func.jacfwd(function, has_aux=True)(x)[1],
        }
        return runs[name]()["aux"]

    plain = run(lambda x: x**3)
    assert plain.tolist() == [1.0, 8.0]
    assert not plain.requires_grad
    assert plain.grad_fn is None
    joined = run(lambda x: x * w)
    assert joined.requires_grad
    joined.sum().backward()
    assert w.grad.tolist() == x.tolist()


@pytest.mark.parametrize("number", [-3, -2, -1, 0, 1, 2])
def test_arguments_are_counted_from_the_end_too(number, rng):
    """A number below zero names the argument that Python's index names, of any number of arguments."""
    args = [draw(rng, 2) for _ in range(3)]
    slope = grad(lambda *each: sum((k + 1) * x.sum() for k, x in enumerate(each)), argnums=number)(*args)
    np.testing.assert_array_equal(numbers(slope), [1.0, 2.0, 3.0][number])


class ByVjp(lucid.autograd.Function):
    """A cube, whose backward is a derivative of a function itself."""

    @staticmethod
    def forward(ctx, x):
        """Return the cube."""
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        """Return the product with the derivative."""
        (x,) = ctx.saved_tensors
        return vjp(lambda x: x**3, x)[1](grad_output)[0]


@pytest.mark.parametrize("outer", ["jvp", "linearize", "jacfwd", "hessian"])
def test_a_backward_that_takes_derivatives_is_differentiated(outer):
    """Products from the right are derivatives of such a backward, and see what it does."""
    x = lucid.tensor([0.5, -2.0], dtype=lucid.float64)
    found = {
        "jvp": lambda: jvp(ByVjp.apply, (x,), (lucid.ones_like(x),))[1],
        "linearize": lambda: linearize(ByVjp.apply, x)[1](lucid.ones_like(x)),
        "jacfwd": lambda: lucid.func.jacfwd(ByVjp.apply)(x).sum(0),
        "hessian": lambda: lucid.func.hessian(lambda x: ByVjp.apply(x).sum())(x).sum(0) * x / 2,
    }[outer]()
    np.testing.assert_allclose(numbers(found), [0.75, 12.0], rtol=1e-12)
