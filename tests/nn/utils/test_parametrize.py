"""Parametrizations: values, assignment, chains, several originals, caches, copies, removal, mistakes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, DtypeError, SettingError
from lucid.nn.utils import parametrizations, parametrize
from tests.gradients import numbers
from tests.pieces import raising


class Symmetric(nn.Module):
    """The upper triangle of a matrix, and its mirror image."""

    def forward(self, x):
        """Return the symmetric matrix."""
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        """Return the triangle."""
        return x.triu()


class Scaled(nn.Module):
    """A multiple of a tensor; it counts its calls."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor, self.calls = factor, 0

    def forward(self, x):
        """Return the multiple."""
        self.calls += 1
        return x * self.factor


class Outer(nn.Module):
    """The outer product of two vectors."""

    def forward(self, x, y):
        """Return the matrix."""
        return x[:, None] * y

    def right_inverse(self, z):
        """Return the first column, and the first row in units of its first element."""
        return z[:, 0], z[0] / z[0, 0]


class Shifted(nn.Module):
    """One more than a tensor."""

    def forward(self, x):
        """Return what is one more."""
        return x + 1

    def right_inverse(self, x):
        """Return what is one less."""
        return x - 1


def matrix(rng, size=3):
    """Return a symmetric matrix."""
    values = rng.standard_normal((size, size))
    return lucid.tensor(values + values.T, dtype=lucid.float32)


def test_a_weight_is_computed_and_assigned(rng):
    """It is the function of what is trained, which an assignment sets by the inverse; the parameter stays the same."""
    layer, bare = nn.Linear(3, 3), nn.Linear(3, 3)
    original, values = layer.weight, numbers(layer.weight)
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    np.testing.assert_allclose(numbers(layer.weight), np.triu(values) + np.triu(values, 1).T, rtol=1e-6)
    assert layer.parametrizations.weight.original is original
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    layer(lucid.ones(1, 3)).sum().backward()
    np.testing.assert_allclose(numbers(original.grad), np.triu(np.ones((3, 3)) * 2) - np.eye(3))
    for wanted in (matrix(rng), nn.Parameter(matrix(rng))):
        layer.weight = wanted
        np.testing.assert_allclose(numbers(layer.weight), numbers(wanted), rtol=1e-6)
        assert layer.parametrizations.weight.original is original
    assert type(bare) is nn.Linear
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert parametrize.type_before_parametrizations(bare) is nn.Linear
    assert [parametrize.is_parametrized(layer, name) for name in (None, "weight", "bias")] == [True, True, False]
    assert not parametrize.is_parametrized(bare)
    assert type(layer).__name__ == "ParametrizedLinear"


