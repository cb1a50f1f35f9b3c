"""Jacobians and Hessians of functions as functions."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, GraphError, SettingError
from lucid.func import hessian, jacfwd, jacrev, vmap
from tests.func.test_derivatives import draw
from tests.gradients import numbers

BOTH = pytest.mark.parametrize("jacobian", [jacrev, jacfwd])


@BOTH
def test_jacobian(jacobian, rng):
    """Of x * sum(x) it is sum(x) on the diagonal and x in every column, over all dimensions of both."""
    x = draw(rng, 2, 3)
    at = numbers(x)
    found = jacobian(lambda x: x * x.sum())(x)
    expected = at.sum() * np.eye(6).reshape(2, 3, 2, 3) + at[:, :, None, None]
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-12)


@BOTH
def test_structures(jacobian, rng):
    """For each output what has the structure of the argument, or of the tuple of arguments, outputs outermost."""
    x, y = draw(rng, 2), draw(rng, 3)
    func = lambda x, y: {"outer": x[:, None] * y, "sum": (x.sum(),)}
    found = jacobian(func, argnums=(0, 1))(x, y)
    by_x, by_y = found["outer"]
    np.testing.assert_allclose(numbers(by_x), np.einsum("ik,j->ijk", np.eye(2), numbers(y)), rtol=1e-12)
    np.testing.assert_allclose(numbers(by_y), np.einsum("i,jk->ijk", numbers(x), np.eye(3)), rtol=1e-12)
    np.testing.assert_array_equal(numbers(found["sum"][0][0]), 1)
    np.testing.assert_array_equal(numbers(found["sum"][0][1]), 0)
    one, beside = jacobian(lambda tree: (tree["x"] ** 2, "beside"), has_aux=True)({"x": x})
    np.testing.assert_allclose(numbers(one["x"]), np.diag(2 * numbers(x)), rtol=1e-12)
    assert beside == "beside"


@BOTH
def test_nothing(jacobian, rng):
    """Outputs and arguments without elements have Jacobians without elements, of the right shape."""
    x = draw(rng, 2)
    assert jacobian(lambda x: x[:0])(x).shape == (0, 2)
    assert jacobian(lambda x: x.sum() + lucid.zeros(3, dtype=x.dtype))(x[:0]).shape == (3, 0)


@pytest.mark.parametrize("inner", [jacrev, jacfwd])
@BOTH
def test_jacobian_of_jacobian(jacobian, inner, rng):
    """Every nesting gives the second derivatives, as the Hessian does."""
    x = draw(rng, 3)
    func = lambda x: (x**3).sum() + x[0] * x[1]
    expected = np.diag(6 * numbers(x))
    expected[0, 1] = expected[1, 0] = 1
    np.testing.assert_allclose(numbers(jacobian(inner(func))(x)), expected, rtol=1e-12)
    np.testing.assert_allclose(numbers(hessian(func)(x)), expected, rtol=1e-12)


def test_hessian_of_several(rng):
    """Blocks of second derivatives, for each pair of arguments; of outputs with dimensions, these first."""
    x, y = draw(rng, 2), draw(rng, 2)
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x * y**2).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(numbers(xx), 0)
    np.testing.assert_allclose(numbers(xy), np.diag(2 * numbers(y)), rtol=1e-12)
    np.testing.assert_allclose(numbers(yx), np.diag(2 * numbers(y)), rtol=1e-12)
    np.testing.assert_allclose(numbers(yy), np.diag(2 * numbers(x)), rtol=1e-12)
    cubes = numbers(hessian(lambda x: x**3)(x))
    expected = np.zeros((2, 2, 2))
    expected[[0, 1], [0, 1], [0, 1]] = 6 * numbers(x)
    np.testing.assert_allclose(cubes, expected, rtol=1e-12)


@BOTH
def test_differentiable_outside(jacobian, rng):
    """A Jacobian that depends on what requires grad is on the graph, and off it otherwise."""
    x, weight, u = draw(rng, 2), draw(rng, 2).requires_grad_(), draw(rng, 2, 2)
    found = jacobian(lambda x: weight**2 * x)(x)
    (by_weight,) = lucid.autograd.grad(found, weight, u)
    np.testing.assert_allclose(numbers(by_weight), 2 * numbers(weight) * np.diag(numbers(u)), rtol=1e-12)
    assert not jacobian(lambda x: x**2)(x).requires_grad


@BOTH
def test_inside_of_a_batch(jacobian, rng):
    """One Jacobian for each element."""
    x = draw(rng, 4, 3)
    found = vmap(jacobian(lambda x: x**2))(x)
    np.testing.assert_allclose(numbers(found), [np.diag(2 * row) for row in numbers(x)], rtol=1e-12)


def test_random_numbers_in_jacfwd(rng):
    """They are refused unless they are allowed; then all columns are of one function."""
    x = draw(rng, 3)
    func = lambda x: x.sum() * lucid.rand(2, dtype=x.dtype)
    with pytest.raises(GraphError, match="randomness"):
        jacfwd(func)(x)
    found = numbers(jacfwd(func, randomness="same")(x))
    np.testing.assert_array_equal(found, np.repeat(found[:, :1], 3, axis=1))
    with pytest.raises(SettingError, match="randomness: only allowed"):
        jacfwd(func, randomness="some")


@BOTH
def test_complex_numbers_are_refused(jacobian, rng):
    """The Jacobian of complex numbers has no one meaning; the products have."""
    with pytest.raises(DtypeError, match="expected real tensors"):
        jacobian(lambda x: x * 1j)(draw(rng, 2))
    with pytest.raises(DtypeError, match="expected real tensors"):
        jacobian(lambda z: z.real)(draw(rng, 2) * 1j)
    with pytest.raises(SettingError, match="chunk_size"):
        jacrev(lambda x: x, chunk_size=0)
