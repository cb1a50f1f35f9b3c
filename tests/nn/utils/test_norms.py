"""Weight and spectral norm, as parametrizations and as hooks."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import IndexOutOfRangeError, SettingError
from lucid.nn.utils import norms, parametrizations
from lucid.utils.checkpoint import checkpoint
from tests.gradients import numbers

OLD = pytest.mark.filterwarnings("ignore:weight_norm:FutureWarning")
FORMS = pytest.mark.parametrize("form", [parametrizations, nn.utils], ids=["parametrization", "hook"])


@OLD
@FORMS
@pytest.mark.parametrize(("dim", "shape"), [(0, (4, 1, 1)), (1, (1, 3, 1)), (-2, (1, 3, 1)), (None, ()), (-1, ())])
def test_weight_norm(form, dim, shape, rng):
    """The weight is g v / |v|, and what it was at first; a length is that of one index of `dim`, or of all."""
    layer = nn.Conv1d(3, 4, 2).double()
    before = numbers(layer.weight)
    form.weight_norm(layer, dim=dim)
    np.testing.assert_allclose(numbers(layer.weight), before, rtol=1e-12)
    parts = dict(layer.named_parameters())
    g, v = (parts[name] for name in list(parts)[-2:])
    assert (g.shape, v.shape) == (shape, (4, 3, 2))
    g.data = lucid.tensor(rng.uniform(1, 2, shape))
    v.data = lucid.tensor(rng.standard_normal(v.shape))
    x = lucid.tensor(rng.standard_normal((2, 3, 5)))
    axes = None if shape == () else tuple(axis for axis in range(3) if shape[axis] == 1)
    length = np.sqrt((numbers(v) ** 2).sum(axes, keepdims=axes is not None))
    expected = numbers(v) * numbers(g) / length
    out = layer(x)
    np.testing.assert_allclose(numbers(layer.weight), expected, rtol=1e-12)
    plain = nn.functional.conv1d(x, lucid.tensor(expected), layer.bias)
    np.testing.assert_allclose(numbers(out), numbers(plain), rtol=1e-12)
    out.sum().backward()
    assert np.abs((numbers(v.grad) * numbers(v)).sum(axes)).max() < 1e-9


@OLD
@FORMS
@pytest.mark.parametrize(("make", "rows"), [(lambda: nn.Linear(6, 4), 4), (lambda: nn.ConvTranspose1d(5, 3, 2), 3)])
def test_spectral_norm(form, make, rows, rng):
    """The largest singular value becomes 1; the vectors move in training alone, and both forms keep their names."""
    layer = make().double()
    # singular values far from each other, so that few iterations find the largest
    left, _, right = np.linalg.svd(rng.standard_normal((rows, layer.weight.numel() // rows)), full_matrices=False)
    before = (left * 3.0 ** -np.arange(rows)) @ right * 5
    before = before if rows == 4 else before.reshape(3, 5, 2).transpose(1, 0, 2)
    layer.weight.data = lucid.tensor(before)
    form.spectral_norm(layer, n_power_iterations=40)
    x = lucid.ones(2, before.shape[1] if rows == 4 else 5, *(() if rows == 4 else (3,)), dtype=lucid.float64)
    layer(x)
    np.testing.assert_allclose(numbers(layer.weight), before / 5, rtol=1e-9, atol=1e-12)
    (name, u), _ = layer.named_buffers()
    assert name == ("weight_u" if form is nn.utils else "parametrizations.weight.0._u")
    assert u.shape == (rows,)
    kept = numbers(u).copy()
    trained = dict(layer.named_parameters())[name.replace("weight_u", "weight_orig").replace("0._u", "original")]
    trained.data = trained.detach().flip(0 if rows == 4 else 1).clone()
    layer.eval()(x)
    np.testing.assert_array_equal(numbers(u), kept)
    layer.train()
    # two calls before one backward: each has the vectors that it was computed by
    loss = layer(x).sum() - layer(x * 2).sum()
    loss.backward()
    assert np.abs(numbers(u) - kept).max() > 1e-3
    assert trained.grad is not None


@OLD
def test_removal_of_hooks():
    """The weight is a parameter again, of the value that it has; what is not there cannot be removed."""
    for add, remove in (
        (nn.utils.weight_norm, nn.utils.remove_weight_norm),
        (nn.utils.spectral_norm, nn.utils.remove_spectral_norm),
    ):
        layer = add(nn.Linear(3, 2))
        with pytest.raises(SettingError, match=r"cannot register two|has no parameter"):
            add(layer)
        layer(lucid.ones(3))
        layer.eval()(lucid.ones(3))
        before = numbers(layer.weight)
        assert remove(layer) is layer
        np.testing.assert_allclose(numbers(layer.weight), before, rtol=1e-6)
        assert list(layer.state_dict()) == ["bias", "weight"]
        assert not layer._forward_pre_hooks
        with pytest.raises(SettingError, match="not found in Linear"):
            remove(layer)
        with pytest.raises(SettingError, match="has no parameter with name 'other'"):
            add(layer, "other")
    with pytest.warns(FutureWarning, match="parametrizations"):
        nn.utils.weight_norm(nn.Linear(3, 2))


@OLD
def test_state_of_the_older_weight_norm_is_taken():
    """Its names become those of the parametrization, also below other modules."""
    older = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2)))
    newer = nn.Sequential(parametrizations.weight_norm(nn.Linear(3, 2)))
    newer.load_state_dict(older.state_dict())
    np.testing.assert_array_equal(numbers(newer[0].weight), numbers(older[0].weight))


def test_vectors_and_wrong_settings():
    """A vector is divided by its length; wrong dimensions, counts and names are refused."""
    layer = parametrizations.spectral_norm(nn.Linear(3, 2), "bias")
    assert np.linalg.norm(numbers(layer.bias)) == pytest.approx(1, rel=1e-6)
    assert list(layer.state_dict()) == ["weight", "parametrizations.bias.original"]
    with pytest.raises(IndexOutOfRangeError, match=r"expected one in \[-2, 1\], got 2"):
        parametrizations.spectral_norm(nn.Linear(3, 2), dim=2)
    for form in (parametrizations, nn.utils):
        with pytest.raises(SettingError, match="n_power_iterations to be positive, got 0"):
            form.spectral_norm(nn.Linear(3, 2), n_power_iterations=0)
        with pytest.raises(SettingError, match="has no parameter"):
            form.spectral_norm(nn.Linear(3, 2), "other")
    with pytest.raises(SettingError, match="does not have a parameter"):
        parametrizations.weight_norm(nn.Linear(3, 2), "other")


@OLD
@FORMS
@pytest.mark.parametrize("dim", [2, -3])
def test_dimensions_that_the_weight_has_not(form, dim):
    """Weight norm along a dimension that is not there is refused, and the layer stays as it was."""
    layer = nn.Linear(3, 2)
    with pytest.raises(IndexOutOfRangeError, match=rf"\[-2, 1\].*{dim}"):
        form.weight_norm(layer, dim=dim)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    assert type(layer) is nn.Linear


def test_the_largest_singular_value_is_known_at_once():
    """A parametrization begins with vectors that have come near: in evaluation, too, the norm is 1."""
    layer = nn.Linear(4, 3)
    layer.weight.data = lucid.tensor(np.eye(3, 4) * [4, 1, 0.5, 0], dtype=lucid.float32)
    parametrizations.spectral_norm(layer.eval())
    np.testing.assert_allclose(np.linalg.norm(numbers(layer.weight), 2), 1, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_removal_leaves_the_weight_as_it_is(rng):
    """The hook of a module in training is taken away without another iteration: the last call's weight stays."""
    layer = nn.utils.spectral_norm(nn.Linear(6, 5))
    layer(lucid.tensor(rng.standard_normal((2, 6)), dtype=lucid.float32))
    before = numbers(layer.weight).copy()
    np.testing.assert_array_equal(numbers(nn.utils.remove_spectral_norm(layer).weight), before)