def test_chains_and_several_originals(rng):
    """Later ones are applied to the result of earlier ones; the first may compute it of several tensors."""
    layer = nn.Linear(3, 2)
    column, row = lucid.tensor(rng.uniform(1, 2, 2)), lucid.tensor(rng.uniform(1, 2, 3))
    layer.double().weight.data = column[:, None] * row
    before = numbers(layer.weight)
    parametrize.register_parametrization(layer, "weight", Outer())
    np.testing.assert_allclose(numbers(layer.weight), before, rtol=1e-12)
    assert list(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    assert all(isinstance(p, nn.Parameter) for p in layer.parametrizations.weight.parameters())
    layer.eval()
    scaled = Scaled(3.0)
    parametrize.register_parametrization(layer, "weight", scaled)
    assert not scaled.training
    np.testing.assert_allclose(numbers(layer.weight), 3 * before, rtol=1e-12)
    with pytest.raises(SettingError, match="Scaled does not implement right_inverse"):
        layer.weight = layer.weight.detach()
    with pytest.raises(SettingError, match="computed from several tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    np.testing.assert_allclose(numbers(layer.weight), 3 * before, rtol=1e-12)
    assert isinstance(layer.weight, nn.Parameter)
    assert type(layer) is nn.Linear
    assert list(layer.state_dict()) == ["bias", "weight"]


def test_several_at_once(rng):
    """A list of several, the first applied first, is inverted from its end: it begins with the value that there was."""
    values = rng.standard_normal((3, 3))
    made = parametrize.ParametrizationList([Outer(), Shifted()], nn.Parameter(lucid.tensor(np.outer(*values[:2]) + 1)))
    np.testing.assert_allclose(numbers(made()), np.outer(*values[:2]) + 1, rtol=1e-12)
    made.right_inverse(lucid.tensor(np.outer(*values[1:]) + 1))
    np.testing.assert_allclose(numbers(made()), np.outer(*values[1:]) + 1, rtol=1e-12)


@pytest.mark.parametrize("leave", [True, False])
def test_removal(leave):
    """The parameter that optimizers hold gets the value of the weight, or keeps its own."""
    layer = nn.Linear(2, 2)
    original, before = layer.weight, numbers(layer.weight)
    for name in ("weight", "bias"):
        parametrize.register_parametrization(layer, name, Scaled())
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
    assert layer.weight is original
    np.testing.assert_allclose(numbers(layer.weight), before * (2 if leave else 1), rtol=1e-6)
    assert parametrize.is_parametrized(layer, "bias")
    parametrize.remove_parametrizations(layer, "bias")
    assert not hasattr(layer, "parametrizations")
    with pytest.raises(SettingError, match="does not have a parametrization on 'bias'"):
        parametrize.remove_parametrizations(layer, "bias")


def test_buffers_are_parametrized():
    """A buffer stays one: it is no parameter, and moves with the module."""
    norm = nn.BatchNorm1d(2)
    parametrize.register_parametrization(norm, "running_var", Scaled())
    assert norm.running_var.tolist() == [2.0, 2.0]
    assert "parametrizations.running_var.original" in dict(norm.named_buffers())
    assert norm.double().running_var.dtype is lucid.float64
    parametrize.remove_parametrizations(norm, "running_var")
    assert dict(norm.named_buffers())["running_var"].tolist() == [2.0, 2.0]


def test_values_are_computed_once_in_a_cache():
    """In `cached` each read gives the same tensor, blocks may be nested, and an assignment is seen."""
    layer, scaled = nn.Linear(2, 2), Scaled()
    parametrize.register_parametrization(layer, "weight", scaled)
    scaled.calls = 0
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
        assert scaled.calls == 1
        layer.parametrizations.weight[0].right_inverse = lambda x: x / 2
        layer.weight = lucid.ones(2, 2)
        assert layer.weight.tolist() == [[1.0, 1.0]] * 2
    assert layer.weight is not layer.weight


@pytest.mark.parametrize("way", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies(way):
    """A copy has parametrizations of its own, whose removal leaves the original's."""
    layer = parametrizations.weight_norm(nn.Linear(2, 3))
    made = way(layer)
    np.testing.assert_array_equal(numbers(made.weight), numbers(layer.weight))
    made.weight = lucid.ones(3, 2)
    parametrize.remove_parametrizations(made, "weight")
    assert type(made) is nn.Linear
    assert parametrize.is_parametrized(layer)
    assert numbers(layer.weight).std() > 0
    assert layer.load_state_dict(way(layer).state_dict()).missing_keys == []


def test_transfer():
    """Another module gets the parametrizations, and shares what they compute of; a tensor that it lacks is made."""
    layer, other, bare = nn.Linear(2, 2), nn.Linear(2, 2), nn.Module()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    for target in (other, bare):
        assert parametrize.transfer_parametrizations_and_params(layer, target, "weight") is target
        assert target.parametrizations.weight.original is layer.parametrizations.weight.original
        np.testing.assert_array_equal(numbers(target.weight), numbers(layer.weight))
    with pytest.raises(ArgumentError, match="does not have a parametrization on 'bias'"):
        parametrize.transfer_parametrizations_and_params(layer, other, "bias")
    assert not parametrize.is_parametrized(parametrize.transfer_parametrizations_and_params(nn.ReLU(), nn.ReLU()))


class Fault(nn.Module):
    """A parametrization by two functions."""

    def __init__(self, forward, inverse=None):
        super().__init__()
        self.function = forward
        if inverse is not None:
            self.right_inverse = inverse

    def forward(self, *x):
        """Return the function's value."""
        return self.function(*x)


@pytest.mark.parametrize(
    ("text", "forward", "inverse"),
    [
        ("must return a tensor, got int", lambda x: 1, None),
        ("may not change shape or dtype", lambda x: x[0], None),
        ("may not change shape or dtype", lambda x: x.double(), None),
        ("may not change shape or dtype", lambda x: x[0], lambda x: x * 2),
        ("dtype and device of the original", lambda x: x, lambda x: x.double()),
        ("must return a Tensor or a Sequence", lambda x: x, lambda x: 1),
        ("must return a Tensor or a Sequence", lambda x: x, lambda x: ()),
    ],
)
def test_faults_change_nothing(text, forward, inverse):
    """What does not fit is refused, and the module is as it was."""
    layer = nn.Linear(2, 2)
    before, values = layer.weight, numbers(layer.weight)
    with pytest.raises(SettingError, match=text):
        parametrize.register_parametrization(layer, "weight", Fault(forward, inverse))
    assert layer.weight is before
    assert type(layer) is nn.Linear
    np.testing.assert_array_equal(numbers(layer.weight), values)
    parametrize.register_parametrization(layer, "weight", Scaled())
    if "device" not in text:
        with pytest.raises(SettingError, match=r"must return a tensor|may not change"):
            parametrize.register_parametrization(layer, "weight", Fault(forward, inverse))
    assert len(layer.parametrizations.weight) == 1


def test_unsafe_ones_and_names():
    """With `unsafe` shape and dtype may change; names that are no tensors are refused, and taken ones."""
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Fault(lambda x: x[0].double()), unsafe=True)
    assert (layer.weight.shape, layer.weight.dtype) == ((2,), lucid.float64)
    assert layer.parametrizations.weight.unsafe
    other = parametrize.register_parametrization(nn.Linear(2, 2).eval(), "bias", Scaled())
    assert not other.parametrizations.bias.training
    parametrize.register_parametrization(other, "bias", Scaled(), unsafe=True)
    assert other.parametrizations.bias.unsafe
    parametrize.register_parametrization(other, "bias", Scaled())
    assert other.parametrizations.bias.unsafe, "a safe one behind it does not make it safe"
    frozen = nn.Linear(2, 2).requires_grad_(False)
    frozen.weight.data = lucid.ones(2, 2)
    parametrize.register_parametrization(frozen, "weight", Outer())
    assert not any(p.requires_grad for p in frozen.parameters())
    for name in ("in_features", "nothing"):
        with pytest.raises(SettingError, match="does not have a parameter, a buffer"):
            parametrize.register_parametrization(layer, name, Scaled())
    with pytest.raises(KeyError, match="already exists"):
        layer.register_parameter("weight", nn.Parameter(lucid.ones(1)))


def test_an_inverse_that_is_not_there_yet():
    """A right_inverse that raises NotImplementedError counts as the identity at first."""
    layer = nn.Linear(2, 2)
    values = numbers(layer.weight)
    parametrize.register_parametrization(layer, "weight", Fault(lambda x: -x, raising(NotImplementedError)))
    np.testing.assert_array_equal(numbers(layer.weight), -values)


def test_a_buffer_of_several_tensors_stays_a_buffer():
    """What is computed from several tensors without gradients is a buffer again after the removal."""
    module = nn.Module()
    module.register_buffer("kept", lucid.ones(2, 3))
    parametrizations.weight_norm(module, "kept")
    parametrize.remove_parametrizations(module, "kept")
    assert [name for name, _ in module.named_buffers()] == ["kept"]
    assert not list(module.parameters())


@pytest.mark.parametrize("first", [True, False])
def test_an_inverse_that_fails_is_not_one_that_is_missing(first):
    """Errors of lucid that are NotImplementedErrors too, of dtypes, come out; the plain one says that there is none."""
    layer = nn.Linear(2, 2)
    if not first:
        parametrize.register_parametrization(layer, "weight", Scaled())
    with pytest.raises(DtypeError, match="bitwise_not"):
        parametrize.register_parametrization(layer, "weight", Fault(lambda x: x, lambda x: ~x))
    assert parametrize.is_parametrized(layer) is not first

    parametrize.register_parametrization(layer, "weight", Fault(lambda x: x, raising(NotImplementedError)))
    assert parametrize.is_parametrized(layer, "weight")


def test_an_assigned_value_of_another_dtype():
    """What `right_inverse` makes of an assigned value has the dtype of the original, or nothing is changed."""

    class Turned(nn.Module):
        def forward(self, x):
            return -x

        def right_inverse(self, x):
            return -x

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Turned())
    layer.weight = lucid.ones(2, 2)
    assert layer.parametrizations.weight.original.tolist() == [[-1, -1], [-1, -1]]
    with pytest.raises(SettingError, match=r"'right_inverse' must return lucid\.float32, as at first, got .*float64"):
        layer.weight = lucid.zeros(2, 2, dtype=lucid.float64)
    assert layer.parametrizations.weight.original.tolist() == [[-1, -1], [-1, -1]]
    assert layer.weight.dtype is lucid.float32
