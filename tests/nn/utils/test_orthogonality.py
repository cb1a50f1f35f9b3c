"""Weights with orthonormal columns: whatever is trained, assigned or loaded, and what is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import NotDifferentiableError, SettingError, ShapeError
from lucid.nn.utils.parametrizations import orthogonal
from tests.gradients import check_gradient, check_second_derivative, numbers
from tests.pieces.elsewhere import default_device

MAPS = ["matrix_exp", "cayley", "householder"]
SHAPES = [(4, 4), (5, 3), (3, 5), (2, 4, 3)]
each_shape = pytest.mark.parametrize("shape", SHAPES)
each_map = pytest.mark.parametrize("orthogonal_map", MAPS)


class Weight(nn.Module):
    """A module of one weight."""

    def __init__(self, values):
        super().__init__()
        self.weight = nn.Parameter(lucid.tensor(values))


def orthonormal(weight):
    """Return how far columns, or rows, are from orthonormal."""
    w = numbers(weight)
    w = w.swapaxes(-1, -2) if w.shape[-2] < w.shape[-1] else w
    return np.abs(w.conj().swapaxes(-1, -2) @ w - np.eye(w.shape[-1])).max()


@each_shape
@each_map
@pytest.mark.parametrize("trivialization", [True, False])
def test_any_step_stays_orthogonal(shape, orthogonal_map, trivialization, rng):
    """The weight is orthogonal at first, and after steps of training."""
    module = Weight(rng.standard_normal(shape))
    orthogonal(module, orthogonal_map=orthogonal_map, use_trivialization=trivialization)
    optimizer = lucid.optim.SGD(module.parameters(), lr=0.5)
    before = numbers(module.weight)
    for _ in range(3):
        assert orthonormal(module.weight) < 1e-10
        optimizer.zero_grad()
        (module.weight * lucid.tensor(rng.standard_normal(shape))).sum().backward()
        optimizer.step()
    assert orthonormal(module.weight) < 1e-10
    assert np.abs(numbers(module.weight) - before).max() > 1e-3


@each_shape
@each_map
@pytest.mark.parametrize("unitary", [False, True])
def test_an_orthogonal_weight_is_kept(shape, orthogonal_map, unitary, rng):
    """An orthogonal or unitary weight is what training starts at, and what is assigned is read; square, to the bit."""
    wide = shape[-2] < shape[-1]
    if unitary and orthogonal_map == "householder":
        return  # refused, as below

    def drawn():
        values = rng.standard_normal((*shape[:-2], max(shape[-2:]), min(shape[-2:])))
        values = np.linalg.qr(values + 1j * rng.standard_normal(values.shape) if unitary else values)[0]
        return values.swapaxes(-1, -2).copy() if wide else values

    first, second = drawn(), drawn()
    module = orthogonal(Weight(first), orthogonal_map=orthogonal_map)
    same = np.testing.assert_array_equal if shape[-2] == shape[-1] else partial(np.testing.assert_allclose, atol=1e-10)
    same(numbers(module.weight), first)
    module.weight = lucid.tensor(second)
    same(numbers(module.weight), second)


def test_reflections_can_be_assigned_without_trivialization(rng):
    """The map of reflections is reversed; the others say that they cannot be."""
    values = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    module = orthogonal(Weight(rng.standard_normal((5, 3))), use_trivialization=False)
    module.weight = lucid.tensor(values)
    np.testing.assert_allclose(numbers(module.weight), values, atol=1e-10)
    for name in ("matrix_exp", "cayley"):
        module = orthogonal(Weight(values), orthogonal_map=name, use_trivialization=False)
        with pytest.raises(NotDifferentiableError, match="cannot be assigned"):
            module.weight = lucid.tensor(values)


@pytest.mark.gpu
@each_map
def test_the_weight_says_where(orthogonal_map, rng):
    """All that a map computes with lies where the weight does, whatever the default device is."""
    for default, device in (("cpu", "cuda"), ("cuda", "cpu")):
        with default_device(default):
            for shape in ((4, 4), (5, 3)):
                module = Weight(rng.standard_normal(shape)).to(device)
                orthogonal(module, orthogonal_map=orthogonal_map)
                assert module.weight.device.type == device
                assert orthonormal(module.weight) < 1e-10
                module.weight.sum().backward()


@each_map
@pytest.mark.parametrize("shape", [(3, 3), (4, 2)])
def test_gradients(orthogonal_map, shape, rng):
    """First and second derivatives of the maps are those of differences."""
    module = orthogonal(Weight(rng.standard_normal(shape)), orthogonal_map=orthogonal_map)
    part = module.parametrizations.weight[0]
    signs = np.where(np.eye(*shape, dtype=bool), -1.0, 0.0)

    def weight(x):
        return part(x * lucid.tensor(1.0 - np.abs(signs)) + lucid.tensor(signs))

    arrays = [rng.standard_normal(shape)]
    check_gradient(weight, arrays, rng)
    check_second_derivative(weight, arrays, rng)


def test_complex_weights(rng):
    """A complex weight becomes unitary, by the exponential; reflections are refused for it."""
    values = rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))
    module = orthogonal(Weight(values))
    assert orthonormal(module.weight) < 1e-10
    assert module.parametrizations.weight[0].orthogonal_map == "matrix_exp"
    with pytest.raises(SettingError, match="complex"):
        orthogonal(Weight(values), orthogonal_map="householder")


def test_what_is_refused():
    """A name that is not there, a vector, another map and a weight of another shape are refused."""
    with pytest.raises(SettingError, match="no parameter or buffer with name 'w'"):
        orthogonal(nn.Linear(2, 3), "w")
    with pytest.raises(ShapeError, match=r"got shape \[3\]"):
        orthogonal(nn.Linear(2, 3), "bias")
    with pytest.raises(SettingError, match="expected one of 'matrix_exp', 'cayley', 'householder', got 'qr'"):
        orthogonal(nn.Linear(2, 3), orthogonal_map="qr")
    module = orthogonal(nn.Linear(2, 3))
    with pytest.raises(ShapeError, match=r"expected a tensor of shape \[3, 2\]"):
        module.weight = lucid.ones(2, 3)


@each_map
def test_a_complex_weight_stays_unitary(orthogonal_map, rng):
    """Whatever it is made of, not only where it begins."""
    if orthogonal_map == "householder":
        return
    module = orthogonal(Weight(rng.standard_normal((4, 3)) + 0j), orthogonal_map=orthogonal_map)
    values = rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))
    module.parametrizations.weight.original.data = lucid.tensor(values)
    assert orthonormal(module.weight) < 1e-10


def test_a_triangular_weight_is_taken_as_it_is():
    """Columns that need no reflection keep their signs."""
    module = orthogonal(Weight(np.eye(3)), orthogonal_map="householder", use_trivialization=False)
    for signs in ([1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]):
        module.weight = lucid.tensor(np.diag(signs))
        np.testing.assert_allclose(numbers(module.weight), np.diag(signs), atol=1e-12)