def test_vectors_are_as_long_as_eps_lets_them(rng):
    """They have length 1, or, where `eps` is more than the length of what was drawn, that length divided by it."""
    matrix = lucid.tensor(rng.standard_normal((300, 400)))
    for vector in norms.drawn_vectors(matrix, 1e-12):
        assert np.linalg.norm(numbers(vector)) == pytest.approx(1, rel=1e-12)
    for vector in norms.drawn_vectors(matrix, 1e3):
        assert np.linalg.norm(numbers(vector)) == pytest.approx(len(vector) ** 0.5 / 1e3, rel=0.2)


@FORMS
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_second_run_of_a_checkpoint_goes_no_further(form, use_reentrant, rng):
    """The vectors move on once for each forward, and the gradient is that of the weight which the forward had."""
    x = lucid.tensor(rng.standard_normal((4, 6)), dtype=lucid.float32, requires_grad=True)
    plain = form.spectral_norm(nn.Linear(6, 5))
    twin = copy.deepcopy(plain)
    gradients = []
    for layer, out in ((plain, plain(x)), (twin, checkpoint(twin, x, use_reentrant=use_reentrant))):
        x.grad = None
        out.square().sum().backward()
        gradients.append([x.grad.tolist(), *[each.grad.tolist() for each in layer.parameters()]])
    assert gradients[0] == gradients[1]
    assert [each.tolist() for each in plain.buffers()] == [each.tolist() for each in twin.buffers()]
