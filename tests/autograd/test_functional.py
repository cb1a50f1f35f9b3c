"""`autograd.functional` gives the products and matrices of functions whose derivatives are known as formulas."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd import functional
from lucid.errors import GraphError, NotDifferentiableError, SettingError
from tests.gradients import numbers

FIRST, SECOND = ("vjp", "jvp", "jacobian"), ("vhp", "hvp", "hessian")
PRODUCTS = ("vjp", "jvp", "vhp", "hvp")


def two(x, y):
    """Return two outputs of two inputs."""
    return x.exp() * y.sum(), y * x.sum()


def energy(x, y):
    """Return one number of two inputs."""
    return (x**3).sum() * y.sum() + (y * y).sum()


def blocks_of(name, x, y):
    """Return the Jacobian of `two`, or the Hessian of `energy`, at arrays: for each row of blocks a block for each."""
    ones = np.ones(len(y))
    if name in FIRST:
        return [
            [np.diag(np.exp(x) * y.sum()), np.outer(np.exp(x), ones)],
            [np.outer(y, np.ones(len(x))), np.eye(len(y)) * x.sum()],
        ]
    mixed = np.outer(3 * x**2, ones)
    return [[np.diag(6 * x * y.sum()), mixed], [mixed.T, 2 * np.eye(len(y))]]


def entries(result):
    """Return the tensors of a result, in order."""
    return [result] if isinstance(result, lucid.Tensor) else [entry for part in result for entry in entries(part)]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", FIRST + SECOND)
def test_products_and_matrices(name, create_graph, rng):
    """They are those of the formula, and on a graph where that is asked for, and only there."""
    x, y, u, v = (lucid.tensor(rng.standard_normal(n), requires_grad=n < 4) for n in (3, 2, 3, 2))
    func = two if name in FIRST else energy
    blocks = blocks_of(name, numbers(x), numbers(y))
    vectors = numbers(u), numbers(v)
    call = getattr(functional, name)
    if name in PRODUCTS:
        value, found = call(func, (x, y), (u.detach(), v.detach()), create_graph=create_graph)
        for got, expected in zip(entries(value), entries(func(x, y)), strict=True):
            np.testing.assert_array_equal(numbers(got), numbers(expected))
            assert got.requires_grad is create_graph
        if name[0] == "v":
            blocks = [[block.T for block in column] for column in zip(*blocks, strict=True)]
        wanted = [sum(block @ vector for block, vector in zip(row, vectors, strict=True)) for row in blocks]
    else:
        found = call(func, (x, y), create_graph=create_graph)
        wanted = [block for row in blocks for block in row]
    for got, expected in zip(entries(found), wanted, strict=True):
        np.testing.assert_allclose(numbers(got), expected, rtol=1e-12, atol=1e-12)
    assert any(got.requires_grad for got in entries(found)) is create_graph


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_vector_of_one_element_is_1(name, shape):
    """It may be left out for a single tensor of one element, of any shape, and for nothing else."""
    call = getattr(functional, name)
    x, pair = lucid.full(shape, 2.0, dtype=lucid.float64), lucid.ones(2, dtype=lucid.float64)
    # the slope and the curvature of the third power at 2 are one number
    assert call(lambda x: x**3, x)[1].item() == 12.0
    func = (lambda x: x**3) if name in FIRST else lambda x: (x**3).sum()
    # it is one of outputs, or one of inputs
    several = (lambda x: (x**3,), x) if name == "vjp" else (func, (x,))
    for given in (several, (func, pair)):
        with pytest.raises(GraphError, match="the vector v can only be None for a single Tensor with a single element"):
            call(*given)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("name", SECOND)
def test_a_number_of_any_shape_has_a_hessian(name, shape):
    """What the function returns has one element, and as many dimensions as it likes; more elements are refused."""
    x = lucid.tensor([1.0, 2.0], dtype=lucid.float64)
    vector = () if name == "hessian" else (lucid.ones(2, dtype=lucid.float64),)
    call = getattr(functional, name)
    found = call(lambda x: (x**3).sum().reshape(shape), x, *vector)
    np.testing.assert_allclose(
        numbers(found if name == "hessian" else found[1]), np.diag([6.0, 12.0]) if name == "hessian" else [6.0, 12.0]
    )
    with pytest.raises(GraphError, match="a Tensor with a single element"):
        call(lambda x: x**3, x, *vector)


@pytest.mark.parametrize("name", FIRST + SECOND)
def test_what_does_not_depend_on_an_input(name):
    """It has zeros, and is refused under `strict`, whichever way the product goes."""
    x, y = lucid.tensor([1.0, 2.0], dtype=lucid.float64), lucid.ones(2, dtype=lucid.float64)
    call = getattr(functional, name)
    vector = {"vjp": (x,), "jacobian": (), "hessian": ()}.get(name, ((x, y),))

    def func(x, y):
        return x * x if name in FIRST else (x * x).sum()

    found = call(func, (x, y), *vector)
    if name in ("vjp", "vhp", "hvp"):
        assert found[1][1].tolist() == [0.0, 0.0]
    with pytest.raises(GraphError, match="is independent of number 1, which strict=True does not allow"):
        call(func, (x, y), *vector, strict=True)


def test_a_function_without_curvature_has_no_strict_hessian(rng):
    """The refusal is that of the Hessian, and says which input."""
    x = lucid.tensor(rng.standard_normal(3))
    with pytest.raises(GraphError, match="hessian: its derivative is independent of number 0"):
        lucid.autograd.functional.hessian(lambda x: x.sum(), x, strict=True)


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian"])
def test_each_output_has_to_depend_on_inputs(name):
    """Under `strict` the one that does not is named, wherever it stands; the others stand for nothing."""
    x = lucid.tensor([1.0, 2.0], dtype=lucid.float64)
    vector = {"vjp": ((x, x),), "jvp": (x,), "jacobian": ()}[name]
    for number, func in enumerate((lambda x: (x.detach(), x * x), lambda x: (x * x, x.detach()))):
        with pytest.raises(GraphError, match=f"{name}: output {number} of func does not require gradients"):
            getattr(functional, name)(func, x, *vector, strict=True)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_derivatives_are_those_of_the_argument_alone(create_graph, recorded, rng):
    """A tensor that the function closes over, or that is given twice, counts only where it is the argument."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    x = x * 1 if recorded else x
    found = functional.jacobian(lambda a: a * x * x, x, create_graph=create_graph)
    np.testing.assert_allclose(numbers(found), np.diag(numbers(x) ** 2), rtol=1e-12)
    first, second = functional.jacobian(lambda a, b: a * b * b, (x, x), create_graph=create_graph)
    np.testing.assert_allclose(numbers(first), np.diag(numbers(x) ** 2), rtol=1e-12)
    np.testing.assert_allclose(numbers(second), np.diag(2 * numbers(x) ** 2), rtol=1e-12)


@pytest.mark.parametrize(("name", "setting"), [("jacobian", "strategy"), ("hessian", "outer_jacobian_strategy")])
def test_strategies(name, setting):
    """There is one; PyTorch's other is refused as what is not there, and anything else as a wrong word."""
    call, x = getattr(functional, name), lucid.ones(2)
    assert call(lambda x: (x * x).sum(), x, **{setting: "reverse-mode"}).shape[-1] == 2
    with pytest.raises(NotDifferentiableError, match=f"{name}: expected {setting}='reverse-mode', got 'forward-mode'"):
        call(lambda x: (x * x).sum(), x, **{setting: "forward-mode"})
    with pytest.raises(SettingError, match=f"{name}: expected {setting}='reverse-mode', got 'sideways'"):
        call(lambda x: (x * x).sum(), x, **{setting: "sideways"})
