"""Instance normalisation: running statistics, inputs without a batch, what is refused."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ShapeError, StateDictError
from tests.gradients import numbers


@pytest.mark.parametrize(("kind", "sizes"), [("1d", (7,)), ("2d", (3, 4)), ("3d", (2, 3, 2))])
def test_values_and_running_statistics(kind, sizes, rng):
    """Each channel of each sample has mean 0 and variance 1; the running ones move by their means over the samples."""
    layer = getattr(nn, f"InstanceNorm{kind}")(3, momentum=0.25, track_running_stats=True)
    values = rng.standard_normal((4, 3, *sizes)) * 2 + 1
    axes = tuple(range(2, values.ndim))
    mean, variance = values.mean(axes, keepdims=True), values.var(axes, keepdims=True)
    x = lucid.tensor(values, dtype=lucid.float32)
    np.testing.assert_allclose(numbers(layer(x)), (values - mean) / np.sqrt(variance + 1e-5), rtol=1e-4, atol=1e-5)
    unbiased = values.var(axes, ddof=1).mean(0)
    np.testing.assert_allclose(numbers(layer.running_mean), 0.25 * mean.mean(0).ravel(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(numbers(layer.running_var), 0.75 + 0.25 * unbiased, rtol=1e-4)
    assert layer.num_batches_tracked == 0
    kept = [numbers(buffer).reshape(3, *[1] * len(sizes)) for buffer in (layer.running_mean, layer.running_var)]
    expected = (values - kept[0]) / np.sqrt(kept[1] + 1e-5)
    np.testing.assert_allclose(numbers(layer.eval()(x)), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(numbers(layer.running_mean).ravel(), kept[0].ravel())


def test_an_input_without_a_batch_is_one_sample(rng):
    """It gives what the batch of one gives, and moves the running statistics as that does."""
    layer = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
    other = copy.deepcopy(layer)
    x = lucid.tensor(rng.standard_normal((3, 4, 5)), dtype=lucid.float32)
    np.testing.assert_array_equal(numbers(layer(x)), numbers(other(x.unsqueeze(0))[0]))
    np.testing.assert_array_equal(numbers(layer.running_var), numbers(other.running_var))


def test_another_number_of_channels():
    """It is refused where something depends on it, and otherwise a warning: the result is right all the same."""
    x = lucid.ones(1, 2, 3)
    for settings in ({"affine": True}, {"track_running_stats": True}):
        with pytest.raises(ShapeError, match=r"expected 3 channels \(num_features\), got 2"):
            nn.InstanceNorm1d(3, **settings)(x)
    with pytest.warns(UserWarning, match="expected 3 channels"):
        assert nn.InstanceNorm1d(3)(x).shape == (1, 2, 3)
    with warnings.catch_warnings(action="error"):
        nn.InstanceNorm1d(2)(x)
        nn.InstanceNorm1d(2)(x[0])


@pytest.mark.parametrize(("kind", "counts"), [("1d", "2D or 3D"), ("2d", "3D or 4D"), ("3d", "4D or 5D")])
def test_other_dimensions_are_refused(kind, counts):
    """An input of another number of dimensions is refused, and one with single elements, which have no spread."""
    layer = getattr(nn, f"InstanceNorm{kind}")(1)
    with pytest.raises(ShapeError, match=f"InstanceNorm{kind}: expected {counts} input"):
        layer(lucid.ones(1))
    with pytest.raises(ShapeError, match="more than 1 spatial element"):
        layer(lucid.ones(1, 1, *[1] * int(kind[0])))


def test_old_state_dicts_with_running_statistics_are_refused():
    """A layer without running statistics does not load them; one with them loads a state dict of the first layout."""
    tracked, plain = nn.InstanceNorm1d(2, track_running_stats=True), nn.InstanceNorm1d(2)
    with pytest.raises(StateDictError, match="running_mean"):
        plain.load_state_dict(tracked.state_dict())
    state = {name: value for name, value in tracked.state_dict().items() if name != "num_batches_tracked"}
    tracked.load_state_dict(state)


def test_volumes_are_normalised_by_batch_norm():
    """BatchNorm3d takes five dimensions, and no others."""
    assert nn.BatchNorm3d(2)(lucid.ones(1, 2, 2, 2, 2)).shape == (1, 2, 2, 2, 2)
    with pytest.raises(ShapeError, match="BatchNorm3d: expected 5D input"):
        nn.BatchNorm3d(2)(lucid.ones(1, 2, 2, 2))
